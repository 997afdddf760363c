"""The operands of a step of a dot product as signals: their elements and scales."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data

from axs6.golden.formats import (
    Exponent,
    Float,
    Integer,
    Level,
    Real,
    Selected,
    Shift,
    TwosComplement,
)
from axs6.golden.operands import IntegerForm
from axs6.hw.core.codes import (
    Listed,
    is_zero,
    number_bits,
    significand_and_field,
    split,
    table_integer,
)
from axs6.hw.core.layouts import scale_names


def operand_layout(form: IntegerForm, lanes: int) -> data.StructLayout:
    """Some lanes of a format with their scales: a block, or several in a row."""
    fmt = form.format
    fields: dict[str, Any] = {}
    for name, level in _levels(form)[::-1]:
        number, groups = unsigned(level.scale.bits), lanes // int(level.group)
        single = groups == 1 and level.group == fmt.block
        fields[name] = number if single else data.ArrayLayout(number, groups)
    codes = data.ArrayLayout(unsigned(fmt.element.width), lanes)
    return data.StructLayout({**fields, "codes": codes})


def _levels(form: IntegerForm) -> list[tuple[str, Level]]:
    """Levels within a block, fine to coarse, with the names of their fields."""
    return list(zip(scale_names(form.format)[::-1], form.format.blocked, strict=True))


def _own_levels(form: IntegerForm) -> list[tuple[str, Level]]:
    """Those whose scales the values have; see `IntegerForm`."""
    return [(name, level) for name, level in _levels(form) if level in form.levels]


class OperandSignals:
    """The signals of one operand.

    Args:
        m: module that they are in.
        form: how its values are integers.
        view: an `operand_layout`.
        name: of the operand, which names of signals begin with.
    """

    def __init__(self, m: Module, form: IntegerForm, view: Any, name: str) -> None:
        self._m, self._form, self._view, self._name = m, form, view, name
        self._element = form.format.element
        self._zeros: dict[str, Value] = {}

    @property
    def levels(self) -> list[Level]:
        """The levels within a block whose scales the values have, fine to coarse."""
        return [level for _, level in _own_levels(self._form)]

    def codes(self, first: int, count: int) -> list[Value]:
        """The codes of some lanes in a row."""
        return [self._view.codes[lane] for lane in range(first, first + count)]

    def code(self, lane: int) -> Value:
        """The code of a lane, with the bit above it that selects an element, if there is one."""
        code = self._view.codes[lane]
        if not isinstance(self._element, Selected):
            return code
        return Cat(code, self.scale(self._form.format.blocked[0], lane)[-1])

    def scale(self, level: Level, lane: int) -> Value:
        """The code of a lane's scale of a level."""
        name = next(name for name, each in _levels(self._form) if each == level)
        codes = self._view[name]
        return codes[lane // int(level.group)] if isinstance(codes, data.View) else codes

    def element(self, lane: int) -> tuple[Value, Value, Value]:
        """Sign, magnitude and exponent field of an element, as `IntegerForm` has them."""
        code, element = self.code(lane), self._element
        none = Const(0, 0)
        if isinstance(element, TwosComplement | Listed):
            number, sign = code.as_signed(), code[-1]
            if isinstance(element, Listed):
                number = table_integer(element, code)
                sign = number[-1]
            magnitude = Signal(len(number), name=f"{self._name}_magnitude{lane}")
            self._m.d.comb += magnitude.eq(Mux(sign, -number, number))
            return sign, magnitude, none
        if not isinstance(element, Float):
            return code[-1], code[:-1], none
        fraction, exponent = split(element, code)
        normal = Signal(name=f"{self._name}_normal{lane}")
        field = Signal(len(exponent), name=f"{self._name}_field{lane}")
        self._m.d.comb += [normal.eq(exponent.any()), field.eq(exponent - normal)]
        significand = Cat(fraction, normal)
        if self._form.apart and not element.fixed:
            return code[-1], significand, field[: int(self._form.fields.max()).bit_length()]
        whole = int(self._form.elements.max()).bit_length()
        return code[-1], (significand << field)[:whole], none

    def number(self, lane: int) -> Value:
        """An element in two's complement."""
        code = self.code(lane)
        if isinstance(self._element, TwosComplement):
            return code.as_signed()
        if isinstance(self._element, Listed):
            return table_integer(self._element, code)
        sign, magnitude, _ = self.element(lane)
        number = Signal(signed(len(magnitude) + 1), name=f"{self._name}_number{lane}")
        self._m.d.comb += number.eq(Mux(sign, -magnitude, magnitude))
        return number

    def scaled(self, value: Value, level: Level, lane: int) -> Value:
        """A value times the integer by which a level multiplies a lane."""
        scale = self.scale(level, lane)
        if isinstance(level.scale, Integer):
            return value * scale
        if isinstance(level.scale, Shift):
            return value << (level.scale.largest_code - scale)[: level.scale.bits]
        if isinstance(level.scale, Real):
            return value * significand_and_field(level.scale.dtype, scale)[0]
        return value

    def exponents(self, lane: int) -> list[Value]:
        """The fields of a lane's scales."""
        found = []
        for _, level in _own_levels(self._form):
            scale = self.scale(level, lane)
            if isinstance(level.scale, Exponent):
                found.append(scale)
            elif isinstance(level.scale, Real):
                found.append(significand_and_field(level.scale.dtype, scale)[1])
        return found

    def nan_scales(self) -> list[Value]:
        """For each scale that may be NaN, whether it is NaN."""
        found = []
        for name, level in _own_levels(self._form):
            if level.scale.nan_code is None:
                continue
            codes = self._view[name]
            each = list(codes) if isinstance(codes, data.View) else [codes]
            found += [number_bits(level.scale, code) == level.scale.nan_code for code in each]
        return found

    def nan_scales_of(self, lane: int) -> list[Value]:
        """For each scale of a lane that may be NaN, whether it is NaN."""
        return [
            number_bits(level.scale, self.scale(level, lane)) == level.scale.nan_code
            for level in self.levels
            if level.scale.nan_code is not None
        ]

    def is_zero(self, lane: int) -> Value:
        """Whether a lane is 0: its element, or a scale of it that can be."""
        code = self.code(lane)
        if isinstance(self._element, Listed):
            zero = table_integer(self._element, code) == 0
        elif isinstance(self._element, TwosComplement):
            zero = code == 0
        else:
            zero = ~code[:-1].any()
        for _, level in _own_levels(self._form):
            if isinstance(level.scale, Integer | Real):
                zero = zero | is_zero(level.scale, self.scale(level, lane))
        return zero
