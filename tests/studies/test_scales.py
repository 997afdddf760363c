"""The study of the rules of exponent scales."""

import numpy as np
import pytest

from axs6.golden import encode, qsnr
from axs6.studies.distributions import draw
from axs6.studies.scales import study_scales


def test_rows_are_those_of_the_rules() -> None:
    study = study_scales(["mxfp4", "mx9"], vectors=3)
    assert [(row.format, row.rule) for row in study.rows] == [
        (name, rule) for name in ("mxfp4", "mx9") for rule in ("floor", "ceil", "even", "rceil")
    ]
    (x,) = draw(3, study.seed)
    for row in study.rows:
        assert row.qsnr_db == pytest.approx(qsnr(x, f"{row.format}-{row.rule}"))


@pytest.mark.parametrize(("name", "largest"), [("mxfp4", 6.0), ("mxfp6_e3m2", 28.0)])
def test_saturated_values_lie_above_the_largest_element(name: str, largest: float) -> None:
    rows = {row.rule: row for row in study_scales([name], vectors=4).rows}
    (x,) = draw(4, 0)
    for rule, row in rows.items():
        scale = np.exp2(encode(x, f"{name}-{rule}").scales[0].astype(float) - 127)
        above = np.abs(x) > largest * np.repeat(scale.reshape(len(x), -1), 32, axis=1)
        assert row.saturated == above.mean()
    assert rows["rceil"].saturated == 0 < rows["floor"].saturated


def test_a_format_without_an_exponent_is_refused() -> None:
    with pytest.raises(ValueError, match="has no exponent scale"):
        study_scales(["int8"], vectors=1)
