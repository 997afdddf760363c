"""Spaces of conversions: block sums to FP32, and aligned sums to the output of an accumulator.

All sums of a width are there where they are few. Of wider ones there are `rounding_sums`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.accumulator import ACCUMULATORS
from axs6.golden.floats import round_to_float
from axs6.golden.formats import FP32, ROW_FORMATS, block_format
from axs6.golden.kulisch import leading
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.dot.align import AlignPlan
from axs6.hw.dot.shape import WORD, DotShape, multiplied
from axs6.hw.dot.terms import TermPlan, step_terms
from axs6.hw.fp32.convert import conversion_steps
from axs6.hw.fp32.normalise import ScaledInteger, normalising_steps
from axs6.hw.fp32.number import MINUS, NAN, PLUS
from axs6.sim.exhaustive.space import Design, Items, Space, sliced

ALL_CASES = 1 << 28
"""Maximum number of sums times exponents for comparing all."""

CHUNK_SUMS = 1 << 22
"""Maximum number of sums of a chunk."""

DIGIT = 32
"""Bits of the parts in which the golden model takes a wide sum."""

SPECIAL = np.array([NAN, PLUS, MINUS])
SPECIAL_PATTERNS = np.array(
    [0, FP32.quiet_nan, FP32.infinity, FP32.sign_bit | FP32.infinity], np.uint32
)
"""By the value of `special`."""

ALIGNED = block_format("mxfp4")
"""The format whose sums are aligned: every accumulator that has a name takes it, unless it
promotes blocks of another size."""


def conversion_spaces() -> list[Space]:
    """The sums of all block dot products, and the aligned sums of all accumulators with names."""
    formats = [name for name, fmt in ROW_FORMATS.items() if multiplied(fmt)]
    wide = {
        _aligned(name): name
        for name, how in reversed(ACCUMULATORS.items())
        if how.fraction and how.sum_fraction is None and not how.scaled
    }
    aligned = [aligned_space(name, each) for each, name in reversed(wide.items())]
    return [*map(conversion_space, formats), *aligned]


def _aligned(accumulator: str) -> ScaledInteger:
    terms = step_terms(ALIGNED, ALIGNED, ACCUMULATORS[accumulator])
    return AlignPlan(TermPlan(terms)).wide


def conversion_space(format: str = "axs6") -> Space:
    """Conversion to FP32 of sums of a block dot product with every sum of exponents, and of special
    values.

    Args:
        format: the block format.
    """
    shape = DotShape.of(format)
    exponents = sum(form.largest_exponent for form in shape.forms) + 1
    sums = Sums(shape.width, every=exponents << shape.width <= ALL_CASES)
    special = SPECIAL if shape.special else SPECIAL[:0]
    parts = 1 if shape.special else max(1, sums.count // CHUNK_SUMS)
    size = sums.count // parts

    def inputs(chunk: int) -> Items:
        exponent, part = divmod(chunk, parts)
        items = _words(sums.part(part * size, size), shape.width, len(special))
        rows = size + len(special)
        if shape.exponent_bits:
            items["exponent"] = np.full(rows, exponent, np.uint16)
        if shape.special:
            items["special"] = np.concatenate([np.zeros(size, np.uint8), special.astype(np.uint8)])
        return items

    def golden(items: Items) -> Items:
        exponent = items.get("exponent", np.zeros(len(items["sum"]), np.uint16))
        special = items.get("special", np.zeros(len(items["sum"]), np.uint8))
        arrays = [exponent, special, *(items[name] for name in ("sum", "high") if name in items)]
        return {"value": sliced(convert, arrays)}

    def convert(exponent: Any, special: Any, low: Any, *high: Any) -> fp32.Bits:
        # Shifts of the word fill with the sign, if it has one.
        wide = low if high else low.astype(np.int64)
        parts = (wide & wide.dtype.type((1 << DIGIT) - 1), wide >> wide.dtype.type(DIGIT))
        digits = [*(part.astype(np.int64) for part in parts), *high]
        negative, top, above, sticky = leading(digits, DIGIT)
        above += exponent + np.int64(shape.offset)
        value = fp32.round_to_fp32(negative, top, above, sticky)
        return np.where(special == 0, value, SPECIAL_PATTERNS[special])

    formula = sums.formula
    if shape.special:
        formula += f" and {len(special)} specials"
    if shape.exponent_bits:
        formula += f" x {exponents} exponent sums"
    return Space(
        name="conversion" if format == "axs6" else f"conversion-{format}",
        formula=formula,
        cases=exponents * (parts * size + len(special)),
        chunks=exponents * parts,
        design=Design(
            f"conversion of {format}",
            lambda: Pipeline(conversion_steps(shape.sum, shape.offset), 0),
        ),
        inputs=inputs,
        references={"golden model": golden},
    )


def aligned_space(accumulator: str, wide: ScaledInteger) -> Space:
    """Rounding of aligned sums with every exponent, and of special values, to the output of an
    accumulator.

    Args:
        accumulator: its name.
        wide: the sums.
    """
    width, dtype = wide.bits + 1, wide.dtype
    sums = rounding_sums(width)
    count = len(sums)
    nothing = np.array([dtype.quiet_nan, dtype.infinity, dtype.sign_bit | dtype.infinity])

    def inputs(chunk: int) -> Items:
        flags = {"nan": [1, 0, 0], "infinite": [0, 1, 1], "negative": [0, 0, 1]}
        return {
            **_words(sums, width, len(nothing)),
            "top": np.full(count + len(nothing), 1 + chunk, np.uint16),
            **{name: np.array([0] * count + last, np.uint8) for name, last in flags.items()},
        }

    def convert(numbers: NDArray[Any], top: NDArray[np.uint16]) -> NDArray[np.uint32]:
        exponent = top + np.int64(wide.exponent)
        signed = numbers.astype(np.int64)
        magnitude = np.abs(signed).view(np.uint64)
        rounded = round_to_float(dtype, signed < 0, magnitude, exponent, False, wide.toward_zero)
        if wide.plus_zero:
            rounded = np.where(rounded == dtype.sign_bit, 0, rounded)
        return rounded.astype(np.uint32)

    def golden(items: Items) -> Items:
        value = sliced(convert, (items["sum"], items["top"]))
        value[count:] = nothing
        return {"value": value}

    return Space(
        name=f"aligned-{accumulator}",
        formula=f"{count:,} sums and {len(nothing)} specials x {wide.top_bound} exponents",
        cases=wide.top_bound * (count + len(nothing)),
        chunks=wide.top_bound,
        design=Design(f"rounding of {accumulator}", lambda: Pipeline(normalising_steps(wide), 0)),
        inputs=inputs,
        references={"golden model": golden},
    )


@dataclass(frozen=True)
class Sums:
    """The sums of a space.

    Args:
        width: bits with the sign.
        every: whether there are all of this width; else `rounding_sums`.
    """

    width: int
    every: bool

    @property
    def count(self) -> int:
        """How many there are."""
        return 1 << self.width if self.every else len(rounding_sums(self.width))

    @property
    def formula(self) -> str:
        """How many there are, in words."""
        return f"2^{self.width} sums" if self.every else f"{self.count:,} sums"

    def part(self, start: int, count: int) -> NDArray[Any]:
        """Some of them, as int64 or, where they are wider, integers of Python."""
        if not self.every:
            return rounding_sums(self.width)[start : start + count]
        half = 1 << self.width - 1
        return (np.arange(start, start + count) ^ half) - half


def _words(sums: NDArray[Any], width: int, zeros: int) -> Items:
    """The fields of sums, with some zeros behind them."""
    sums = np.concatenate([sums, np.zeros(zeros, sums.dtype)])
    if width > WORD:
        low = (sums & (1 << WORD) - 1).astype(np.uint64)
        return {"sum": low, "high": (sums >> WORD).astype(np.int64)}
    bits = next(bits for bits in (16, 32, 64) if bits >= width)
    return {"sum": sums.astype(f"i{bits // 8}")}


@cache
def rounding_sums(width: int) -> NDArray[Any]:
    """Numbers in two's complement that meet every case of a rounding, wherever it cuts.

    With each highest bit and each place of the first bit dropped, there are all patterns of that
    bit and its neighbours; zeros and ones between the highest bit and those; and zeros, ones and
    the lowest bit alone below them. So what is dropped is below, at and above a half, and a carry
    goes through all bits or stops at the first. Sums of up to three powers of two have every bit
    alone beside each highest one, and below each half.

    Args:
        width: bits with the sign.
    """
    magnitudes = set(_magnitudes(width - 1))
    signed = sorted({*magnitudes, *(-x for x in magnitudes)})
    return np.array(signed, object if width > WORD else np.int64)


def _magnitudes(bits: int) -> Iterator[int]:
    """Magnitudes of `rounding_sums` with at most `bits` bits, some more than once."""
    yield 0
    for terms in (1, 2, 3):
        yield from (sum(1 << place for place in each) for each in combinations(range(bits), terms))
    for top in range(bits):
        for first, three, ones in product(range(1, top), range(8), (0, 1)):
            above = ones * ((1 << top) - (1 << min(first + 2, top)))
            middle = three << first - 1 & (1 << top) - 1
            for below in {0, min(1, first - 1), (1 << first - 1) - 1}:
                yield 1 << top | above | middle | below
