"""What the scales of a block dot product are worth, by the exact model."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from axs6.golden.check.exact import formats as exact
from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import Value, power
from axs6.golden.check.subjects import definition_of
from axs6.hw.core.layouts import scale_names
from axs6.hw.dot.shape import DotShape
from axs6.proof.cases import WIDTH_MAX
from axs6.proof.steps import NotShownError

SCALE_BITS = 20
"""Bits of scales, at most, of which all values are tried."""

SIDES = "ab"


def check_shape(shape: DotShape) -> None:
    """Check that there is a proof of a block dot product.

    Args:
        shape: formats and block.

    Raises:
        ValueError: scales of groups of one size have too many bits to try all their values, and are
            not real ones of the largest groups; or the sum is wider than 96 bits.
    """
    if shape.width > WIDTH_MAX:
        raise ValueError(
            f"a proof is of sums of at most {WIDTH_MAX} bits, and this has {shape.width}"
        )
    bits = {
        size: sum(level.bits for level in levels) for size, levels in scales_by_size(shape).items()
    }
    several = [each for size, each in sorted(bits.items())[: -1 if is_wide(shape) else None]]
    if max(several, default=0) > SCALE_BITS:
        raise ValueError(
            f"a proof tries all scales of groups of one size, of at most {SCALE_BITS} bits, and "
            f"those of {' and '.join(map(str, shape.formats))} have {max(several)}"
        )


def scales_of(shape: DotShape) -> Iterator[tuple[exact.Level, str, int]]:
    """Scales of blocks: level, name of the field, and lanes of a group."""
    for side, fmt in zip(SIDES, shape.formats, strict=True):
        levels = [x for x in definition_of(fmt).levels[::-1] if isinstance(x.group, int)]
        for name, level in zip(scale_names(fmt), levels, strict=True):
            assert isinstance(level.group, int)
            yield level, f"{side}.{name}", min(level.group, shape.block)


def scales_by_size(shape: DotShape) -> dict[int, list[exact.Level]]:
    """The scales that multiply sums, by the size of their group."""
    found: dict[int, list[exact.Level]] = defaultdict(list)
    for level, _, size in scales_of(shape):
        if not isinstance(level, exact.Exponent):
            found[size].append(level)
    return dict(found)


def is_wide(shape: DotShape) -> bool:
    """Whether the largest groups have real scales of too many bits to try all their values."""
    levels = max(scales_by_size(shape).items(), default=(0, list[exact.Level]()))[1]
    many = sum(level.bits for level in levels) > SCALE_BITS
    return many and all(isinstance(x, exact.Real) and not x.selects for x in levels)


def selects(level: exact.Level) -> bool:
    """Whether a bit of a scale selects the element of its group."""
    return isinstance(level, exact.Real) and level.selects


def scale_integer(code: int, level: exact.Level) -> int:
    """The integer by which a scale multiplies."""
    if isinstance(level, exact.Shift):
        return 1 << (1 << level.bits) - 1 - code
    if isinstance(level, exact.Real):
        fraction = code & (1 << level.fraction_bits) - 1
        normal = code >> level.fraction_bits & (1 << level.exponent_bits) - 1
        return fraction + (bool(normal or level.always_normal) << level.fraction_bits)
    return 1 if isinstance(level, exact.Exponent) else code


def largest_integer(level: exact.Level) -> int:
    """The largest integer by which a scale multiplies."""
    if isinstance(level, exact.Real):
        return (2 << level.fraction_bits) - 1
    return scale_integer(0 if isinstance(level, exact.Shift) else (1 << level.bits) - 1, level)


def scale_field(code: int, level: exact.Level) -> int:
    """What a scale adds to the exponent, from 0."""
    if isinstance(level, exact.Exponent):
        return code
    if isinstance(level, exact.Real):
        field = code >> level.fraction_bits & (1 << level.exponent_bits) - 1
        return field if level.always_normal else max(field, 1) - 1
    return 0


def largest_field(level: exact.Level) -> int:
    """The most that a scale which is a number adds to the exponent."""
    if isinstance(level, exact.Real):
        last = (1 << level.fraction_bits + level.exponent_bits) - 1
        codes = [last, last - 1, last - (1 << level.fraction_bits)]
    else:
        codes = [(1 << level.bits) - 1, (1 << level.bits) - 2]
    return max(
        scale_field(code, level) for code in codes if isinstance(scale_value(code, level), Fraction)
    )


def show_unit(shape: DotShape) -> None:
    """Show that a unit of the sum is worth what the manifest's offset and divisor say.

    Raises:
        NotShownError: by the definitions of the formats it is not.
    """
    worth = Fraction(1)
    for definition in map(definition_of, shape.formats):
        worth *= definition.unit
        for level in definition.levels:
            if isinstance(level.group, str):
                continue  # the scale of a channel or a tensor multiplies the total
            if isinstance(level, exact.Exponent):
                worth *= _number(scale_value(0, level))
            elif isinstance(level, exact.Shift):
                worth *= power(1 - (1 << level.bits))
            elif isinstance(level, exact.Real):
                worth *= _number(scale_value(1, level)) - _number(scale_value(0, level))
    if worth * shape.divisor != power(shape.offset + (shape.divisor - 1).bit_length()):
        raise NotShownError(f"a unit of the sum is worth {worth}")


def _number(value: Value) -> Fraction:
    assert isinstance(value, Fraction)
    return value
