"""Weights of checkpoints as `Blocks`, with which hardware and golden model compute, and back."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.kinds import meaning
from axs6.files.checkpoints.layouts import LAYOUTS, WeightLayout
from axs6.files.checkpoints.recode import recode
from axs6.files.checkpoints.recognise import grid
from axs6.files.checkpoints.weight import ScaleLevel, Weight
from axs6.golden.blocks import Blocks, scale_shape
from axs6.golden.formats import BlockFormat, name_of
from axs6.golden.scaling import code_dtype


def plain_layout(fmt: BlockFormat) -> WeightLayout:
    """The layout whose scales are those of a format: multiplied, each level on its own.

    Raises:
        ValueError: there is none.
    """
    for layout in LAYOUTS:
        multiplied = not any(part.inverse for part in layout.scales)
        if multiplied and not layout.interleaved and meaning(layout.format) == meaning(fmt):
            return layout
    raise ValueError(f"no checkpoint holds weights in {name_of(fmt)}")


def blocks_of_weight(weight: Weight, fmt: BlockFormat) -> Blocks:
    """The blocks (rows, K) of a weight, with its codes and scales.

    Args:
        weight: of a checkpoint.
        fmt: the format.

    Raises:
        ValueError: the format does not have the weight's elements and scales; the message names
            the weight.
    """
    try:
        coded = recode(weight, plain_layout(fmt)).load()
    except ValueError as error:
        said = str(error)
        raise ValueError(
            said if weight.name in said else f"tensor {weight.name!r}: {said}"
        ) from error
    rows, length = weight.rows, weight.length
    if fmt.rows > 1 and len(weight.shape) > 2 and weight.shape[-2] % fmt.rows:
        raise ValueError(
            f"tensor {weight.name!r}: rows of several matrices share no tiles of {fmt.rows} rows"
        )
    count = -(-length // fmt.block)
    codes = np.zeros((rows, count * fmt.block), np.uint8)
    codes[:, :length] = coded.codes(0, rows)
    scales = []
    for level, held in zip(fmt.levels, coded.scales, strict=True):
        dtype = code_dtype(level.scale.bits)
        bits = held.factors.view(np.uint32) if dtype == np.uint32 else held.codes
        shape = scale_shape(level, (rows,), count, fmt.block)
        flat = np.ascontiguousarray(bits).reshape(-1).astype(dtype)
        scales.append(np.broadcast_to(flat, (math.prod(shape),)).reshape(shape).copy())
    weight.release()
    return Blocks(fmt, tuple(scales[::-1]), codes.reshape(rows, count, fmt.block), (rows, length))


def weight_of_blocks(name: str, blocks: Blocks, shape: tuple[int, ...]) -> Weight:
    """A weight of this shape, of blocks (rows, K) along the last axis.

    Raises:
        ValueError: no checkpoint holds weights in the format, or blocks along several axes.
    """
    layout = plain_layout(blocks.format)
    if blocks.length != shape[-1]:
        raise ValueError(
            f"tensor {name!r} must have blocks along its last axis, of {shape[-1]} values, not "
            f"along rows of {blocks.length}"
        )
    codes = blocks.codes.reshape(*blocks.leading, -1)[..., : blocks.length]
    scales = []
    for part, held in zip(layout.scales, blocks.scales[::-1], strict=True):
        number = next(iter(part.numbers.values()))
        shaped = (1, 1, 1) if held.ndim == 0 else grid(shape, part)
        scales.append(ScaleLevel.of(number, held.astype(number.dtype).reshape(shaped), part))

    def read(first: int, count: int) -> NDArray[np.uint8]:
        return codes.reshape(-1, blocks.length)[first : first + count]

    raw: Callable[[int, int], NDArray[Any]] | None = None
    return Weight(name, layout, shape, tuple(scales), read, raw, 0, ())
