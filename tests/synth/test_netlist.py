"""Netlists for other tools: the same bits as the unit, and constraints that say what is assumed."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axs6.hw.registry import UNITS
from axs6.hw.verilog import generate
from axs6.sim.batch.engine import GateModel
from axs6.synth import sky130
from axs6.synth.errors import SynthesisError
from axs6.synth.mapped import mapped_netlist
from axs6.synth.netlist import MappedDesign, compact_library, companions, mapped_design

Cli = Callable[..., Any]

SHARED = """
module shared(input [1:0] a, input b, output [3:0] y, output z, output w, output one);
  assign y = {a[0] & b, a[1], a[0] & b, ~a[1]};
  assign z = a[0] & b;
  assign w = b;
  assign one = 1'b1;
endmodule
"""


def mapped(unit: str, **parameters: Any) -> MappedDesign:
    made = generate(unit, **parameters)
    return mapped_design(made.verilog, made.module, target="sky130", adder_cells=True)


@pytest.mark.slow  # the next ones simulate such files in Icarus
def test_verilog_computes_what_the_unit_does() -> None:
    given: dict[str, Any] = {"block": 8, "stages": 2, "format": "mxfp4"}
    design = mapped("block_dot", **given)
    assert "_fa_1 " in design.verilog
    assert "\\" not in design.verilog
    netlist = mapped_netlist(design.verilog + design.models, design.top)
    parameters = UNITS["block_dot"].parameters(given)
    items = UNITS["block_dot"].random(parameters, np.random.default_rng(0), 2000)
    outputs = GateModel(netlist, "block_dot", **parameters).run(items).outputs
    for name, expected in UNITS["block_dot"].golden(items, parameters).items():
        assert np.array_equal(outputs[name], expected)


def test_constraints_of_a_combinational_unit() -> None:
    design = mapped("expander", block=8)
    assert "create_clock -name clock -period " in design.constraints
    assert f"-period {design.period_ps:.10g}\n" in design.constraints
    assert 1.05 * design.delay_ps <= design.period_ps < 1.05 * design.delay_ps + 1
    assert "_driving_cell -lib_cell sky130_fd_sc_hd__buf_1 [get_ports {i_valid o_ready clk " in (
        design.constraints
    )


def test_constraints_of_a_unit_with_registers() -> None:
    design = mapped("lfsr", block=8, random_bits=2)
    assert f"-period {design.period_ps:.10g} [get_ports {{clk}}]\n" in design.constraints
    assert design.stime_ps is None
    for command in ("set_input_delay", "set_driving_cell"):
        (line,) = re.findall(f"^{command}.*", design.constraints, re.M)
        assert re.search(r"\brst\b", line)
        assert not re.search(r"\bclk\b", line)


HOLDS_ZERO = """
module holds(input clk, a, b, output reg y, z);
  always @(posedge clk) begin
    y <= (a & b) & ~(a | b);
    z <= a & b;
  end
endmodule
"""


def held_at_zero(design: MappedDesign) -> list[str]:
    """Registers whose input is 0: no path ends there, which timing tools report."""
    cells = design.module["cells"].items()
    return [name for name, cell in cells if cell["connections"].get("D") == ["0"]]


def test_a_register_that_can_only_be_0_is_found() -> None:
    wrong = mapped_design(HOLDS_ZERO, "holds", target="sky130")
    assert len(held_at_zero(wrong)) == 1


@pytest.mark.slow
def test_no_register_of_an_aligned_sum_can_only_be_0() -> None:
    made = generate("dot", block=8, stages=8, accumulator="hopper_fp8")
    assert not held_at_zero(mapped_design(made.verilog, made.module, target="sky130"))


def test_outputs_that_are_one_net_have_one_load() -> None:
    design = mapped_design(SHARED, "shared", target="sky130")
    assert "set_load -pin_load 33.4 [get_ports {y[0] y[1] y[2] w one}]\n" in design.constraints
    lines = [line.strip() for line in design.verilog.splitlines()]
    assert lines[0] == "module shared (a, b, y, z, w, one);"
    assert [line for line in lines if line.startswith("assign")] == [
        "assign y[2] = a[1];",
        "assign y[3] = y[1];",
        "assign z = y[1];",
        "assign w = b;",
        "assign one = 1'b1;",
    ]


def test_units_of_the_library(timed: Path) -> None:
    text = timed.read_text().replace("capacitive_load_unit (1, ff)", "capacitive_load_unit (1, pf)")
    timed.write_text(text.replace('time_unit : "1ps"', 'time_unit : "10ps"'))
    design = mapped_design(SHARED, "shared", target="generic", liberty=timed)
    assert "# 10 ps and 1000 fF.\n" in design.constraints
    assert "set_load -pin_load 4 " in design.constraints


def test_refusals(tiny: Path) -> None:
    for target in ("generic", "ice40"):
        with pytest.raises(SynthesisError, match=f"needs a cell library, but target {target}"):
            mapped_design(SHARED, "shared", target=target)
    with pytest.raises(SynthesisError, match=r"tiny\.lib must have delays for a netlist to be tim"):
        mapped_design(SHARED, "shared", target="generic", liberty=tiny)
    with pytest.raises(ValueError, match=r"the netlist must not be a \.sdc file"):
        companions(Path("unit.sdc"), None)


def test_files(main: Cli, tmp_path: Path) -> None:
    done = main("area", "expander", "--block", "8", "--target", "sky130", "--netlist", "made/a.v")
    assert "wrote made/a.v, made/a.sdc, made/a.cells.v, made/a.lib\n" in done.succeeded()
    assert (tmp_path / "made" / "a.lib").read_text() == compact_library()
    assert "module axs6_expander (" in (tmp_path / "made" / "a.v").read_text()


@pytest.mark.slow
def test_the_files_simulate_in_verilator(main: Cli, tmp_path: Path) -> None:
    """Bits of a vector may depend on each other, as those of the output do here."""
    unit = ("decoder", "--format", "mxfp4", "--block", "8")
    main("area", *unit, "--target", "sky130", "--netlist", "a.v").succeeded()
    check = ("regress", *unit, "--items", "50", "--verilog", "a.v", "--verilog", "a.cells.v")
    assert "1 passed" in main(*check).succeeded()


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")
def test_the_files_simulate_without_anything_else(main: Cli, tmp_path: Path) -> None:
    unit = ("expander", "--block", "8", "--stages", "2")
    main("area", *unit, "--target", "sky130", "--netlist", "a.v").succeeded()
    check = ("regress", *unit, "--simulator", "icarus", "--items", "50", "--verilog", "a.v")
    check = (*check, "--test", "full_rate")
    assert "1 passed" in main(*check, "--verilog", "a.cells.v").succeeded()
    models = (tmp_path / "a.cells.v").read_text()
    wrong = re.sub(r"(module \S+nand2_1\(.*?assign Y = )", r"\1~", models, count=1, flags=re.S)
    assert wrong != models
    (tmp_path / "wrong.v").write_text(wrong)
    assert main(*check, "--verilog", "wrong.v").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lfsr",), "a netlist for timing needs a cell library, but target generic has none"),
        (
            ("lfsr", "--sweep", "block=8,16"),
            "--netlist works on units, not sweeps: leave out one of the two",
        ),
        (("lfsr", "dot", "--target", "sky130"), "--netlist is for one unit, not 2"),
        (("lfsr", "--liberty", "n.lib"), "output n.lib must not be the same file as input n.lib"),
        (("lfsr", "--liberty", "n.v"), "output n.v must not be the same file as input n.v"),
        (("lfsr", "--liberty", "n.sdc"), "output n.sdc must not be the same file as input n.sdc"),
    ],
)
def test_refused_by_the_command(
    main: Cli, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    for suffix in ("lib", "v", "sdc"):
        (tmp_path / f"n.{suffix}").write_text(sky130.liberty())
    netlist = "n.lib" if "n.lib" in arguments else "n.v"
    assert main("area", *arguments, "--netlist", netlist).refused().startswith(message)
    assert (tmp_path / "n.v").read_text() == sky130.liberty()
