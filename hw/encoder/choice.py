"""An encoder that takes the best of several scales of a block, by the squared errors under them.

Under exponents, candidates are powers of two apart: each lane moves its significand once, and the
candidates read it at other places. Under real and integer scales each candidate has a reciprocal
and multipliers (`choice_scaled.py`). Then every lane of a candidate gives the code and its part of
the merit; the sums, times the squared scales, are compared (`choice_merits.py`).
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from axs6.golden.formats import FP32, BlockFormat, Real, ScaleChoice, block_format, name_of
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.rounding import Rounding
from axs6.hw.core.parameters import float_dtype
from axs6.hw.core.pipeline import Pipeline, Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.encoder.choice_lanes import moved
from axs6.hw.encoder.choice_merits import Pick, Rate, SumTerms
from axs6.hw.encoder.choice_numbers import (
    Measured,
    MeasuredExponents,
    MeasuredReals,
    measured_fields,
)
from axs6.hw.encoder.choice_scaled import real_steps
from axs6.hw.encoder.encoder import check_format
from axs6.hw.encoder.format_lanes import passing_lane, sides
from axs6.hw.encoder.format_steps import ShareScales, UnpackSignificands, rest_layout, searched
from axs6.hw.encoder.largest import search_steps
from axs6.hw.fp32.common import SIGNIFICAND


class MeasureShared(Step):
    """Values under the smallest candidate, and the codes of the candidates, of an exponent."""

    verilog_name = "measure"

    def __init__(self, scheme: MeasuredExponents, i: data.StructLayout) -> None:
        self._scheme = scheme
        super().__init__(i, StructLayout(measured_fields(scheme)), levels=40)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifters."""
        m = Module()
        scheme, o = self._scheme, self.o
        code = self.i.exponent
        change = self.i.change[0] if "change" in self.i.shape().members else Const(0, 1)
        before, after = code != 0, code < scheme.scale.largest_code
        m.d.comb += [
            Cat(o.scales).eq(Cat(code, (code - before)[: len(code)], (code + after)[: len(code)])),
            o.invalid.eq(self.i.invalid),
        ]
        for k, (lane, to) in enumerate(zip(self.i.lanes, o.measured, strict=True)):
            passed, names = lane.passed, sides(scheme)
            right = Signal(signed(len(lane.distance) + 3), name=f"right{k}")
            m.d.comb += right.eq(lane.distance + change + scheme.right)
            kept = passed.kept
            sticky: Value = passed.sticky if "sticky" in passing_lane(scheme) else Const(0, 1)
            if not scheme.propagates:  # an infinity stands for the largest FP32 value
                ones = (
                    Const(-1, len(kept))
                    if len(kept) <= SIGNIFICAND
                    else Const(((1 << SIGNIFICAND) - 1) << len(kept) - SIGNIFICAND, len(kept))
                )
                kept = Mux(passed.infinite, ones, kept)
                sticky = Mux(passed.infinite, len(kept) < SIGNIFICAND, sticky)
            sub = Module()
            moved(sub, kept, sticky, right, lane.close, to)
            m.submodules[f"lane{k}"] = sub
            m.d.comb += [o.sides[k][name].eq(passed[name]) for name in names]
        return m


def exponent_steps(scheme: MeasuredExponents) -> list[Step]:
    """Steps from the values to those in fixed point, under exponents."""
    search = search_steps(
        searched(scheme), scheme.place_bits, rest_layout(scheme), scheme.distance_bits
    )
    share = ShareScales(scheme)
    return [UnpackSignificands(scheme), *search, share, MeasureShared(scheme, share.o.shape())]


class ChoiceEncoder(Pipeline):
    """Encodes a block of floating-point values under the best of several scales in each cycle.

    The block, special values included, is that of `axs6.golden.encode` for a format with a choice
    of its finest scales, rounded to nearest: `axs6.golden.choice` says which scales are candidates
    and how they are compared. Otherwise as `Encoder`.

    Args:
        block: values in a block, 8 to 128; None for the format's own.
        dtype: of the values: "fp32", "bf16" or "fp16".
        stages: ranks of registers, from 0.
        format: block format with a choice, such as "mxfp4_mse" or "nvfp4_four-over-six": one scale
            of blocks, an exponent, integer or real number, and elements without NaN.

    Ports:
        i (in, stream): an item is a block of values.
        i.values (in, `block` x the bits of `dtype`): the values as bit patterns, lane 0 first.
        i.outer (in, 32 bits): the scale of the tensor or channel in FP32, where the format has one.
        o (out, stream): an item is the block.
        o.block.exponent, o.block.scale, o.block.factor (out, the bits of the scale): the code of
            the block's scale.
        o.block.outer (out, 32 bits): the scale of the tensor or channel by which values were
            divided: `i.outer` held to normal numbers, NaN if it is no positive finite number.
        o.block.codes (out, `block` x the bits of an element): the codes, lane 0 first.
        o.invalid (out, 1 bit): whether a value was NaN or infinite.

    Latency is `stages` cycles, interval 1. Source: docs/formats.md, "Choice of the scale".

    Raises:
        ValueError: a parameter is not what it must be, or the format has no hardware.
    """

    def __init__(
        self,
        block: int | None = None,
        dtype: str = "fp32",
        stages: int = 0,
        format: str = "mxfp4_mse",
    ) -> None:
        fmt = block_format(format)
        fmt = fmt if block is None else fmt.with_block(block)
        _check(fmt)
        numbers = (fmt, float_dtype(dtype, INPUT_DTYPES), Rounding.NEAREST, 0)
        scheme: Measured
        if fmt.exponent is None:
            scheme = MeasuredReals(*numbers, fmt.block)
            steps = real_steps(scheme)
        else:
            scheme = MeasuredExponents(*numbers)
            steps = exponent_steps(scheme)
        super().__init__([*steps, Rate(scheme), SumTerms(scheme), Pick(scheme)], stages)


def _check(fmt: BlockFormat) -> None:
    """Raise ValueError unless there is hardware for a format with a choice."""
    name = name_of(fmt)
    if fmt.choice is ScaleChoice.MAX:
        raise ValueError(f"choice_encoder needs a format with a choice of scales, unlike {name}")
    check_format(fmt.with_choice(ScaleChoice.MAX), fmt.block, "choice_encoder")
    element = fmt.element
    if element.has_nan or element.divisor > 1 or element.listed or len(fmt.blocked) > 1:
        raise ValueError(f"choice_encoder has no hardware for the elements or scales of {name}")
    if any(isinstance(x.scale, Real) and x.scale.arithmetic != FP32 for x in fmt.levels):
        raise ValueError(f"choice_encoder has no hardware for scales in bf16, which {name} has")
