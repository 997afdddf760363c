"""The Hadamard transform against its matrix in fractions, and against its definition."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from axs6.golden import hadamard as module
from axs6.golden.check.exact import floats
from axs6.golden.check.exact import hadamard as exact
from axs6.golden.formats.floating import BF16, FP16, FP32
from axs6.golden.hadamard import SIZES, hadamard, hadamard_bits, scale_exponent
from axs6.hw.units.hadamard import corner_rows, random_rows

DTYPES = {"fp32": (FP32, floats.FP32), "bf16": (BF16, floats.BF16), "fp16": (FP16, floats.FP16)}


def rows_of(name: str, size: int, count: int) -> np.ndarray:
    """Corners evenly spread, and random rows, some `count` of each."""
    dtype = DTYPES[name][0]
    corners = corner_rows(dtype, size)
    random = random_rows(dtype, size, np.random.default_rng(size), count)
    return np.concatenate([corners[:: max(1, len(corners) // count)], random])


def differing(name: str, size: int, count: int) -> int:
    """How many rows differ from the exact model."""
    dtype, fmt = DTYPES[name]
    rows = rows_of(name, size, count).astype(np.uint64)
    found = hadamard_bits(rows, dtype)
    expected = np.array([exact.hadamard(row, fmt) for row in rows.tolist()], np.uint64)
    return int((found != expected).any(axis=1).sum())


@pytest.mark.parametrize(("name", "size"), [("bf16", 32), ("fp16", 16), ("fp32", 8)])
def test_it_is_the_exact_one(name: str, size: int) -> None:
    assert differing(name, size, 100) == 0


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", DTYPES)
def test_it_is_the_exact_one_on_many_rows(name: str, size: int) -> None:
    assert differing(name, size, 1000) == 0


def test_wrong_transforms_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = module._butterflies
    for wrong in (
        lambda x: right(x >> 1 << 1),
        lambda x: right(x)[:, ::-1],
        lambda x: np.where(right(x) == 0, 0, right(np.roll(x, 1, axis=1))),
    ):
        monkeypatch.setattr(module, "_butterflies", wrong)
        assert differing("bf16", 16, 100)


def test_small_integers_are_multiplied_by_the_matrix() -> None:
    x = np.random.default_rng(1).integers(-9, 10, (5, 64)).astype(np.float32)
    matrix = np.array([[exact.entry(i, j) for j in range(64)] for i in range(64)])
    assert np.array_equal(hadamard(x, 64), x @ matrix / 8)
    twice = hadamard(hadamard(x, 64), 64)
    assert np.array_equal(twice, x)


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_dtype_and_shape_are_those_of_the_values(kind: Any) -> None:
    x = np.random.default_rng(2).normal(size=(2, 3, 64)).astype(kind)
    y = hadamard(x, 32)
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    if kind is ml_dtypes.bfloat16:
        assert np.array_equal(hadamard(x.view(np.uint16), 32), y.view(np.uint16))


def test_the_scale_is_that_of_an_orthonormal_matrix_or_root_two_of_it() -> None:
    for size in SIZES:
        assert (2.0 ** -scale_exponent(size)) ** 2 * size in (1, 2)


@pytest.mark.parametrize(
    ("x", "size", "error", "message"),
    [
        (np.zeros(16), 16, TypeError, "values must be float32, float16 or bfloat16, not float64"),
        (np.zeros(16, np.float32), 4, ValueError, "size must be one of 8, 16, 32, 64, 128, not 4"),
        (np.zeros(16, np.float32), 0, ValueError, "size must be one of 8, 16, 32, 64, 128, not 0"),
        (
            np.zeros(256, np.float32),
            256,
            ValueError,
            "size must be one of 8, 16, 32, 64, 128, not 256",
        ),
        (
            np.zeros((2, 24), np.float32),
            16,
            ValueError,
            "the last axis must be blocks of 16, not of shape (2, 24)",
        ),
    ],
)
def test_bad_input(x: np.ndarray, size: int, error: Any, message: str) -> None:
    with pytest.raises(error) as raised:
        hadamard(x, size)
    assert str(raised.value) == message
