"""Child process that builds a simulation or runs one: `python launch.py REQUEST`, in JSON.

cocotb's runner works in a process of its own, so that it can be stopped with everything it has
started, and so that its environment is nobody else's.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from cocotb_tools.runner import get_runner

TIMESCALE = ("1ns", "1ps")

FST_HEADERS = Path(__file__).parent / "fst"
"""Stand-ins for the headers of lz4 and zlib, which Verilator's FST writer includes."""


def build(
    simulator: str,
    source: str,
    module: str,
    ports: list[str],
    folder: str,
    waves: bool,
    objects: list[str],
) -> None:
    """Compile a Verilog file into `folder`.

    Verilator makes the ports alone visible to cocotb, except for waves: with every signal
    visible it could optimise nothing. Functions are split, since g++ takes a time that grows with
    the square of a function's length. Waves are in FST, whose writer needs no library of the
    system with the headers that come with the project. Verilator's own library is linked from
    `objects`, which another build has left, if there are any.
    """
    runner: Any = get_runner(simulator)
    sources: list[Any] = [Path(source)]
    arguments: list[str] = []
    if simulator == "verilator":
        arguments = ["-O3", "--x-assign", "fast", "-CFLAGS", "-O1", "--no-timing"]
        arguments += ["--output-split-cfuncs", "400"]
        # In netlists the bits of a vector depend on each other, which costs time and is no fault.
        arguments.append("-Wno-UNOPTFLAT")
        if objects:
            os.environ["MAKEFLAGS"] += " VM_GLOBAL_FAST="
            for compiled in objects:
                arguments += ["-LDFLAGS", compiled]
        if waves:
            arguments += ["--trace-fst", "--trace-structs", "-CFLAGS", f"-I{FST_HEADERS}"]
            os.environ["MAKEFLAGS"] += " LDLIBS=$$(VM_USER_LDLIBS)"
        else:
            arguments.append("--no-public-flat-rw")
            sources.append(_public_ports(module, ports, Path(folder)))
    runner.build(
        sources=sources,
        hdl_toplevel=module,
        build_dir=folder,
        build_args=arguments,
        timescale=TIMESCALE,
        waves=waves,
        always=True,
    )


def _public_ports(module: str, ports: list[str], folder: Path) -> Path:
    rules = "".join(f'public_flat_rw -module "{module}" -var "{port}"\n' for port in ports)
    path = folder / "ports.vlt"
    path.write_text(f"`verilator_config\n{rules}")
    return path


def test(
    simulator: str,
    module: str,
    folder: str,
    test_module: str,
    results: str,
    work: str,
    variables: dict[str, str],
    seed: int,
    waves: bool,
    test: str | None,
) -> None:
    """Run the cocotb tests of `test_module` on what `build` has left in `folder`.

    With `test`, that one alone. Waves go to `work`, which Verilator does by itself.
    """
    dump = waves and simulator == "icarus"
    get_runner(simulator).test(
        test_module=test_module,
        hdl_toplevel=module,
        hdl_toplevel_lang="verilog",
        build_dir=folder,
        test_dir=work,
        results_xml=results,
        extra_env=variables,
        testcase=test,
        seed=seed,
        waves=waves,
        plusargs=[f"+dumpfile_path={work}/{module}.fst"] if dump else [],
        timescale=TIMESCALE,
    )


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    if request.pop("do") == "build":
        build(**request)
    else:
        test(**request)
