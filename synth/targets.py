"""The targets: the Yosys commands that map a design to each, and the figures of its cells."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from axs6.synth import gates
from axs6.synth.errors import SynthesisError

Figures = dict[str, int | float]

GENLIB: Final = "gates.genlib"
GATES: Final = "gates.v"
LIBRARY: Final = "library.lib"
MAP_SCRIPT: Final = "map.abc"
CONSTRAINTS: Final = "map.constr"
NETLIST: Final = "netlist.json"
NAME: Final = "axs6_name"
"""The attribute of a net in a mapped netlist with its name before it was renamed."""

_NO_VERIFY: Final = "scratchpad -set abc9.verify 0"
"""Proving ABC's own result can take 50 times as long as the rest (a block dot product, ECP5)."""

_NO_BRACKETS: Final = r"rename -hide w:*\[*"
"""Amaranth calls an element of an array `x[0]`, as ABC's result calls bit 0 of a net `x`: taking
the result back, Yosys mixes the two up or stops."""

_FPGA_COMMANDS: Final = {
    "ice40": ("synth_ice40 -top {top}", "", " -noflatten"),
    "ecp5": ("synth_ecp5 -top {top}", "", " -noflatten"),
    "xc7": ("synth_xilinx -family xc7 -nosrl -noiopad -noclkbuf -top {top}", " -flatten", ""),
}

_FPGA_CELLS: Final = {
    "ice40": {
        "luts": "SB_LUT4",
        "flip_flops": "SB_DFF.*",
        "carries": "SB_CARRY",
        "dsps": "SB_MAC16",
        "block_rams": "SB_RAM.*|SB_SPRAM.*",
    },
    "ecp5": {
        "luts": "LUT4",
        "flip_flops": "TRELLIS_FF",
        "carries": "CCU2C",
        "dsps": "MULT.*|ALU.*",
        "block_rams": "DP16KD|PDPW16KD",
    },
    "xc7": {
        "luts": "LUT[1-6]|INV",
        "flip_flops": "FD[RSCP]E.*",
        "carries": "CARRY4",
        "dsps": "DSP48E1",
        "block_rams": "RAMB.*",
    },
}

FPGAS: Final = tuple(_FPGA_CELLS)
"""The targets that are FPGAs."""

WITH_DSPS: Final = ("ecp5", "xc7")
"""Those whose flow maps products to DSP blocks."""

TARGETS: Final = ("generic", "sky130", *FPGAS)
"""The targets that need no library file."""


@dataclass(frozen=True)
class Costs:
    """Areas and types of a library's cells after mapping.

    `source` is the library or target, for messages. `areas` holds the area of each cell type in
    library units and `registers` the types that the flip-flops and latches of the design were
    mapped to; without a library neither is used.
    """

    source: str
    areas: Mapping[str, float]
    registers: frozenset[str]


def commands(
    target: str,
    top: str,
    *,
    flatten: bool,
    share: bool,
    adders: Sequence[str],
    timed: bool,
    dont_use: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Return the Yosys commands for a target: those up to the registers, and those after.

    The files that they name (`GENLIB`, `LIBRARY`, `MAP_SCRIPT`, `CONSTRAINTS`) lie in the working
    directory.

    Args:
        target: its name, or `liberty`.
        top: name of the top module.
        flatten: whether the hierarchy goes.
        share: whether operators are shared that are never used at the same time.
        adders: commands that map adders to cells.
        timed: whether the library has delays.
        dont_use: cells of the library that are left alone.
    """
    if target in _FPGA_COMMANDS:
        command, flat, nested = _FPGA_COMMANDS[target]
        synth = command.format(top=top) + (flat if flatten else nested)
        return [_NO_VERIFY, _NO_BRACKETS, synth], []
    synth = f"synth -noabc -top {top}" + (" -flatten" if flatten else "")
    synth += "" if share else " -noshare"
    if target == "generic":
        registers, library = gates.LEGALIZE, f"-genlib {GENLIB}"
    else:
        library = " ".join([f"-liberty {LIBRARY}", *(f"-dont_use {name}" for name in dont_use)])
        registers = f"dfflibmap {library}"
    if timed:
        library += f" -constr {CONSTRAINTS}"
    abc = f"abc {library} -script {MAP_SCRIPT}"
    return [synth, registers], [*adders, "opt_clean", abc, "opt_clean"]


def models(target: str) -> str:
    """Return the Verilog models of an FPGA's cells."""
    folder = resources.files("axs6.synth").joinpath("models")
    return folder.joinpath(f"{target}.v").read_text(encoding="utf-8")


def expansion(target: str, top: str) -> list[str]:
    """Return the Yosys commands that turn the cells of a mapped design into their logic."""
    if target in ("liberty", "sky130"):
        read = ["delete =A:blackbox", f"read_liberty -ignore_miss_func {LIBRARY}"]
    else:
        read = ["delete =A:blackbox", f"read_verilog {GATES}"]
    return [
        *read,
        f"hierarchy -top {top}",
        "proc",
        "flatten",
        "simplemap",
        "opt_expr",
        "opt_clean",
        "rename -top top",
    ]


def figures(target: str, cells: Mapping[str, int], costs: Costs) -> Figures:
    """Sum up cells, given as counts by type, to what `axs6.synth.report.Resources` describes.

    Raises:
        SynthesisError: a cell has no size on the target, such as a tri-state buffer.
    """
    if target == "generic":
        return _generic(cells, costs.source)
    if target in _FPGA_CELLS:
        return _fpga(target, cells, costs.source)
    return _library(cells, costs)


def _generic(cells: Mapping[str, int], source: str) -> Figures:
    area, transistors = 0.0, 0
    for name, count in cells.items():
        size = gates.size(name)
        if size is None:
            raise SynthesisError(f"{source} has no size for the cell {name}")
        area += count * size.gate_equivalents
        transistors += count * size.transistors
    return {
        "gate_equivalents": area,
        "transistors": transistors,
        "gates": sum(n for name, n in cells.items() if gates.is_gate(name)),
        "flip_flops": sum(n for name, n in cells.items() if gates.is_flip_flop(name)),
    }


def _fpga(target: str, cells: Mapping[str, int], source: str) -> Figures:
    if unmapped := [name for name in cells if name.startswith("$")]:
        raise SynthesisError(f"{source} has no cell for {unmapped[0]}")
    return {
        figure: sum(n for name, n in cells.items() if re.fullmatch(pattern, name))
        for figure, pattern in _FPGA_CELLS[target].items()
    }


def _library(cells: Mapping[str, int], costs: Costs) -> Figures:
    if bare := [name for name in cells if not costs.areas.get(name)]:
        raise SynthesisError(f"{costs.source} must give an area for {bare[0]} and does not")
    area = round(sum(n * costs.areas[name] for name, n in cells.items()), 6)
    registers = {name: n for name, n in cells.items() if name in costs.registers}
    sequential = round(sum(n * costs.areas[name] for name, n in registers.items()), 6)
    return {
        "area": area,
        "sequential_area": sequential,
        "sequential_share": sequential / area if area else 0.0,
        "flip_flops": sum(registers.values()),
    }
