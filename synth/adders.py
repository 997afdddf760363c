"""Full- and half-adder cells: which ones a library has, and the files by which Yosys uses them."""

from dataclasses import dataclass
from typing import Final

from axs6.synth.cells import Cell, CellLibrary
from axs6.synth.errors import SynthesisError

FULL_MAP: Final = "full_adder.v"
HALF_MAP: Final = "half_adder.v"

_FULL = {0x96: "sum", 0xE8: "carry"}
_HALF = {0x6: "sum", 0x8: "carry"}


@dataclass(frozen=True)
class AdderCells:
    """The smallest adders of a library, each with the names of its pins by role."""

    full: tuple[Cell, dict[str, str]]
    half: tuple[Cell, dict[str, str]] | None

    def files(self) -> dict[str, str]:
        """Return the Verilog that the commands read, by file name."""
        cell, outputs = self.full
        a, b, c = cell.inputs
        full = (
            '(* techmap_celltype = "$fa" *)\n'
            "module full_adder(input A, B, C, output X, Y);\n"
            "  parameter WIDTH = 1;\n"
            f"  {cell.name} cell_ (.{a}(A), .{b}(B), .{c}(C), "
            f".{outputs['carry']}(X), .{outputs['sum']}(Y));\n"
            "endmodule\n"
        )
        if self.half is None:
            return {FULL_MAP: full}
        cell, outputs = self.half
        a, b = cell.inputs
        carry, total = outputs["carry"], outputs["sum"]
        half = (
            f"module {cell.name}(input {a}, {b}, output {carry}, {total});\n"
            f"  \\$_AND_ carry_ (.A({a}), .B({b}), .Y({carry}));\n"
            f"  \\$_XOR_ sum_ (.A({a}), .B({b}), .Y({total}));\n"
            "endmodule\n"
        )
        return {FULL_MAP: full, HALF_MAP: half}

    def commands(self) -> list[str]:
        """Return the Yosys commands that map the adders of a netlist of simple gates.

        Half adders are taken only beside full adders, where two bits of a compressor tree become
        one: elsewhere, in counters and rounding, the gates are smaller than the cells.
        """
        mapped = ["extract_fa -fa", f"techmap -map {FULL_MAP}", "opt_clean"]
        if self.half is not None:
            mapped.append(f"extract -map {HALF_MAP} t:{self.full[0].name} %x2")
        return mapped


def adder_cells(library: CellLibrary, source: str) -> AdderCells:
    """Find the adders of a library by their functions.

    Raises:
        SynthesisError: it has no full adder. A half adder may be missing.
    """
    full = _smallest(library, 3, _FULL)
    if full is None:
        raise SynthesisError(f"{source} must have a full-adder cell to map adders to, and has none")
    return AdderCells(full, _smallest(library, 2, _HALF))


def _smallest(
    library: CellLibrary, inputs: int, roles: dict[int, str]
) -> tuple[Cell, dict[str, str]] | None:
    found = []
    for cell in library.cells.values():
        if len(cell.inputs) != inputs or len(cell.functions) != 2 or cell.dont_use:
            continue
        outputs = {roles.get(cell.truth(pin) or 0): pin for pin in cell.functions}
        if set(outputs) == set(roles.values()):
            found.append((cell, {str(role): pin for role, pin in outputs.items()}))
    return min(found, key=lambda each: (each[0].area, each[0].name), default=None)
