"""Steps of dot products with an accumulator, from which their special cases are made."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import FP32, Exponent, Float, Integer, Real, Shift
from axs6.golden.operands import IntegerForm
from axs6.golden.terms import Terms
from axs6.hw.units.accumulate import levels_of, middle_code
from axs6.hw.units.blocks import special_codes
from axs6.hw.units.sum_operands import Lane
from axs6.hw.units.unit import Items

EXPONENTS = range(-150, 180)
"""How far scales are below 1 where a least product has about each exponent of FP32."""


class Corner(NamedTuple):
    """A step.

    `lanes` are the first ones, or those of the first terms, and the others 0; `below` is how far
    the scales are below 1, `apart` how far those of every other group are below the others, and
    `lower` how much of that is moved from the scales of `b` to those of `a`.
    """

    lanes: Sequence[Lane]
    below: int = 0
    apart: int = 0
    lower: int = 0


Vector = list[Corner]


def items_of(vectors: Sequence[Vector], terms: Terms) -> Items:
    """Items without `outer` for vectors, one after the other."""
    corners = [corner for vector in vectors for corner in vector]
    last = np.concatenate([[0] * (len(vector) - 1) + [1] for vector in vectors])
    lanes = [corner.lanes[: terms.reduction] for corner in corners]
    counts = np.array([len(x) for x in lanes])
    given = np.fromiter(chain.from_iterable(chain.from_iterable(lanes)), np.int64).reshape(-1, 2)
    rows = np.repeat(np.arange(len(corners)), counts)
    places = np.arange(len(given)) - (np.cumsum(counts) - counts)[rows]
    places *= np.where(counts * terms.lanes <= terms.reduction, terms.lanes, 1)[rows]
    codes = []
    for side, form in enumerate((terms.a, terms.b)):
        every = np.full((len(corners), terms.reduction), zero_code(form), np.int64)
        every[rows, places] = given[:, side]
        codes.append(every)
    return items_of_codes(codes, np.array([corner[1:] for corner in corners]), last, terms)


def items_of_codes(
    codes: Sequence[NDArray[np.int64]],
    distances: NDArray[np.int64],
    last: NDArray[np.int64],
    terms: Terms,
) -> Items:
    """Items without `outer`.

    Args:
        codes: those of the elements of a and of b, each of shape (steps, reduction).
        distances: `below`, `apart` and `lower` of each step, of shape (steps, 3).
        last: whether each step is the last one of its vector.
        terms: of which a step has the lanes.
    """
    items: Items = {"last": last}
    for side, (name, form) in enumerate((("a", terms.a), ("b", terms.b))):
        items[f"{name}.codes"] = codes[side]
        for field, scales in _scales(form, distances, terms.reduction, side).items():
            items[f"{name}.{field}"] = scales
    return items


def _scales(form: IntegerForm, distances: NDArray[np.int64], lanes: int, side: int) -> Items:
    """The scales within blocks, at the distances of steps; half of `below` is in each operand.

    Groups that are apart are blocks where a step has several, and groups in a block otherwise.
    Exponents take of a distance what shifts behind them leave.
    """
    fmt = form.format
    levels = levels_of(fmt)
    if not levels:
        return {}
    unit = int(fmt.block if lanes > fmt.block else levels[-1][1].group)
    odd = np.arange(lanes) // unit % 2
    below, apart, lower = distances.T[..., None]
    total = below + apart * odd
    left = total // 2 - lower if side else total - total // 2 + lower
    shifts = any(isinstance(level.scale, Shift) for _, level in levels)
    items: Items = {}
    for name, level in levels:
        scale, group = level.scale, int(level.group)
        far = left[:, ::group]
        if isinstance(scale, Exponent):
            far = far - (far & 1) if shifts else far
            left = left - np.repeat(far, group, axis=1)
            codes = middle_code(level) - far
        elif isinstance(scale, Real):
            codes = middle_code(level) - (far << scale.dtype.fraction_bits) + (far & 7)
        elif isinstance(scale, Shift):
            codes = far
        else:
            codes = middle_code(level) - (far & 1)
        codes = np.clip(codes, int(isinstance(scale, Integer)), scale.largest_code)
        single = codes.shape[1] == 1 and group == fmt.block
        items[name] = codes[:, 0] if single else codes
    return items


def element_codes(form: IntegerForm) -> list[list[int]]:
    """Codes of positive elements by their exponent, the largest of each first."""
    element = form.format.element
    special = set(special_codes(form.format).tolist())
    found: dict[int, list[int]] = {}
    for code in range(1 << element.width):
        value = int(element.integers[code])
        if value > 0 and code not in special:
            found.setdefault(value.bit_length(), []).append(code)
    return [codes[::-1] for _, codes in sorted(found.items())]


def zero_code(form: IntegerForm) -> int:
    """The code of 0."""
    return form.format.element.zero_code


def _minus(code: int, form: IntegerForm) -> int:
    """The code of the negative of an element."""
    element = form.format.element
    if element.listed:
        integers = element.integers[: 1 << element.width]
        minus = np.flatnonzero(integers == -integers[code])
        return int(minus[0]) if minus.size else code
    if element.signed_zero or element.divisor > 1:
        return code ^ element.sign_bit
    return -code % (1 << element.width)


def negated(lane: Lane, terms: Terms) -> list[Lane]:
    """The lane with the negative of its product, if its element of a has one."""
    return [(_minus(lane[0], terms.a), lane[1])]


def both_negated(lane: Lane, terms: Terms) -> Lane:
    """The lane with the negatives of both elements, where they have one."""
    return _minus(lane[0], terms.a), _minus(lane[1], terms.b)


def minus_codes(form: IntegerForm) -> NDArray[np.int64]:
    """For each code of an element, that of its negative; the code itself where it has none."""
    return np.array([_minus(code, form) for code in range(1 << form.format.element.width)])


def minus(lanes: Sequence[Lane], terms: Terms) -> list[Lane]:
    """Lanes with the negatives of their products."""
    return [negated(lane, terms)[0] for lane in lanes]


def signed(first: Lane, second: Lane, terms: Terms) -> Iterator[tuple[Lane, Lane]]:
    """Both signs of both."""
    for x in (first, *negated(first, terms)):
        for y in (second, *negated(second, terms)):
            yield x, y


def output_of(terms: Terms) -> Float:
    """The dtype of totals; FP32 for one integer that becomes it."""
    return terms.accumulator.output or FP32
