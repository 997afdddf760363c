"""Checks of arguments, with errors of one line: what was needed and what was given."""

from math import prod
from numbers import Integral
from typing import Any, Final, get_args

import numpy as np

AXES_MAX: Final = 64
VALUES_MAX: Final = 1 << 60
"""Limits of a shape: NumPy's number of axes, and a number of bytes that NumPy can count."""


def check_integer(name: str, value: int, low: int, high: int | None = None) -> int:
    """Return `value`, or raise ValueError unless it is an integer from `low` to `high`, if any."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < low
        or (high is not None and value > high)
    ):
        reach = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {reach}, not {value!r}")
    return value


def check_flag(name: str, value: bool) -> None:
    """Raise ValueError unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def check_type(name: str, value: object, kind: Any) -> None:
    """Raise TypeError unless `value` is of a type, or of one of several."""
    if not isinstance(value, kind):
        known = " or ".join(x.__name__ for x in get_args(kind) or (kind,))
        raise TypeError(f"{name} must be {known}, not {type(value).__name__}")


def check_unmasked(name: str, x: object) -> None:
    """Raise TypeError if `x` is an array with masked values, which blocks do not have."""
    if np.ma.is_masked(x):
        raise TypeError(f"{name} must have no masked values: call filled() first")


def check_axis(axis: int, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless a shape has this axis."""
    whole = isinstance(axis, Integral) and not isinstance(axis, bool)
    if not whole or not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis must be an axis of the shape {shape}, not {axis!r}")


def check_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape of at least one axis as integers, or raise ValueError if it is none.

    Axes of length 0 count as of length 1: NumPy has no larger arrays of no values.
    """
    axes = tuple(shape) if isinstance(shape, tuple | list) else ()
    if not axes or any(isinstance(n, bool) or not isinstance(n, Integral) or n < 0 for n in axes):
        raise ValueError(f"shape must be at least one non-negative integer, not {shape!r}")
    if len(axes) > AXES_MAX or prod(max(1, n) for n in axes) > VALUES_MAX:
        raise ValueError(f"shape must have at most {AXES_MAX} axes and 2^60 values, not {shape!r}")
    return tuple(int(n) for n in axes)
