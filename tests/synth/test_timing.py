"""Timing of mapped netlists: by hand on small circuits, and beside ABC's own on a unit."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.verilog import generate
from axs6.synth.area import area
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Synthesis, flow
from axs6.synth.process import Limit, run_jobs
from axs6.synth.report import AreaReport
from axs6.synth.scripts import GOALS
from axs6.synth.targets import NETLIST
from axs6.synth.timing import library_timing

CHAIN = """
module chain(input a, output y); assign y = ~a; endmodule
"""
REGISTERED = """
module registered(input clk, a, output reg q);
  reg p;
  always @(posedge clk) begin p <= a; q <= ~p; end
endmodule
"""
LOOP = """
module loop(input set, hold, output y); assign y = ~(set & ~(hold & y)); endmodule
"""


def test_inverter_with_driver_and_load(timed: Path) -> None:
    """A buffer of 50 ps and 1 fF, then an inverter of 20 or 30 ps and 4 fF; 10 ps for each fF."""
    timing = area(CHAIN, "chain", liberty=timed).timing
    assert timing is not None
    assert timing.delay_ps == pytest.approx(50 + 10 + 30 + 40)
    assert (timing.levels, timing.start, timing.end) == (1, "a", "y")
    assert timing.fmax_mhz is None
    assert timing.model == (
        "delay tables of timed; inputs driven by TINY_BUF, outputs loaded with 4 fF"
    )


def test_registers_add_clock_to_output_and_setup(timed: Path) -> None:
    """100 ps and 1 fF to the inverter, 20 or 30 ps and 1 fF, 60 or 70 ps before the clock."""
    timing = area(REGISTERED, "registered", liberty=timed).timing
    assert timing is not None
    assert timing.delay_ps == pytest.approx(100 + 10 + 30 + 10 + 70)
    assert (timing.start, timing.end) == ("p", "q")
    assert timing.fmax_mhz == pytest.approx(1e6 / 220, abs=0.01)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "timing_type : rising_edge",
            "timing_type : clear",
            ", pin Q must have timing from its clock",
        ),
        ("timing_type : setup_rising", "timing_type : hold_rising", " must have a setup time"),
    ],
)
def test_a_register_without_timing_is_an_error(
    timed: Path, old: str, new: str, message: str
) -> None:
    """Where paths through it would be left out; a design without it needs none."""
    timed.write_text(timed.read_text().replace(old, new))
    with pytest.raises(SynthesisError) as caught:
        area(REGISTERED, "registered", liberty=timed)
    assert str(caught.value) == (
        f"library timed, cell TINY_DFF{message}, since gates have delays, and has none"
    )
    assert area(CHAIN, "chain", liberty=timed).timing is not None


def test_library_without_delays_has_levels(tiny: Path) -> None:
    timing = area(CHAIN, "chain", liberty=tiny).timing
    assert timing is not None
    assert (timing.delay_ps, timing.levels, timing.model) == (None, 1, "levels of cells")


def test_generic_levels() -> None:
    source = """
    module levels(input clk, input a, b, c, output reg q, output x, y);
      always @(posedge clk) q <= ~(q & y);
      assign x = ~(a & b), y = ~(x & c);
    endmodule
    """
    timing = area(source, "levels").timing
    assert timing is not None
    assert (timing.levels, timing.delay_ps, timing.end) == (3, None, "q")
    assert timing.start in ("a", "b")


def test_constant_outputs_have_no_path(timed: Path) -> None:
    source = "module t(input a, output y); assign y = 1; endmodule"
    for library in (timed, None):
        timing = area(source, "t", liberty=library).timing
        assert timing is not None
        assert (timing.levels, timing.start) == (0, None)


def test_a_loop_is_an_error(timed: Path) -> None:
    for library in (timed, None):
        with pytest.raises(SynthesisError, match="must have no combinational loop, and has one"):
            area(LOOP, "loop", liberty=library)


@pytest.mark.parametrize(
    "goal", [pytest.param(each, marks=[pytest.mark.slow] * (each != "area")) for each in GOALS]
)
def test_abc_agrees(goal: str, tmp_path: Path) -> None:
    made = generate("block_dot", block=8)
    plan = flow(Synthesis(target="sky130", optimise=goal))
    plan.write(tmp_path / "job", made.verilog, made.module, flatten=True)
    run_jobs([tmp_path / "job"], limit=Limit(300), source="sky130")
    said = re.findall(r"Delay = *([\d.]+) ps", (tmp_path / "job" / "log.txt").read_text())
    module = json.loads((tmp_path / "job" / NETLIST).read_text())["modules"][made.module]
    assert plan.cells is not None
    assert plan.around is not None
    timing = library_timing(module, plan.cells, plan.around, "")
    assert timing.delay_ps == pytest.approx(float(said[-1]), rel=0.03)


@pytest.mark.slow
def test_speed_is_faster_and_larger() -> None:
    made = generate("block_dot", block=8, format="mx4")

    def mapped(**options: Any) -> AreaReport:
        return area(made.verilog, made.module, breakdown=False, **options)

    small, fast = (mapped(target="sky130", optimise=goal) for goal in GOALS)
    assert small.timing is not None
    assert fast.timing is not None
    assert (small.optimise, fast.optimise) == ("area", "speed")
    assert fast.timing.delay_ps < 0.8 * small.timing.delay_ps  # type: ignore[operator]
    assert fast.total.figures["area"] > small.total.figures["area"]
    levels = [mapped(optimise=goal).timing for goal in GOALS]
    assert levels[1].levels < levels[0].levels  # type: ignore[union-attr, operator]


def test_speed_without_a_buffer(without_buffer: Path) -> None:
    made = generate("block_dot", block=8, format="mx4")
    report = area(
        made.verilog, made.module, liberty=without_buffer, optimise="speed", breakdown=False
    )
    assert report.timing is not None
    assert "inputs driven by sky130_fd_sc_hd__clkinv_1, outputs" in report.timing.model


def test_bad_goal() -> None:
    with pytest.raises(SynthesisError, match="optimise must be one of area, speed, not 'power'"):
        area(CHAIN, "chain", optimise="power")
    with pytest.raises(
        SynthesisError, match="--optimise is only for gate targets, not for target ice40"
    ):
        area(CHAIN, "chain", target="ice40", optimise="speed")
