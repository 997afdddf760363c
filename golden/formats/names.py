"""Block formats as strings: `block_format` reads one, `spell` writes the one that reads back.

The grammar extends TensorCast's; docs/formats.md has it in one table.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import SequenceMatcher
from typing import NamedTuple

from axs6.golden.formats.block_format import BlockFormat
from axs6.golden.formats.catalog import CATALOG
from axs6.golden.formats.checks import check_element
from axs6.golden.formats.element import Element, SignMagnitude, Single, TwosComplement, Unsigned
from axs6.golden.formats.floating import BF16, FP32, Float, p3109
from axs6.golden.formats.modes import ALL_MODES, Mode
from axs6.golden.formats.scale import (
    CHANNEL,
    TENSOR,
    Exponent,
    Integer,
    Level,
    Real,
    Rule,
    Scale,
    ScaleChoice,
    Shift,
    check_rule,
)
from axs6.golden.formats.selected import NAMED_SELECTED, Selected
from axs6.golden.formats.spelling import (
    DTYPES,
    IN_BF16,
    MODES,
    sign_magnitude,
    specials_of,
    unit_exponent,
)
from axs6.golden.formats.table import NAMED, ValueTable

N = "(?:0|[1-9][0-9]{0,3})"
"""A number of up to four digits."""

FLOAT = re.compile(rf"(u?)e({N})m([1-9][0-9]?)(?:b(-?{N}))?(fnuz|inuz|fn|f|n)?(?:b(-?{N}))?(h?)")
P3109 = re.compile(rf"binary({N})p({N})([su])([ef])")
INTEGER = re.compile(rf"(int|sm|tc)({N})(d)?(?:q(-?{N}))?(z)?(a)?")
UNSIGNED = re.compile(rf"uint({N})")
COUNT = "(?:-?(?:0|[1-9][0-9]{0,9}))?"
TABLE = re.compile(rf"table({COUNT}(?::{COUNT})+)(?:d({N}))?(?:q(-?{N}))?")
NAMED_ELEMENTS: dict[str, Element] = {**NAMED, **NAMED_SELECTED}
NAMED_ELEMENT = re.compile("|".join(NAMED_ELEMENTS))
SELECTION = re.compile(r"([^+]+)\+([^+]+)")
ELEMENTS = (UNSIGNED, INTEGER, FLOAT, P3109, TABLE, NAMED_ELEMENT, SELECTION)
EXPONENT = re.compile(rf"e({N})m0(f|n)?(?:-(.+))?")
FACTOR = re.compile(rf"u({N})")
TILE = re.compile(rf"t(?:({N})x)?({N})((?:s{N}o{N})*)")
SUBTILE = re.compile(rf"s({N})o({N})")
GROUP = re.compile(rf"t(?:({N})x)?({N})")
PART = re.compile("_?[^_]+")
PAIR = re.compile("(?<=[^aim])x(?![0-9])")
"""Separator of two formats. In names such as mx9 and axs6, and in four-over-six, x follows an a, i
or m, and no format ends in these; in a tile such as t32x32 a digit follows it."""


class _FormatReader:
    """The parts of a string in order, and an error that names the current part."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = text.split("_")
        self.at = 0

    @property
    def part(self) -> str:
        """The current part, empty at the end."""
        return self.parts[self.at] if self.at < len(self.parts) else ""

    @property
    def place(self) -> int:
        """Start of the current part."""
        return sum(len(part) + 1 for part in self.parts[: self.at])

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The current part, if it matches completely; then moves to the next."""
        match = pattern.fullmatch(self.part)
        self.at += match is not None
        return match

    def error(self, needed: str) -> ValueError:
        """The error that something else is needed in place of the current part."""
        return _error(self.text, self.place, f"{needed} is needed")


def _error(text: str, place: int, what: str, name: str = "") -> ValueError:
    """Say where a string stops being a format, and the name that is in it, or the nearest one."""
    part = PART.match(text, place)
    where = f"at {part[0]!r} (character {place + 1})" if part else "at its end"
    known = {each: name for name, fmt in CATALOG.items() for each in (name, str(fmt))}

    def likeness(name: str) -> tuple[bool, float]:
        start = text.lower()
        return name.startswith(start), SequenceMatcher(None, start, name).ratio()

    nearest = name or known[max(known, key=likeness)]
    return ValueError(f"{text!r} is no block format: {what} {where}; the nearest name is {nearest}")


@contextmanager
def _placed(text: str, place: int, name: str = "") -> Iterator[None]:
    """Add the position in the string to errors."""
    try:
        yield
    except ValueError as error:
        raise _error(text, place, f"{error},", name) from None


def block_format(value: "str | BlockFormat") -> BlockFormat:
    """The block format of a name of the catalog or of a string in the grammar.

    Args:
        value: a name, with `-RULE` for another rule of its exponent scale and `_tN` for another
            size of its blocks ("mxfp4", "mxfp8_e4m3-rceil", "mx9_t32"); a string such as
            "e4m3fn_e8m0_t32"; either with `_CHOICE` for another choice of its finest scales
            ("nvfp4_four-over-six"); or a BlockFormat, which is returned.

    Raises:
        TypeError: it is neither.
        ValueError: the string is a pair, or no format; the message says where it stops being one,
            and which name is nearest.
    """
    if isinstance(value, BlockFormat):
        return value
    if not isinstance(value, str):
        raise TypeError(f"format must be a string or a BlockFormat, not {type(value).__name__}")
    if PAIR.search(value) and _is_pair(value):
        raise ValueError(f"format must be one block format, not the pair {value!r}")
    text, _, choice = value.rpartition("_")
    if not text or choice not in tuple(ScaleChoice):
        return _named(value) or _composed(value)
    found = block_format(text)
    if found.choice is not ScaleChoice.MAX:
        raise _error(value, len(text) + 1, "one choice alone is possible,")
    with _placed(value, len(text) + 1):
        return found.with_choice(choice)


def _is_pair(text: str) -> bool:
    try:
        return bool(operand_formats(text))
    except ValueError:
        return False


def operand_formats(value: "str | BlockFormat") -> tuple[BlockFormat, ...]:
    """The formats of the operands of a product: one for both, or a pair joined by `x`.

    Args:
        value: as of `block_format`, or a pair such as "mxfp4xmxfp8_e4m3".

    Raises:
        TypeError, ValueError: as `block_format`, or there are more than two.
    """
    if not isinstance(value, str):
        return (block_format(value),)
    if "," in value:
        raise ValueError(f"two formats are joined by x, {value.replace(',', 'x')}, not {value!r}")
    parts = PAIR.split(value)
    if len(parts) > 2:
        raise ValueError(f"a product has one format or two, not {len(parts)}: {value!r}")
    return tuple(map(block_format, parts))


def operands_name(formats: Sequence[BlockFormat]) -> str:
    """The text that `operand_formats` reads as these formats: one name if both are the same."""
    return "x".join(dict.fromkeys(map(name_of, formats)))


def format_list(texts: Iterable[str]) -> list[str]:
    """Strings of formats from texts with one or several, separated by commas."""
    return [part.strip() for text in texts for part in text.split(",")]


def _named(text: str) -> BlockFormat | None:
    """The format of a name; None where there is no name, or an element with scales after it."""
    names = "|".join(sorted(CATALOG, key=len, reverse=True))
    match = re.fullmatch(rf"({names})(?:-([^_]*))?(?:_(.*))?", text)
    if match is None:
        return None
    name, rule, group = match.groups()
    scales = group is not None and not GROUP.fullmatch(group)
    if scales and any(x.fullmatch(name) for x in ELEMENTS):
        return None
    found = CATALOG[name]
    if rule is not None:
        with _placed(text, match.start(2), name):
            found = found.with_rule(rule)
    if group is not None:
        size = GROUP.fullmatch(group)
        if size is None:
            raise _error(text, match.start(3), "a block alone, such as t16, is needed", name)
        with _placed(text, match.start(3), name):
            found = found.with_block(int(size[2]), int(size[1] or 1))
    return found


def _composed(text: str) -> BlockFormat:
    reader = _FormatReader(text)
    match = next((found for found in map(reader.take, ELEMENTS) if found), None)
    if match is None:
        raise reader.error("a name, or an element such as e4m3fn or int8")
    levels: list[Level] = []
    prefixes: list[_Prefix] = []
    while reader.part and reader.part != MODES:
        place = reader.place
        levels += _levels(reader)
        prefixes.append(_Prefix(place, tuple(levels), (Mode.DENSE,)))
    if not levels:
        raise reader.error("a scale, such as e8m0 or float32,")
    if reader.part == MODES:
        prefixes.append(_Prefix(reader.place, tuple(levels), ALL_MODES))
        reader.at += 1
    if reader.at < len(reader.parts):
        raise reader.error("the end" if len(prefixes[-1].modes) > 1 else "a scale")
    with _placed(text, 0):
        element = _element(match, levels)
        check_element(element)
    if what := prefixes[-1].fault(element):
        place = next(each.place for each in prefixes if each.fault(element) == what)
        raise _error(text, place, f"{what},")
    _, found, modes = prefixes[-1]
    return BlockFormat(element, _selecting(element, found), modes)


class _Prefix(NamedTuple):
    """The levels and modes up to a part of a string, and where that part begins."""

    place: int
    levels: tuple[Level, ...]
    modes: tuple[Mode, ...]

    def fault(self, element: Element) -> str:
        """The fault of a format that ends there; empty if it is a format."""
        try:
            BlockFormat(element, _selecting(element, self.levels), self.modes)
        except ValueError as error:
            return str(error)
        return ""


def _element(match: re.Match[str], levels: list[Level]) -> Element:
    if match.re is SELECTION:
        first, second = (_single(_element_match(text), levels) for text in match.groups())
        return Selected(first, second)
    if match.re is NAMED_ELEMENT:
        return NAMED_ELEMENTS[match[0]]
    return _single(match, levels)


def _single(match: re.Match[str], levels: list[Level]) -> Single:
    if match.re is UNSIGNED:
        return Unsigned(int(match[1]))
    if match.re in (FLOAT, P3109):
        return _float(match)
    if match[0] in NAMED:
        return NAMED[match[0]]
    if match.re is TABLE:
        counts = tuple(int(value) if value else None for value in match[1].split(":"))
        return ValueTable(counts, -int(match[3] or 0), int(match[2] or 1))
    kind, width, full, fraction, one_zero, away = match.groups()
    bits = int(width)
    if kind == "tc" or (kind == "int" and not sign_magnitude(levels)):
        if full or one_zero:
            raise ValueError(f"d and z are for sign and magnitude, which {match[0]!r} is not")
        return TwosComplement(bits, unit_exponent(bits - 1, levels, fraction), bool(away))
    exponent = unit_exponent(bits - 1, levels, fraction, bool(full))
    return SignMagnitude(bits - 1, exponent, bool(full), not one_zero, bool(away))


def _element_match(text: str) -> re.Match[str]:
    match = next((x for x in (kind.fullmatch(text) for kind in ELEMENTS) if x), None)
    if match is None or text in NAMED_SELECTED:
        raise ValueError(
            f"an element such as e2m1fn or nf4 is needed on both sides of +, not {text!r}"
        )
    return match


def _selecting(element: Element, levels: Sequence[Level]) -> tuple[Level, ...]:
    """The levels, with a selector in the finest one where it is needed and possible."""
    finest, *others = levels
    scale = finest.scale
    if not isinstance(element, Selected) or not isinstance(scale, Real):
        return tuple(levels)
    return (replace(finest, scale=replace(scale, selector=True)), *others)


def _float(match: re.Match[str]) -> Float:
    if match.re is P3109:
        return p3109(int(match[1]), int(match[2]), match[3] == "s", match[4] == "e")
    signed, exponent, fraction = not match[1], int(match[2]), int(match[3])
    specials = specials_of(signed + exponent + fraction, match[5], signed)
    if match[4] and match[6]:
        raise ValueError("one bias alone is possible, not 2")
    bias = match[4] or match[6]
    return Float(exponent, fraction, specials, int(bias) if bias else None, signed, not match[7])


def _levels(reader: _FormatReader) -> list[Level]:
    """The next scale and its groups, fine to coarse."""
    scale = _scale(reader)
    with _placed(reader.text, reader.place):
        tile = reader.take(TILE)
        if tile is None:
            return [Level(scale, TENSOR)]
        shifts = [Level(Shift(int(bits)), int(size)) for size, bits in SUBTILE.findall(tile[3])]
        rows = 1 if tile[1] is None else int(tile[1])
        return [*reversed(shifts), Level(scale, int(tile[2]) or CHANNEL, rows)]


def _scale(reader: _FormatReader) -> Scale:
    with _placed(reader.text, reader.place):
        if match := reader.take(EXPONENT):
            nan = match[2] == "n" if match[2] else match[1] == "8"
            return Exponent(int(match[1]), check_rule(match[3] or Rule.FLOOR), nan)
        if match := reader.take(FACTOR):
            return Integer(int(match[1]))
        text = reader.part.removesuffix(IN_BF16)
        arithmetic = FP32 if text == reader.part else BF16
        match = FLOAT.fullmatch(text) or P3109.fullmatch(text)
        if match or text in DTYPES:
            reader.at += 1
            dtype = _float(match) if match else DTYPES[text]
            zero = reader.take(UNSIGNED)
            if zero and zero[0] != reader.parts[0]:
                raise ValueError(f"a zero point needs elements of its width, {zero[0]}")
            return Real(dtype, zero is not None, arithmetic)
    raise reader.error("a scale, such as e8m0 or float32,")


def name_of(fmt: BlockFormat) -> str:
    """Its name in the catalog, with a rule, block and choice where they differ, or its string."""
    if fmt.choice is not ScaleChoice.MAX:
        return f"{name_of(fmt.with_choice(ScaleChoice.MAX))}_{fmt.choice}"
    rule = fmt.exponent.rule if fmt.exponent else None
    nearest = ""
    for name, entry in CATALOG.items():
        like = entry.with_rule(rule) if rule and entry.exponent else entry
        rules = "" if like == entry else f"-{rule}"
        if like == fmt:
            return name + rules
        if not nearest and _alike(like, fmt):
            tile = f"{fmt.rows}x" if fmt.rows > 1 else ""
            nearest = f"{name}{rules}_t{tile}{fmt.block}"
    return nearest or str(fmt)


def _alike(a: BlockFormat, b: BlockFormat) -> bool:
    """Whether two formats with blocks differ in the size of the block alone, or in its rows."""
    at = len(a.blocked) - 1
    kinds = [
        (x.element, x.modes, [(v.scale, v.group if i != at else 0) for i, v in enumerate(x.levels)])
        for x in (a, b)
    ]
    return bool(a.blocked) and len(a.blocked) == len(b.blocked) and kinds[0] == kinds[1]
