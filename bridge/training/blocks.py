"""Block sizes of layers, chosen by measured errors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from axs6.golden import qsnr
from axs6.golden.formats import BlockFormat
from axs6.torch.backends import ProductBatch
from axs6.torch.options import ProductOptions
from axs6.torch.site import Site, Wholes, observed
from axs6.torch.training.options import set_options

SIZES = (64, 32, 16, 8)
MEASURED_ROWS = 256
"""Maximum number of measured rows of an operand."""


def choose_blocks(
    model: nn.Module, inputs: Sequence[Any], least: float, sizes: Sequence[int] = SIZES
) -> dict[str, int]:
    """Give each layer of a converted model the largest blocks that keep its operands' QSNR.

    Larger blocks take fewer bits for scales and have larger errors. Call it again every few hundred
    steps to adapt the blocks to changing weights and activations.

    Args:
        model: what `convert` gave, on the CPU; its formats have blocks.
        inputs: arguments of the model, for one run in which the operands are measured. Batch
            statistics and random states stay unchanged.
        least: QSNR in dB that the worse operand must reach. If no size reaches it, the smallest is
            taken.
        sizes: allowed sizes.

    Returns:
        The size that each place has now, by its name. If a module's own method computes several
        products, all take the smallest size.

    Raises:
        ValueError: there is no size, one does not fit a format, or the model is not converted.
    """
    allowed = sorted(set(sizes), reverse=True)
    if not allowed:
        raise ValueError("sizes must not be empty")
    found: dict[str, int] = {}

    def measure(site: Site, a: Tensor, b: Tensor, result: ProductBatch, wholes: Wholes) -> None:
        size = _largest(site, (a, b), least, allowed)
        found[site.name] = min(size, found.get(site.name, size))

    training, buffers = model.training, [x.clone() for x in model.buffers()]
    with torch.no_grad(), torch.random.fork_rng(devices=[]), observed(measure):
        model.eval()(*inputs)
    model.train(training)
    for buffer, before in zip(model.buffers(), buffers, strict=True):
        buffer.copy_(before)

    def change(name: str, options: ProductOptions) -> ProductOptions:
        own = [size for place, size in found.items() if _within(place, name)]
        return with_block(options, min(own)) if own else options

    set_options(model, change)
    return found


def with_block(options: ProductOptions, block: int) -> ProductOptions:
    """Options with blocks of this size in all formats."""
    formats = {
        name: fmt.with_block(block)
        for name in ("weights", "activations", "gradients")
        if (fmt := getattr(options, name)) is not None
    }
    return replace(options, **formats)


def _within(place: str, name: str) -> bool:
    """Whether a place is this one, or the product of a module of this name."""
    return place == name or place.rpartition(".")[0] == name


def _largest(site: Site, operands: tuple[Tensor, Tensor], least: float, sizes: list[int]) -> int:
    for size in sizes:
        worst = min(
            _qsnr(x, fmt.with_block(size)) for x, fmt in zip(operands, site.formats, strict=True)
        )
        if worst >= least:
            return size
    return sizes[-1]


def _qsnr(x: Tensor, fmt: BlockFormat) -> float:
    rows = x.detach().float().reshape(-1, x.shape[-1])[:MEASURED_ROWS]
    return qsnr(rows.numpy(), fmt) if rows.any() else float("inf")
