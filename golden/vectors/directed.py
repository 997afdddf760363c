"""Blocks of floating-point values at the borders of the format, by what they test."""

from fractions import Fraction

from axs6.golden.check.cases.inputs import InputKind, near_thresholds
from axs6.golden.check.exact.floats import FP16, Format, power

Patterns = list[int]
"""Values as bit patterns."""

SHORT = 8
"""Values in the blocks that are the same in every block size, repeated."""


def directed_blocks(kind: InputKind) -> dict[str, Patterns]:
    """Blocks of 8 values: ties, borders of the exponent, subnormals, zeros, NaN and infinities."""
    found = {**_ordinary(kind), **_tiny(kind), **_special(kind)}
    if kind.fmt is not FP16:
        found |= _limits(kind)
    return {name: values + [0] * (SHORT - len(values)) for name, values in found.items()}


def _format(kind: InputKind) -> Format:
    assert kind.fmt is not None
    return kind.fmt


def _with_negatives(kind: InputKind, magnitudes: Patterns) -> Patterns:
    """The magnitudes, and then the same below zero."""
    return [*magnitudes, *(_format(kind).sign | each for each in magnitudes)]


def _ordinary(kind: InputKind) -> dict[str, Patterns]:
    sign, p = _format(kind).sign, kind.nearest
    one, two, step = p(Fraction(1)), p(Fraction(2)), p(Fraction(2, 62))
    worked = [one, sign | p(Fraction(1, 2)), p(Fraction(1, 4)), 0, 0, 0, 0, p(Fraction(1, 25))]
    return {
        "zeros": [0],
        "negative_zeros": [sign] * 8,
        "worked_block": worked,
        "one": [one],
        "minus_one_last": [0, 0, 0, 0, 0, 0, 0, sign | one],
        "tie_at_half_the_scale": [one, sign | one] * 4,
        "next_to_the_tie": _with_negatives(kind, [one - 1, one, one + 1]),
        "next_below_the_scale": _with_negatives(kind, [two - 1, two - 2]),
        "power_of_two_takes_the_next_exponent": [two, two - 1, one, one - 1],
        "powers_of_two": [p(power(-k)) for k in range(8)],
        "largest_of_each_binade": [p(power(-k)) - 1 for k in range(8)],
        "next_to_half_a_step": [one, *_with_negatives(kind, [step - 1, step, step + 1])],
        "rounds_to_negative_zero": [one, *(sign | p(power(-k)) for k in (5, 6, 7, 8)), sign | 1],
        "negative_zero_beside_one": [one, sign, 0, sign],
    }


def _tiny(kind: InputKind) -> dict[str, Patterns]:
    fmt = _format(kind)
    normal = 1 << fmt.fraction_bits
    return {
        "smallest_subnormal": [1],
        "smallest_subnormals": _with_negatives(kind, [1, 2, 3]),
        "subnormal_powers_of_two": [normal >> k for k in range(1, 8)],
        "largest_subnormal": _with_negatives(kind, [normal - 1, normal - 2, 1]),
        "smallest_normal_among_subnormals": [normal, normal - 1, fmt.sign | normal >> 1, 1],
        "subnormals_beside_one": [kind.nearest(Fraction(1)), normal - 1, fmt.sign | 1, normal],
    }


def _limits(kind: InputKind) -> dict[str, Patterns]:
    """At the ends of the exponents' range, which FP16 does not reach."""
    sign, p = _format(kind).sign, kind.nearest
    scale = power(-127)
    step = p(scale / 62)
    top = p(power(127))
    return {
        "below_exponent_0": _with_negatives(kind, [p(power(-129)), p(power(-130)), 1]),
        "largest_at_exponent_0": _with_negatives(kind, [p(scale) - 1, p(scale) - 2]),
        "tie_at_exponent_0": _with_negatives(kind, [p(scale / 2) - 1, p(scale / 2)]),
        "next_to_half_a_step_at_exponent_0": _with_negatives(kind, [step - 1, step, step + 1]),
        "smallest_at_exponent_1": _with_negatives(kind, [p(scale), p(scale) - 1, step]),
        "exponent_254": _with_negatives(kind, [top - 1, p(power(126)), p(power(120))]),
        "smallest_at_exponent_255": _with_negatives(kind, [top, top - 1]),
        "largest_finite": _with_negatives(kind, [kind.largest, kind.largest - 1, top]),
        "largest_and_smallest": [kind.largest, sign | 1],
    }


def _special(kind: InputKind) -> dict[str, Patterns]:
    fmt = _format(kind)
    sign, infinity = fmt.sign, fmt.infinity
    nan, largest = infinity | 1 << fmt.fraction_bits - 1, infinity - 1
    one = kind.nearest(Fraction(1))
    return {
        "largest_finite_of_the_format": [largest, sign | largest, one],
        "infinity": [infinity, one, sign | largest, largest, sign | 1, sign, 0],
        "negative_infinity": [0, 0, 0, 0, 0, 0, 0, sign | infinity],
        "infinities": [infinity, sign | infinity] * 4,
        "nan": [nan, one, sign | one],
        "nan_beside_subnormals": [1, 2, sign | 3, nan],
        "nan_alone": [nan] * 8,
        "signalling_and_negative_nan": [infinity | 1, sign | infinity | 1, sign | nan, one],
        "nan_of_all_ones": [one, sign | sign - 1],
        "nan_and_infinity": [nan, sign | infinity, one, sign | nan],
    }


def blocks_by_zeros(kind: InputKind, block: int) -> dict[str, Patterns]:
    """Blocks with more, as many and fewer zeros than sparse blocks need: a quarter."""
    sign, one = _format(kind).sign, kind.nearest(Fraction(1))
    quarter = block // 4
    full = [one - k for k in range(block)]
    below, tiny = kind.nearest(Fraction(9, 155)), sign | 1
    return {
        "quarter_of_zeros_first": [0] * quarter + full[quarter:],
        "quarter_of_zeros_last": full[quarter:] + [sign] * quarter,
        "quarter_of_zeros_spread": [0 if k % 4 == 2 else x for k, x in enumerate(full)],
        "one_zero_too_few": [0] * (quarter - 1) + full[quarter - 1 :],
        "more_zeros_than_a_quarter": [x if k % 2 else 0 for k, x in enumerate(full)],
        "zeros_alone": [0] * block,
        "one_value_alone": [0] * (block - 1) + [sign | one],
        "negative_zeros_are_dropped": [tiny] * quarter + full[quarter:],
        "later_negative_zeros_are_stored": [tiny] * (quarter + 1) + full[quarter + 1 :],
        "nan_is_a_zero": [kind.largest + 2] * quarter + full[quarter:],
        "zeros_toward_zero_alone": [below] * quarter + full[quarter:],
    }


def blocks_by_error(kind: InputKind, block: int) -> dict[str, Patterns]:
    """Blocks that are nearer to dense values, nearer to high-precision ones, and infinite."""
    p, infinity = kind.nearest, _format(kind).infinity
    dense = [p(Fraction(2 * (31 - k % 31), 31)) for k in range(1, block + 1)]
    precise = [p(Fraction(2 * (n - k % n), n)) for k, n in enumerate([63, 15] * (block // 2), 1)]
    return {
        "values_of_dense_codes": dense,
        "values_of_high_precision_codes": precise,
        "infinity_is_dense": [infinity, *precise[1:]],
        "nan_is_dense": [infinity + 1, *precise[1:]],
    }


def precise_thresholds(kind: InputKind, block: int, exponent: int) -> list[Patterns]:
    """Blocks of values next to the rounding thresholds of high-precision codes, all of them.

    The first value fixes the scale: the largest below it.
    """
    scale = power(exponent - 127)
    full = kind.nearest(scale)
    even, odd = (sorted({x for x in near_thresholds(kind, scale, n) if x < full}) for n in (63, 15))
    sign, each = _format(kind).sign, block // 2
    even = [sign * (k % 2) | x for k, x in enumerate(even)]
    odd = [sign * (k % 3 == 0) | x for k, x in enumerate(odd)]
    blocks = []
    for start in range(0, len(even), each - 1):
        evens = [full - 1, *even[start : start + each - 1]]
        evens += [0] * (each - len(evens))
        odds = [odd[(start + k) % len(odd)] for k in range(each)]
        blocks.append([x for pair in zip(evens, odds, strict=True) for x in pair])
    return blocks
