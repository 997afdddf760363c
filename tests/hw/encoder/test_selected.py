"""Encoders of elements that a scale selects, and ones with a deliberate fault each."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal

from axs6.golden import decode
from axs6.golden.encode import encode
from axs6.golden.formats import Element, Selected, block_format
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.hw.core.trees import balanced
from axs6.hw.encoder import selected_intervals
from axs6.hw.encoder.selected_lanes import MeasureValueLane
from axs6.hw.encoder.selected_steps import Keep, SumDifferences
from axs6.hw.registry import find
from axs6.hw.units.encoder_corners import as_values
from axs6.hw.units.selected_corners import nearly_equal_rows, rows_beside_bounds

from .test_formats import ENCODER, case_name, difference, planted

__all__ = ["planted"]

IF4 = {"format": "if4", "dtype": "bf16", "block": 8}
RAZER = {"format": "razer", "dtype": "bf16", "block": 8}
DRAWN = {**IF4, "rounding": "stochastic"}
DRAWN_RAZER = {**RAZER, "rounding": "stochastic"}

GIVEN = [
    {"format": "if4", "dtype": "fp32"},
    {"format": "razer", "dtype": "fp16"},
    {**RAZER, "rounding": "toward_zero", "dtype": "fp32"},
    {**RAZER, "rounding": "stochastic", "dtype": "fp16"},
    {"format": "if4_float32_t8", "dtype": "bf16"},
    {"format": "if4_e4m3fn-bf16_t8", "dtype": "bf16", "rounding": "toward_zero"},
    {"format": "sm4+int4a_float16_t8_float32_t0", "dtype": "bf16"},
    {"format": "sm6+int6_e4m3fn_t8", "dtype": "fp32", "rounding": "stochastic"},
    {"format": "e3m2fn+e3m2fn_e5m2_t8_float32", "dtype": "bf16"},
    {"format": "nf4+nf4q6_e4m3fn_t8", "dtype": "bf16"},
    {"format": "table0:1:2:7+table0:3:4:7_bfloat16_t8", "dtype": "bf16"},
    {"format": "e2m1fn+e2m1fn_e4m3fn_t8", "dtype": "fp16"},
]
"""Every rounding, dtype and kind of scale; elements of each kind, wide and narrow, and equal."""


@pytest.mark.parametrize(
    "given", [IF4, pytest.param(DRAWN_RAZER, marks=pytest.mark.slow)], ids=case_name
)
def test_blocks_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given) is None


@pytest.mark.slow
@pytest.mark.parametrize("given", [IF4, DRAWN, RAZER, *GIVEN], ids=case_name)
def test_all_blocks_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given, 20_000) is None


@pytest.mark.slow
def test_the_stochastic_encoder_is_right() -> None:
    given = {**IF4, "stages": 9, "random_bits": 4}
    assert difference(given, unit=find("stochastic_encoder")) is None


def or_equal(self: SumDifferences, m: Module, platform: object) -> list[str]:
    """The second element where both errors are equal."""
    total = balanced(list(self.i.terms), lambda a, b: a + b)
    m.d.comb += self.o.selects.eq(total >= 0)
    return ["selects"]


def without_a_lane(self: SumDifferences, m: Module, platform: object) -> list[str]:
    total = balanced(list(self.i.terms)[:-1], lambda a, b: a + b)
    m.d.comb += self.o.selects.eq(total > 0)
    return ["selects"]


@pytest.mark.parametrize("fault", [or_equal, pytest.param(without_a_lane, marks=pytest.mark.slow)])
def test_a_wrong_comparison_is_caught(fault: Any, planted: pytest.MonkeyPatch) -> None:
    planted.setattr(SumDifferences, "build", fault)
    found = difference(RAZER)
    assert found is not None
    assert found.startswith("block.scale")


@pytest.mark.slow
def test_errors_with_fewer_bits_are_caught(planted: pytest.MonkeyPatch) -> None:
    """Values of which four bits that count are dropped."""

    def elaborate(self: MeasureValueLane, platform: object) -> Module:
        port, self.value = self.value, Signal.like(self.value)
        m = right(self, platform)
        m.d.comb += [port.eq(self.value), port.fixed[:4].eq(0)]
        self.value = port
        return m

    right = MeasureValueLane.elaborate
    planted.setattr(MeasureValueLane, "elaborate", elaborate)
    found = difference(IF4)
    assert found is not None
    assert found.startswith("block.scale")


@pytest.mark.slow
def test_ties_away_from_zero_are_caught(planted: pytest.MonkeyPatch) -> None:
    def away(part: Element, negative: bool, element: Selected) -> Any:
        side, bounds = right(part, negative, element)
        return side, bounds & ~np.uint64(1)

    right = selected_intervals._in_units
    planted.setattr(selected_intervals, "_in_units", away)
    found = difference(RAZER)
    assert found is not None
    assert found.startswith("block.codes")


@pytest.mark.slow
def test_codes_of_one_element_are_caught(planted: pytest.MonkeyPatch) -> None:
    """The codes of the first element, drawn by random words, beside a scale that selects."""

    def rounded(self: Keep, m: Module, platform: object, name: str, part: Any) -> Any:
        codes = right(self, m, platform, name, part)
        found.setdefault(m, codes)
        return found[m]

    found: dict[Module, Any] = {}
    right = Keep._rounded
    planted.setattr(Keep, "_rounded", rounded)
    wrong = difference(DRAWN)
    assert wrong is not None
    assert wrong.startswith("block.codes")


@pytest.mark.parametrize("name", ["mxfp4_mse", "e2m1fn_e4m3fn_t16_four-over-six"])
def test_corners_have_blocks_of_nearly_equal_errors_of_scales(name: str) -> None:
    fmt, kind = block_format(name).with_block(16), INPUT_DTYPES["fp32"]
    rows = nearly_equal_rows(fmt, kind, 16).reshape(-1, 2, 16)
    assert len(rows) > 50
    assert (np.abs(rows[:, 0] - rows[:, 1]).sum(axis=1) == 1).all()
    scales = encode(as_values(kind, rows), fmt).scales[-1].reshape(-1, 2)
    assert (scales[:, 0] != scales[:, 1]).all()


@pytest.mark.parametrize("name", ["if4", "razer"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_corners_have_blocks_of_nearly_equal_errors(name: str, dtype: str) -> None:
    fmt, kind = block_format(name), INPUT_DTYPES[dtype]
    rows = nearly_equal_rows(fmt, kind, 16).reshape(-1, 2, 16)
    assert len(rows) > 100
    assert (np.abs(rows[:, 0] - rows[:, 1]).sum(axis=1) == 1).all()
    found = encode(as_values(kind, rows), fmt, scale=np.float32(1)).selected
    assert found is not None
    assert (found.reshape(-1, 2).sum(axis=1) == 1).all()


def test_elements_without_a_choice_have_no_such_blocks() -> None:
    fmt = block_format("e2m1fn+e2m1fn_e4m3fn_t8")
    assert nearly_equal_rows(fmt, INPUT_DTYPES["bf16"], 8).shape == (0, 8)


@pytest.mark.parametrize(
    ("format", "message"),
    [
        (
            "sm4z+int4_e4m3fn_t32",
            "encoder has no hardware for elements that drop the sign of -0.0 under a real scale",
        ),
        ("if4_e4m3f_t16", "encoder has no hardware for if4_e4m3f_t16, in which NaN has no code"),
        (
            "if4_e4m3fn_t4_e5m2_t16",
            "encoder has no hardware for two scales within a block, neither a power of two, which",
        ),
    ],
)
def test_what_has_no_hardware(format: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        ENCODER.build(format=format)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["if4", "razer", "e2m1fn+e2m1fn_e4m3fn_t8"])
def test_rows_beside_bounds_have_errors_in_each_lane(name: str) -> None:
    """Each element that can be best is chosen for a sixth of the rows at least."""
    fmt, lanes = block_format(name), 8
    rows = rows_beside_bounds(fmt, INPUT_DTYPES["fp32"], lanes, 2.0 ** np.arange(-6, 8))
    values = rows.astype(np.uint32).view(np.float32)
    options = {"scale": np.float32(1)} if fmt.outer else {}
    padded = np.pad(values, ((0, 0), (0, fmt.block - lanes)))
    blocks = encode(padded, fmt, **options)
    errors = np.abs(decode(blocks)[:, :lanes] - values)
    assert blocks.selected is not None
    chosen = blocks.selected.ravel()
    for which in np.unique(chosen):
        assert np.mean(chosen == which) > 1 / 6
        assert (errors[chosen == which].max(axis=0) > 0).all()
    assert len(np.unique(chosen)) == 1 + (len({*map(str, fmt.element.parts)}) > 1)
