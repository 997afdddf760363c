"""The Hadamard transform in hardware, and ones with a deliberate fault each."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module

from axs6.hw import hadamard as module
from axs6.hw.hadamard import Hadamard
from axs6.hw.units.hadamard import HADAMARD
from axs6.sim.batch.engine import ComponentModel, component_source

SETTINGS = {"block": 8, "dtype": "fp16", "stages": 0}


def differs(component: Any) -> bool:
    """Whether corners or random items have other results than the golden model gives."""
    model = ComponentModel(component_source(component), "a transform")
    rng = np.random.default_rng(3)
    for items in (HADAMARD.corners(SETTINGS), HADAMARD.random(SETTINGS, rng, 500)):
        found = model.run(items).outputs["values"]
        if not np.array_equal(found, HADAMARD.golden(items, SETTINGS)["values"]):
            return True
    return False


def test_the_right_one_is_not_caught() -> None:
    assert not differs(Hadamard(**SETTINGS))


def lose_infinity(m: Module, o: Any) -> None:
    m.d.comb += o.plus[-1].eq(0)


def lose_lowest_bit(m: Module, o: Any) -> None:
    m.d.comb += o.sums[3][0].eq(0)


def lose_sign_of_infinity(m: Module, o: Any) -> None:
    m.d.comb += o[2].negative.eq(0)


@pytest.mark.parametrize(
    ("step", "change"),
    [
        pytest.param("Butterflies", lose_infinity, marks=pytest.mark.slow),
        ("AlignTransformed", lose_lowest_bit),
        pytest.param("SumLanes", lose_sign_of_infinity, marks=pytest.mark.slow),
    ],
)
def test_a_fault_is_caught(step: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = getattr(module, step)

    class Faulty(right):
        verilog_name = "faulty"

        def elaborate(self, platform: Any) -> Module:
            m: Module = super().elaborate(platform)
            change(m, self.o)
            return m

    monkeypatch.setattr(module, step, Faulty)
    assert differs(Hadamard(**SETTINGS))


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="block must be one of 8, 16, 32, 64, 128, not 4"):
        Hadamard(block=4)
