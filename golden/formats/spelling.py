"""How a block format is written: `spell` gives the string that `block_format` reads as it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from axs6.golden.formats.element import Element, SignMagnitude, TwosComplement, Unsigned
from axs6.golden.formats.floating import BF16, FP16, FP32, UNSIGNED_ZERO, Float, Specials
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
)
from axs6.golden.formats.selected import NAMED_SELECTED, Selected
from axs6.golden.formats.table import NAMED, ValueTable

if TYPE_CHECKING:
    from axs6.golden.formats.block_format import BlockFormat

DTYPES: Final = {"float32": FP32, "bfloat16": BF16, "float16": FP16}
"""Scales that are dtypes, by the names that they have in strings."""

IN_BF16: Final = "-bf16"
"""After a real scale that is computed in BF16 arithmetic."""

MODES: Final = "modes"
"""The last part of a format whose blocks have modes."""


def sign_magnitude(levels: Sequence[Level]) -> bool:
    """Whether "int" means a sign and a magnitude: under shifts, as microexponents have it."""
    return any(isinstance(level.scale, Shift) for level in levels)


def unit_exponent(
    magnitude_bits: int, levels: Sequence[Level], fraction: str | None, full: bool = False
) -> int:
    """Exponent of the unit: as it is given, else one bit before the point under an exponent."""
    if fraction is not None:
        return -int(fraction)
    under_exponent = any(isinstance(level.scale, Exponent) for level in levels)
    return 1 - magnitude_bits if under_exponent and not full else 0


def specials_of(width: int, suffix: str | None, signed: bool = True) -> Specials:
    """`fn` is as in ml_dtypes: NaN alone in elements of 8 bits or more, no specials in others.

    Unsigned numbers without a suffix have NaN alone too, as in `e8m0`.
    """
    if suffix in UNSIGNED_ZERO:
        return Specials(suffix)
    if not signed:
        return Specials.NONE if suffix == "f" else Specials.NAN
    if suffix == "fn":
        suffix = "n" if width >= 8 else "f"
    return {None: Specials.IEEE, "n": Specials.NAN, "f": Specials.NONE}[suffix]


def spell(fmt: "BlockFormat") -> str:
    """The string that `block_format` reads as this format."""
    parts = [spell_element(fmt)]
    shifts = ""
    for level in fmt.levels:
        if isinstance(level.scale, Shift):
            shifts = f"s{level.group}o{level.scale.bits}" + shifts
            continue
        parts.append(_spell_scale(level.scale, fmt.element))
        if level.group != TENSOR:
            group = 0 if level.group == CHANNEL else level.group
            parts.append(f"t{f'{level.rows}x' if level.tiled else ''}{group}{shifts}")
            shifts = ""
    parts += [MODES] * fmt.has_modes + [fmt.choice] * (fmt.choice is not ScaleChoice.MAX)
    return "_".join(parts)


def spell_element(fmt: "BlockFormat") -> str:
    """The part of the string that is the element."""
    return _spell_element(fmt.element, list(fmt.levels))


def _spell_element(element: Element, levels: Sequence[Level]) -> str:
    if isinstance(element, Selected):
        name = next((name for name, each in NAMED_SELECTED.items() if each == element), None)
        return name or "+".join(_spell_element(x, levels) for x in element.parts)
    if isinstance(element, Unsigned):
        return f"uint{element.bits}"
    if isinstance(element, Float):
        return _spell_float(element)
    if isinstance(element, ValueTable):
        return _spell_table(element)
    full = isinstance(element, SignMagnitude) and element.full_scale
    usual = unit_exponent(element.width - 1, levels, None, full)
    fraction = "" if element.unit_exponent == usual else f"q{-element.unit_exponent}"
    away = "a" if element.ties_away else ""
    if isinstance(element, TwosComplement):
        return f"{'tc' if sign_magnitude(levels) else 'int'}{element.bits}{fraction}{away}"
    kind = "int" if sign_magnitude(levels) else "sm"
    one_zero = "" if element.signed_zero else "z"
    return f"{kind}{element.width}{'d' if full else ''}{fraction}{one_zero}{away}"


def _spell_table(x: ValueTable) -> str:
    name = next((name for name, each in NAMED.items() if each == x), None)
    if name is not None:
        return name
    counts = ":".join("" if value is None else str(value) for value in x.counts)
    divisor = "" if x.over == 1 else f"d{x.over}"
    return f"table{counts}{divisor}" + (f"q{-x.unit_exponent}" if x.unit_exponent else "")


def _spell_float(x: Float) -> str:
    names = {dtype: name for name, dtype in DTYPES.items()}
    if x in names:
        return names[x]
    suffixes = {Specials.IEEE: "", Specials.NAN: "n", Specials.NONE: "f"}
    suffix = suffixes.get(x.specials, str(x.specials))
    if not x.signed and x.specials is Specials.NAN:
        suffix = ""
    elif x.signed and specials_of(x.width, "fn") is x.specials:
        suffix = "fn"
    bias = "" if x.exponent_bias is None else f"b{x.exponent_bias}"
    hidden = "" if x.subnormals else "h"
    return f"{'' if x.signed else 'u'}e{x.exponent_bits}m{x.fraction_bits}{suffix}{bias}{hidden}"


def _spell_scale(scale: Scale, element: Element) -> str:
    if isinstance(scale, Exponent):
        nan = "" if scale.nan is (scale.bits == 8) else ("n" if scale.nan else "f")
        rule = "" if scale.rule is Rule.FLOOR else f"-{scale.rule}"
        return f"e{scale.bits}m0{nan}{rule}"
    if isinstance(scale, Integer):
        return f"u{scale.bits}"
    assert isinstance(scale, Real)
    zero_point = f"_uint{element.width}" if scale.zero_point else ""
    arithmetic = "" if scale.arithmetic == FP32 else IN_BF16
    return _spell_float(scale.dtype) + arithmetic + zero_point
