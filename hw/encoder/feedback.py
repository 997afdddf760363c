"""An encoder with error feedback: the rounding error of a value is added to the next one."""

from functools import partial
from typing import Any

from amaranth.hdl import Module, Shape
from amaranth.lib import data

from axs6.golden.formats import FP32, BlockFormat, Mode, block_format, name_of
from axs6.golden.rounding import DETERMINISTIC, Rounding, check_rounding
from axs6.hw.core.layouts import (
    encoded_layout,
    float_layout,
    fp32_layout,
    values_layout,
)
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Chain, Past, Pipeline, Step, in_lanes, past, viewed
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.decoder.decoder import dense_steps
from axs6.hw.decoder.lane import LOW_BITS
from axs6.hw.encoder.encoder import compares_codes, encoder_format, encoder_steps
from axs6.hw.fp32.add import addition_steps, operands_layout


def corrected_layout(block: int) -> data.StructLayout:
    """Values with the errors of the last encoding added."""
    return StructLayout({"corrected": values_layout(block, FP32)["values"].shape})


def errors_layout(block: int) -> data.StructLayout:
    """The rounding error of each value."""
    return StructLayout({"errors": values_layout(block, FP32)["values"].shape})


class PairOperands(Step):
    """Each value with its error, as operands of an addition."""

    def __init__(self, block: int) -> None:
        values, errors = values_layout(block, FP32), errors_layout(block)
        i = StructLayout({**values.members, **errors.members})
        super().__init__(i, ArrayLayout(operands_layout, block), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect them."""
        m = Module()
        for value, error, o in zip(self.i.values, self.i.errors, self.o, strict=True):
            m.d.comb += [o.a.eq(value), o.b.eq(error)]
        return m


class KeepCorrected(Step):
    """Sums as the values to encode, and beside them."""

    def __init__(self, block: int) -> None:
        o = {**values_layout(block, FP32).members, **corrected_layout(block).members}
        super().__init__(
            ArrayLayout(fp32_layout, block),
            StructLayout(o),
            levels=0,
            held=block * FP32.width,
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect them."""
        m = Module()
        sums = self.i.as_value()
        m.d.comb += [self.o.values.eq(sums), self.o.corrected.eq(sums)]
        return m


class KeepBlock(Step):
    """A block as what is to be decoded, and beside it."""

    def __init__(self, fmt: BlockFormat) -> None:
        encoded = encoded_layout(fmt.block, fmt=fmt).members
        corrected = corrected_layout(fmt.block).members
        self._fields = list(encoded["block"].members)
        o = {**encoded["block"].members, **corrected, **encoded}
        super().__init__(StructLayout({**encoded, **corrected}), StructLayout(o), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect them."""
        m = Module()
        m.d.comb += [self.o[name].eq(self.i.block[name]) for name in self._fields]
        m.d.comb += [self.o[name].eq(self.i[name]) for name in self.i.shape().members]
        return m


difference_layout = StructLayout({**operands_layout.members, "finite": 1})
"""Operands of a subtraction, and whether both are finite."""


class PairDecoded(Step):
    """Each corrected value, and the negative of what its code is worth.

    Args:
        fmt: the format of the codes.
        repeated: bits of the decoded values that always equal others.
    """

    def __init__(self, fmt: BlockFormat, repeated: int) -> None:
        self._always = not fmt.has_nan
        block = fmt.block
        values, corrected = values_layout(block, FP32), corrected_layout(block)
        i = StructLayout({**values.members, **corrected.members})
        o = StructLayout({"lanes": ArrayLayout(difference_layout, block)})
        super().__init__(i, o, levels=3, held=o.size - repeated)

    def elaborate(self, platform: Any) -> Module:
        """Build the changes of sign and the tests for infinities and NaN."""
        m = Module()
        for value, corrected, o in zip(self.i.values, self.i.corrected, self.o.lanes, strict=True):
            field, code = (data.View(float_layout(FP32), x).exponent for x in (corrected, value))
            finite = ~field.all() if self._always else ~(field.all() | code.all())
            m.d.comb += [
                o.a.eq(corrected),
                o.b.eq(value ^ FP32.sign_bit),
                o.finite.eq(finite),
            ]
        return m


class ClearLane(Step):
    """The difference, +0 where one of both is not finite."""

    def __init__(self) -> None:
        i = StructLayout({**fp32_layout.members, "finite": 1})
        super().__init__(i, fp32_layout, levels=1)

    def elaborate(self, platform: Any) -> Module:
        """Build the gates."""
        m = Module()
        m.d.comb += self.o.value.eq(self.i.value & self.i.finite.replicate(FP32.width))
        return m


class OfLanes(Step):
    """A core of arrays, as the one field `lanes` of structures.

    Args:
        step: the core.
        repeated: bits of its output that always equal others, beside those that it knows of.
    """

    def __init__(self, step: Step, repeated: int = 0) -> None:
        self._step = step
        i, o = (StructLayout({"lanes": port.shape()}) for port in (step.i, step.o))
        super().__init__(i, o, levels=step.levels, held=step.held - repeated)

    def elaborate(self, platform: Any) -> Module:
        """Connect the core."""
        m = Module()
        m.submodules.lanes = self._step
        m.d.comb += [self._step.i.eq(self.i.lanes), self.o.lanes.eq(self._step.o)]
        return m


class Deliver(Step):
    """A block and what its encoding leaves, in the order of the output."""

    def __init__(self, fmt: BlockFormat) -> None:
        encoded = encoded_layout(fmt.block, fmt=fmt).members
        lanes = StructLayout({"lanes": ArrayLayout(fp32_layout, fmt.block), **encoded})
        o = StructLayout({**encoded, **errors_layout(fmt.block).members})
        super().__init__(lanes, o, levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect them."""
        m = Module()
        m.d.comb += self.o.errors.eq(self.i.lanes.as_value())
        m.d.comb += [self.o[name].eq(self.i[name]) for name in ("block", "invalid")]
        return m


def bits_of_values(state: data.Layout) -> int:
    """How many bits of what an encoder's step gives are bits of the values that came in.

    Those of exponent fields, but for the lowest, and those that lead a significand, of which the
    lowest is the hidden one.
    """

    def bits(name: str | int, shape: Any) -> int:
        if isinstance(shape, data.Layout):
            return sum(bits(key, field.shape) for key, field in shape)
        return Shape.cast(shape).width - 1 if name in ("field", "leading") else 0

    return bits("", state)


def subtraction_steps() -> list[Step]:
    """Steps of one lane from `difference_layout` to `fp32_layout`."""
    finite = StructLayout({"finite": 1})
    *steps, last = past(addition_steps(), finite)
    return [*steps, Chain([last, ClearLane()])]


def feedback_steps(fmt: BlockFormat, rounding: Rounding, view: str = STRUCTURE) -> list[Step]:
    """Steps from values and errors to a block and new errors."""
    block = fmt.block
    first, *middle, last = in_lanes(addition_steps, block)
    add = [Chain([PairOperands(block), first]), *middle, Chain([last, KeepCorrected(block)])]

    compares = compares_codes(fmt)
    corrected, encoded = corrected_layout(block), encoded_layout(block, fmt=fmt)
    front, last, packing = encoder_steps(fmt, block, FP32, rounding, 0, Mode.DENSE, view)
    encode = [
        Past(step, corrected, bits_of_values(step.o.shape()) if compares else 0)
        for step in (*front, last, *packing)
    ]

    # Codes are in the lanes too, and the bits of the exponent in its tables.
    passing = StructLayout({**corrected.members, **encoded.members})
    decoding = dense_steps(fmt, block, FP32, view)
    shared = [0] * len(decoding)
    if compares and view == STRUCTURE:
        assert fmt.exponent is not None
        in_tables = fmt.exponent.bits - LOW_BITS + 2
        shared = [block * fmt.element.width + in_tables, block, block]
    scale, *rest = (
        Past(step, passing, count) for step, count in zip(decoding, shared, strict=True)
    )
    decode = [Chain([KeepBlock(fmt), scale]), *rest]

    repeated = decoding[-1].o.shape().size - decoding[-1].held
    compare, *others = in_lanes(subtraction_steps, block)
    lanes = [PairDecoded(fmt, repeated), OfLanes(compare, repeated), *map(OfLanes, others)]
    *subtract, last = past(lanes, encoded)
    return [*add, *encode, *decode, *subtract, Chain([last, Deliver(fmt)])]


class FeedbackEncoder(Pipeline):
    """Encodes FP32 values to which the errors of their last encoding are added, in each cycle.

    c = fp32(value + error) is encoded into a dense block, and fp32(c - decoded c) is the new
    error; both are rounded to nearest even, subnormals kept. Where c or what it is decoded as is
    not finite the new error is +0, and the block is that of `Encoder`, `invalid` included.

    Args:
        block: values in a block, as of `Encoder`; None for the format's own.
        rounding: "nearest" or "toward_zero".
        stages: ranks of registers, from 0.
        view: "structure" or "behaviour"; see `axs6.hw.dot.block_dot.BlockDot`.
        format: block format whose scales are an exponent and shifts.

    Ports:
        i (in, stream): an item is a block of values with their errors.
        i.values (in, `block` x 32 bits): the values in FP32, lane 0 first.
        i.errors (in, `block` x 32 bits): what the last encoding of each left, in FP32; +0 at first.
        o (out, stream): an item is the block, and what is left.
        o.block.exponent, o.block.shifts (out, the bits of each scale): codes of the scales that the
            format has, as of `Encoder`.
        o.block.codes (out, `block` x the bits of an element): the codes, lane 0 first.
        o.invalid (out, 1 bit): whether a sum of value and error was NaN or infinite.
        o.errors (out, `block` x 32 bits): each sum less what its code is worth, in FP32.

    Latency is `stages` cycles, interval 1. Source: specification section 8, docs/format.md.

    Raises:
        ValueError: a parameter is not what it must be, or the format has no hardware.
    """

    def __init__(
        self,
        block: int | None = None,
        rounding: str = "nearest",
        stages: int = 0,
        view: str = STRUCTURE,
        format: str = "axs6",
    ) -> None:
        fmt, _ = encoder_format(block_format(format), block, Mode.DENSE, "feedback_encoder")
        if fmt.exponent is None:
            name = name_of(fmt)
            raise ValueError(f"feedback_encoder has no hardware for real scales, which {name} has")
        rounding_mode = check_rounding(rounding, DETERMINISTIC)
        steps, like = viewed(partial(feedback_steps, fmt, rounding_mode), view)
        super().__init__(steps, stages, like=like)
