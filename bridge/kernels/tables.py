"""Elements as tables of entries, which the kernels round to."""

import ctypes
from functools import cache
from typing import Self

import numpy as np

from axs6.golden.formats import Element, Selected, ValueTable
from axs6.golden.formats.table import TABLE_MAX
from axs6.golden.rounding import Rounding
from axs6.golden.tables import ladder

STEPS_MAX = TABLE_MAX - 1
"""Steps from entry to entry of a table, at most."""

TABLE_BITS = 20
"""Bits of the integers of a table that the kernels round to, at most: FP32 holds them and what is
between them, and float64 their parts in stochastic rounding."""

LADDERS = 2
"""Tables of a format: those of both elements of a selection, or one."""


class Ladder(ctypes.Structure):
    """A table as the kernels read it; quantise.hpp documents the fields."""

    _fields_ = [
        ("steps", ctypes.c_int32),
        ("negative_zero", ctypes.c_int32),
        ("minus_zero", ctypes.c_int32),
        ("lowest", ctypes.c_float),
        ("bounds", ctypes.c_float * STEPS_MAX),
        ("step", ctypes.c_float * STEPS_MAX),
        ("entries", ctypes.c_float * TABLE_MAX),
    ]

    @classmethod
    def of(cls, part: Element, whole: Element) -> Self:
        """The ladder of an element that `as_table` accepts, in the units of one it is a part of."""
        table = as_table(part)
        assert table is not None
        values, bounds = ladder(table, Rounding.NEAREST, np.float32)
        values = values * np.float32(times(part, whole))
        bounds = np.ldexp(bounds, table.unit_exponent - (whole.emin - whole.fraction_bits))
        numbers, more = ctypes.c_float * STEPS_MAX, STEPS_MAX - len(bounds)
        return cls(
            steps=len(bounds),
            negative_zero=part.has_negative_zero,
            minus_zero=part.signed_zero,
            lowest=values[0],
            bounds=numbers(*bounds, *[np.inf] * more),
            step=numbers(*np.diff(values)),
            entries=(ctypes.c_float * TABLE_MAX)(*np.pad(values, (0, more), "edge")),
        )


def times(part: Element, whole: Element) -> int:
    """The unit of a part of an element in the units of the whole."""
    return int(part.unit / whole.unit)


def parts(element: Element) -> tuple[Element, ...]:
    """The elements of a selection, or the element."""
    return element.parts if isinstance(element, Selected) else (element,)


@cache
def as_table(element: Element) -> ValueTable | None:
    """A table with the values of an element that are encoded, and the same ties; None without one.

    Both zeros of an element have the one of the table.
    """
    if isinstance(element, ValueTable):
        return element if element.integer_bits <= TABLE_BITS else None
    even = not element.ties_away and (element.fixed or element.fraction_bits > 0)
    if isinstance(element, Selected) or element.width > TABLE_MAX.bit_length() - 1 or not even:
        return None
    if element.width == 1 or element.has_nan or element.has_infinity or not element.signed:
        return None
    counts: list[int | None] = []
    for value in element.integers.tolist():
        counts.append(None if value in counts or abs(value) > element.largest_integer else value)
    return ValueTable(tuple(counts), element.emin - element.fraction_bits, element.divisor)
