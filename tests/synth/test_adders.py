"""Adders become adder cells: found in a library by function, used in trees, and still right."""

from pathlib import Path
from typing import Any

import pytest

from axs6.hw.verilog import generate
from axs6.synth import flow, sky130
from axs6.synth.adder_groups import SMALL, adders_in_small_groups, inverted_adders
from axs6.synth.adders import adder_cell
from axs6.synth.area import area
from axs6.synth.cells import cell_library
from axs6.synth.errors import SynthesisError
from axs6.synth.scripts import abc_scripts

FULL = f"{sky130.PREFIX}fa_1"


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
    assert report.total.cells[FULL] == 7
    gates = {name.removeprefix(sky130.PREFIX) for name in report.total.cells} - {"fa_1"}
    assert gates == {"inv_1", "nor2_1", "a21oi_1"}
    assert report.adder_cells
    assert report.timing is not None
    assert (report.timing.levels, report.timing.end) == (9, "y[7]")
    assert FULL not in area(ripple(8), "ripple", target="sky130").total.cells


@pytest.mark.slow  # each adder of a chain is found in every run
@pytest.mark.parametrize(
    ("block", "least", "most"),
    [(8, 200, 6_400), pytest.param(32, 800, 25_000, marks=pytest.mark.slow)],
)
def test_the_compressor_tree_of_a_unit(block: int, least: int, most: int) -> None:
    """Every full adder of the tree, and those of the sign and the last carry chain, is found."""
    made = generate("block_dot", block=block)
    whole = {"target": "sky130", "breakdown": False}
    plain = area(made.verilog, made.module, **whole)
    cells = area(made.verilog, made.module, **whole, adder_cells=True)
    assert cells.total.cells[FULL] > least
    assert cells.total.figures["area"] < 0.9 * plain.total.figures["area"]
    assert cells.total.figures["area"] <= most


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
    found = adder_cell(cell_library(text, "odd"), "odd")
    assert (found.cell.name, found.outputs) == ("BIG", {"sum": "S", "carry": "T"})
    with pytest.raises(SynthesisError) as caught:
        area(ripple(2), "ripple", liberty=timed, adder_cells=True)
    assert str(caught.value) == (
        f"library {timed} must have a full-adder cell to map adders to, and has none"
    )


@pytest.mark.slow
def test_negative_products_do_not_double_their_adders() -> None:
    """A bit of negative weight is inverted in one adder, and is not found again as it was."""
    made = generate("block_dot", format="mxint8", block=8)
    report = area(made.verilog, made.module, target="sky130", adder_cells=True, breakdown=False)
    assert 485 <= report.total.cells[FULL] <= 500
    assert report.total.figures["area"] <= 13_000


def cell(kind: str, *bits: int) -> dict[str, Any]:
    """A cell of a netlist: a full adder, or a gate with its result last."""
    pins = "ABCXY" if kind == "$fa" else "ABS"[: len(bits) - 1] + "Y"
    return {"type": kind, "connections": {p: [b] for p, b in zip(pins, bits, strict=True)}}


@pytest.mark.parametrize(
    ("kind", "inverted"),
    [("$_AND_", True), ("$_MUX_", True), ("$_OR_", False), ("$_XOR_", False)],
)
def test_adders_that_feed_one_another_are_alike(kind: str, *, inverted: bool) -> None:
    """Two of three operands of a pair of adders come from such gates; another has none."""
    inputs = (2, 3, 4) if kind == "$_MUX_" else (2, 3)
    cells = {f"gate{y}": cell(kind, *inputs, y) for y in (10, 11, 12)}
    cells["first"] = cell("$fa", 10, 11, 5, 20, 21)
    cells["second"] = cell("$fa", 21, 12, 6, 22, 23)
    cells["apart"] = cell("$fa", 2, 3, 10, 24, 25)
    assert inverted_adders({"cells": cells}) == ({"first", "second"} if inverted else set())


def test_small_groups_of_adders() -> None:
    """Adders in chains of `SMALL` are not among them, those in shorter chains are."""
    cells = {
        f"long{k}": cell("$fa", k, k + 100, 2, k + 1, k + 200) for k in range(300, 300 + SMALL)
    }
    assert adders_in_small_groups({"cells": cells}) == set()
    del cells["long300"]
    assert adders_in_small_groups({"cells": cells}) == set(cells)


@pytest.mark.parametrize(
    ("design", "block", "least", "most", "area_most"),
    [
        pytest.param("mxfp8_e4m3", 16, 520, 540, 29_500, marks=pytest.mark.slow),
        pytest.param("mxfp6_e2m3", 8, 140, 160, 7_520, marks=pytest.mark.slow),
    ],
)
def test_small_groups_become_what_is_smaller(
    design: str, block: int, least: int, most: int, area_most: float
) -> None:
    """The lanes' multipliers, of 8 full adders, become gates in one design, cells in the other."""
    made = generate("block_dot", format=design, block=block)
    report = area(made.verilog, made.module, target="sky130", adder_cells=True, breakdown=False)
    assert least <= report.total.cells[FULL] <= most
    assert report.total.figures["area"] <= area_most


@pytest.mark.slow
def test_the_script_that_gives_the_smallest_design_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a design with adder cells; not the first, and not the last."""
    made = generate("block_dot", format="mx4", block=8)

    def size() -> float:
        report = area(made.verilog, made.module, target="sky130", adder_cells=True, breakdown=False)
        return report.total.figures["area"]

    scripts = abc_scripts("area", timed=True, adders=True)
    together = size()
    alone = []
    for script in scripts:
        monkeypatch.setattr(flow, "abc_scripts", lambda *_, only=script, **__: [only])
        alone.append(size())
    assert together == min(alone)
    assert together < min(alone[0], alone[-1])


@pytest.mark.parametrize("target", ["generic", "ice40"])
def test_adder_cells_need_a_library(target: str) -> None:
    with pytest.raises(SynthesisError, match="adder cells need a cell library, but "):
        area(ripple(2), "ripple", target=target, adder_cells=True)
