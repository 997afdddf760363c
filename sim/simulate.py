"""Arrays through a simulated unit."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.verilog import generate
from axs6.sim.bench.configuration import CYCLES, INPUTS, OUTPUTS, VARIABLE, Configuration
from axs6.sim.launcher import run
from axs6.sim.regress import read_results
from axs6.sim.tools import ToolError, check_simulator
from axs6.sim.words import to_words


@dataclass(frozen=True)
class Simulated:
    """What a simulation gave.

    `outputs` holds an int64 array for each field of the output payload, its first axis the
    output items; `cycles` counts from the first input to the last output.
    """

    outputs: dict[str, NDArray[np.int64]]
    cycles: int


def simulate(
    unit: str,
    inputs: Mapping[str, NDArray[Any]],
    *,
    engine: str = "verilator",
    **parameters: Any,
) -> Simulated:
    """Put arrays through a unit, one item a cycle.

    Args:
        unit: name in the registry.
        inputs: an integer array for each field of the input payload, named as in the manifest
            ("values", or "a.exponent"), its first axis the items; floating-point values as bit
            patterns.
        engine: "verilator" or "icarus".
        parameters: of the unit; the others keep their defaults.

    Raises:
        ValueError: an unknown unit, parameter or engine, or arrays that do not fit the payload.
        ToolError: the simulator is missing or fails.
    """
    made = generate(unit, **parameters)
    check_simulator(engine)
    arrays = {name: np.asarray(array) for name, array in inputs.items()}
    to_words(arrays, made.inputs)
    with tempfile.TemporaryDirectory(prefix="axs6-simulate-") as folder:
        configuration = Configuration(made.manifest, 0, 0, folder)
        np.savez(Path(folder) / INPUTS, **arrays)  # type: ignore[arg-type]
        variables = {VARIABLE: str(configuration.save())}
        results = run(
            made,
            engine,
            "axs6.sim.bench.transfer_bench",
            Path(folder),
            variables,
        )
        tests, failure = read_results(results)
        reasons = [failure, *(test.failure for test in tests)]
        for reason in filter(None, reasons):
            raise ToolError(f"{engine} could not simulate {unit}: {reason}")
        with np.load(Path(folder) / OUTPUTS) as file:
            outputs = dict(file)
    return Simulated(cycles=int(outputs.pop(CYCLES)), outputs=outputs)
