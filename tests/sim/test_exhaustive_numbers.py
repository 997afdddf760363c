"""Enumerations of conversions, multiplications and divisions find hardware that is wrong."""

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Mux

import axs6.hw.dot.joined
import axs6.hw.dot.pairwise
import axs6.hw.fp32.convert
import axs6.hw.fp32.divide
import axs6.hw.fp32.multiply
import axs6.hw.fp32.normalise
import axs6.hw.fp32.number
from axs6.hw.core.pipeline import Step
from axs6.hw.dot.joined import ShiftBoth
from axs6.hw.fp32.convert import DenormaliseCoarse
from axs6.sim.exhaustive.catalog import all_spaces
from axs6.sim.exhaustive.runner import Share, run_space
from axs6.sim.exhaustive.state import State

pytestmark = pytest.mark.optimised


def assert_caught(name: str, folder: Path, *texts: str) -> None:
    """The enumeration of a space stops at a difference that has these texts."""
    (space,) = (space for space in all_spaces() if space.name == name)
    state = State(folder / "state.json")
    state.enter(space)
    outcome = run_space(space, state, Share(), 2)
    assert outcome.compared < space.cases
    assert outcome.difference is not None
    for text in (*texts, "in the RTL"):
        assert text in outcome.difference


class WithoutLowestSticky(DenormaliseCoarse):
    """Loses the lowest of the bits that are or-ed: below it is only what the sign takes."""

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.right = right = DenormaliseCoarse(self._number, self.i.shape())
        m.d.comb += [right.i.eq(self.i), right.i.magnitude[1].eq(0), self.o.eq(right.o)]
        return m


class WithoutOneInfinity(axs6.hw.fp32.convert.RoundSum):
    """Gives NaN for minus infinity."""

    def _chosen(self, exact: Any, infinite: Any) -> Any:
        right = super()._chosen(exact, infinite)
        return Mux(self.i.special == axs6.hw.fp32.number.MINUS, 0x7FC00000, right)


class WithoutOneBit(axs6.hw.fp32.normalise.Move):
    """Loses the lowest bit of what moves by one amount."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If(self.i.amount == 30):
            m.d.comb += self.o.fraction[0].eq(0)
        return m


class WithoutOneDepth(axs6.hw.fp32.convert.LimitSubnormal):
    """Shifts subnormal products too little by one at one distance."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If((self.i.base < 0) & (self.i.below == 10) & ~self.i.base[0]):
            m.d.comb += self.o.down.eq(19)
        return m


class WithoutLongShifts(ShiftBoth):
    """Shifts accumulators by 3 places at most."""

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.right = right = ShiftBoth(self._join)
        m.d.comb += [right.i.eq(self.i), self.o.eq(right.o)]
        with m.If(self.i.own_below > 3):
            m.d.comb += right.i.own_below.eq(3)
        return m


class WithoutReach(ShiftBoth):
    """Counts accumulators beyond their reach."""

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.right = right = ShiftBoth(self._join)
        m.d.comb += [right.i.eq(self.i), right.i.reached.eq(1), self.o.eq(right.o)]
        return m


class WithoutMinusZero(axs6.hw.dot.pairwise.Only):
    """Gives 0 for the sum -0 of a step."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If(self.i[0].value == 1 << 31):
            m.d.comb += self.o.value.eq(0)
        return m


@pytest.mark.parametrize(
    ("module", "wrong", "name"),
    [
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [
                (axs6.hw.dot.joined, WithoutLongShifts, "fused-exact"),
                (axs6.hw.dot.pairwise, WithoutMinusZero, "pairs"),
                (axs6.hw.fp32.convert, WithoutOneDepth, "multiplication-depths"),
            ]
        ),
        pytest.param(axs6.hw.dot.joined, WithoutReach, "fused-twice", marks=pytest.mark.slow),
        (axs6.hw.fp32.convert, WithoutLowestSticky, "conversion-mxfp8_e4m3"),
        (axs6.hw.fp32.convert, WithoutOneInfinity, "conversion-mx4"),
        (axs6.hw.fp32.normalise, WithoutOneBit, "aligned-paper"),
    ],
)
def test_a_wrong_step_is_caught(
    module: Any, wrong: type[Step], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, wrong.__mro__[1].__name__, wrong)
    assert_caught(name, tmp_path, "value is 0x")


@pytest.mark.slow
def test_one_wrong_product_of_significands_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = axs6.hw.fp32.multiply.product

    def product(m: Module, a: Any, b: Any, view: str) -> Any:
        found = right(m, a, b, view)
        return Mux((a == 0x800001) & (b == 0xABCDEF), found ^ 1 << 30, found)

    monkeypatch.setattr(axs6.hw.fp32.multiply, "product", product)
    assert_caught("multiplication-fractions", tmp_path, "800001", "abcdef")


@pytest.mark.slow
def test_subnormal_factors_that_count_as_zero_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = axs6.hw.fp32.multiply.significand_of

    def significand_of(x: Any) -> Any:
        return Mux(x.exponent.any(), right(x), 0)

    monkeypatch.setattr(axs6.hw.fp32.multiply, "significand_of", significand_of)
    assert_caught("multiplication-corners", tmp_path, "in the golden model")


def test_another_division_whose_truncations_are_not_balanced_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(axs6.hw.fp32.divide.Reciprocal, "balance", 0)
    assert_caught("division-49", tmp_path, "value 0x", "value is 0x")
