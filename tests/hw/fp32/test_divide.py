"""The division of an accumulator: its steps in NumPy and in hardware, against exact integers."""

import numpy as np
import pytest
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.formats import FP32
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.fp32.common import SIGNIFICAND
from axs6.hw.fp32.divide import RECIPROCALS, Reciprocal, division_steps
from axs6.sim.batch.engine import ComponentModel, component_source

ALL = 1 << SIGNIFICAND
PART = 1 << 20
EACH = pytest.mark.parametrize("divisor", sorted(RECIPROCALS))
SQUARES = [each for each in RECIPROCALS.values() if each.power == 2]

Integers = NDArray[np.int64]


def halves(significands: Integers, reciprocal: Reciprocal) -> Integers:
    """The chain's quotients, in halves of a unit, rounded down."""
    values = (significands << reciprocal.fraction) + reciprocal.balance
    for shifts in reciprocal.factors:
        values = values + sum(values >> shift for shift in shifts)
    return values >> reciprocal.fraction - 1


def rounded(quotients: Integers) -> Integers:
    """Quotients in halves of a unit, rounded to units, or to two from 2^24 on."""
    unit = 1 << (quotients >> SIGNIFICAND + 1)
    return (quotients + unit) // (2 * unit) * unit


def wrong(significands: Integers, reciprocal: Reciprocal) -> int:
    """How many quotients are rounded otherwise than the exact ones."""
    divisor = reciprocal.divisor
    exact, rest = np.divmod(significands << divisor.bit_length() + 1, divisor)
    tie = np.where(exact >> SIGNIFICAND + 1, exact & 3 == 2, exact & 1 == 1) & (rest == 0)
    assert not tie.any()
    return int((rounded(halves(significands, reciprocal)) != rounded(exact)).sum())


def nearest(divisor: int, most: int = 1 << 15) -> Integers:
    """Significands whose quotients are nearest to a multiple of 1/2, on either side and on it.

    Of each kind those `most` whose quotients are the largest below 2^24, and the largest of all.
    """
    found = []
    for rest in (-1, 0, 1):
        first = rest * pow(2, -divisor.bit_length() - 1, divisor) % divisor
        each = np.arange(first, ALL, divisor)
        below = each[: np.searchsorted(each, (ALL * divisor) >> divisor.bit_length())]
        found += [below[-most:], each[-most:]]
    return np.concatenate(found)


@EACH
def test_the_quotients_that_are_nearest_to_where_rounding_changes(divisor: int) -> None:
    assert wrong(nearest(divisor), RECIPROCALS[divisor]) == 0


@pytest.mark.slow
@EACH
def test_every_significand(divisor: int) -> None:
    parts = (np.arange(start, start + PART) for start in range(0, ALL, PART))
    assert sum(wrong(part, RECIPROCALS[divisor]) for part in parts) == 0


@pytest.mark.parametrize("reciprocal", SQUARES, ids=lambda each: each.divisor)
def test_truncations_that_are_not_balanced_are_found(
    reciprocal: Reciprocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reciprocal, "balance", 0)
    assert wrong(nearest(reciprocal.divisor), reciprocal) > 0


def divided(divisor: int) -> ComponentModel:
    """The hardware."""
    source = component_source(Pipeline(division_steps(divisor), 0))
    return ComponentModel(source, f"division by {divisor}")


@pytest.mark.parametrize("divisor", [49, 65025])
def test_hardware_divides_as_the_golden_model(divisor: int) -> None:
    """Numbers of every exponent, NaN and infinities too, and those that are hardest to round."""
    rng = np.random.default_rng(1)
    random = rng.integers(0, 1 << FP32.width, 20_000)
    patterns = np.concatenate([random, nearest(divisor, 2000)]).astype(np.uint32)
    outputs = divided(divisor).run({"value": patterns}).outputs["value"]
    assert np.array_equal(outputs, fp32.divide_by_scale(patterns, divisor))


@pytest.mark.slow
@EACH
def test_hardware_divides_every_significand(divisor: int) -> None:
    """Subnormal numbers, and normal ones of the smallest exponent."""
    model = divided(divisor)
    for start in range(0, ALL, PART):
        patterns = np.arange(start, start + PART, dtype=np.uint32)
        outputs = model.run({"value": patterns}, threads=2).outputs["value"]
        assert np.array_equal(outputs, fp32.divide_by_scale(patterns, divisor))


def test_what_a_wrong_factor_gives_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reciprocal, "factors", ((2, 6), (5, 12), (11, 24), (22,)))
    patterns = nearest(49, 2000).astype(np.uint32)
    outputs = divided(49).run({"value": patterns}).outputs["value"]
    assert (outputs != fp32.divide_by_scale(patterns, 49)).any()


@pytest.mark.parametrize("divisor", [5, 217, 511])
def test_other_divisors_are_refused(divisor: int) -> None:
    with pytest.raises(ValueError, match=f"divisions by 3, 7, .* 65025, not by {divisor}"):
        division_steps(divisor)
