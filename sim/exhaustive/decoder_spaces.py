"""Spaces of the decoder: every code in every lane under every scale."""

from math import prod

import numpy as np

from axs6.golden.formats import BlockFormat
from axs6.hw.core.parameters import STRUCTURE, block_format_of
from axs6.hw.registry import UNITS
from axs6.hw.units.decoder import sampled_scales, under_scales
from axs6.sim.exhaustive.space import Design, Items, Space, named

SCALES = 1 << 10
"""Combinations of the scales of a decoder's space, about, where some are only sampled."""


def decoder_space(
    dtype: str, block: int | None = None, view: str = STRUCTURE, format: str = "axs6"
) -> Space:
    """Every code in each lane of the decoder, with every scale; scales of over 8 bits are sampled.

    Args:
        dtype: of the values.
        block: lanes; the fewest of the format by default.
        view: of the decoder.
        format: the block format.
    """
    unit = UNITS["decoder"]
    lanes = block or unit.choices({"format": format})["block"][0]
    parameters = unit.parameters({"block": lanes, "dtype": dtype, "view": view, "format": format})
    fmt, _ = block_format_of(format, lanes)
    scales = sampled_scales(fmt, max(SCALES, 8 * _combinations(fmt)))
    codes = 1 << fmt.element.width
    words = {"outer": "outer scales", "zero_point": "zero points"}
    counts = [(len(known), words.get(k, f"{k.rstrip('s')}s")) for k, known in scales.items()]
    numbers = [*counts, (codes, "codes"), (lanes, "lanes")]

    def inputs(chunk: int) -> Items:
        size = max(lanes, codes)
        turned = (np.arange(lanes)[:, None] + np.arange(lanes)) % lanes
        rows = (np.arange(0, size, lanes)[:, None, None] + turned).reshape(-1, lanes) % codes
        items = under_scales(rows, fmt, scales)
        return {name: each.astype(np.min_scalar_type(each.max())) for name, each in items.items()}

    return Space(
        name=named(f"decoder-{dtype}" if fmt.has_modes else f"decoder-{format}-{dtype}", view),
        formula=" x ".join(f"{_short(count)} {name}" for count, name in numbers),
        cases=prod(count for count, _ in numbers),
        chunks=1,
        design=Design(f"decoder {dtype}", lambda: unit.build(**parameters)),
        inputs=inputs,
        references={"golden model": lambda items: unit.golden(items, parameters)},
    )


def _combinations(fmt: BlockFormat) -> int:
    """Combinations of scales of up to 8 bits and of zero points."""
    narrow = [x.scale for x in fmt.levels if x.scale.bits <= 8]
    zero = 1 if fmt.element.signed else 1 << fmt.element.width
    return zero * prod(1 << scale.bits for scale in narrow)


def _short(count: int) -> str:
    """A number, powers of two from 2^8 on as such."""
    bits = count.bit_length() - 1
    return f"2^{bits}" if bits >= 8 and count == 1 << bits else f"{count:,}"
