"""Encoding in every block format, in fractions: the exact model, one group at a time.

Each function keeps to the wording of docs/formats.md, at the cost of speed. Nothing is imported
from the model that `validate` compares with this one.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Final, NamedTuple

from axs6.golden.check.exact.blocks import Block, scale_value, tiled
from axs6.golden.check.exact.floats import (
    FP32_NAN,
    Special,
    Value,
    power,
)
from axs6.golden.check.exact.formats import (
    Definition,
    Element,
    Exponent,
    Level,
    Real,
    negated,
    real_code,
    real_element,
    real_range,
    real_value,
)
from axs6.golden.check.exact.rounding import (
    NEAREST,
    Rounding,
    counted,
    fp32,
    listed_code,
    rounded,
)
from axs6.golden.check.exact.scales import (
    FP32_LARGEST,
    GroupEncoding,
    ScalesAbove,
    divide,
    find_scale,
    held,
    quotient,
    under,
)

INFINITE: Final = (Special.INFINITY, Special.NEGATIVE_INFINITY)


def encode(
    rows: Sequence[Sequence[Value]],
    definition: Definition,
    rounding: Rounding = NEAREST,
    words: Sequence[Sequence[int]] | None = None,
    nonfinite: str = "saturate",
    given: Fraction | None = None,
) -> list[list[Block]]:
    """The blocks of each row of a tensor.

    Args:
        rows: values along the axis of the blocks, rows of one length.
        definition: the format.
        rounding: of elements.
        words: a random integer for each value, for stochastic rounding.
        nonfinite: "saturate" or "propagate".
        given: the outermost real scale, where it is known beforehand.
    """
    size = definition.block
    columns, bands = -(-len(rows[0]) // size), -(-len(rows) // definition.rows)
    propagate = nonfinite == "propagate"
    given_words = words or [[0] * len(row) for row in rows]
    padding = [_Lane(Fraction(0), Fraction(0), 0)] * (columns * size - len(rows[0]))
    grid = [
        [
            _Lane(x, _signed(x, propagate), word)
            for x, word in zip(map(limited, row), each, strict=True)
        ]
        + padding
        for row, each in zip(rows, given_words, strict=True)
    ]
    places = [
        (band * definition.rows + row, column * size + lane)
        for band in range(bands)
        for column in range(columns)
        for row in range(definition.rows)
        for lane in range(size)
    ]
    lanes = [grid[row][at] if row < len(rows) else BELOW for row, at in places]
    levels = definition.levels[::-1]
    sizes = [_group_size(level, definition, len(lanes), columns * size) for level in levels]
    found = GroupEncoding(definition, rounding, propagate, given, [[] for _ in levels], [], [])
    _encode_group(lanes, levels, tuple(sizes), ScalesAbove(), found)
    blocks = {
        places[number * size]: _block(found, sizes, number) for number in range(len(lanes) // size)
    }
    return [[blocks[row, k * size] for k in range(columns)] for row in range(len(rows))]


def limited(x: Value) -> Value:
    """The value, or an infinity from 2^128 on."""
    if isinstance(x, Fraction) and abs(x) >= power(128):
        return Special.INFINITY if x > 0 else Special.NEGATIVE_INFINITY
    return x


def _group_size(level: Level, definition: Definition, tensor: int, channel: int) -> int:
    if isinstance(level.group, int):
        return level.group * (definition.rows if tiled(level, definition) else 1)
    return tensor if level.group == "tensor" else channel


def _block(found: GroupEncoding, sizes: Sequence[int], number: int) -> Block:
    block = found.definition.block
    start = number * block
    scales = tuple(
        tuple(codes[start // size : max(start // size + 1, (start + block) // size)])
        for codes, size in zip(found.scales, sizes, strict=True)
    )
    zero_point = found.zero_points[start // sizes[0]] if found.zero_points else None
    return Block(scales, tuple(found.codes[start : start + block]), zero_point)


class _Lane(NamedTuple):
    """One value.

    Args:
        value: what it is.
        number: what the scales take it for, a number.
        word: the random integer of stochastic rounding.
    """

    value: Value
    number: Fraction
    word: int


BELOW: Final = _Lane(Fraction(0), Fraction(0), 0)
"""A value below the last row of a matrix, in a tile at its edge."""


def _signed(x: Value, propagate: bool) -> Fraction:
    """A value as maxima take it: of NaN 0, of infinities 0 or the largest FP32 value."""
    if isinstance(x, Fraction):
        return x
    if propagate or x not in INFINITE:
        return Fraction(0)
    return FP32_LARGEST if x is Special.INFINITY else -FP32_LARGEST


def _encode_group(
    lanes: Sequence[_Lane],
    levels: Sequence[Level],
    sizes: Sequence[int],
    above: ScalesAbove,
    found: GroupEncoding,
) -> None:
    """Append the scales within a group and its codes."""
    if not levels:
        found.codes.extend(0 if x is BELOW else _element(x, above, found) for x in lanes)
        return
    depth = len(found.scales) - len(levels)
    for start in range(0, len(lanes), sizes[0]):
        group = lanes[start : start + sizes[0]]
        if isinstance(levels[0], Real) and levels[0].zero_point:
            _encode_with_zero_point(group, levels[0], found)
            continue
        top = max(abs(lane.number) for lane in group)
        code, within = find_scale(levels, top, above, found)
        if len(levels) == 1 and found.definition.choice != "max":
            code = _chosen(code, group, above, found)
            within = under(levels[0], code, above)
        begun = len(found.codes)
        if len(levels) == 1 and found.definition.second:
            code |= _selected(group, levels[0], within, found) << (levels[0].bits - 1)
        else:
            _encode_group(group, levels[1:], sizes[1:], within, found)
        nan = _nan_scale(levels, group, found)
        if nan is not None:
            found.codes[begun:] = [found.definition.element.zero] * len(group)
        found.scales[depth].append(code if nan is None else nan)


def _nan_code(level: Level) -> int | None:
    if isinstance(level, Exponent):
        return 2**level.bits - 1 if level.nan else None
    if isinstance(level, Real) and level.specials != "none":
        return FP32_NAN if level.single else real_element(level).nan
    return None


def _nan_scale(levels: Sequence[Level], lanes: Sequence[_Lane], found: GroupEncoding) -> int | None:
    """NaN as the group's scale, if a value needs it and no finer scale has it."""
    if not found.propagate or any(_nan_code(level) is not None for level in levels[1:]):
        return None
    element = found.definition.element
    specials = [lane.value for lane in lanes if isinstance(lane.value, Special)]
    needed = any(_own_code(x, element) is None for x in specials)
    return _nan_code(levels[0]) if needed else None


def _own_code(x: Special, element: Element) -> int | None:
    """The code of NaN, an infinity or -0 in an element that has one."""
    return element.nan if x is Special.NAN else element.codes.get(x)


def _chosen(code: int, lanes: Sequence[_Lane], above: ScalesAbove, found: GroupEncoding) -> int:
    """The code of the best scale of a group for which the rule gives a code."""
    (level, *_), candidates = found.definition.levels, [code]
    if found.definition.choice == "four-over-six":
        assert isinstance(level, Real)
        top = max(abs(lane.number) for lane in lanes)
        candidates.append(held(quotient([level], top, above, found, Fraction(3, 2)), level))
    else:
        lowest = 0 if isinstance(level, Exponent) else 1
        if isinstance(level, Real):
            lowest = real_code(real_range(level)[0], level)
        largest = 2**level.bits - 1
        if isinstance(level, Real):
            largest = real_code(real_range(level)[1], level)
        if isinstance(level, Exponent) and level.nan:
            largest -= 1
        candidates += [each for each in (code - 1, code + 1) if lowest <= each <= largest]
    return max(candidates, key=lambda each: _merit(each, lanes, above, found))


def _merit(code: int, lanes: Sequence[_Lane], above: ScalesAbove, found: GroupEncoding) -> Fraction:
    """By how much a scale makes the sum of squares smaller, of values with 11 bits below a unit."""
    level, element = found.definition.levels[0], found.definition.element
    within, unit, s = under(level, code, above), element.unit, scale_value(code, level)
    assert isinstance(s, Fraction)
    bound = 2 * power(element.counts[-1].bit_length()) - power(-11)
    total = Fraction(0)
    for lane in lanes:
        v = divide(abs(lane.number), within) / power(within.exponent)
        q: Fraction | int
        if element.listed:
            value = element.values[listed_code(v, lane.number < 0, element)]
            assert isinstance(value, Fraction)
            q = abs(value) / unit
        else:
            q = element.counts[element.nearest(v)]
        total += q * (2 * min(floor(v / unit * 2**11) * power(-11), bound) - q)
    return s**2 * total


def _selected(
    lanes: Sequence[_Lane], level: Level, within: ScalesAbove, found: GroupEncoding
) -> int:
    """Which element a group has, by the merits of both; its codes are appended."""
    definition, unit = found.definition, found.definition.unit
    elements = definition.element, definition.second
    scaled = [floor(divide(abs(lane.number), within) / unit * 2**11) for lane in lanes]
    merits = []
    for element in elements:
        assert element is not None
        limit = 2 ** (int(element.largest / unit).bit_length() + 12) - 1
        total = 0
        for lane, w in zip(lanes, scaled, strict=True):
            plain = lane._replace(value=lane.number)
            code = _element(plain, within, found._replace(rounding=NEAREST), element)
            value = element.values[code]
            q = int(abs(value) / unit) if isinstance(value, Fraction) else 0
            total += q * (2 * min(w, limit) - 2**11 * q)
        merits.append(total)
    second = merits[1] > merits[0]
    chosen = elements[second]
    found.codes.extend(_element(lane, within, found, chosen) for lane in lanes)
    return int(second)


def _element(
    lane: _Lane, above: ScalesAbove, found: GroupEncoding, element: Element | None = None
) -> int:
    """The code of one value, in the element of the format or another."""
    element, value = element or found.definition.element, lane.value
    if value is Special.NAN:
        return (element.nan or element.zero) if found.propagate else element.zero
    if value is Special.NEGATIVE_ZERO:
        return element.codes[value] if element.zero_sign else element.zero
    if value in INFINITE and found.propagate:
        scales = found.definition.levels
        alone = all(_nan_code(level) is None for level in scales)
        other = element.nan if alone and element.nan else element.zero
        return element.codes.get(value, other)
    place, v = len(element.magnitudes) - 1, power(256)
    if value not in INFINITE:
        v = divide(abs(lane.number), above) / power(above.exponent)
    if element.listed:
        negative = value is Special.NEGATIVE_INFINITY or lane.number < 0
        return listed_code(v, negative, element, found.rounding, lane.word)
    if value not in INFINITE:
        place = rounded(v, element, found.rounding, lane.word)
    magnitude = element.magnitudes[place]
    return element.codes[negated(magnitude) if lane.number < 0 else magnitude]


def _encode_with_zero_point(lanes: Sequence[_Lane], level: Real, found: GroupEncoding) -> None:
    """Append scale, zero point and codes of a group of unsigned integers."""
    last = len(found.definition.element.values) - 1
    low = min(Fraction(0), *(lane.number for lane in lanes))
    high = max(Fraction(0), *(lane.number for lane in lanes))
    s = fp32(fp32(high - low) / last) if high > low or not level.single else Fraction(1)
    smallest, largest = real_range(level)
    code = real_code(min(max(s, smallest), largest) if found.given is None else found.given, level)
    scale = real_value(code, level)
    assert isinstance(scale, Fraction)
    r = fp32(1 / scale)
    zero_point = min(max(round(fp32(-low * r)), 0), last)
    codes = [
        min(max(counted(fp32(x.number * r), found.rounding, x.word) + zero_point, 0), last)
        for x in lanes
    ]
    nan = _nan_scale([level], lanes, found)
    found.scales[0].append(code if nan is None else nan)
    found.zero_points.append(zero_point)
    found.codes.extend(codes if nan is None else [0] * len(lanes))
