"""Corners of encoders that divide: quotients stand where a code changes."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module

from axs6.golden.formats import BF16, FP32, block_format
from axs6.hw.fp32 import quotient
from axs6.hw.units.encoder import ENCODER
from axs6.hw.units.encoder_corners import boundaries
from axs6.hw.units.quotient_corners import (
    HARD,
    LEFT,
    OFF,
    _hardest_scales,
    _Steps,
    hard_reciprocals,
    one_digit_reciprocals,
    or_a_bit_above,
    outer_patterns,
    quotient_corners,
    remainder_corners,
)
from axs6.hw.units.scaled_corners import _largest_a_bit_off, _under_the_largest

from .test_formats import difference, planted

__all__ = ["planted"]

LANES = 8


def changes(name: str, outer: Any, values: Any, dtype: str = "bf16") -> float:
    """The share of blocks whose codes change within some units in the last place of the scale."""
    settings = ENCODER.parameters({"format": name, "block": LANES, "dtype": dtype})
    found = []
    for off in (-OFF - 1, OFF + 1):
        near = np.clip(outer + off, 1, FP32.max_finite)
        outputs = ENCODER.golden({"outer": near, "values": values}, settings)
        codes = [x.reshape(len(outer), -1) for key, x in outputs.items() if "outer" not in key]
        found.append(np.concatenate(codes, axis=1))
    return float((found[0] != found[1]).any(axis=1).mean())


@pytest.mark.parametrize("name", ["nvfp4", "vsq4", "int8"])
def test_a_code_changes_within_some_units_of_the_outer_scale(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In most blocks of each kind, and in few random ones; small outer scales count as one. Blocks
    that are a bit above on purpose are left out."""
    name_of = f"{or_a_bit_above.__module__}.or_a_bit_above"
    monkeypatch.setattr(name_of, lambda rng, numbers: numbers)
    fmt = block_format(name)
    if fmt.blocked:
        fmt = fmt.with_block(LANES)
    sizes = np.array([*map(float, boundaries(fmt.element))])
    *kinds, _, _ = quotient_corners(fmt, BF16, LANES, sizes)
    assert len(kinds) == 1 + bool(fmt.blocked)
    for outer, values in kinds:
        assert changes(name, outer, values) > 0.4
        assert changes(name, np.roll(outer, 1), values) < 0.1

    *_, (outer, values), products = quotient_corners(fmt, FP32, LANES, sizes)
    assert changes(name, outer, values, "fp32") > 0.4
    assert changes(name, np.roll(outer, 1), values, "fp32") < 0.1
    assert changes(name, *products, "fp32") > 0.3


def test_a_third_of_numbers_has_a_bit_more() -> None:
    """It is any one below the highest of an FP32 number."""
    numbers = np.random.default_rng(1).choice([1.0, 1.5, 6.0, 448.0], 3000)
    units = np.spacing(numbers.astype(np.float32))
    more = (or_a_bit_above(np.random.default_rng(2), numbers) - numbers) / units
    bits, counts = np.unique(more, return_counts=True)
    assert bits.tolist() == [0, *(2.0**k for k in range(FP32.fraction_bits))]
    assert abs(counts[0] - 2000) < 100


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_reciprocals_have_one_digit_behind_a_middle(lost: int) -> None:
    """Of 21 digits after the last one that is kept the first is 1, and at most one other; nearly
    each can be this one."""
    found = one_digit_reciprocals(lost).tolist()
    digits = FP32.fraction_bits - 2
    kept = FP32.fraction_bits + 1 - lost
    scaled = [(1 << FP32.fraction_bits + kept + digits) // (1 << 23 | x) for x in found]
    half = 1 << digits - 1
    behind = {x % (1 << digits) for x in scaled} - {half}
    assert behind <= {half | 1 << k for k in range(digits - 1)}
    assert len(behind) > digits - 4


@pytest.mark.parametrize("name", ["nvfp4", "vsq4"])
def test_quotients_are_beside_the_middle_of_two_numbers(name: str) -> None:
    """Of a bound of the scale and an FP32 number next to it, as near as can be."""
    steps = _Steps(block_format(name).with_block(LANES))
    rng = np.random.default_rng(1)
    bounds = steps.bound(rng, 500)
    middles = (bounds + np.nextafter(bounds.astype(np.float32), np.float32(np.inf))) / 2
    left = 1 << rng.integers(10, size=500) | 1
    outer, top = _hardest_scales(rng, steps, FP32, middles, left)
    some = top > 0
    assert some.sum() > 100
    divisor, largest = (x[some].astype(np.uint32).view(np.float32) for x in (outer, top))
    dividend = (largest / np.float32(steps.largest)).astype(np.float64)
    off = dividend / divisor / middles[some] - 1
    assert (off != 0).all()
    assert (np.abs(off) < 2.0**-36).all()


@pytest.mark.parametrize("name", ["nvfp4", "vsq4"])
def test_hardest_scales_leave_remainders_of_many_bits(name: str) -> None:
    """Their quotients are beside the middle of a bound and an FP32 number next to it, on either
    side, and each bit of the remainders is 0 in some and 1 in some."""
    fmt = block_format(name).with_block(LANES)
    steps, sizes = _Steps(fmt), np.array([*map(float, boundaries(fmt.element))])
    outer, values = remainder_corners(fmt, FP32, LANES, sizes)
    assert len(outer) > 1000
    largest = (values & FP32.sign_bit - 1).max(axis=1).astype(np.uint32).view(np.float32)
    dividend = (largest / np.float32(steps.largest)).astype(np.float64)
    divisor = outer.astype(np.uint32).view(np.float32).astype(np.float64)
    quotient = dividend / divisor
    bounds = np.concatenate([steps.numbers[[0, -1]], steps.bounds])
    near = np.abs(quotient[:, None] / bounds - 1).min(axis=1)
    assert ((near > 0) & (near < 2.0**-23)).all()
    wholes = (np.ldexp(np.frexp(x)[0], FP32.fraction_bits + 1) for x in (dividend, divisor))
    n, d = (x.astype(np.int64) for x in wholes)
    remainders = (n << FP32.fraction_bits + 2) % d
    few = np.minimum(remainders, d - remainders)
    for bit in range(2, LEFT - 1):
        assert 0.02 < (few >> bit & 1).mean() < 0.98


def test_products_are_beside_the_middle_of_two_numbers() -> None:
    """Of a boundary and an FP32 number next to it; some are the middle itself."""
    sizes = np.arange(1, 128) - 0.5
    kinds = quotient_corners(block_format("int8"), FP32, LANES, sizes)
    outer, values = (x.astype(np.uint32).view(np.float32) for x in kinds[-1])
    exact = np.abs(values[:, 0].astype(np.float64)) * (1 / outer).astype(np.float64)
    bound = sizes[np.argmin(np.abs(exact[:, None] - sizes), axis=1)].astype(np.float32)
    beside = np.nextafter(bound, np.where(exact > bound, np.inf, 0).astype(np.float32))
    middle = (bound.astype(np.float64) + beside) / 2
    off = np.abs(exact - middle) / np.spacing(bound)
    assert (off < 0.5).mean() > 0.9
    assert (off == 0).sum() > 10
    assert (off[off > 0] < 2.0**-15).sum() > 10


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_reciprocals_that_are_hard_to_round_are_next_to_a_middle(lost: int) -> None:
    """No others are as near: of the 2^23 that there are, some thousand were chosen at random."""
    bits = FP32.fraction_bits

    def distance(fraction: int) -> int:
        significand = fraction + (1 << bits)
        return abs(2 * ((1 << 2 * bits + 1 - lost) % significand) - significand)

    hard = [distance(x) for x in hard_reciprocals(lost).tolist()]
    assert hard == sorted(hard)
    others = np.random.default_rng(0).integers(1 << bits, size=2000).tolist()
    chosen = {*hard_reciprocals(lost).tolist()}
    assert all(distance(x) >= hard[-1] for x in others if x not in chosen)


def test_outer_scales_have_both_ends_and_their_extreme_fractions() -> None:
    outer = outer_patterns(np.random.default_rng(0), 1 << 16)
    fields, fractions = outer >> FP32.fraction_bits, outer & FP32.smallest_normal - 1
    for field in (0, 1, FP32.exponent_special - 1):
        here = {*fractions[fields == field].tolist()}
        assert here >= {1, FP32.smallest_normal - 1}
        assert field == 0 or 0 in here
    assert outer.min() > 0
    assert outer.max() <= FP32.max_finite


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nvfp4", "int8"])
def test_a_lost_digit_is_caught(name: str, planted: pytest.MonkeyPatch) -> None:
    """The 24th of a quotient, which is nearly always rounded away."""

    def lost(self: quotient.Collect, platform: object) -> Module:
        m = right(self, platform)
        m.d.comb += self.o.magnitude[3].eq(0)
        return m

    right = quotient.Collect.elaborate
    planted.setattr(quotient.Collect, "elaborate", lost)
    assert difference({"format": name, "dtype": "bf16", "block": LANES}) is not None


@pytest.mark.parametrize("name", ["nvfp4_ue5m3", "hif4"])
def test_one_bit_of_the_largest_magnitude_changes_a_scale(name: str) -> None:
    """Where no outer scale moves the change to other numbers, in some blocks for each bit."""
    fmt = block_format(name).with_block(LANES if name != "hif4" else 64)
    lanes = fmt.block
    values = _largest_a_bit_off(fmt, FP32, lanes) & FP32.sign_bit - 1
    parameters = ENCODER.parameters({"format": name, "block": lanes})

    def scales(patterns: Any) -> Any:
        return ENCODER.golden({"values": patterns}, parameters)["block.scale"]

    lane = values.argmax(axis=1)[:, None]
    top, right = np.take_along_axis(values, lane, axis=1), scales(values)
    for bit in range(FP32.fraction_bits):
        below = values.copy()
        np.put_along_axis(below, lane, top - (1 << bit), axis=1)
        assert (scales(below) != right).sum() > 100, bit


def test_a_scale_that_is_the_largest_magnitude_is_what_outer_scales_are() -> None:
    fmt = block_format("nf4").with_block(LANES)
    values = _under_the_largest(fmt, FP32, LANES) & FP32.sign_bit - 1
    fractions = values.max(axis=1) & FP32.smallest_normal - 1
    hard = [hard_reciprocals(lost)[:HARD] for lost in range(3)]
    assert np.isin(fractions, np.concatenate(hard)).mean() > 0.05
