"""Divisions digit by digit, against NumPy's in float32."""

from fractions import Fraction

import numpy as np
import pytest
from amaranth.hdl import Cat, Const, Module
from numpy.typing import NDArray

from axs6.golden.formats import FP32
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.fp32.common import pass_on
from axs6.hw.fp32.quotient import FP32_NORMAL, ONE, Collect, Normal, Quotient, quotient_steps
from axs6.sim.batch.engine import ComponentModel, component_source

NORMAL = Normal(24, 8, FP32.bias)
"""Numbers that are never subnormal."""

Patterns = NDArray[np.uint32]


def operands() -> tuple[Patterns, Patterns]:
    """Dividends of every size, and normal divisors, many of them near the dividend."""
    rng = np.random.default_rng(2)
    top, count = FP32.infinity, 20_000
    a = rng.integers(0, top, count)
    a[:2000] >>= rng.integers(0, 31, 2000)
    b = rng.integers(FP32.smallest_normal, top, count)
    near = b[2000:12_000] + rng.integers(-1 << 24, 1 << 24, 10_000)
    a[2000:12_000] = np.clip(near, 0, FP32.max_finite)
    return a.astype(np.uint32), b.astype(np.uint32)


def wrong(quotient: Quotient, divisor: Fraction | None = None) -> int:
    """How many quotients differ."""
    a, b = operands()
    x, y = a.view(np.float32), b.view(np.float32)
    if quotient.dividend == ONE:
        x, items = np.ones_like(x), {"dividend.significand": a >> 31 | 1, "dividend.place": a >> 31}
    else:
        significand, exponent = np.frexp(x.astype(np.float64))
        place = np.where(x == 0, 0, exponent - 1 + quotient.dividend.bias)
        integer = (significand * 2.0**24).astype(np.int64)
        items = {"dividend.significand": integer, "dividend.place": place}
    if divisor is None:
        fraction = b & FP32.smallest_normal - 1
        items |= {"divisor.significand": fraction | FP32.smallest_normal, "divisor.place": b >> 23}
    else:
        y = np.full_like(x, float(divisor))
    model = ComponentModel(component_source(Pipeline(quotient_steps(quotient), 0)), "quotient")
    with np.errstate(over="ignore"):
        expected = (x / y).view(np.uint32)
    return int((model.run(items).outputs["value"] != expected).sum())


@pytest.mark.parametrize(
    ("quotient", "divisor"),
    [
        (Quotient(FP32_NORMAL, NORMAL), None),
        pytest.param(
            Quotient(FP32_NORMAL, Fraction(127, 64)), Fraction(127, 64), marks=pytest.mark.slow
        ),
        pytest.param(Quotient(ONE, NORMAL), None, marks=pytest.mark.slow),
        pytest.param(Quotient(FP32_NORMAL, Fraction(6)), Fraction(6), marks=pytest.mark.slow),
        pytest.param(Quotient(FP32_NORMAL, Fraction(1)), Fraction(1), marks=pytest.mark.slow),
    ],
    ids=["quotient", "by127/64", "reciprocal", "by6", "by1"],
)
def test_quotients_are_rounded_once(quotient: Quotient, divisor: Fraction | None) -> None:
    assert wrong(quotient, divisor) == 0


def test_a_division_that_forgets_its_remainder_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def elaborate(self: Collect, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.magnitude.eq(Cat(Const(0, 1), self.i.quotient))
        pass_on(m, self, "exponent")
        return m

    monkeypatch.setattr(Collect, "elaborate", elaborate)
    assert wrong(Quotient(FP32_NORMAL, NORMAL)) > 0
