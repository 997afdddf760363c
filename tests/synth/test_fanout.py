"""Buffers before registers: how many, and what they do for the clock."""

from pathlib import Path
from typing import Any

import pytest

from axs6.synth import sky130
from axs6.synth.area import area
from axs6.synth.cells import cell_library, read_cells
from axs6.synth.fanout import MOST, Buffering, add_buffers, buffering

PLAN = Buffering("BUF", "A", "Y", {"REG": ["D", "E"]})


def module(registers: int) -> dict[str, Any]:
    """Registers with one enable, net 2, and a data net each."""
    cells = {
        f"r{k}": {"type": "REG", "connections": {"E": [2], "D": [3 + 2 * k], "Q": [4 + 2 * k]}}
        for k in range(registers)
    }
    return {"cells": cells, "netnames": {"all": {"bits": list(range(2, 4 + 2 * registers))}}}


def loads(made: dict[str, Any]) -> dict[int, int]:
    found: dict[int, int] = {}
    for cell in made["cells"].values():
        for pin in ("E", "A"):
            for net in cell["connections"].get(pin, []):
                found[net] = found.get(net, 0) + 1
    return found


@pytest.mark.parametrize(
    ("registers", "buffers"), [(1, 0), (MOST, 0), (MOST + 1, 2), (MOST**2, 16), (257, 17 + 2)]
)
def test_trees(registers: int, buffers: int) -> None:
    made = module(registers)
    add_buffers(made, PLAN)
    cells = made["cells"]
    added = {name: cell for name, cell in cells.items() if cell["type"] == "BUF"}
    assert len(added) == buffers
    assert max(loads(made).values()) <= MOST
    driver = {cell["connections"]["Y"][0]: cell["connections"]["A"][0] for cell in added.values()}
    assert len(driver) == buffers
    for k in range(registers):
        net = cells[f"r{k}"]["connections"]["E"][0]
        while net in driver:
            net = driver[net]
        assert net == 2
        assert cells[f"r{k}"]["connections"]["D"] == [3 + 2 * k]


def test_the_buffer_of_a_library(timed: Path, tiny: Path, without_buffer: Path) -> None:
    plan = buffering(read_cells(timed))
    assert plan == Buffering("TINY_BUF", "A", "Y", {"TINY_DFF": ["D"]})
    assert buffering(read_cells(tiny)) is None
    assert buffering(read_cells(without_buffer)) is None
    plan = buffering(cell_library(sky130.liberty(), "sky130"))
    assert plan is not None
    assert plan.pins[f"{sky130.PREFIX}edfxtp_1"] == ["D", "DE"]


def test_a_wide_register_has_a_clock() -> None:
    source = """
    module wide(input clk, a, b, input [511:0] d, output reg [511:0] q);
      reg enable;
      always @(posedge clk) begin enable <= a & b; if (enable) q <= d; end
    endmodule
    """
    report = area(source, "wide", target="sky130")
    assert report.total.figures["flip_flops"] == 513
    assert report.timing is not None
    assert report.timing.fmax_mhz is not None
    assert report.timing.fmax_mhz > 500
    assert sum(n for cell, n in report.total.cells.items() if "buf" in cell) == 32 + 2
