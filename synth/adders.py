"""Full-adder cells: the full adder of a library, and the files by which Yosys uses it."""

from dataclasses import dataclass
from typing import Final

from axs6.synth.adder_groups import ADDER, INVERTED
from axs6.synth.cells import Cell, CellLibrary
from axs6.synth.errors import SynthesisError

FIND: Final = "extract_fa -fa * t:$_NOT_ %d"
"""The Yosys command that finds full adders among simple gates. It is given no inverters, across
which it would find an adder twice: with a bit and with the complement."""

AS_GATES: Final = "gates_of_adder"
"""The type of a full adder that becomes gates."""

GATES_MAP: Final = "gates_of_adder.v"
INVERTED_MAP: Final = "inverted_adder.v"
FULL_MAP: Final = "full_adder.v"

_INVERTED = f"""module {INVERTED}(input A, B, C, output X, Y);
  parameter WIDTH = 1;
  wire a, b, c, x, y;
  \\$_NOT_ not_a (.A(A), .Y(a)), not_b (.A(B), .Y(b)), not_c (.A(C), .Y(c));
  \\{ADDER} #(.WIDTH(1)) adder (.A(a), .B(b), .C(c), .X(x), .Y(y));
  \\$_NOT_ not_x (.A(x), .Y(X)), not_y (.A(y), .Y(Y));
endmodule
"""

_AS_GATES = f"""module {AS_GATES}(input A, B, C, output X, Y);
  parameter WIDTH = 1;
  wire half, both, other;
  \\$_XOR_ sum_ab (.A(A), .B(B), .Y(half)), sum (.A(half), .B(C), .Y(Y));
  \\$_AND_ and_ab (.A(A), .B(B), .Y(both)), and_c (.A(half), .B(C), .Y(other));
  \\$_OR_ carry (.A(both), .B(other), .Y(X));
endmodule
"""

_OUTPUTS = {0x96: "sum", 0xE8: "carry"}


@dataclass(frozen=True)
class AdderCell:
    """The smallest full adder of a library, and the names of its outputs: `sum` and `carry`.

    Half adders are left to the gates: cells for them keep inverters from being moved, and block dot
    products are up to 0.4 % larger with them.
    """

    cell: Cell
    outputs: dict[str, str]

    def files(self) -> dict[str, str]:
        """Return the Verilog that the commands read, by file name."""
        cell, outputs = self.cell, self.outputs
        a, b, c = cell.inputs
        full = (
            f'(* techmap_celltype = "{ADDER}" *)\n'
            "module full_adder(input A, B, C, output X, Y);\n"
            "  parameter WIDTH = 1;\n"
            f"  {cell.name} cell_ (.{a}(A), .{b}(B), .{c}(C), "
            f".{outputs['carry']}(X), .{outputs['sum']}(Y));\n"
            "endmodule\n"
        )
        return {GATES_MAP: _AS_GATES, INVERTED_MAP: _INVERTED, FULL_MAP: full}

    def commands(self) -> list[str]:
        """Return the Yosys commands that map the full adders which `FIND` found.

        Inverters between inverted adders cancel.
        """
        maps = [f"techmap -map {name}" for name in (GATES_MAP, INVERTED_MAP)]
        return [*maps, "opt_expr", f"techmap -map {FULL_MAP}"]


def adder_cell(library: CellLibrary, source: str) -> AdderCell:
    """Find the full adder of a library by its functions.

    Raises: SynthesisError: the library has none.
    """
    found = []
    for cell in library.cells.values():
        if len(cell.inputs) != 3 or len(cell.functions) != 2 or cell.dont_use:
            continue
        outputs = {_OUTPUTS.get(cell.truth(pin) or 0, ""): pin for pin in cell.functions}
        if set(outputs) == set(_OUTPUTS.values()):
            found.append(AdderCell(cell, outputs))
    if not found:
        raise SynthesisError(f"{source} must have a full-adder cell to map adders to, and has none")
    return min(found, key=lambda each: (each.cell.area, each.cell.name))
