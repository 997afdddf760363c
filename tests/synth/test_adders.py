"""Adders become adder cells: found in a library by function, used in trees, and still right."""

from pathlib import Path

import pytest

from axs6.hw.verilog import generate
from axs6.synth import sky130
from axs6.synth.adders import adder_cells
from axs6.synth.area import area
from axs6.synth.cells import cell_library
from axs6.synth.errors import SynthesisError

FULL = f"{sky130.PREFIX}fa_1"
HALF = f"{sky130.PREFIX}ha_1"


def ripple(width: int) -> str:
    """The sum of two numbers: a half adder and then full adders, in portable gates."""
    lines = [
        f"module ripple(input [{width - 1}:0] a, b, output [{width}:0] y);",
        f"wire [{width}:0] c;",
        "assign y[0] = a[0] ^ b[0], c[1] = a[0] & b[0];",
    ]
    for k in range(1, width):
        half = f"(a[{k}] ^ b[{k}])"
        lines.append(
            f"assign y[{k}] = {half} ^ c[{k}], c[{k + 1}] = (a[{k}] & b[{k}]) | ({half} & c[{k}]);"
        )
    return "\n".join([*lines, f"assign y[{width}] = c[{width}];", "endmodule"])


def test_each_adder_of_a_chain_is_a_cell() -> None:
    report = area(ripple(8), "ripple", target="sky130", adder_cells=True)
    assert report.total.cells == {FULL: 7, HALF: 1}
    assert report.adder_cells
    assert report.timing is not None
    assert (report.timing.levels, report.timing.end) == (8, "y[7]")
    assert FULL not in area(ripple(8), "ripple", target="sky130").total.cells


def test_the_compressor_tree_of_a_unit() -> None:
    """Every full adder of the tree, and those of the sign and the last carry chain, is found."""
    made = generate("block_dot", block=32)
    whole = {"target": "sky130", "breakdown": False}
    plain = area(made.verilog, made.module, **whole)
    cells = area(made.verilog, made.module, **whole, adder_cells=True)
    assert cells.total.cells[FULL] > 800
    assert cells.total.figures["area"] < 0.9 * plain.total.figures["area"]
    assert cells.total.figures["area"] <= 26_700


def test_cells_are_found_by_function(timed: Path) -> None:
    text = """library (odd) { cell (TWO) { area : 3;
      pin (P) { direction : input; } pin (R) { direction : input; }
      pin (X) { direction : output; function : "P^R"; }
      pin (Z) { direction : output; function : "P R"; } }
    cell (BIG) { area : 9; pin (U) { direction : input; } pin (V) { direction : input; }
      pin (W) { direction : input; } pin (S) { direction : output; function : "U^V^W"; }
      pin (T) { direction : output; function : "U*V + W*(U + V)"; } }
    cell (INVERTED) { area : 8; pin (U) { direction : input; } pin (V) { direction : input; }
      pin (W) { direction : input; } pin (S) { direction : output; function : "U^V^W"; }
      pin (T) { direction : output; function : "(U*V + W*(U + V))'"; } } }"""
    found = adder_cells(cell_library(text, "odd"), "odd")
    assert (found.full[0].name, found.full[1]) == ("BIG", {"sum": "S", "carry": "T"})
    assert found.half is not None
    assert (found.half[0].name, found.half[1]) == ("TWO", {"sum": "X", "carry": "Z"})
    with pytest.raises(SynthesisError) as caught:
        area(ripple(2), "ripple", liberty=timed, adder_cells=True)
    assert str(caught.value) == (
        f"library {timed} must have a full-adder cell to map adders to, and has none"
    )


def test_a_library_without_half_adder() -> None:
    text = sky130.liberty().replace('(A&B)";', '(A|B)";').replace('"A&B"', '"A|B"')
    library = cell_library(text, "x")
    assert adder_cells(library, "x").half is None


@pytest.mark.parametrize("target", ["generic", "ice40"])
def test_adder_cells_need_a_library(target: str) -> None:
    with pytest.raises(SynthesisError, match="adder cells need a cell library, which "):
        area(ripple(2), "ripple", target=target, adder_cells=True)
