"""Pairs of packed blocks in front of a dot product: checked, with the scales beside them."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import data

from axs6.golden.formats import (
    AXS6,
    FP32,
    BlockFormat,
    Exponent,
    Real,
    Rule,
    Scale,
    Specials,
    name_of,
    operands_name,
)
from axs6.hw.core.layouts import (
    block_layout,
    error_layout,
    filled_layout,
    fp32_layout,
    outer_layout,
    outer_names,
    packed_layout,
)
from axs6.hw.core.parameters import BLOCK_FORMS
from axs6.hw.core.pipeline import Step, past
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import any_of
from axs6.hw.decoder.expander import expand_pair_steps
from axs6.hw.decoder.packed import SplitBlock
from axs6.hw.dot.parts import Parts
from axs6.hw.fp32.common import pass_on
from axs6.hw.fp32.multiply import factors_layout, multiplication_steps
from axs6.hw.fp32.widen import widened


class PackedPairs:
    """Pairs of packed blocks of two formats.

    A pair is the bytes of both blocks as `axs6.golden.pack` makes them of tensors of one block:
    scales of channels and tensors come first. A pair with a block that cannot be read, or that is
    marked as an error, counts as blocks of zeros under scales of zeros.

    Args:
        parts: of the dot product, whose items are blocks.
        marked: whether a pair has a mark of its own, `error`.

    Raises:
        ValueError: blocks of the formats have no such pairs; the message says why.
    """

    def __init__(self, parts: Parts, marked: bool = False) -> None:
        self.formats, self.lanes, self.marked = parts.formats, parts.lanes, marked
        names = operands_name(self.formats)
        self.has_modes = any(fmt.has_modes for fmt in self.formats)
        if self.has_modes and not _expands(*self.formats):
            raise ValueError(
                f"packed blocks of {name_of(AXS6)} can only be multiplied with each other, "
                f"not {names}"
            )
        for index, fmt in enumerate(self.formats):
            if parts.pair["ab"[index]].shape != block_layout(self.lanes, fmt):
                raise ValueError(
                    f"packed blocks need steps of one block, and {parts.accumulator} has others"
                )
            if len(fmt.outer) > 1 or any(not _becomes_fp32(x.scale) for x in fmt.outer):
                raise ValueError(
                    f"packed blocks may have one scale of the channel or tensor, of FP32 or a "
                    f"power of two, and {name_of(fmt)} has others"
                )

    @property
    def layout(self) -> data.StructLayout:
        """A pair, with `error` where it is marked."""
        sides = [
            packed_layout(self.lanes) if self.has_modes else filled_layout(self.lanes, fmt)
            for fmt in self.formats
        ]
        mark = error_layout.members if self.marked else {}
        return StructLayout({"a": sides[0], "b": sides[1], **mark})

    @property
    def scales(self) -> data.StructLayout:
        """The scales of channels and tensors, a field for each operand that has one."""
        return StructLayout(
            {
                f"outer_{side}": level.scale.bits
                for side, fmt in zip("ab", self.formats, strict=True)
                for level in fmt.outer
            }
        )

    def steps(self) -> list[Step]:
        """From a pair to dense blocks, beside `scales` and `error`."""
        if not self.has_modes:
            return [CheckPair(self)]
        refuse: list[Step] = [Refuse(self)] if self.marked else []
        return [*refuse, *expand_pair_steps(self.lanes)]

    def outer_steps(self, total: data.StructLayout, view: str) -> list[Step]:
        """From a total beside `scales` to the total beside their product in FP32, `outer`."""
        if not self.scales.size:
            return []
        if len(self.scales.members) == 1:
            return [OneScale(self, total)]
        passing = StructLayout({"total": total})
        return [
            TwoScales(self, total),
            *past(multiplication_steps(view), passing),
            ScaledTotal(total),
        ]


def _expands(a: BlockFormat, b: BlockFormat) -> bool:
    """Whether there is hardware for the modes of both."""
    return all(
        fmt.has_modes and fmt.with_rule(Rule.FLOOR) == AXS6.with_block(fmt.block) for fmt in (a, b)
    )


def _becomes_fp32(scale: Scale) -> bool:
    """Whether there is hardware that gives a scale as an FP32 value."""
    if isinstance(scale, Exponent):
        return True
    return isinstance(scale, Real) and scale.dtype.specials is Specials.IEEE


class Refuse(Step):
    """A pair with modes; a marked one gets headers that no block may have."""

    def __init__(self, pairs: PackedPairs) -> None:
        members = dict(pairs.layout.members)
        del members["error"]
        super().__init__(pairs.layout, StructLayout(members), levels=1)

    def elaborate(self, platform: Any) -> Module:
        """Build the ors."""
        m = Module()
        pass_on(m, self, "a", "b")
        for side in "ab":
            m.d.comb += self.o[side].reserved.eq(self.i[side].reserved | self.i.error)
        return m


class CheckPair(Step):
    """A pair of formats without modes as dense blocks, beside `scales` and `error`."""

    def __init__(self, pairs: PackedPairs) -> None:
        self._pairs = pairs
        blocks = {
            side: block_layout(pairs.lanes, fmt)
            for side, fmt in zip("ab", pairs.formats, strict=True)
        }
        o = StructLayout({**blocks, **pairs.scales.members, **error_layout.members})
        super().__init__(pairs.layout, o, levels=10)

    def elaborate(self, platform: Any) -> Module:
        """Build the checks, and the gates that make zeros of a pair."""
        m = Module()
        pairs, i, o = self._pairs, self.i, self.o
        wrong = [i.error] if pairs.marked else []
        found: list[tuple[Value, Value]] = []
        for side, fmt in zip("ab", pairs.formats, strict=True):
            m.submodules[f"fields_{side}"] = fields = SplitBlock(fmt, pairs.lanes)
            m.d.comb += fields.i.eq(i[side])
            wrong.append(fields.o.error)
            found += [(o[side][name], fields.o[name]) for name in o[side].shape().members]
            found += [(o[f"outer_{side}"], fields.o[name]) for name in outer_names(fmt)]
        m.d.comb += o.error.eq(any_of(wrong))
        for to, value in found:
            number = Value.cast(value)
            m.d.comb += Value.cast(to).eq(number & (~o.error).replicate(len(number)))
        return m


def as_fp32(m: Module, scale: Scale, code: Value) -> Value:
    """The FP32 pattern of a scale."""
    if isinstance(scale, Real):
        return widened(m, scale.dtype, code)
    assert isinstance(scale, Exponent)
    field = code + (FP32.bias - scale.bias)
    # The power of two below the normal ones has the top bit of the fraction.
    least = Const(1 << FP32.fraction_bits - 1, FP32.fraction_bits)
    fraction = Mux(field == 0, least, Const(0, FP32.fraction_bits))
    number = Cat(fraction, field[: FP32.exponent_bits], Const(0, 1))
    if scale.nan_code is None:
        return number
    return Mux(code == scale.nan_code, FP32.quiet_nan, number)


def _scales(m: Module, pairs: PackedPairs, i: data.View) -> list[Value]:
    """The FP32 patterns of `PackedPairs.scales`."""
    scales = {
        f"outer_{side}": level.scale
        for side, fmt in zip("ab", pairs.formats, strict=True)
        for level in fmt.outer
    }
    return [as_fp32(m, scale, i[name]) for name, scale in scales.items()]


class OneScale(Step):
    """A total beside the only scale, `outer`."""

    def __init__(self, pairs: PackedPairs, total: data.StructLayout) -> None:
        self._pairs, self._names = pairs, tuple(total.members)
        i = StructLayout({**total.members, **pairs.scales.members})
        super().__init__(i, StructLayout({**total.members, **outer_layout.members}), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the conversion."""
        m = Module()
        (outer,) = _scales(m, self._pairs, self.i)
        m.d.comb += self.o.outer.eq(outer)
        pass_on(m, self, *self._names)
        return m


class TwoScales(Step):
    """Both scales as the factors of an FP32 multiplication, beside the total."""

    def __init__(self, pairs: PackedPairs, total: data.StructLayout) -> None:
        self._pairs, self._names = pairs, tuple(total.members)
        i = StructLayout({**total.members, **pairs.scales.members})
        super().__init__(i, StructLayout({**factors_layout.members, "total": total}), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the conversions."""
        m = Module()
        first, second = _scales(m, self._pairs, self.i)
        m.d.comb += [self.o.value.eq(first), self.o.outer.eq(second)]
        m.d.comb += [self.o.total[name].eq(self.i[name]) for name in self._names]
        return m


class ScaledTotal(Step):
    """A total beside the product of both scales."""

    def __init__(self, total: data.StructLayout) -> None:
        self._names = tuple(total.members)
        i = StructLayout({**fp32_layout.members, "total": total})
        super().__init__(i, StructLayout({**total.members, **outer_layout.members}), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the fields."""
        m = Module()
        m.d.comb += self.o.outer.eq(self.i.value)
        m.d.comb += [self.o[name].eq(self.i.total[name]) for name in self._names]
        return m


def block_forms(parts: Parts) -> tuple[str, ...]:
    """How blocks may come to a dot product."""
    try:
        PackedPairs(parts)
    except ValueError:
        return BLOCK_FORMS[:1]
    return BLOCK_FORMS
