"""Parts of batches of matrices in blocks."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.formats import TENSOR

Array = NDArray[Any]


def matrices(blocks: Blocks) -> list[Blocks]:
    """The matrices (R, K) of a batch (G, R, K) in blocks along K."""

    def one(group: int) -> Blocks:
        return changed(blocks, lambda x: x[group], blocks.shape[1:])

    return [one(group) for group in range(blocks.shape[0])]


def rows(blocks: Blocks, chosen: slice) -> Blocks:
    """Some entries along the first axis of values (R, ..., K) in blocks along K, without tiles."""
    blocks = blocks.untiled
    count = len(range(*chosen.indices(blocks.shape[0])))
    return changed(blocks, lambda x: x[chosen], (count, *blocks.shape[1:]))


def reshaped(blocks: Blocks, leading: Iterable[int]) -> Blocks:
    """The same values with other axes before K, along which the blocks run.

    Tiles stay if the last of these axes does.
    """
    axes, before = [*leading], len(blocks.leading)
    shape = (*axes, blocks.shape[-1])
    if axes[-1:] == [*blocks.leading[-1:]]:
        axes, before = axes[:-1], before - 1
    else:
        blocks = blocks.untiled
    return changed(blocks, lambda x: x.reshape(*axes, *x.shape[before:]), shape)


def joined(parts: Sequence[Blocks]) -> Blocks:
    """Matrices (R, K) in one format, with no scale of the tensor, one below the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    scales = [np.concatenate(each) for each in zip(*(x.scales for x in parts), strict=True)]
    codes, modes = (
        np.concatenate([getattr(x, name) for x in parts]) for name in ("codes", "modes")
    )
    zeros = [x.zero_points for x in parts if x.zero_points is not None]
    zero_points = np.concatenate(zeros) if zeros else None
    shape = (len(codes), *first.shape[1:])
    return Blocks(first.format, tuple(scales), codes, shape, -1, modes, zero_points)


def changed(blocks: Blocks, function: Callable[[Array], Array], shape: tuple[int, ...]) -> Blocks:
    """Blocks of a shape, with a function of every array that has the axes before K."""
    levels = blocks.format.levels[::-1]
    scales = [
        x if level.group == TENSOR else function(x)
        for level, x in zip(levels, blocks.scales, strict=True)
    ]
    zero_points = blocks.zero_points
    if zero_points is not None and levels[-1].group != TENSOR:
        zero_points = function(zero_points)
    arrays = (function(blocks.codes), function(blocks.modes))
    return Blocks(blocks.format, tuple(scales), arrays[0], shape, -1, arrays[1], zero_points)
