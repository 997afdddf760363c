"""A block format in words, to the bit: position and meaning of each part of a block."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, Final

from axs6.golden.factors import divisor
from axs6.golden.formats import (
    CHANNEL,
    FP32,
    TENSOR,
    BlockFormat,
    Element,
    Exponent,
    Float,
    Integer,
    Level,
    NotANumber,
    Real,
    Rule,
    ScaleChoice,
    Selected,
    SignMagnitude,
    Unsigned,
    ValueTable,
    name_of,
)
from axs6.golden.formats.modes import HEADER_BITS
from axs6.golden.pack import BlockLayout

SHOWN: Final = 3
"""Fields of a run that a drawing shows all; of longer runs it shows two and the last."""


@dataclass(frozen=True)
class BlockField:
    """Some bits of a packed block.

    Args:
        symbol: their meaning: "E", "t", "s" or "r" for the kinds of scales, "code", "mode", "0".
        index: their index among the fields with this symbol; None for a single field.
        first: number of the lowest bit.
        bits: number of bits.
    """

    symbol: str
    index: int | None
    first: int
    bits: int

    @property
    def label(self) -> str:
        """Symbol and index."""
        return self.symbol if self.index is None else f"{self.symbol}[{self.index}]"


def symbol(fmt: BlockFormat, level: Level) -> str:
    """The letter of a scale: E exponent, t shift, s integer, r real; with the group if need be."""
    letters = {Exponent: "E", Integer: "s", Real: "r"}
    letter = letters.get(type(level.scale), "t")
    alike = [x for x in fmt.levels if letters.get(type(x.scale), "t") == letter]
    if len(alike) == 1:
        return letter
    return f"{letter}_{level.group}"


def fields(fmt: BlockFormat) -> list[BlockField]:
    """The fields of a dense block in order of their bits; they fill its bytes.

    A zero point of the block has its place after the scales.
    """
    levels, layout = fmt.inner[::-1], BlockLayout(fmt)
    found = [BlockField("mode", None, 0, fmt.mode_bits)] if fmt.has_modes else []
    for number, group, first, bits in layout.scales:
        if number == len(levels):
            found.append(BlockField("z", None, first, bits))
            continue
        level = levels[number]
        index = None if level.group == fmt.block else group
        found.append(BlockField(symbol(fmt, level), index, first, bits))
    used = found[-1].first + found[-1].bits if found else 0
    if fmt.has_modes:
        found.append(BlockField("0", None, used, HEADER_BITS - used))
    width = fmt.element.width
    found += [BlockField("code", i, fmt.scale_bits + i * width, width) for i in range(fmt.block)]
    end = found[-1].first + width
    if end < 8 * fmt.packed_bytes:
        found.append(BlockField("0", None, end, 8 * fmt.packed_bytes - end))
    return found


def drawing(fmt: BlockFormat) -> list[str]:
    """A dense block drawn in four lines, the number of its lowest bit above each field."""
    cells: list[tuple[str, str]] = []
    for _, run in groupby(fields(fmt), key=lambda field: field.symbol):
        each = [(field.label, str(field.first)) for field in run]
        cells += each if len(each) <= SHOWN else [*each[:2], ("...", ""), each[-1]]
    widths = [max(len(label), len(bit) - 1) + 2 for label, bit in cells]
    above = "".join(bit.ljust(w + 1) for (_, bit), w in zip(cells, widths, strict=True))
    middle = "│".join(f" {label}".ljust(w) for (label, _), w in zip(cells, widths, strict=True))
    rule = ["─" * width for width in widths]
    return [
        f"bit  {above}{8 * fmt.packed_bytes}",
        f"     ┌{'┬'.join(rule)}┐",
        f"     │{middle}│",
        f"     └{'┴'.join(rule)}┘",
    ]


def number(x: Fraction | NotANumber) -> str:
    """A value in a table: a whole number, a power of two, a short decimal, or a fraction."""
    if isinstance(x, NotANumber):
        return x.value
    top, bottom = abs(x.numerator), x.denominator
    sign = "-" if x < 0 else ""
    if bottom & bottom - 1 == 0:
        if top & top - 1 == 0 and (bottom > 8 or top > 1 << 20):
            return f"{sign}2^{top.bit_length() - bottom.bit_length()}"
        if top > 1 << 30:
            zeros = (top & -top).bit_length() - 1
            return f"{sign}{top >> zeros} * 2^{zeros}"
        if bottom <= 1 << 10 or not top:
            return f"{sign}{float(abs(x)):.10g}"
        return f"{sign}{top} * 2^-{bottom.bit_length() - 1}"
    return f"{sign}{top}/{bottom}"


def values(element: Element) -> list[tuple[str, int, str]]:
    """Some codes: what each is, the code, and its value; in order of the codes.

    Those of a selection have the bit above them that selects an element.
    """
    if isinstance(element, Selected):
        return [
            (what, code | which << element.width, value)
            for which, part in enumerate(element.parts)
            for what, code, value in values(part)
        ]
    if isinstance(element, ValueTable):
        return _entries(element)
    top, sign = element.largest_code, element.sign_bit
    found = {0: "zero", 1: "smallest", top: "largest"}
    if isinstance(element, Float):
        found.setdefault(element.smallest_normal, "smallest normal")
        if element.has_infinity:
            found[element.infinity] = "infinity"
        if element.has_nan:
            found[element.quiet_nan] = "NaN"
    one = next((c for c in range(top + 1) if element.integer(c) == 1 / element.unit), None)
    if one is not None:
        found.setdefault(one, "one")
    if sign:
        lowest = isinstance(element, SignMagnitude | Float)
        found.setdefault(sign, "minus zero" if lowest else "never written")
        found[(sign << 1) - top if not lowest else sign | top] = "most negative"
    return [(what, code, _value(element, code)) for code, what in sorted(found.items())]


def _entries(table: ValueTable) -> list[tuple[str, int, str]]:
    """All codes of a table."""
    ends = {min(table.integers): "most negative", max(table.integers): "largest", 0: "zero"}
    names = ["never written" if x is None else ends.get(x, "") for x in table.counts]
    return [(what, code, _value(table, code)) for code, what in enumerate(names)]


def _value(element: Element, code: int) -> str:
    value = element.integer(code)
    if isinstance(value, NotANumber):
        return value.value
    minus_zero = not value and code and not element.listed
    return ("-" if minus_zero else "") + number(value * element.unit)


def explain(fmt: BlockFormat) -> list[str]:
    """The format in lines of text: formula, a block, its scales, its elements."""
    bits, packed, lines = map(number, fmt.bits_a_value)
    ahead = [_ahead(fmt, level) for level in fmt.ahead[::-1]]
    return [
        f"{name_of(fmt)}: {fmt}",
        f"value = {_formula(fmt)}",
        f"block of {fmt.block} values, {fmt.packed_bytes} bytes; bits a value: {bits}, "
        f"{packed} as whole bytes, {lines} as 256 values in lines of 64 bytes",
        *([f"before the blocks: {', then '.join(ahead)}"] if ahead else []),
        "",
        *drawing(fmt),
        "bit 0 is the lowest of the first byte" + _modes(fmt),
        "",
        *(line for level in fmt.levels[::-1] for line in _level(fmt, level)),
        *_element(fmt),
        *_encoding(fmt),
    ]


def _modes(fmt: BlockFormat) -> str:
    if not fmt.has_modes:
        return ""
    drawn, *others = (f"{mode.value} {mode.label}" for mode in fmt.modes)
    return f"; mode {drawn}, drawn here; others {', '.join(others)}"


def _formula(fmt: BlockFormat) -> str:
    element = "(code - z)" if isinstance(fmt.element, Unsigned) else "element"
    return " * ".join([element, *(_factor(fmt, level) for level in fmt.levels)])


def _factor(fmt: BlockFormat, level: Level) -> str:
    mark = symbol(fmt, level)
    if isinstance(level.scale, Exponent):
        return f"2^({mark} - {level.scale.bias})"
    return mark if isinstance(level.scale, Integer | Real) else f"2^-{mark}"


def _ahead(fmt: BlockFormat, level: Level) -> str:
    of = "of each channel" if level.group == CHANNEL else "of the tensor"
    if level.tiled:
        of = "of each tile"
    size = -(-level.scale.bits // 8)
    zero = isinstance(level.scale, Real) and level.scale.zero_point
    return f"{symbol(fmt, level)} {of}, {size} bytes" + (", then z, 1 byte" if zero else "")


def _level(fmt: BlockFormat, level: Level) -> list[str]:
    """A level of scales: its width and group, its factor, and how encoding finds it."""
    scale, mark = level.scale, symbol(fmt, level)
    rules: list[str]
    if isinstance(scale, Exponent):
        kind, rules = f"an exponent, factor 2^({mark} - {scale.bias})", _exponent(fmt, scale, mark)
    elif isinstance(scale, Integer):
        kind = f"an integer, factor {mark}"
        above = " * ".join(symbol(fmt, x) for x in fmt.levels if isinstance(x.scale, Real))
        quotient = f"amax / ({number(fmt.element.largest)} * {above})"
        rules = [f"{mark} = ceil({quotient}), held within 1 to {scale.largest_code}"]
    elif isinstance(scale, Real):
        kind = f"a positive {scale.dtype.name} number, factor {mark}"
        rules = _real(fmt, level, mark)
    else:
        kind = f"a shift, factor 2^-{mark}"
        rules = [_shift(fmt, level, mark)]
    if isinstance(scale, Real) and scale.selector:
        rules.append(f"sign bit of {mark}, not part of the factor: which element the group has")
    if scale.nan_code is not None:
        rules.append(f"{mark} = {scale.nan_code:#x}: every value of the group is NaN")
    group = f"{level.rows} rows of {level.group} values" if level.tiled else f"{level.group} values"
    if level.group == TENSOR:
        group = "all values"
    elif level.group == CHANNEL:
        group = "a channel, the whole axis"
    bits = f"{scale.bits} bit{'s' if scale.bits > 1 else ''}"
    return [f"{mark}: {bits} for {group}: {kind}", *(f"   {line}" for line in rules)]


def _shift(fmt: BlockFormat, level: Level, mark: str) -> str:
    most = level.scale.largest_code
    if fmt.exponent:
        top, held = "floor(log2 amax) of the group above", f"at most {most}"
    else:
        above = fmt.shifts[fmt.shifts.index(level) + 1 :]
        top = " - ".join([str(fmt.element.emax), *(symbol(fmt, x) for x in above[::-1])])
        held = f"held within 0 to {most}"
    return f"{mark} = {top} - floor(log2 amax), {held}; {most} for zeros"


def _exponent(fmt: BlockFormat, scale: Exponent, mark: str) -> list[str]:
    offset = scale.bias - fmt.element.emax
    plus = f"{'-' if offset < 0 else '+'} {abs(offset)}"
    found, note = f"floor(log2 amax) {plus}", []
    if scale.rule is Rule.CEIL:
        found = f"ceil(log2 amax) {plus}"
    elif scale.rule is Rule.EVEN:
        found = f"floor(log2 a) {plus}"
        bits = fmt.element.precision
        note = [f"a is amax, rounded half up to {bits} bits after its leading one"]
    elif scale.rule is Rule.RCEIL:
        found = f"ceil(log2 fp32(amax / {number(fmt.element.largest)})) + {scale.bias}"
    return [
        f"rule {scale.rule}: {mark} = {found}, held within 0 to {scale.largest_code}; 0 for zeros",
        *note,
    ]


def _real(fmt: BlockFormat, level: Level, mark: str) -> list[str]:
    assert isinstance(level.scale, Real)
    if level.scale.zero_point:
        top = number(fmt.element.largest)
        return [
            f"{mark} = fp32(fp32(hi - lo) / {top}), at least 2^-126; 1 for zeros",
            "lo, hi: the least and the greatest of the values and 0",
            f"beside it z, {fmt.element.width} bits, the code of 0: "
            f"z = fp32(-lo * fp32(1 / {mark})) to nearest, held within 0 to {top}",
        ]
    found = f"fp32(amax / {number(divisor(fmt, level))})"
    if level.scale.arithmetic != FP32:
        found = f"bf16(fp32(amax * bf16(1 / {number(divisor(fmt, level))})))"
    reals = [symbol(fmt, x) for x in fmt.levels if isinstance(x.scale, Real)]
    for outer in reversed(reals[reals.index(mark) + 1 :]):
        found = f"fp32({found} / {outer})"
    least, dtype = number(level.scale.smallest), level.scale.dtype
    if dtype == FP32:
        return [f"{mark} = {found}, at least {least}; 1 for zeros"]
    held = f"held within {least} to {number(dtype.largest)}"
    rules = [f"{mark} = {found}, {held}, to the nearest {dtype.name}"]
    if not dtype.subnormals:
        m = dtype.fraction_bits
        value = f"2^(e - {dtype.bias}) * (1 + f / {1 << m})"
        rules.append(f"exponent e in {_bits(dtype.width - 1, m)}: {mark} = {value}, for all e")
    return rules


def _encoding(fmt: BlockFormat) -> list[str]:
    """How a value becomes a code under its scales."""
    factors = [symbol(fmt, x) for x in fmt.levels[::-1] if isinstance(x.scale, Real | Integer)]
    reals = (x.scale for x in fmt.levels if isinstance(x.scale, Real))
    arithmetic = next((x.arithmetic.name for x in reals), FP32.name)
    value, reciprocal = "x", "1"
    for mark in factors:
        reciprocal = f"{arithmetic}({reciprocal} / {mark})"
    if factors:
        value = f"fp32(x * {reciprocal})"
    top = number(fmt.element.largest)
    if isinstance(fmt.element, Unsigned):
        return [f"encoding: code = {value} to nearest even + z, held within 0 to {top}"]
    powers = [x for x in fmt.levels[::-1] if not isinstance(x.scale, Real | Integer)]
    for level in powers:
        value += f" / {_factor(fmt, level)}"
    amax = "" if not factors else ", after real scales of it" if powers else ""
    ties = "to the even code" if fmt.element.listed else "to even"
    if fmt.element.ties_away:
        ties = "away from 0"
    return [
        f"encoding: {value} to the nearest element, ties {ties}, of magnitude {top} at most",
        f"   amax: the largest magnitude in the scale's group{amax}",
        *_choice(fmt),
        *["   the element with the least squared error, the first if both have it"]
        * isinstance(fmt.element, Selected),
    ]


def _choice(fmt: BlockFormat) -> list[str]:
    """Which scales are compared."""
    mark = symbol(fmt, fmt.levels[0])
    others = {
        ScaleChoice.MAX: "",
        ScaleChoice.FOUR_OVER_SIX: f"{mark} or, from 1.5 times as much before it is held,",
        ScaleChoice.MSE: f"{mark}, the code before it or the code after it:",
    }
    if not others[fmt.choice]:
        return []
    return [f"   choice {fmt.choice}: {others[fmt.choice]} the one with the least squared error"]


def _bits(high: int, low: int) -> str:
    return f"bits {high} to {low}" if high > low else f"bit {low}"


def _element(fmt: BlockFormat) -> list[str]:
    """The bits of a code, its formula, and some codes with their values."""
    element = fmt.element
    if isinstance(element, Selected):
        return [
            f"{which} element, selected by {bit}: {line}" if not number else f"   {line}"
            for which, bit, part in zip(("first", "second"), (0, 1), fmt.parts, strict=True)
            for number, line in enumerate(_element(part))
        ]
    top, unit = element.width - 1, number(element.unit)
    if isinstance(element, Float):
        m = element.fraction_bits
        parts = f"sign in bit {top}, exponent e in {_bits(top - 1, m)}, fraction f in "
        parts += _bits(m - 1, 0)
        formula = (
            f"(-1)^sign * 2^(e - {element.bias}) * (1 + f / {1 << m}); "
            f"with e = 0 (-1)^sign * 2^{element.emin} * f / {1 << m}"
        )
    elif isinstance(element, SignMagnitude):
        parts = f"sign in bit {top}, magnitude q in {_bits(top - 1, 0)}"
        formula = f"(-1)^sign * q * {unit}"
    elif isinstance(element, ValueTable):
        parts, formula = "a place in a table", "the value of the code"
    elif isinstance(element, Unsigned):
        parts, formula = "an unsigned integer", "code"
    else:
        parts, formula = "a two's complement integer q", f"q * {unit}"
    shown = values(element)
    width = max(len(what) for what, _, _ in shown)
    return [
        f"code: {element.width} bits for each value: {parts}",
        f"   element = {formula}",
        *(f"   {what.ljust(width)}  {code:#04x}  {value}" for what, code, value in shown),
    ]


def facts(fmt: BlockFormat) -> dict[str, Any]:
    """The numbers of a format, for tables and JSON.

    Bits a value are those of `BlockFormat.bits_a_value`, largest and smallest (positive) those of
    elements under scales of 1, levels the different values of an element, and binades those of
    `BlockFormat.binades`.
    """
    exact, packed, memory = map(float, fmt.bits_a_value)
    block, all_scales = fmt.binades
    return {
        "name": name_of(fmt),
        "string": str(fmt),
        "bits": exact,
        "packed_bits": packed,
        "memory_bits": memory,
        "largest": float(fmt.element.largest),
        "smallest": float(fmt.element.smallest),
        "levels": fmt.element.levels,
        "binades": block,
        "binades_with_scales": all_scales,
    }
