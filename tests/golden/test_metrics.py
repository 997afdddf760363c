"""QSNR and errors by binade against sums that are written out, and against wrong definitions."""

import math

import ml_dtypes
import numpy as np
import pytest

import axs6
from axs6.golden.metrics import BinadeErrors, ErrorSums


def by_hand(x: np.ndarray, format: str, axis: int = -1, **options: object) -> tuple[float, float]:
    """Both readings of the mean, a vector at a time: of powers (the paper's), and of ratios."""
    noise, signal = [], []
    for vector in np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]):
        decoded = axs6.decode(axs6.encode(vector, format, **options), np.float64)
        noise.append(math.fsum((decoded - vector) ** 2))
        signal.append(math.fsum(np.float64(vector) ** 2))
    ratios = [n / s for n, s in zip(noise, signal, strict=True)]
    return (
        -10 * math.log10(math.fsum(noise) / math.fsum(signal)),
        -10 * math.log10(math.fsum(ratios) / len(ratios)),
    )


@pytest.fixture
def x() -> np.ndarray:
    """Vectors of different powers, whose shapes differ too."""
    rng = np.random.default_rng(3)
    return rng.standard_normal((6, 64)) ** 3 * 2.0 ** np.array([[0], [4], [-3], [6], [1], [-5]])


@pytest.mark.parametrize("format", ["axs6", "mx9", "mxfp4", "vsq4", "int6_float32_t0"])
def test_qsnr_is_the_ratio_of_the_mean_powers(x: np.ndarray, format: str) -> None:
    powers, ratios = by_hand(x, format)
    assert axs6.qsnr(x, format) == pytest.approx(powers, abs=1e-9)
    assert abs(powers - ratios) > 0.01, "the example does not tell the two means apart"


def test_qsnr_is_along_an_axis(x: np.ndarray) -> None:
    right, wrong = axs6.qsnr(x, "mx6", axis=0), axs6.qsnr(x, "mx6")
    assert right == pytest.approx(by_hand(x, "mx6", axis=0)[0], abs=1e-9)
    assert right == axs6.qsnr(np.ascontiguousarray(x.T), "mx6")
    assert abs(right - wrong) > 1


def test_qsnr_has_the_options_of_encode(x: np.ndarray) -> None:
    found = axs6.qsnr(x, block=8, rounding="toward_zero", mode="high_precision")
    options = {"block": 8, "rounding": "toward_zero", "mode": "high_precision"}
    assert found == pytest.approx(by_hand(x, "axs6", **options)[0], abs=1e-9)
    with pytest.raises(TypeError, match="nonfinite cannot be given here"):
        axs6.qsnr(x, nonfinite="saturate")
    with pytest.raises(ValueError, match="must be finite"):
        axs6.qsnr([np.nan])


def test_qsnr_of_a_tensor_that_is_encoded_as_one(x: np.ndarray) -> None:
    """With a scale of the tensor the powers of vectors, each encoded alone, would be wrong."""
    decoded = axs6.decode(axs6.encode(x, "int8"), np.float64)
    right = 10 * math.log10((x**2).sum() / ((decoded - x) ** 2).sum())
    assert axs6.qsnr(x, "int8") == pytest.approx(right, abs=1e-9)
    assert abs(right - by_hand(x, "int8")[0]) > 1


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, "uint16"])
def test_qsnr_takes_every_dtype(x: np.ndarray, dtype: object) -> None:
    patterns = dtype == "uint16"
    values = x.astype(ml_dtypes.bfloat16 if patterns else dtype)
    given = values.view(np.uint16) if patterns else values
    assert axs6.qsnr(given, "mx9") == axs6.qsnr(values.astype(np.float64), "mx9")


def test_qsnr_without_errors_or_without_power() -> None:
    assert axs6.qsnr(np.float32([[1.0, -0.5]]), "mx9") == math.inf
    assert axs6.qsnr(np.zeros((2, 3)), "mx9") == math.inf


def test_errors_by_binade_written_out() -> None:
    # Under the exponent of 6, E2M1 has 0, 0.5, 1, 1.5, 2, 3, 4, 6.
    x = [6.0, 5.5, -4.5, 1.25, 1.5, -0.3, 0.2, 0.0]
    rows = axs6.errors_by_binade(x, "mxfp4")
    assert rows == [
        BinadeErrors(-3, 1, 1.0, 1.0),
        BinadeErrors(-2, 1, pytest.approx(0.2 / 0.3), pytest.approx(0.2 / 0.3)),
        BinadeErrors(0, 2, pytest.approx(0.1), pytest.approx(0.2)),
        BinadeErrors(2, 3, pytest.approx((0.5 / 5.5 + 0.5 / 4.5) / 3), pytest.approx(0.5 / 4.5)),
    ]


def test_errors_by_binade_begin_at_powers_of_two() -> None:
    x = np.float64([[4.0, np.nextafter(4.0, 0), -2.0, 2.0**-1074]])
    rows = axs6.errors_by_binade(x, "mx9")
    assert [(row.binade, row.values) for row in rows] == [(-1074, 1), (1, 2), (2, 1)]


def test_errors_by_binade_are_along_an_axis(x: np.ndarray) -> None:
    def largest(x: np.ndarray, axis: int = -1) -> list[tuple[int, int, float]]:
        rows = axs6.errors_by_binade(x, "mx6", axis=axis)
        return [(row.binade, row.values, row.largest) for row in rows]

    assert largest(x, axis=0) == largest(np.ascontiguousarray(x.T))
    assert largest(x, axis=0) != largest(x)


def test_relative_errors_of_a_float_element_are_those_of_its_fraction() -> None:
    """With three bits of fraction a step is 2^-3, and its middles are rounded the farthest."""
    x = np.random.default_rng(0).uniform(1, 1.75, (256, 32)) * 2.0 ** -(
        np.arange(32) % 4
    )  # E4M3 ends at 1.75
    for row in axs6.errors_by_binade(x, "mxfp8_e4m3"):
        assert 0.98 < row.largest * 17 <= 1  # half a step, beside the 1 + 1/16 that it is of
        assert row.mean == pytest.approx(2**-5 * math.log(1.75) / 0.75, rel=0.05)


def test_sums_of_errors() -> None:
    sums = ErrorSums()
    assert (sums.values, sums.largest, sums.qsnr) == (0, 0.0, np.inf)
    sums.add(np.array([[1.0, -2.0]]), np.array([[1.25, -2.125]]))
    sums.add(np.empty(0), np.empty(0))
    sums.add(np.array([4.0]), np.array([3.9375]))
    assert (sums.values, sums.squared_values, sums.largest) == (3, 21.0, 0.25)
    assert sums.squared_errors == 2.0**-4 + 2.0**-6 + 2.0**-8
    nothing = ErrorSums()
    nothing.add(np.zeros(2), np.array([0.0, 0.5]))
    assert nothing.qsnr == -np.inf
