"""Clocks as users write them, and the SDC of a unit."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.constraints import constraints
from axs6.hw.core.clock import clock_text, read_clock
from axs6.hw.verilog import FIELDS, KEEP, PACKED, Generated, generate
from axs6.synth.netlist import compact_library, mapped_design

Cli = Callable[..., Any]

SMALL = ("block_dot", "--block", "8", "--stages", "1", "-o", "rtl", "--name", "made")


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("2.5ns", 2500.0),
        ("2500 ps", 2500.0),
        (".0025us", 2500.0),
        ("2500000fs", 2500.0),
        ("400MHz", 2500.0),
        ("0.4ghz", 2500.0),
        ("400000kHz", 2500.0),
    ],
)
def test_periods_and_frequencies(text: str, period: float) -> None:
    assert read_clock(text) == period


@pytest.mark.parametrize(
    "text",
    [
        "2.5",
        "ns",
        "0ns",
        "-1ns",
        "1e3ps",
        "2.5 s",
        "400Hz",
        "",
        "1/2ns",
        "9" * 400 + "ns",
        ".0000001fs",
    ],
)
def test_other_texts_are_refused(main: Cli, text: str) -> None:
    with pytest.raises(ValueError, match=r"^--clock must be a period .* not '" + re.escape(text)):
        read_clock(text)
    line = main("generate", *SMALL, f"--clock={text}").refused()
    assert line.endswith(f"such as 2.5ns or 400MHz, not {text!r}")


def test_text_of_a_clock() -> None:
    assert clock_text(2500) == "2.5 ns (400 MHz)"


def ports_of(line: str) -> list[str]:
    return line[line.index("{") + 1 : line.index("}")].split()


@pytest.mark.parametrize(
    ("unit", "ports"), [("dot", PACKED), ("dot", FIELDS), ("axis_dot", PACKED), ("axis_dot", KEEP)]
)
def test_every_port_is_constrained_once(unit: str, ports: str) -> None:
    made = generate(unit, block=8, ports=ports)
    text = constraints(made, 2500)
    assert "create_clock -name clk -period 2.5 [get_ports {clk}]\n" in text
    taken, given = (
        ports_of(line) for line in text.splitlines() if line.startswith(("set_input", "set_output"))
    )
    assert sorted([*taken, *given, "clk"]) == sorted(made.ports)
    inputs = re.findall(r"^  input (?:\[\d+:0\] )?(\w+);", own_module(made), re.M)
    assert sorted([*taken, "clk"]) == sorted(inputs)


def own_module(made: Generated) -> str:
    return made.verilog.split(f"module {made.module}(")[1].split("endmodule")[0]


def test_ports_of_a_bus() -> None:
    made = generate("axis_dot", block=8)
    (line,) = re.findall("^set_output_delay.*", constraints(made, 1000), re.M)
    assert ports_of(line)[:3] == ["s_axis_a_tready", "s_axis_b_tready", "m_axis_tvalid"]


def test_the_command_writes_it(main: Cli, tmp_path: Path) -> None:
    assert "sdc" not in main("generate", *SMALL).succeeded()
    said = main("generate", *SMALL, "--clock", "400MHz").succeeded()
    assert "wrote rtl/made.sdc\n" in said
    made = generate("block_dot", block=8, stages=1, name="made")
    assert (tmp_path / "rtl" / "made.sdc").read_text() == constraints(made, 2500)


@pytest.mark.skipif(shutil.which("sta") is None, reason="sta is not on PATH")
@pytest.mark.parametrize(("period", "met"), [(7000, True), (700, False)])
def test_opensta_reads_it(tmp_path: Path, period: int, met: bool) -> None:
    """On a netlist with the unit's ports; a library in nanoseconds, as the constraints are."""
    made = generate("block_dot", block=8, stages=1)
    design = mapped_design(made.verilog, made.module, target="sky130")
    files = {
        "n.lib": in_nanoseconds(compact_library()),
        "n.v": design.verilog,
        "n.sdc": constraints(made, period),
        "run.tcl": f"read_liberty n.lib\nread_verilog n.v\nlink_design {made.module}\n"
        "read_sdc n.sdc\ncheck_setup -verbose\nreport_worst_slack -digits 6\nexit\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = ["sta", "-no_init", "-no_splash", "-exit", "run.tcl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Warning" not in done.stdout + done.stderr
    slack = float(done.stdout.split()[-1])
    assert (slack > 0) == met
    # The constraints of the unit have no driving cells and no loads: the path is a little shorter.
    assert (period - design.delay_ps) / 1000 < slack < (period - 0.9 * design.delay_ps) / 1000


def in_nanoseconds(text: str) -> str:
    """The compact library with its times in nanoseconds."""

    def divided(found: re.Match[str]) -> str:
        return re.sub(r"\b(?<!_)[\d.]+", lambda number: f"{float(number[0]) / 1000:.9g}", found[0])

    head, *cells = text.split("  cell (", 1)
    assert head.count('time_unit : "1ps"') == 1
    head = re.sub(r"index_1 \(.*?\)", divided, head.replace('"1ps"', '"1ns"'))
    return "  cell (".join([head, *(re.sub(r"values \(.*?\)", divided, each) for each in cells)])
