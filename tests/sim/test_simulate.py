import shutil
from typing import Any

import numpy as np
import pytest

from axs6.hw.registry import UNITS, find
from axs6.sim import simulate
from axs6.sim.simulate import ENGINES
from axs6.sim.tools import SIMULATORS

AVAILABLE = [e for e in ENGINES if all(map(shutil.which, SIMULATORS.get(e, ("g++",))))]


STAGES = 2


def small(unit: str) -> dict[str, Any]:
    """Parameters of a small unit, with the last of each parameter's samples."""
    entry = UNITS[unit]
    last = {k: values[-1] for k, values in entry.samples.items() if entry.takes(k, {})}
    return entry.simulated({"block": 8, "stages": STAGES, **last})


# Regressions run every unit in both Verilog simulators, and the two compiled ones are compared.
@pytest.mark.parametrize("engine", AVAILABLE)
@pytest.mark.parametrize(
    "unit",
    [
        "block_dot",
        *(
            pytest.param(unit, marks=pytest.mark.slow)
            for unit in ("dot", "encoder", "decoder", "lfsr")
        ),
    ],
)
def test_every_engine_gives_what_the_golden_model_gives(unit: str, engine: str) -> None:
    parameters = small(unit)
    items = find(unit).random(parameters, np.random.default_rng(0), 100)
    done = simulate(unit, items, engine=engine, **parameters)
    for name, values in UNITS[unit].golden(items, parameters).items():
        assert np.array_equal(done.outputs[name], values)
    if unit == "block_dot" and engine != "batch":
        assert done.cycles == 100 + STAGES


@pytest.mark.parametrize("engine", ["batch", "cxxrtl", "verilator"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": np.full((2, 8), 64)}, "input 'codes' must be in 0 to 63"),
        ({"codes": np.zeros((2, 9), int)}, r"input 'codes' must have shape \(2, 8\)"),
        ({"exponent": np.int64(3)}, r"input 'exponent' must have an axis of items, not shape \(\)"),
        ({"mode": np.zeros(2, int)}, "there is no input 'mode'"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    engine: str, change: dict[str, np.ndarray], message: str
) -> None:
    items = {"exponent": np.zeros(2, int), "codes": np.zeros((2, 8), int)}
    with pytest.raises(ValueError, match=message):
        simulate("decoder", {**items, **change}, engine=engine, block=8)


def test_no_items_give_no_outputs() -> None:
    items = {"exponent": np.zeros(0, int), "codes": np.zeros((0, 8), int)}
    assert simulate("decoder", items, block=8).outputs["values"].shape == (0, 8)


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(ValueError, match="engine must be one of batch, cxxrtl, verilator, icarus"):
        simulate("decoder", {}, engine="x")
