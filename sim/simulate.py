"""Arrays through a simulated unit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.registry import find_with_streams
from axs6.hw.verilog import Generated, generate
from axs6.sim.batch.engine import BatchModel
from axs6.sim.bench.configuration import CYCLES, INPUTS, OUTPUTS, VARIABLE, Configuration
from axs6.sim.cxxrtl.engine import CxxrtlModel
from axs6.sim.launcher import run
from axs6.sim.process import temporary_folder
from axs6.sim.regress import read_results
from axs6.sim.tools import SIMULATORS, ToolError, check_simulator
from axs6.sim.words import check_items

TRANSFER = "axs6.sim.bench.transfer_bench"

ENGINES = ("batch", "cxxrtl", *SIMULATORS)


@dataclass(frozen=True)
class Simulated:
    """Result of a simulation.

    `outputs` holds an integer array for each field of the output payload, its first axis the
    output items. `cycles` counts from the first input to the last output; the batch engine adds
    up those of its copies, which work side by side on shares of the items.
    """

    outputs: dict[str, NDArray[Any]]
    cycles: int


def simulate(
    unit: str,
    inputs: Mapping[str, NDArray[Any]],
    *,
    engine: str = "batch",
    **parameters: Any,
) -> Simulated:
    """Put arrays through a unit, one item a cycle.

    Args:
        unit: name in the registry, of one that is not on a bus.
        inputs: an integer array for each field of the input payload, named as in the manifest
            ("values", or "a.exponent"), its first axis the items; floating-point values as bit
            patterns.
        engine: "batch", the project's own simulator; "cxxrtl", the reference, one copy of the
            design; or "verilator" or "icarus" on the generated Verilog, slower by orders of
            magnitude.
        parameters: of the unit; the others keep their defaults, but the view is "behaviour".

    Raises:
        ValueError: an unknown unit, parameter or engine, or arrays that do not fit the payload.
        ToolError: the simulator is missing or fails.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    parameters = find_with_streams(unit).simulated(parameters)
    arrays = {name: np.asarray(array) for name, array in inputs.items()}
    if engine == "batch":
        batch = BatchModel(unit, **parameters).run(arrays)
        return Simulated(batch.outputs, batch.cycles)
    if engine == "cxxrtl":
        reference = CxxrtlModel(unit, **parameters).run(arrays)
        return Simulated(reference.outputs, reference.cycles)
    return _in_verilog(generate(unit, **parameters), arrays, engine)


def _in_verilog(made: Generated, arrays: Mapping[str, NDArray[Any]], simulator: str) -> Simulated:
    check_simulator(simulator)
    check_items(arrays, made.inputs)
    with temporary_folder("axs6-simulate-") as folder:
        configuration = Configuration(made.manifest, 0, 0, str(folder))
        np.savez(folder / INPUTS, **arrays)  # type: ignore[arg-type]
        variables = {VARIABLE: str(configuration.save())}
        results = run(made, simulator, TRANSFER, folder, variables)
        tests, failure = read_results(results)
        reasons = [failure, *(test.failure for test in tests)]
        for reason in filter(None, reasons):
            raise ToolError(f"{simulator} could not simulate {made.module}: {reason}")
        with np.load(folder / OUTPUTS) as file:
            outputs = dict(file)
    return Simulated(cycles=int(outputs.pop(CYCLES)), outputs=outputs)
