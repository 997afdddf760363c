"""Checks of arguments at the ends of their ranges."""

from typing import Any

import numpy as np
import pytest

from axs6.golden import arguments

LIMITS = r"shape must have at most 64 axes and 2^60 values, not "


@pytest.mark.parametrize("shape", [(0,), (1,), (3, np.int64(4)), [2] * 60, (1,) * 64, (0, 1 << 60)])
def test_shapes(shape: Any) -> None:
    checked = arguments.check_shape(shape)
    assert checked == tuple(shape)
    assert {type(n) for n in checked} == {int}


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((), "shape must be at least one non-negative integer, not ()"),
        ((-1,), "shape must be at least one non-negative integer, not (-1,)"),
        ((3, True), "shape must be at least one non-negative integer, not (3, True)"),
        ((2.0,), "shape must be at least one non-negative integer, not (2.0,)"),
        ("12", "shape must be at least one non-negative integer, not '12'"),
        ((1,) * 65, LIMITS),
        ((1 << 30, 1 << 31), LIMITS),
        ((0, (1 << 60) + 1), LIMITS),
    ],
)
def test_what_is_no_shape(shape: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        arguments.check_shape(shape)
    assert str(error.value).startswith(message)


def test_types() -> None:
    arguments.check_type("x", 3, int)
    arguments.check_type("x", 3, int | str)
    with pytest.raises(TypeError, match=r"^x must be int, not str$"):
        arguments.check_type("x", "3", int)
    with pytest.raises(TypeError, match=r"^x must be int or str, not float$"):
        arguments.check_type("x", 3.0, int | str)


def test_axes() -> None:
    for axis in (-2, -1, 0, 1, np.int8(1)):
        arguments.check_axis(axis, (3, 4))
    wrong: Any
    for wrong in (-3, 2, True, 0.0):
        message = rf"^axis must be an axis of the shape \(3, 4\), not {wrong!r}$"
        with pytest.raises(ValueError, match=message):
            arguments.check_axis(wrong, (3, 4))


def test_integers() -> None:
    assert [arguments.check_integer("n", n, 2, 4) for n in (2, 3, 4)] == [2, 3, 4]
    assert arguments.check_integer("n", 1 << 70, 2) == 1 << 70
    wrong: Any
    for wrong in (1, 5, True, 3.0):
        with pytest.raises(ValueError, match=rf"^n must be an integer from 2 to 4, not {wrong!r}$"):
            arguments.check_integer("n", wrong, 2, 4)
    with pytest.raises(ValueError, match=r"^n must be an integer of at least 2, not 1$"):
        arguments.check_integer("n", 1, 2)


def test_flags_and_masks() -> None:
    arguments.check_flag("x", False)
    wrong: Any = 1
    with pytest.raises(ValueError, match=r"^x must be True or False, not 1$"):
        arguments.check_flag("x", wrong)
    arguments.check_unmasked("x", np.ma.masked_array([1.0], [False]))
    with pytest.raises(TypeError, match=r"^x must have no masked values: call filled\(\) first$"):
        arguments.check_unmasked("x", np.ma.masked_array([1.0], [True]))
