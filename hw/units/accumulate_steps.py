"""Steps of dot products with an accumulator, from which their special cases are made."""

from collections.abc import Iterator, Sequence
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
    items: Items = {"last": np.concatenate([[0] * (len(v) - 1) + [1] for v in vectors])}
    distances = np.array([corner[1:] for corner in corners])
    for side, (name, form) in enumerate((("a", terms.a), ("b", terms.b))):
        codes = np.full((len(corners), terms.reduction), zero_code(form), np.int64)
        for row, (lanes, *_) in enumerate(corners):
            spread = terms.lanes if len(lanes) * terms.lanes <= terms.reduction else 1
            chosen = [lane[side] for lane in lanes[: terms.reduction]]
            codes[row, : len(chosen) * spread : spread] = chosen
        items[f"{name}.codes"] = codes
        for field, codes in _scales(form, distances, terms.reduction, side).items():
            items[f"{name}.{field}"] = codes
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
