"""Products over 2^n - 1: every dividend of bf16 values, and the nearest to quotients of fp32."""

import numpy as np
import pytest
from numpy.typing import NDArray

import axs6.hw.decoder.product
from axs6.golden.formats import BF16, FP32, Float, block_format
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.decoder.plan import DecoderPlan
from axs6.hw.decoder.product import DivideLane, product_layout
from axs6.hw.decoder.read import element_layout
from axs6.hw.decoder.value import Divide
from axs6.sim.batch.engine import ComponentModel, component_source

LANES = 8
BELOW = np.array([0, 1, 7])
"""Bits of a product below the dividend, of three bits."""

EACH = pytest.mark.parametrize("bits", range(2, 8))
"""n of every denominator 2^n - 1."""


def plan_of(bits: int, dtype: Float) -> DecoderPlan:
    """A plan whose products are longer than dividends."""
    return DecoderPlan(block_format(f"sm{bits + 1}d_e4m3_t8_float32"), LANES, dtype)


def products(plan: DecoderPlan, dividends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Dividends with a leading one on top, each with other bits below."""
    below = plan.product - plan.precision - 1 - plan.divisor_bits
    found = (dividends[:, None] << below) + (BELOW << below >> 3)
    return np.resize(found, -(-found.size // LANES) * LANES)


def every(plan: DecoderPlan) -> NDArray[np.int64]:
    """All of them."""
    top = 1 << plan.precision + plan.divisor_bits
    return np.arange(top, 2 * top)


def nearest(plan: DecoderPlan) -> NDArray[np.int64]:
    """Multiples of the divisor, and those beside them; and the ends."""
    rng, top = np.random.default_rng(1), 1 << plan.precision + plan.divisor_bits
    divisor = plan.fmt.element.divisor
    multiples = divisor * rng.integers(-(-top // divisor), 2 * top // divisor, 4000)
    found = np.r_[multiples, multiples + 1, multiples - 1, top, 2 * top - 1]
    return found[(found >= top) & (found < 2 * top)]


def wrong(plan: DecoderPlan, given: NDArray[np.int64]) -> int:
    """Products, of sign and exponent 0, whose quotients differ from those of exact integers."""
    i = StructLayout({"lanes": ArrayLayout(product_layout(plan, element_layout(plan)), LANES)})
    pipeline = Pipeline([Divide(plan, DivideLane, i, levels=1)], 0)
    model = ComponentModel(component_source(pipeline), "division")
    lanes = model.run({"lanes": given.reshape(-1, LANES)}).outputs["lanes"].ravel().astype(np.int64)
    divisor = plan.fmt.element.divisor
    dividend = given.astype(object) << plan.divisor_bits
    high = dividend >= divisor << plan.product
    unit = np.where(high, 2 * divisor, divisor) << plan.product - 1 - plan.precision
    significand = dividend // unit * 2 + (dividend % unit != 0)
    x = high.astype(object) << plan.word + 1
    return int((lanes != significand + x).sum())


@EACH
def test_every_dividend_of_bf16(bits: int) -> None:
    plan = plan_of(bits, BF16)
    assert wrong(plan, products(plan, every(plan))) == 0


@EACH
def test_the_dividends_of_fp32_that_are_nearest_to_quotients(bits: int) -> None:
    plan = plan_of(bits, FP32)
    assert wrong(plan, products(plan, nearest(plan))) == 0


def test_a_factor_too_few_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = axs6.hw.decoder.product.doublings
    monkeypatch.setattr(axs6.hw.decoder.product, "doublings", lambda *each: right(*each) - 1)
    plan = plan_of(3, FP32)
    assert wrong(plan, products(plan, nearest(plan))) > 0
