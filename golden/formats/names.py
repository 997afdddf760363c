"""Block formats as strings: `block_format` reads one, `spell` writes the one that reads back.

The grammar is TensorCast's where that says enough; docs/formats.md has it in one table.
"""

import re
from difflib import get_close_matches

from axs6.golden.formats.block_format import BlockFormat, Mode
from axs6.golden.formats.catalog import CATALOG
from axs6.golden.formats.catalog import MODES as ALL_MODES
from axs6.golden.formats.element import Element, SignMagnitude, TwosComplement, Unsigned
from axs6.golden.formats.floating import Float
from axs6.golden.formats.scale import (
    CHANNEL,
    TENSOR,
    Exponent,
    Integer,
    Level,
    Real,
    Rule,
    Scale,
    Shift,
)
from axs6.golden.formats.spelling import DTYPES, MODES, sign_magnitude, specials_of, unit_exponent

FLOAT = re.compile(r"e(\d+)m([1-9]\d*)(fn|f|n)?(?:b(-?\d+))?")
INTEGER = re.compile(r"(int|sm|tc)(\d+)(d)?(?:q(-?\d+))?(z)?")
UNSIGNED = re.compile(r"uint(\d+)")
EXPONENT = re.compile(rf"e(\d+)m0(f|n)?(?:-({'|'.join(Rule)}))?")
FACTOR = re.compile(r"u(\d+)")
TILE = re.compile(r"t(\d+)((?:s\d+o\d+)*)")
SUBTILE = re.compile(r"s(\d+)o(\d+)")
NAMED = re.compile(rf"([a-z0-9_]+?)(?:-({'|'.join(Rule)}))?(?:_t(\d+))?")


class _Reader:
    """The parts of a string, one after the other, and the error that names the one at hand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = text.split("_")
        self.at = 0

    @property
    def part(self) -> str:
        """The part at hand, empty at the end."""
        return self.parts[self.at] if self.at < len(self.parts) else ""

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The part at hand, if it fits whole; the next one is at hand then."""
        match = pattern.fullmatch(self.part)
        self.at += match is not None
        return match

    def error(self, needed: str) -> ValueError:
        """Say where the string stops being a format, and the nearest name."""
        position = sum(len(part) + 1 for part in self.parts[: self.at])
        where = f"at {self.part!r} (character {position + 1})" if self.part else "at its end"
        near = get_close_matches(self.text, CATALOG, len(CATALOG))
        near.sort(key=lambda name: abs(len(name) - len(self.text)))
        hint = f"; the nearest name is {near[0]}" if near else f"; names are {', '.join(CATALOG)}"
        return ValueError(f"{self.text!r} is no block format: {needed} is needed {where}{hint}")


def block_format(value: "str | BlockFormat") -> BlockFormat:
    """The block format of a name of the catalog or of a string in the grammar.

    Args:
        value: a name, with `-RULE` for another rule of its exponent scale and `_tN` for another
            size of its blocks ("mxfp4", "mxfp8_e4m3-rceil", "mx9_t32"); a string such as
            "e4m3fn_e8m0_t32"; or a BlockFormat, which is returned.

    Raises:
        TypeError: it is neither.
        ValueError: the string is no format; the message says where it stops being one.
    """
    if isinstance(value, BlockFormat):
        return value
    if not isinstance(value, str):
        raise TypeError(f"format must be a string or a BlockFormat, not {type(value).__name__}")
    return _named(value) or _composed(value)


def _named(text: str) -> BlockFormat | None:
    match = NAMED.fullmatch(text)
    if match is None or match[1] not in CATALOG:
        return None
    found = CATALOG[match[1]]
    if match[2]:
        found = found.with_rule(match[2])
    return found.with_block(int(match[3])) if match[3] else found


def _composed(text: str) -> BlockFormat:
    reader = _Reader(text)
    element = _element_match(reader)
    levels: list[Level] = []
    while reader.part and reader.part != MODES:
        levels += _levels(reader)
    modes = ALL_MODES if reader.part == MODES else (Mode.DENSE,)
    reader.at += reader.part == MODES
    if not levels:
        raise reader.error("a scale, such as e8m0 or float32,")
    if reader.at < len(reader.parts):
        raise reader.error("a scale")
    try:
        return BlockFormat(_element(element, levels), tuple(levels), modes)
    except ValueError as error:
        raise ValueError(f"{text!r} is no block format: {error}") from None


def _element_match(reader: _Reader) -> re.Match[str]:
    match = reader.take(UNSIGNED) or reader.take(INTEGER) or reader.take(FLOAT)
    if match is None:
        raise reader.error("a name, or an element such as e4m3fn or int8")
    return match


def _element(match: re.Match[str], levels: list[Level]) -> Element:
    if match.re is UNSIGNED:
        return Unsigned(int(match[1]))
    if match.re is FLOAT:
        return _float(match)
    kind, width, full, fraction, one_zero = match.groups()
    bits = int(width)
    if (kind == "int") is not sign_magnitude(levels) and kind != "sm":
        if full or one_zero:
            raise ValueError(f"d and z are for sign and magnitude, which {match[0]!r} is not")
        return TwosComplement(bits, unit_exponent(bits - 1, levels, fraction))
    exponent = unit_exponent(bits - 1, levels, fraction, bool(full))
    return SignMagnitude(bits - 1, exponent, bool(full), not one_zero)


def _float(match: re.Match[str]) -> Float:
    exponent, fraction = int(match[1]), int(match[2])
    bias = None if match[4] is None else int(match[4])
    return Float(exponent, fraction, specials_of(1 + exponent + fraction, match[3]), bias)


def _levels(reader: _Reader) -> list[Level]:
    """The next scale and its groups, fine to coarse."""
    scale = _scale(reader)
    tile = reader.take(TILE)
    if tile is None:
        return [Level(scale, TENSOR)]
    size = int(tile[1])
    shifts = [Level(Shift(int(bits)), int(sub)) for sub, bits in SUBTILE.findall(tile[2])]
    return [*reversed(shifts), Level(scale, size or CHANNEL)]


def _scale(reader: _Reader) -> Scale:
    if match := reader.take(EXPONENT):
        bits = int(match[1])
        nan = match[2] == "n" if match[2] else bits == 8
        return Exponent(bits, Rule(match[3] or Rule.FLOOR), nan)
    if match := reader.take(FACTOR):
        return Integer(int(match[1]))
    if reader.part in DTYPES:
        dtype = DTYPES[reader.part]
        reader.at += 1
    elif match := reader.take(FLOAT):
        dtype = _float(match)
    else:
        raise reader.error("a scale, such as e8m0 or float32,")
    return Real(dtype, reader.take(UNSIGNED) is not None)


def name_of(fmt: BlockFormat) -> str:
    """Its name in the catalog, with a rule and block where they differ, or its string."""
    rule = fmt.exponent.rule if fmt.exponent else None
    for name, entry in CATALOG.items():
        like = entry.with_rule(rule) if rule and entry.exponent else entry
        rules = "" if like == entry else f"-{rule}"
        if like == fmt:
            return name + rules
        if _alike(like, fmt):
            return f"{name}{rules}_t{fmt.block}"
    return str(fmt)


def _alike(a: BlockFormat, b: BlockFormat) -> bool:
    """Whether two formats with blocks differ in the size of the block alone."""
    at = len(a.blocked) - 1
    kinds = [
        (x.element, x.modes, [(v.scale, v.group if i != at else 0) for i, v in enumerate(x.levels)])
        for x in (a, b)
    ]
    return bool(a.blocked) and len(a.blocked) == len(b.blocked) and kinds[0] == kinds[1]
