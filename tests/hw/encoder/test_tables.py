"""Encoders of elements from a table."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from axs6.golden.tables import Entries
from axs6.hw.encoder import table_lanes
from axs6.hw.encoder.table_lanes import RoundTableLane
from axs6.hw.registry import find

from .test_formats import FEEDBACK, difference, planted

__all__ = ["planted"]

QUICK = {"format": "nf4q6", "dtype": "bf16", "block": 8}
EXACT = {"format": "nf4q6_e8m0_t8", "dtype": "bf16"}
"""Scales that leave values as they are, so that many are halfway between two entries."""

GIVEN = [
    {**QUICK, "dtype": "fp16", "rounding": "toward_zero"},
    {"format": "nf4", "dtype": "fp32", "block": 8},
    {"format": "nf4", "dtype": "bf16", "block": 8, "rounding": "stochastic"},
    {"format": "table-7:-1:0:3d7q1_e4m3fn_t8_float32", "dtype": "bf16"},
    {"format": "nf4q6_u4_t8_float32_t0", "dtype": "bf16"},
    {"format": "table0:1:2:7_e4m0-rceil_t8", "dtype": "fp16", "rounding": "stochastic"},
    {"format": "table0:1:2:7d7_e8m0-ceil_t8", "dtype": "fp32", "rounding": "toward_zero"},
]
"""Every rounding; divisors, infinities that saturate, and tables without negative values."""


@pytest.mark.parametrize(
    "given",
    [pytest.param(QUICK, marks=pytest.mark.slow), {**EXACT, "rounding": "stochastic"}],
    ids=str,
)
def test_codes_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given) is None


@pytest.mark.slow
@pytest.mark.parametrize("given", [EXACT, *GIVEN], ids=str)
def test_all_codes_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given, 5000) is None


@pytest.mark.slow
def test_errors_that_are_fed_back_are_right() -> None:
    assert difference({"format": EXACT["format"]}, unit=FEEDBACK) is None


def test_ties_to_the_smaller_magnitude_are_caught(planted: pytest.MonkeyPatch) -> None:
    def above(self: RoundTableLane, side: Entries) -> NDArray[np.uint64]:
        return side.bounds(self._scheme.rounding) | np.uint64(1)

    planted.setattr(RoundTableLane, "_bounds", above)
    found = difference(EXACT)
    assert found is not None
    assert found.startswith("block.codes")


@pytest.mark.slow
def test_a_negative_side_with_the_bounds_of_the_other_is_caught(
    planted: pytest.MonkeyPatch,
) -> None:
    right = table_lanes._alike

    def one(table: Any) -> list[Entries]:
        plus, minus = right(table)
        return [plus, Entries(plus.counts, minus.codes)]

    planted.setattr(table_lanes, "_alike", one)
    found = difference(QUICK)
    assert found is not None
    assert found.startswith("block.codes")


def test_a_choice_of_the_scale_is_refused() -> None:
    message = "choice_encoder has no hardware for the elements or scales of table-2:-1:0:1_e8m0_t8"
    with pytest.raises(ValueError, match=message):
        find("choice_encoder").build(format="table-2:-1:0:1_e8m0_t8_mse")
