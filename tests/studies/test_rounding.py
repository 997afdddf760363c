from typing import Any

import numpy as np
import pytest

from axs6.golden.lfsr import Lfsr
from axs6.studies import rounding
from axs6.studies.rounding import WIDTHS, study_rounding

VALUES = 1 << 17


@pytest.mark.parametrize("block", [8, 32])
def test_what_is_measured_is_what_is_predicted(block: int) -> None:
    nearest, *rows = study_rounding(values=VALUES, block=block)
    assert (nearest.rounding, nearest.random_bits) == ("nearest", None)
    assert 0.49 < nearest.worst_bias <= 0.5
    for moment in (nearest.bias, nearest.variance):
        assert moment.standard_error == 0
        assert abs(moment.deviation) < 1e-12
    assert [row.random_bits for row in rows] == list(WIDTHS)
    for row, bits in zip(rows, WIDTHS, strict=True):
        # The floor that R bits leave takes half a step of 2^-R on average, and never a whole one.
        assert 0.9 * 2.0**-bits < row.worst_bias < 2.0**-bits
        assert -row.bias.predicted == pytest.approx(2.0 ** -(bits + 1), rel=0.02)
        # Uniform fractions would have 1/6, twice that of rounding to nearest.
        assert row.variance.predicted == pytest.approx(1 / 6, rel=0.02)
        assert abs(row.bias.deviation) < 4
        assert abs(row.variance.deviation) < 4


class Stuck(Lfsr):
    """Registers that never move."""

    def draw(self, count: int) -> Any:
        return np.tile(super().draw(1), (count, 1))


class Weak(Lfsr):
    """Words whose top bit is always 0."""

    def draw(self, count: int) -> Any:
        return super().draw(count) & np.uint32((1 << self.bits - 1) - 1)


@pytest.mark.parametrize("source", [Stuck, Weak])
def test_words_that_are_not_random_are_seen(
    source: type[Lfsr], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounding, "Lfsr", source)
    for row in study_rounding(values=VALUES)[1:]:
        assert max(abs(row.bias.deviation), abs(row.variance.deviation)) > 4


def test_a_fixed_seed_gives_fixed_figures() -> None:
    rows = study_rounding([8], 1000)
    assert study_rounding([8], 1000) == rows
    assert study_rounding([8], 1000, seed=2) != rows


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^random_bits must be an integer from 1 to 32, not 0$"):
        study_rounding([0])
    with pytest.raises(ValueError, match=r"^values must be an integer of at least 1, not 0$"):
        study_rounding(values=0)
    with pytest.raises(ValueError, match=r"^block must be one of 8, 16, 32, not 12$"):
        study_rounding(block=12)
