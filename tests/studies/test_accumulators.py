"""The study of accumulators."""

import numpy as np
import pytest

from axs6.golden import decode, encode, matmul
from axs6.studies.accumulators import AccumulatorStudy, study_accumulators


@pytest.fixture(scope="module")
def study() -> AccumulatorStudy:
    return study_accumulators(["mx9", "mxfp8_e4m3"], ["blackwell", "paper"], [8, 12, 30], length=96)


def test_errors_fall_with_the_bits_that_are_kept(study: AccumulatorStudy) -> None:
    assert [(x.format, x.accumulator) for x in study.series] == [
        *(("mx9", name) for name in ("blackwell", "paper")),
        *(("mxfp8_e4m3", name) for name in ("blackwell", "paper")),
    ]
    for each in study.series:
        few, more, most = (-400 if x is None else x for x in each.error_db)
        assert few > more + 15
        assert more > most + 15


def test_an_error_is_that_of_its_dot_products(study: AccumulatorStudy) -> None:
    rng = np.random.default_rng(study.seed)
    operands = []
    for _ in range(2):
        deviations = [[abs(x)] for x in rng.standard_normal(16)]
        operands.append(np.float32(deviations * rng.standard_normal((16, 96))))
    blocks = [encode(x, "mx9") for x in operands]
    exact = matmul(*blocks, "exact")
    kept = matmul(*blocks, "paper,fraction=12")
    ratio = np.sum((kept - exact).astype(float) ** 2) / np.sum(exact.astype(float) ** 2)
    assert study.series[1].error_db[1] == pytest.approx(10 * np.log10(ratio), abs=0.01)
    decoded = [decode(x, np.float64) for x in blocks]
    true = np.float64(operands[0]) @ np.float64(operands[1]).T
    noise = np.sum((decoded[0] @ decoded[1].T - true) ** 2) / np.sum(true**2)
    assert study.series[1].format_db == pytest.approx(10 * np.log10(noise), abs=0.01)


def test_results_that_are_exact_have_no_error() -> None:
    (series,) = study_accumulators(["int4_e8m0_t32"], ["paper"], [35], length=32).series
    assert series.error_db == [None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "length must be an integer of at least 1, not 0"),
        ({"fractions": [49]}, "fraction must be an integer from 0 to 48, not 49"),
        ({"accumulators": ["pascal"]}, "accumulator must be one of"),
    ],
)
def test_other_arguments_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        study_accumulators(**arguments)
