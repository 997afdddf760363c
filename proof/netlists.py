"""Designs to prove something of: the flat netlist for the simulator, and its graph."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axs6.proof.aig import Graph, read_aiger
from axs6.proof.yosys import run_yosys
from axs6.sim.process import temporary_folder

CHAINS = Path(__file__).with_name("chains.v")
"""Additions as chains of full adders, for Yosys."""

TO_GRAPH = (
    *("opt_clean", "dffunmap", "simplemap", "opt_clean", "setundef -undriven -anyseq", "aigmap"),
    *("opt_clean", "write_aiger -map design.map design.aig"),
)
"""Commands that turn gates and registers into a graph.

Before them goes `NO_FIRST_VALUES`. What nothing drives becomes a free input."""

NO_FIRST_VALUES = "setattr -unset init w:*"
"""Registers may start with any value, in what is proved."""

OPERATORS_TO_GRAPH = (
    *(NO_FIRST_VALUES, "opt -full -keepdc", "memory_map", "opt_clean", "alumacc"),
    "maccmap",
    *(f"techmap -map {CHAINS}", "opt -keepdc", "techmap", "opt -keepdc", *TO_GRAPH),
)
"""Commands that turn operators and registers into a graph."""


@dataclass(frozen=True)
class Design:
    """A design without hierarchy.

    Args:
        netlist: Yosys JSON of a module `top`, as `axs6.sim.batch.engine.GateModel` takes it.
        graph: its graph, with registers as `read_aiger` says.
    """

    netlist: str
    graph: Graph


def verilog_design(
    verilog: str, top: str | None = None, liberty: str | None = None, seconds: float = 600
) -> Design:
    """A design in Verilog, of operators or of a library's cells.

    Args:
        verilog: text. top: name of the module; without one, that which no other instantiates.
        liberty: text of a Liberty file with the cells that it has. seconds: limit of Yosys.

    Raises:
        SynthesisError: pyosys is missing, refuses the Verilog, or takes too long.
    """
    files = {"design.v": verilog} | ({"cells.lib": liberty} if liberty else {})
    commands = [
        *(["read_liberty -ignore_miss_func cells.lib"] if liberty else []),
        "read_verilog -sv design.v",
        f"hierarchy -check {f'-top {top}' if top else '-auto-top'}",
        *("proc", "flatten", "opt_clean -purge", "delete */t:$scopeinfo", "rename -top top"),
        "write_json design.json",
        *OPERATORS_TO_GRAPH,
    ]
    return _design(files, commands, f"{top or 'the netlist'}", seconds)


def operator_design(netlist: str, seconds: float = 600) -> Design:
    """A design of operators: Yosys JSON of a module `top`.

    Raises:
        SynthesisError: as `verilog_design`.
    """
    commands = ["read_json given.json", "hierarchy -check -top top", "write_json design.json"]
    files = {"given.json": netlist}
    return _design(files, [*commands, *OPERATORS_TO_GRAPH], "the operators", seconds)


def mapped_design(netlist: str, seconds: float = 600) -> Design:
    """A design of `axs6.synth.mapped.mapped_netlist`.

    Raises:
        SynthesisError: as `verilog_design`.
    """
    commands = [
        *("read_json design.json", "hierarchy -top top", "delete =mapped", "proc", "flatten"),
        *(NO_FIRST_VALUES, "opt_clean", "techmap", *TO_GRAPH),
    ]
    return _design({"design.json": netlist}, commands, "the mapped netlist", seconds)


def _design(files: Mapping[str, str], commands: Sequence[str], what: str, seconds: float) -> Design:
    with temporary_folder("axs6-proof-") as folder:
        for name, text in files.items():
            (folder / name).write_text(text)
        run_yosys(folder, commands, f"graph of {what}", seconds)
        netlist = (folder / "design.json").read_text()
        names = output_names(json.loads(netlist))
        return Design(netlist, read_aiger(folder / "design.aig", folder / "design.map", names))


def output_names(netlist: Mapping[str, Any]) -> list[str]:
    """Names of the bits of the outputs of the module `top`, in the order of the ports."""
    return [
        f"{name}[{bit}]"
        for name, port in netlist["modules"]["top"]["ports"].items()
        if port["direction"] == "output"
        for bit in range(len(port["bits"]))
    ]


def check_driven(name: str, netlist: str) -> None:
    """Refuse a netlist in which something reads a bit that is x or z, or that nothing drives.

    Tools may choose any value for these, each another one.

    Args:
        name: of the design, for the error. netlist: of a `Design`.

    Raises:
        ValueError: there is such a bit; the message has the cell or port that reads it.
    """
    module = json.loads(netlist)["modules"]["top"]
    drivers: Counter[Any] = Counter({"0": 1, "1": 1})
    readers = {}
    for port_name, port in module["ports"].items():
        if port["direction"] == "output":
            readers[f"the port {port_name}"] = port["bits"]
        else:
            drivers.update(port["bits"])
    for cell_name, cell in module["cells"].items():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] == "output":
                drivers.update(bits)
            else:
                readers[f"{pin} of the cell {cell_name}"] = bits
    if max(drivers.values()) > 1:
        raise ValueError(f"{name} must have one driver for each net, and a net has several")
    for reader, bits in readers.items():
        if not drivers.keys() >= set(bits):
            raise ValueError(f"{name} must drive all nets, and {reader} reads what nothing drives")
