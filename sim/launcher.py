"""Building simulations and running them, in child processes with a time limit."""

import json
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axs6.hw.verilog import Generated
from axs6.sim.cache import cached
from axs6.sim.process import check_folder, child_process, first_error, wait
from axs6.sim.tools import ToolError, simulator_environment, simulator_version

BENCH = Path(__file__).parent / "bench"

BUILD_SECONDS = 900

EMPTY = "axs6_empty"
EMPTY_MODULE = f"module {EMPTY}(input clk);\nendmodule\n"

LOG = "run.log"
"""Log of a run, in its working folder."""

_log = logging.getLogger("axs6")


def build(generated: Generated, simulator: str, waves: bool = False) -> Path:
    """Folder with the compiled simulation of a unit, from the cache if it has been built before.

    What a simulator's programs have in common is compiled once, with a module that is empty.

    Raises:
        ToolError: the build fails or takes longer than `BUILD_SECONDS`.
        OSError: the cache cannot be written.
    """
    runtime = None
    if simulator == "verilator":
        runtime = _built(simulator, waves, EMPTY_MODULE, EMPTY, ["clk"])
    module, ports = generated.module, generated.ports
    return _built(simulator, waves, generated.verilog, module, ports, runtime)


def _built(
    simulator: str,
    waves: bool,
    verilog: str,
    module: str,
    ports: list[str],
    runtime: Path | None = None,
) -> Path:
    def make(folder: Path) -> None:
        _log.info("building %s with %s", module, simulator)
        # In a folder whose path make and the shell take as it is; that of the cache may be any.
        with tempfile.TemporaryDirectory(prefix="axs6-build-") as name:
            work = Path(name)
            check_folder(work)
            source = work / f"{module}.v"
            source.write_text(verilog)
            objects = [shutil.copy(path, work) for path in _objects(runtime)]
            _launch(
                work / "build.log",
                BUILD_SECONDS,
                do="build",
                simulator=simulator,
                source=str(source),
                module=module,
                ports=ports,
                folder=str(work),
                waves=waves,
                objects=[str(path) for path in objects],
            )
            shutil.copytree(work, folder, dirs_exist_ok=True)

    sources = [path.read_text() for path in (BENCH / "launch.py", *sorted(BENCH.glob("fst/*.h")))]
    return cached(simulator, [verilog, simulator_version(simulator), str(waves), *sources], make)


def _objects(runtime: Path | None) -> list[Path]:
    """The compiled library of Verilator that another build has left, if that is given."""
    return sorted(runtime.glob("verilated*.o")) if runtime else []


def run(
    generated: Generated,
    simulator: str,
    test_module: str,
    work: Path,
    variables: Mapping[str, str],
    *,
    seed: int = 0,
    waves: bool = False,
    seconds: float = 3600,
    test: str | None = None,
) -> Path:
    """Run cocotb tests on a unit and return the path of the results file they should have left.

    Args:
        generated: the unit.
        simulator: "verilator" or "icarus".
        test_module: Python module with the cocotb tests.
        work: folder for the log, the results and the waveforms.
        variables: environment variables for the tests.
        seed: cocotb's random seed.
        waves: write a waveform file.
        seconds: time limit of the run, after the build.
        test: name of the one test to run; all of them if None.

    Raises:
        ToolError: the build fails, or the run exceeds its limit.
    """
    folder = build(generated, simulator, waves)
    results = work / "results.xml"
    _launch(
        work / LOG,
        seconds,
        check=False,
        do="test",
        simulator=simulator,
        module=generated.module,
        folder=str(folder),
        test_module=test_module,
        results=str(results),
        work=str(work),
        variables=dict(variables),
        seed=seed,
        waves=waves,
        test=test,
    )
    return results


def _launch(log: Path, seconds: float, check: bool = True, **request: Any) -> None:
    """Run `bench/launch.py` with a request, everything it prints going to `log`."""
    simulator = request["simulator"]
    # By its path, so that it need not load the package around it, which takes longer than its work.
    command = [sys.executable, "-P", str(BENCH / "launch.py"), json.dumps(request)]
    with child_process(command, log, simulator_environment(simulator)) as child:
        try:
            status = wait(child, seconds)
        except subprocess.TimeoutExpired:
            raise ToolError(
                f"{simulator} took longer than {seconds:g} s to {request['do']} {request['module']}"
            ) from None
    if check and status:
        raise ToolError(
            f"{simulator} could not {request['do']} {request['module']}: {first_error(log)}"
        )
