"""Packed blocks of formats without modes: their bytes are their fields, and some must be zero."""

from typing import Any

from amaranth.hdl import Const, Module, Value

from axs6.golden.formats import BlockFormat, Real, Specials
from axs6.hw.core.layouts import (
    PADDING,
    UNUSED,
    elements_of,
    error_layout,
    filled_layout,
    outer_names,
    scale_names,
    scaled_layout,
)
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import any_of


class SplitBlock(Step):
    """The fields of a packed block, and whether it cannot be read.

    It cannot where a real scale is neither a positive number nor the NaN of its format, or a bit
    that fills up bytes is not 0.

    Args:
        fmt: the block format.
        lanes: values in a block.
        align: bytes to a multiple of which it is padded.
    """

    verilog_name = "fields"

    def __init__(self, fmt: BlockFormat, lanes: int, align: int = 1) -> None:
        self._fmt = fmt
        o = StructLayout({**scaled_layout(lanes, fmt).members, **error_layout.members})
        super().__init__(filled_layout(lanes, fmt, align), o, levels=6)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparisons."""
        m = Module()
        fmt, i, o = self._fmt, self.i, self.o
        wrong = []
        levels = [*fmt.outer[::-1], *fmt.blocked[::-1]]
        for name, level in zip([*outer_names(fmt), *scale_names(fmt)], levels, strict=True):
            if isinstance(level.scale, Real):
                wrong += [is_no_code(level.scale, code) for code in elements_of(i[name])]
        for name in i.shape().members:
            given = Value.cast(i[name])
            if name in (UNUSED, PADDING):
                wrong.append(given.any())
                continue
            size = len(Value.cast(o[name]))
            wrong += [given[size:].any()] if len(given) > size else []
            m.d.comb += Value.cast(o[name]).eq(given[:size])
        m.d.comb += o.error.eq(any_of(wrong) if wrong else Const(0, 1))
        return m


class SplitChecked(Step):
    """As `SplitBlock`, with zeros where a block cannot be read."""

    verilog_name = "check"

    def __init__(self, fmt: BlockFormat, lanes: int, align: int = 1) -> None:
        self._fields = SplitBlock(fmt, lanes, align)
        super().__init__(self._fields.i.shape(), self._fields.o.shape(), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the gates."""
        m = Module()
        m.submodules.fields = fields = self._fields
        m.d.comb += [fields.i.eq(self.i), self.o.error.eq(fields.o.error)]
        for name in self.o.shape().members:
            if name != "error":
                given = Value.cast(fields.o[name])
                kept = (~fields.o.error).replicate(len(given))
                m.d.comb += Value.cast(self.o[name]).eq(given & kept)
        return m


def is_no_code(scale: Real, code: Value) -> Value:
    """Whether a pattern is neither a positive number nor the NaN of a real scale."""
    dtype = scale.dtype
    code = code[: dtype.width]
    if not dtype.has_negative_zero:
        return (code > dtype.largest_code) & (code != dtype.quiet_nan)
    if not dtype.signed:
        return Const(0, 1)
    if scale.selector:
        special = code[dtype.fraction_bits : -1].all()
        infinite = dtype.specials is Specials.IEEE
        return special & (code[:-1] != dtype.quiet_nan) if infinite else Const(0, 1)
    if dtype.specials is not Specials.IEEE:
        return code[-1]
    special = code[dtype.fraction_bits : -1].all()
    return code[-1] | special & (code != dtype.quiet_nan)
