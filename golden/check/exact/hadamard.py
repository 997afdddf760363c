"""The Hadamard transform in fractions, by its matrix, one row at a time.

It keeps to the wording of docs/hardware.md, and imports nothing from the model it checks.
"""

from fractions import Fraction

from axs6.golden.check.exact.floats import (
    Format,
    Special,
    Value,
    float_value,
    floor_log2,
    power,
    round_to_float,
)

GUARD = 8


def entry(row: int, column: int) -> int:
    """An entry of the matrix of Sylvester: -1 where row and column share an odd number of ones."""
    return -1 if (row & column).bit_count() % 2 else 1


def hadamard(patterns: list[int], fmt: Format) -> list[int]:
    """Patterns of the transform of a row of patterns."""
    values = [float_value(each, fmt) for each in patterns]
    size = len(values)
    scale = power(-((size.bit_length() - 1) // 2))
    kept = _kept(values, fmt)
    return [_total(row, values, kept, scale, fmt) for row in range(size)]


def _kept(values: list[Value], fmt: Format) -> list[Fraction]:
    """Finite values cut to the last bit that the block keeps, toward zero."""
    numbers = [x if isinstance(x, Fraction) else Fraction(0) for x in values]
    largest = max(abs(x) for x in numbers)
    exponent = max(floor_log2(largest) if largest else 1 - fmt.bias, 1 - fmt.bias)
    unit = power(exponent - fmt.fraction_bits - GUARD)
    return [int(x / unit) * unit for x in numbers]


def _total(
    row: int, values: list[Value], kept: list[Fraction], scale: Fraction, fmt: Format
) -> int:
    """The pattern of one result."""
    nan = fmt.infinity | 1 << (fmt.fraction_bits - 1)
    if Special.NAN in values:
        return nan
    signs = {
        entry(row, column) * (1 if x is Special.INFINITY else -1)
        for column, x in enumerate(values)
        if x in (Special.INFINITY, Special.NEGATIVE_INFINITY)
    }
    if len(signs) == 2:
        return nan
    if signs:
        return fmt.infinity | (fmt.sign if signs == {-1} else 0)
    total = sum((entry(row, column) * x for column, x in enumerate(kept)), Fraction(0))
    return round_to_float(total * scale, fmt)
