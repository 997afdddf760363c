"""Fused multiply-adds: every sum of small formats in fractions, and those of FP32."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from amaranth.hdl import Mux
from fused import fused
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.check.exact.floats import Format, Special, float_value, round_to_float
from axs6.golden.formats import FP32, Float
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.fp32 import multiply_add
from axs6.hw.fp32.multiply_add import MultiplyAddPlan, multiply_add_steps
from axs6.sim.batch.engine import ComponentModel, component_source
from tests.helpers.faults import FaultyStep

Patterns = NDArray[np.uint32]


def run(dtype: Float, items: dict[str, Patterns], view: str = "structure") -> Patterns:
    """The results of the steps."""
    steps = multiply_add_steps(view, MultiplyAddPlan(dtype))
    model = ComponentModel(component_source(Pipeline(steps, 0)), "multiply-add")
    return model.run(items).outputs["value"].astype(np.uint32)


def all_of(dtype: Float) -> dict[str, Patterns]:
    """Every three patterns of a format."""
    codes = np.arange(1 << dtype.width, dtype=np.uint32)
    grid = np.meshgrid(codes, codes, codes, indexing="ij")
    return dict(zip("abc", (x.ravel() for x in grid), strict=True))


def exactly(dtype: Float, items: dict[str, Patterns]) -> Patterns:
    """Products and sums in fractions, rounded once; special values one by one."""
    fmt = Format(dtype.exponent_bits, dtype.fraction_bits)
    nan = dtype.quiet_nan

    def infinite(bits: int) -> bool:
        return bits & ~fmt.sign == fmt.infinity

    def result(a: int, b: int, c: int) -> int:
        x, y, z = (float_value(bits, fmt) for bits in (a, b, c))
        sign = (a ^ b) & fmt.sign
        if Special.NAN in (x, y, z):
            return nan
        if infinite(a) or infinite(b):
            if 0 in (x, y) or (infinite(c) and sign != c & fmt.sign):
                return nan
            return sign | fmt.infinity
        if infinite(c):
            return c
        assert isinstance(x, Fraction | int)
        assert isinstance(y, Fraction | int)
        assert isinstance(z, Fraction | int)
        total = Fraction(x) * y + z
        if total == 0:
            both_minus = sign and c & fmt.sign
            return fmt.sign if both_minus else 0
        return round_to_float(total, fmt)

    triples = zip(*(items[name].tolist() for name in "abc"), strict=True)
    return np.array([result(*each) for each in triples], np.uint32)


SMALL = [
    Float(2, 1),
    Float(3, 1),
    *(pytest.param(Float(*x), marks=pytest.mark.slow) for x in ((2, 2), (3, 2), (4, 1))),
]
"""Formats with infinities of at most six bits."""


@pytest.mark.parametrize("view", ["structure", "behaviour"])
@pytest.mark.parametrize("dtype", SMALL, ids=lambda x: x.name)
def test_every_sum_of_a_small_format(dtype: Float, view: str) -> None:
    items = all_of(dtype)
    assert (run(dtype, items, view) == exactly(dtype, items)).all()


ENDS = (0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x7F7FFFFF, FP32.infinity, FP32.quiet_nan, 1 << 22)
"""Zero, the ends of subnormal and of normal numbers, and what is no number."""


def corners() -> dict[str, Patterns]:
    """Ends of both signs in every place; sums that cancel or tie; and products of all distances."""
    rng = np.random.default_rng(3)
    one = FP32.bias << FP32.fraction_bits
    signed = [x | sign << 31 for x in (*ENDS, one, one + 1) for sign in (0, 1)]
    found = [*product(signed, repeat=3)]
    # Products from 1 to 4, with long significands and short ones, and addends at every distance.
    for gap in range(-60, 61):
        field = np.clip(FP32.bias + gap + rng.integers(-3, 4, 12), 1, 254)
        c = field << 23 | rng.choice([0, 1, (1 << 23) - 1, 1 << 22], 12)
        a, b = (one + rng.choice([0, 1, 3, (1 << 23) - 1, 1 << 22], 12) for _ in "ab")
        found += np.stack([a, b, c | rng.integers(0, 2, 12) << 31], axis=1).tolist()
    array = np.array(found, np.uint32)
    return dict(zip("abc", array.T, strict=True))


def random(count: int) -> dict[str, Patterns]:
    """Any patterns; in three quarters the addend is near minus the product, or subnormal."""
    rng = np.random.default_rng(4)
    a, b, c = rng.integers(0, 1 << 32, (3, count), np.uint32)
    with np.errstate(all="ignore"):
        near = (a.view(np.float32) * b.view(np.float32)).view(np.uint32) ^ np.uint32(1 << 31)
    near = near + rng.integers(-4, 5, count).astype(np.uint32)
    far = near + (rng.integers(-60, 60, count) << 22).astype(np.uint32)
    tiny = c & np.uint32(0x80FFFFFF)
    kind = rng.integers(0, 4, count)
    return {"a": a, "b": b, "c": np.choose(kind, [c, near, far, tiny]).astype(np.uint32)}


@pytest.fixture(scope="module")
def items() -> dict[str, Patterns]:
    parts = [corners(), random(8_000)]
    return {name: np.concatenate([x[name] for x in parts]) for name in "abc"}


def test_sums_of_fp32(items: dict[str, Patterns]) -> None:
    got = run(FP32, items)
    assert (got == fp32.multiply_add(*items.values())).all()
    some = {name: x[::7] for name, x in items.items()}
    assert (got[::7] == exactly(FP32, some)).all()
    a, b, c = (x.view(np.float32) for x in items.values())
    normal = ~np.isnan(got.view(np.float32)) & (got << 1 > FP32.smallest_normal << 1)
    assert normal.mean() > 0.3
    assert (fused(a, b, c).view(np.uint32) == got)[normal].all()


def test_latency_is_that_of_the_registers() -> None:
    assert Pipeline(multiply_add_steps("structure"), 4).latency == 4


FAULTS = {
    "a bit that falls off is lost": ("PlaceAddend", lambda i, o: [o.addend[0].eq(0)]),
    "products of 0 do not count as small": ("MultiplyForSum", lambda i, o: [o.some.eq(1)]),
    "equal numbers of unlike signs give -0": (
        "TotalMagnitude",
        lambda i, o: [o.sign.eq(Mux(i.sum.any(), i.sign ^ i.sum[-1], i.sign))],
    ),
    "0 times an infinity is no NaN": ("MultiplyForSum", lambda i, o: [o.nan.eq(0)]),
}


QUICK = ("a bit that falls off is lost",)
"""A fault of a number; small formats meet all that is no number."""


@pytest.mark.parametrize(
    "fault", [pytest.param(x, marks=[pytest.mark.slow] * (x not in QUICK)) for x in FAULTS]
)
def test_a_fault_is_found(
    fault: str, items: dict[str, Patterns], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, change = FAULTS[fault]
    right = getattr(multiply_add, name)
    monkeypatch.setattr(multiply_add, name, lambda *x: FaultyStep(right(*x), change))
    assert (run(FP32, items) != fp32.multiply_add(*items.values())).any()
