"""Dot products whose sums are multiplied by the scales of blocks, in the batch simulator."""

from typing import Any

import pytest
from amaranth.hdl import Module, Mux
from amaranth.lib import data

from axs6.hw.core.pipeline import Step, past
from axs6.hw.core.structures import StructLayout
from axs6.hw.dot import promote, scales
from axs6.hw.fp32.add import addition_steps, operands_layout
from axs6.hw.fp32.multiply import factors_layout, multiplication_steps
from axs6.hw.fp32.multiply_add import multiply_add_steps
from axs6.hw.units.accumulate import terms_of

from .test_accumulators import DOT, check, component_outputs, differences, settings

SMALL = ("e4m3fn_float32_t8", "hopper_fp8,reduction=4,promote=2,scaled=true")
MINUS = ("e5m2_float32_t8", "cdna1,reduction=4,output=fp16,promote=2,scaled=true")
"""Sums may be -0 here."""

PAIRS = [
    ("fp8_block", "hopper_fp8_scaled"),
    ("fp8_block_t128xe4m3fn_float32_t128", "hopper_fp8_scaled"),
    ("mxfp8_e5m2", "hopper_fp8,promote=1,scaled=true"),
    ("mxfp8_e4m3", "fp32,promote=1,scaled=true"),
    ("axs6", "fp32,promote=1,scaled=true"),
    ("if4", "fp32,promote=1,scaled=true"),
    ("nvfp4_ue5m3", "cdna1,reduction=16,promote=1,scaled=true"),
    ("mxint8", "hopper,promote=2,scaled=true"),
    ("e4m3fn_bfloat16_t32", "cdna3,reduction=16,promote=2,scaled=true"),
    ("e4m3fn_bfloat16_t32", "cdna2,promote=8,scaled=true"),
    ("e2m1fn_e8m0_t16_float32", "volta,promote=4,scaled=true,nan=0x7fffffff"),
    MINUS,
]
"""Scales and accumulators of each kind."""


def test_products_of_scaled_sums_equal_the_golden_model() -> None:
    check(settings(SMALL, interleave=3, stages=4), 1000)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("view", ["structure", "behaviour"])
def test_scales_of_every_kind(pair: tuple[str, str], view: str) -> None:
    behaviour = view == "behaviour"
    stages = DOT.most_stages(settings(pair)) if behaviour else 0
    check(settings(pair, view=view, interleave=14 if behaviour else 1, stages=stages))


def test_items_meet_what_sums_times_scales_can_be() -> None:
    parameters = settings(SMALL)
    items = DOT.corners(parameters)
    (values,) = DOT.golden(items, parameters).values()
    magnitudes = values & 0x7FFFFFFF
    counts = {
        "NaN": magnitudes == terms_of(parameters).accumulator.nan,
        "infinite": values == 0x7F800000,
        "minus infinite": values == 0xFF800000,
        "-0": values == 0x80000000,
        "0": values == 0,
        "subnormal": (magnitudes > 0) & (magnitudes < 0x800000),
    }
    assert not [what for what, found in counts.items() if found.sum() < 5]


class FirstFactor(promote.Begin):
    """Keeps the factor of the first step of a sum."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        i, o = self.i, self.o
        m.d.comb += o.factor.eq(Mux(o.count == 1, i.term.factor, i.total.factor))
        return m


class BareScale(scales.MultiplyScales):
    """Multiplies by the scale of a alone."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        fraction, field = self.i.a[:23], self.i.a[23:31]
        significand = fraction | field.any() << 23
        m.d.comb += self.o.magnitude.eq(significand << 23)
        return m


class Factors(Step):
    """The factors of a multiply-add, and the addend beside."""

    def __init__(self) -> None:
        operands = multiply_add_steps("structure")[0].i.shape()
        super().__init__(operands, StructLayout({**factors_layout.members, "c": 32}), levels=0)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        i, o = self.i, self.o
        m.d.comb += [o.value.eq(i.a), o.outer.eq(i.b), o.c.eq(i.c)]
        return m


class Addends(Step):
    """The product and the addend."""

    def __init__(self, i: data.Layout) -> None:
        super().__init__(i, operands_layout, levels=0)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += [self.o.a.eq(self.i.value), self.o.b.eq(self.i.c)]
        return m


def twice_rounded(view: str) -> list[Step]:
    """A multiplication and an addition, each with a rounding."""
    multiply = past(multiplication_steps(view), StructLayout({"c": 32}))
    return [Factors(), *multiply, Addends(multiply[-1].o.shape()), *addition_steps()]


@pytest.mark.parametrize(
    ("pair", "module", "name", "wrong"),
    [
        pytest.param(*(SMALL, promote, "Begin", FirstFactor), marks=pytest.mark.slow),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [
                (SMALL, scales, "MultiplyScales", BareScale),
                (SMALL, promote, "multiply_add_steps", twice_rounded),
                (MINUS, promote, "MINUS_ZERO", 0),
            ]
        ),
    ],
)
def test_a_wrong_unit_is_found(
    pair: tuple[str, str], module: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = settings(pair)
    monkeypatch.setattr(module, name, wrong)
    assert differences(parameters, component_outputs(DOT.build(**parameters)), 3000)


@pytest.mark.slow
@pytest.mark.parametrize("change", [("fp8,", "fp8,fraction=12,"), ("scaled=true", "scaled=false")])
def test_hardware_of_another_accumulator_is_found(change: tuple[str, str]) -> None:
    parameters = settings(SMALL)
    other = settings((SMALL[0], SMALL[1].replace(*change)))
    assert parameters != other
    assert differences(parameters, component_outputs(DOT.build(**other)), 3000)
