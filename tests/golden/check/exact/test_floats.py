import ast
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from axs6.golden.check.exact import floats
from axs6.golden.check.exact.floats import (
    BF16,
    FP16,
    FP32,
    FP64,
    Special,
    add_fp32,
    float_value,
    floor_log2,
    power,
    round_to_float,
)

MODULES = sorted(Path(floats.__file__).parent.glob("*.py"))
LIBRARY = (
    *("bisect", "collections.abc", "dataclasses", "enum", "fractions", "functools", "math"),
    "typing",
)

ULP = Fraction(1, 2**23)


def numbers(count, seed):
    """Random float64 patterns, half of them in the range of FP32."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1 << 64, count, np.uint64).view(np.float64)
    near = np.ldexp(rng.uniform(-2, 2, count), rng.integers(-155, 130, count))
    x = np.concatenate([x, near])
    return x[np.isfinite(x)]


def test_the_exact_model_shares_nothing_with_the_model():
    own = {
        f"axs6.golden.check.exact{name}" for name in ("", *(f".{each.stem}" for each in MODULES))
    }
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                raise AssertionError(f"{module.name} imports {ast.unparse(node)}")
            if isinstance(node, ast.ImportFrom):
                assert node.module in {*own, *LIBRARY}, module.name


@pytest.mark.parametrize(
    ("fmt", "unsigned", "dtype"),
    [(FP16, np.uint16, np.float16), (BF16, np.uint16, ml_dtypes.bfloat16)],
)
def test_every_short_float_has_the_value_numpy_gives(fmt, unsigned, dtype):
    with np.errstate(invalid="ignore"):
        values = np.arange(1 << 16, dtype=unsigned).view(dtype).astype(np.float64).tolist()
    for bits, value in enumerate(values):
        got = float_value(bits, fmt)
        if value != value:
            assert got is Special.NAN
        elif isinstance(got, Special):
            assert got.value == f"{value:+}"
        else:
            assert got == Fraction(value)
            assert round_to_float(got, fmt) == (bits if value else 0)


def test_float_values_and_rounding_as_numpy():
    x = numbers(3000, 0)
    with np.errstate(over="ignore"):
        single = x.astype(np.float32).view(np.uint32)
    for value, double_bits, single_bits in zip(
        x.tolist(), x.view(np.uint64).tolist(), single.tolist(), strict=True
    ):
        fraction = float_value(double_bits, FP64)
        assert fraction == Fraction(value)
        assert round_to_float(fraction, FP64) == double_bits
        assert round_to_float(fraction, FP32) == single_bits


def test_bfloat16_rounding_as_ml_dtypes():
    with np.errstate(over="ignore"):
        x = numbers(3000, 1).astype(np.float32)
    x = x[np.isfinite(x) & (x != 0)]
    expected = x.astype(ml_dtypes.bfloat16).view(np.uint16).tolist()
    assert [round_to_float(Fraction(v), BF16) for v in x.tolist()] == expected


@pytest.mark.parametrize(
    ("x", "bits"),
    [
        (1 + ULP / 2, 0x3F800000),
        (1 + 3 * ULP / 2, 0x3F800002),
        (1 + ULP / 2 + power(-200), 0x3F800001),
        (2 - ULP / 2, 0x40000000),
        (power(-150), 0),
        (-power(-150), 0x80000000),
        (power(-150) + power(-300), 1),
        (3 * power(-150), 2),
        (power(-126) - power(-150), 0x00800000),
        (power(128) - power(103), 0x7F800000),
        (power(128) - power(103) - 1, 0x7F7FFFFF),
        (-power(128), 0xFF800000),
    ],
)
def test_rounding_at_borders(x, bits):
    assert round_to_float(x, FP32) == bits


def test_saturation_is_for_what_rounds_to_infinity():
    assert round_to_float(power(128), FP32, saturate=True) == 0x7F7FFFFF
    assert round_to_float(-power(128), BF16, saturate=True) == 0xFF7F
    assert round_to_float(power(127), FP32, saturate=True) == 0x7F000000


@pytest.mark.parametrize(("x", "n"), [(1, 0), (Fraction(2, 3), -1), (3, 1), (Fraction(1, 8), -3)])
def test_floor_log2(x, n):
    assert floor_log2(Fraction(x)) == n


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [
        (0x80000000, 0x80000000, 0x80000000),
        (0x80000000, 0, 0),
        (0x3F800000, 0xBF800000, 0),
        (0x7F7FFFFF, 0x73000000, 0x7F800000),  # a tie at the largest value goes to infinity
        (0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF),
        (0x7F800000, 0xFF7FFFFF, 0x7F800000),
        (0x7F800000, 0xFF800000, 0x7FC00000),
        (0xFF800000, 0xFF800000, 0xFF800000),
        (0xFF800001, 0, 0x7FC00000),
        (0x7F800000, 0xFFC00000, 0x7FC00000),
        (1, 0x80000002, 0x80000001),
    ],
)
def test_add(a, b, total):
    assert add_fp32(a, b) == total
    assert add_fp32(b, a) == total
