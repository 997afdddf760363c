"""Encoders with shifts below a real scale, and with scales in BF16 arithmetic."""

from typing import Any

import pytest
from amaranth.hdl import Module, Value

import axs6.hw.encoder.scaled_steps
from axs6.hw.encoder.shifted_steps import ShareShifts
from axs6.hw.registry import find

from .test_formats import difference, planted

__all__ = ["planted"]

QUICK = {"format": "hif4_t16", "dtype": "bf16"}

GIVEN = [
    {**QUICK, "dtype": "fp16", "rounding": "stochastic"},
    {**QUICK, "dtype": "fp32", "rounding": "toward_zero"},
    {"format": "hif4", "dtype": "fp32"},
    {"format": "int4a_e4m3fn_t8s4o1_float32", "dtype": "bf16"},
    {"format": "sm5d_ue5m3h_t16s8o2s4o3", "dtype": "bf16"},
    {"format": "e2m1fn_float16-bf16_t8s4o1", "dtype": "bf16"},
    {"format": "int8a_float16-bf16_t8", "dtype": "bf16"},
    {"format": "int5a_e8m0_t8", "dtype": "bf16"},
]
"""Shifts of one level and of two, under each kind of scale; and each property without others."""


def test_codes_are_those_of_the_golden_model() -> None:
    assert difference(QUICK, 2000) is None


@pytest.mark.slow
@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_all_codes_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given, 5000) is None


@pytest.mark.slow
def test_the_encoder_that_chooses_rounds_ties_away() -> None:
    given = {"format": "int4a_e8m0_t8_mse", "dtype": "bf16"}
    assert difference(given, unit=find("choice_encoder")) is None


def test_a_scale_that_is_not_rounded_to_bf16_is_caught(planted: pytest.MonkeyPatch) -> None:
    def same(m: Module, value: Value) -> Value:
        return value

    planted.setattr(axs6.hw.encoder.scaled_steps, "in_bf16", same)
    found = difference(QUICK)
    assert found is not None
    assert found.startswith("block.scale")


@pytest.mark.slow
def test_shifts_that_ignore_a_group_are_caught(planted: pytest.MonkeyPatch) -> None:
    def first(self: ShareShifts, m: Module, lanes: list[Any], name: str) -> Value:
        return right(self, m, lanes[:1], name)

    right = ShareShifts._nearest
    planted.setattr(ShareShifts, "_nearest", first)
    found = difference(QUICK)
    assert found is not None
    assert found.startswith("block.shifts8")


def test_a_choice_in_bf16_is_refused() -> None:
    message = "choice_encoder has no hardware for scales in bf16, which e2m1fn_ue4m3-bf16_t16_mse"
    with pytest.raises(ValueError, match=message):
        find("choice_encoder").build(format="e2m1fn_ue4m3-bf16_t16_mse")
