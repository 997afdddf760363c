"""Inputs on which `validate` compares the golden model with the definitions.

Floating-point values are handled as bit patterns, whose order below the sign bit is the order of
the magnitudes: the neighbours of a value are its pattern plus and minus one, and a binade is a
step of `1 << fraction_bits`. Integers are their own patterns, negative ones in two's complement.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import (
    BF16,
    FP16,
    FP32,
    FP64,
    Format,
    Special,
    Value,
    float_value,
    power,
    round_to_float,
)

Patterns = NDArray[np.uint64]

NEAR_LIMITS = range(-153, 132)
"""Binades of float64 around those of FP32, whose borders 2^-149 and 2^128 the format names."""

THRESHOLD_EXPONENTS = (
    *(0, 1, 2, 5, 24, 64, 112, 120, 126, 127, 128, 130, 134, 135, 139, 142, 143),
    *(150, 158, 159, 175, 190, 191, 200, 253, 254, 255),
)
"""Shared exponents at which the rounding thresholds are tried, where the dtype reaches them."""


@dataclass(frozen=True)
class InputKind:
    """An input dtype.

    Args:
        name: NumPy's name of the dtype, or "bfloat16".
        width: bits of a value.
        fmt: field widths of a floating-point dtype; None for integers.
        signed: whether there are negative values.
    """

    name: str
    width: int
    fmt: Format | None = None
    signed: bool = True

    @property
    def largest(self) -> int:
        """Largest finite magnitude, as a pattern; of signed integers the negative end."""
        if self.fmt:
            return self.fmt.infinity - 1
        return 1 << self.width - 1 if self.signed else (1 << self.width) - 1

    def array(self, patterns: Patterns) -> NDArray[np.generic]:
        """The patterns as an array that `encode` takes."""
        unsigned = patterns.astype(f"u{self.width // 8}")
        return unsigned if self.name == "bfloat16" else unsigned.view(self.name)

    def value(self, pattern: int) -> Value:
        """Exact value of one pattern."""
        if self.fmt:
            return float_value(pattern, self.fmt)
        wraps = self.signed and pattern >> self.width - 1
        return Fraction(pattern - (1 << self.width) if wraps else pattern)

    def nearest(self, x: Fraction) -> int:
        """Pattern of the finite magnitude nearest to `x`, for x >= 0."""
        if self.fmt:
            return round_to_float(x, self.fmt, saturate=True)
        return min(round(x), self.largest)

    def with_sign(self, magnitudes: Patterns, negative: NDArray[np.bool_]) -> Patterns:
        """Patterns of the magnitudes, negated where `negative` says and the dtype has signs."""
        if not self.signed:
            return magnitudes
        if self.fmt:
            return magnitudes | negative.astype(np.uint64) * np.uint64(self.fmt.sign)
        mask = np.uint64((1 << self.width) - 1)
        return np.where(negative, ~magnitudes + np.uint64(1), magnitudes) & mask

    def below(
        self, top: Patterns, binades: NDArray[np.int64], rng: np.random.Generator
    ) -> Patterns:
        """Random magnitudes up to `top`, within about `binades` binades of it."""
        if self.fmt:
            step = rng.integers(0, binades << self.fmt.fraction_bits, top.shape)
            return top - np.minimum(step.astype(np.uint64), top)
        shift = rng.integers(0, np.minimum(binades, self.width), top.shape)
        shifted = top >> shift.astype(np.uint64)
        return shifted - random_words(rng, top.shape) % ((shifted >> np.uint64(1)) + np.uint64(1))


KINDS = (
    InputKind("float32", 32, FP32),
    InputKind("float16", 16, FP16),
    InputKind("bfloat16", 16, BF16),
    InputKind("float64", 64, FP64),
    InputKind("int8", 8),
    InputKind("int32", 32),
    InputKind("int64", 64),
    InputKind("uint64", 64, signed=False),
)


def random_words(rng: np.random.Generator, shape: tuple[int, ...]) -> Patterns:
    """Uniform 64-bit words."""
    return rng.integers(0, 2**64 - 1, shape, np.uint64, endpoint=True)


def special_magnitudes(kind: InputKind) -> list[int]:
    """Zero, powers of two with both neighbours, subnormal binades, limits, infinities and NaN."""
    if not kind.fmt:
        near = {(1 << k) + step for k in range(kind.width) for step in (-1, 0, 1)}
        return sorted(x for x in near if x <= kind.largest)
    one = 1 << kind.fmt.fraction_bits
    powers = {field * one for field in range(1, (kind.fmt.infinity // one) + 1)}
    found: set[int] = set()
    if kind.fmt is FP64:
        powers = {(kind.fmt.bias + n) * one for n in NEAR_LIMITS}
        powers |= {one, 2 * one, kind.fmt.infinity - one, kind.fmt.infinity}
        single = (float_value(x, FP32) for x in special_magnitudes(KINDS[0]))
        found |= {kind.nearest(x) for x in single if isinstance(x, Fraction)}
    powers |= {1 << k for k in range(kind.fmt.fraction_bits)}
    found |= {power + step for power in powers for step in (-1, 0, 1)}
    return sorted(found | {kind.fmt.infinity | one >> 1, kind.fmt.infinity | one - 1})


def special_blocks(kind: InputKind, size: int, rng: np.random.Generator) -> Patterns:
    """Blocks (n, size) with each special value as the maximum, and as a smaller member.

    The maximum stands at every position in turn, among values up to six binades below it, and
    has the other sign in blocks of the next size. Smaller members come from windows that slide
    over the sorted special values, each window with some signs and with the opposite ones.
    """
    specials = np.array(special_magnitudes(kind), np.uint64)
    n = len(specials)
    magnitudes = kind.below(np.tile(specials[:, None], size), np.full((n, size), 6), rng)
    negative = rng.integers(0, 2, magnitudes.shape, bool)
    rows = np.arange(n)
    magnitudes[rows, rows % size] = specials
    negative[rows, rows % size] = (rows + size.bit_length()) % 2 == 1
    starts = np.arange(0, n, max(1, size // 4))
    windows = specials[np.minimum(starts[:, None] + np.arange(size), n - 1)]
    windows = np.concatenate([windows, windows])
    signs = rng.integers(0, 2, windows.shape, bool)
    signs[len(starts) :] = ~signs[: len(starts)]
    few = _sparse_blocks(kind, size)
    return np.concatenate(
        [kind.with_sign(magnitudes, negative), kind.with_sign(windows, signs), few]
    )


def _sparse_blocks(kind: InputKind, size: int) -> Patterns:
    """Zeros of either sign, alone and with one value: smallest, one, largest, of either sign."""
    values = np.array([0, 1, kind.nearest(Fraction(1)), kind.largest], np.uint64)
    magnitudes = np.zeros((len(values), 2, 2, size), np.uint64)
    magnitudes[..., size // 3] = values[:, None, None]
    negative = np.zeros(magnitudes.shape, bool)
    negative[:, 1] = True
    negative[:, :, 1, size // 3] ^= True
    tiny = np.ones((2, size), np.uint64)
    tiny[:, 0] = (kind.nearest(Fraction(1)), kind.largest)
    below_zero = kind.with_sign(tiny, np.ones(tiny.shape, bool))
    return np.concatenate([kind.with_sign(magnitudes, negative).reshape(-1, size), below_zero])


def near_thresholds(kind: InputKind, scale: Fraction, largest: int = 31) -> list[int]:
    """Magnitudes nearest to k/largest and (k + 1/2)/largest of a scale, each with its neighbours.

    For every k from 0 to largest; values without a pattern are replaced by the nearest with one.
    """
    centres = [kind.nearest(Fraction(k, 2 * largest) * scale) for k in range(2 * largest + 1)]
    return [min(max(centre + step, 0), kind.largest) for centre in centres for step in (-1, 0, 1)]


def threshold_blocks(
    kind: InputKind, size: int, exponents: Iterable[int] = THRESHOLD_EXPONENTS
) -> Patterns:
    """Blocks (n, size) of values next to k/31 and (k + 1/2)/31 of their scale, for every k.

    The first value of a block fixes the scale: half of it, or the largest value below it. The
    scales are those of `exponents` that the dtype reaches.
    """
    rows = []
    for exponent in exponents:
        scale = power(exponent - 127)
        half = kind.nearest(scale / 2)
        if kind.value(half) not in (scale / 2, -scale / 2):
            continue
        near = near_thresholds(kind, scale)
        near += [0] * (-len(near) % (size - 1))
        members = np.array(near, np.uint64).reshape(-1, size - 1)
        full = kind.nearest(scale)
        below = full - 1 if kind.value(full) in (scale, -scale) else full
        for top in (half, below):
            first = np.full((len(members), 1), top, np.uint64)
            rows.append(np.concatenate([first, members], axis=1))
    magnitudes = np.concatenate(rows)
    negative = np.arange(magnitudes.size).reshape(magnitudes.shape) % 3 == 0
    return kind.with_sign(magnitudes, negative)


def random_blocks(kind: InputKind, size: int, count: int, rng: np.random.Generator) -> Patterns:
    """Finite blocks (count, size) over all exponents; each block spans from 1 to all binades."""
    if kind.fmt:
        low = kind.nearest(power(-160)) if kind.fmt is FP64 else 0
        high = kind.nearest(power(128))
        top = rng.integers(low, min(high, kind.largest), (count, 1), np.uint64)
    else:
        shift = rng.integers(0, kind.width, (count, 1), np.uint64)
        top = np.uint64(kind.largest) >> shift
    binades = rng.choice([1, 2, 4, 7, 30, 300], (count, 1))
    shape = (count, size)
    magnitudes = kind.below(
        np.broadcast_to(top, shape), np.broadcast_to(binades, shape).astype(np.int64), rng
    )
    magnitudes[rng.random(shape) < 1 / 16] = 0
    return kind.with_sign(magnitudes, rng.integers(0, 2, shape, bool))


def blocks_with_zeros(kind: InputKind, size: int, count: int, rng: np.random.Generator) -> Patterns:
    """Random blocks (count, size) in which about a quarter of the values is 0, of either sign."""
    patterns = random_blocks(kind, size, count, rng)
    zeros = rng.random(patterns.shape) < rng.choice([0.1, 0.2, 0.25, 0.3], (count, 1))
    negative = rng.integers(0, 2, patterns.shape, bool)
    zero = kind.with_sign(np.zeros(patterns.shape, np.uint64), negative)
    return np.where(zeros, zero, patterns)


def deciding_words(
    values: Sequence[Sequence[Value]],
    largest: Sequence[int],
    bits: int,
    rng: np.random.Generator,
) -> list[list[int]]:
    """Random words of `bits` bits for finite blocks, next to the words that decide the rounding.

    For each value 0, the largest word, the least that rounds up, that less one, or any; `largest`
    are the largest magnitudes at even and at odd indices.
    """
    words = []
    for row in values:
        scale = power(exact.shared_exponent(row) - 127)
        chosen = []
        for index, value in enumerate(row):
            assert not isinstance(value, Special)
            part = int(largest[index % 2] * abs(value) / scale * 2**bits) % 2**bits
            least = (2**bits - part) % 2**bits
            any_word = int(rng.integers(0, 1 << bits))
            options = [0, 2**bits - 1, least, max(least - 1, 0), any_word]
            chosen.append(options[int(rng.integers(len(options)))])
        words.append(chosen)
    return words


def random_codes_in_modes(
    size: int, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Exponents, modes (count,) and codes (count, size) of random blocks of all modes."""
    exponents, modes = rng.integers(0, 256, count, np.uint8), rng.integers(0, 3, count, np.uint8)
    codes = rng.integers(0, 64, (count, size), np.uint8)
    precise = modes == 2
    codes[precise, ::2] = rng.integers(0, 128, codes[precise, ::2].shape, np.uint8)
    codes[precise, 1::2] = rng.integers(0, 32, codes[precise, 1::2].shape, np.uint8)
    for block in np.flatnonzero(modes == 1):
        zeros = rng.permutation(size)[: rng.integers(size // 4, size + 1)]
        codes[block, zeros] = rng.choice(np.array([0, 32], np.uint8), len(zeros))
        dropped = np.flatnonzero(codes[block] & 31 == 0)[: size // 4]
        codes[block, dropped] = 0
    return exponents, modes, codes


def random_codes(
    size: int, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Exponents (count,) and codes (count, size): random ones, then all-extreme ones."""
    exponents = rng.integers(0, 256, count, np.uint8)
    codes = rng.integers(0, 64, (count, size), np.uint8)
    codes[: count // 4] = rng.choice(np.array([0, 31, 32, 63], np.uint8), (count // 4, size))
    extremes = np.array([0, 31, 32, 63], np.uint8)
    limits = np.array([0, 1, 254, 255], np.uint8)
    return (
        np.concatenate([exponents, np.repeat(limits, 4)]),
        np.concatenate([codes, np.tile(extremes, 4)[:, None].repeat(size, axis=1)]),
    )
