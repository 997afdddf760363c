"""Shape of the block dot product of two formats in hardware: its lanes, scales and widths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from amaranth.hdl import Cat, Value, signed, unsigned
from amaranth.lib import data

from axs6.golden.accumulator import Accumulator
from axs6.golden.formats import (
    BlockFormat,
    Exponent,
    Integer,
    Level,
    Real,
    Selected,
    Shift,
    name_of,
)
from axs6.golden.fp32 import scale_bits
from axs6.golden.operands import IntegerForm
from axs6.golden.terms import Terms
from axs6.hw.core.codes import with_selectors
from axs6.hw.core.layouts import block_layout, elements_of, scale_names
from axs6.hw.core.parameters import block_of, formats_of_operands
from axs6.hw.core.structures import ArrayLayout, StructLayout

BLOCK_MAX = 128
"""Lanes of a block dot product, at most."""

TABLE_BITS = 16
"""Bits of the largest integer of a table, at most."""

WORD = 64
"""Bits of the largest integer of a field; wider sums have their high bits in one of their own."""

SPECIAL_GROUP = 4
"""Lanes of which one field says whether any product is no number, where there is a step for it."""


@dataclass(frozen=True)
class GroupScaling:
    """Factors of the sums of the groups of one size, for both operands.

    Args:
        group: lanes of a group.
        shift: the largest shift to the left; 0 without shifts.
        factor: the largest factor; 1 without one.
    """

    group: int
    shift: int
    factor: int


@dataclass(frozen=True)
class DotShape:
    """The block dot product of operands a and b, whose blocks have `block` lanes.

    Raises:
        ValueError: formats whose groups differ, or that have what no hardware is for.
    """

    a: BlockFormat
    b: BlockFormat
    block: int

    @classmethod
    def of(cls, format: str, block: int | None = None) -> Self:
        """The shape of a format, or of two joined by `x`, for a block of its own or given.

        Raises:
            ValueError: there is no such format, or as above.
        """
        formats = formats_of_operands(format)
        lanes = block_of(formats, block)
        sized = [x.with_block(lanes) if x.blocked else x for x in formats]
        return cls(sized[0], sized[-1], lanes)

    def __post_init__(self) -> None:
        size = self.block
        integer = isinstance(size, int) and not isinstance(size, bool)
        if not integer or not 2 <= size <= BLOCK_MAX or size & size - 1:
            raise ValueError(
                f"block must be a power of two from 2 to {BLOCK_MAX} here, not {size!r}"
            )
        for fmt in self.formats:
            check_table(fmt)
            if not fmt.element.signed:
                raise ValueError(
                    f"{name_of(fmt)} has zero points, for which dot products have no hardware"
                )
            own = [int(x.group) for x in fmt.blocked if isinstance(x.scale, Exponent | Real)]
            if own and min(own) < size:
                raise ValueError(
                    f"a block dot product needs one exponent for a block of {size}, and "
                    f"{name_of(fmt)} has one for every {min(own)} values"
                )
        Terms.of(self.a, self.b, Accumulator())

    @property
    def formats(self) -> tuple[BlockFormat, BlockFormat]:
        """Both formats."""
        return self.a, self.b

    @cached_property
    def forms(self) -> tuple[IntegerForm, IntegerForm]:
        """How values are integers under exponents."""
        return IntegerForm(self.a, False), IntegerForm(self.b, False)

    @cached_property
    def bound(self) -> int:
        """The largest magnitude of a sum."""
        a, b = self.forms
        return self.block * a.bound * b.bound

    @property
    def width(self) -> int:
        """Bits of the sum with its sign."""
        return self.bound.bit_length() + 1

    @property
    def divisor(self) -> int:
        """Divisor of the total at the end, with the power of two not below it."""
        return self.a.element.divisor * self.b.element.divisor

    @property
    def offset(self) -> int:
        """Constant added to exponents, including that power of two."""
        return sum(form.offset for form in self.forms) - scale_bits(self.divisor)

    @property
    def scaled(self) -> bool:
        """Whether channels or tensors have scales."""
        return any(fmt.outer for fmt in self.formats)

    @property
    def exponent_bits(self) -> int:
        """Bits of the sum of the exponents; 0 where blocks have none."""
        return sum(form.largest_exponent for form in self.forms).bit_length()

    @cached_property
    def special(self) -> bool:
        """Whether a block may hold NaN or an infinity."""
        return any(
            x.element.has_nan or any(y.scale.nan_code is not None for y in x.blocked)
            for x in self.formats
        )

    @property
    def many_special(self) -> bool:
        """Whether any element may be NaN or an infinity, not just a scale."""
        return any(x.element.has_nan for x in self.formats)

    @cached_property
    def scalings(self) -> tuple[GroupScaling, ...]:
        """Levels whose scales multiply sums, fine to coarse."""
        found = []
        for levels in zip(self.a.blocked, self.b.blocked, strict=True):
            shift, factor = 0, 1
            for level in levels:
                if isinstance(level.scale, Shift):
                    shift += level.scale.largest_code
                elif isinstance(level.scale, Integer | Real):
                    factor *= largest_factor(level)
            if shift or factor > 1:
                found.append(GroupScaling(int(levels[0].group), shift, factor))
        return tuple(found)

    @property
    def pair(self) -> data.StructLayout:
        """The operands."""
        return StructLayout({"a": self.operand(0), "b": self.operand(1)})

    def operand(self, index: int) -> data.StructLayout:
        """One operand: a block."""
        return block_layout(self.block, self.formats[index])

    def lane_codes(self, pair: Any) -> tuple[list[Value], list[Value]]:
        """The codes of the lanes of both operands of `pair`, as `lane_codes` gives them."""
        return lane_codes(self.a, pair.a), lane_codes(self.b, pair.b)

    @property
    def sum(self) -> data.StructLayout:
        """The result: the sum, the exponents' sum, and NaN or an infinity in its place."""
        wide = {"high": signed(self.width - WORD)} if self.width > WORD else {}
        low = unsigned(WORD) if wide else signed(self.width)
        return data.StructLayout({"sum": low, **wide, **self.beside(())})

    def beside(self, scalings: Sequence[GroupScaling]) -> dict[str, Any]:
        """Fields that go along with the products, with the scales that have still to be used."""
        fields: dict[str, Any] = {}
        if self.exponent_bits:
            fields["exponent"] = unsigned(self.exponent_bits)
        if self.special:
            fields["special"] = unsigned(2)
        for each in scalings:
            groups = self.block // each.group
            if each.shift:
                bits = each.shift.bit_length()
                fields[f"shift{each.group}"] = ArrayLayout(unsigned(bits), groups)
            if each.factor > 1:
                bits = each.factor.bit_length()
                fields[f"factor{each.group}"] = ArrayLayout(unsigned(bits), groups)
        return fields

    def with_specials(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields with `specials` in the place of `special`, one for each few lanes.

        Their bits say whether a product is NaN, and where elements have infinities, +Inf and -Inf.
        """
        infinite = any(x.element.has_infinity for x in self.formats)
        groups = -(-self.block // SPECIAL_GROUP)
        specials = ArrayLayout(unsigned(3 if infinite else 1), groups)
        rest = {name: field for name, field in fields.items() if name != "special"}
        return {**rest, "specials": specials}


def lane_codes(fmt: BlockFormat, view: Any) -> list[Value]:
    """The codes of a block's lanes, with the bits above them that select elements, if any."""
    if not isinstance(fmt.element, Selected):
        return list(view.codes)
    finest = view[scale_names(fmt)[-1]]
    return with_selectors(fmt, view.codes, elements_of(finest))


def multiplied(fmt: BlockFormat) -> bool:
    """Whether there is hardware for block dot products of a format."""
    try:
        DotShape(fmt, fmt, fmt.block)
    except ValueError:
        return False
    return True


def check_table(fmt: BlockFormat) -> None:
    """Raise ValueError if integers of a table have too many bits for multipliers of lanes."""
    element = fmt.element
    if element.listed and element.integer_bits > TABLE_BITS:
        raise ValueError(
            f"dot products in hardware need a table whose values are integers of at most "
            f"{TABLE_BITS} bits times a unit, and those of {name_of(fmt)} have "
            f"{element.integer_bits}"
        )


def largest_factor(level: Level) -> int:
    """The largest integer that a scale multiplies by."""
    if isinstance(level.scale, Real):
        return (2 << level.scale.dtype.fraction_bits) - 1
    return level.scale.largest_code


def passed(i: data.View, o: data.View) -> list[Any]:
    """Assignments of the fields that a step leaves as they are."""
    made = ("bits", "terms", "products", *["special"] * ("specials" in i.shape().members))
    names = [name for name in o.shape().members if name not in made]
    return [o[name].eq(i[name]) for name in names]


def result(total: Value, i: data.View, o: data.View) -> list[Any]:
    """Assignments of the fields of `DotShape.sum`, with 0 in place of a sum that is no number."""
    members = o.shape().members
    if "special" in members:
        total = total & (i.special == 0).replicate(len(total))
    words = [name for name in ("sum", "high") if name in members]
    rest = [name for name in members if name not in words]
    # One assignment: each would have an adder of its own.
    return [Cat(o[name] for name in words).eq(total), *(o[name].eq(i[name]) for name in rest)]
