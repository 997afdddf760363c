"""A clock that a design is held to: the goal that meets it, its slack, and OpenSTA's."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.verilog import Generated, generate
from axs6.synth import closing, process
from axs6.synth.area import area
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Synthesis, flow
from axs6.synth.netlist import mapped_design
from axs6.synth.opensta import timing_tools
from axs6.synth.report import AreaReport
from axs6.synth.scripts import FOR_CLOCK, GOALS, abc_scripts

Cli = Callable[..., Any]

UNIT = ("block_dot", "--block", "8", "--format", "int4", "--stages", "1", "--target", "sky130")

WITH_OPENSTA = pytest.mark.skipif(shutil.which("sta") is None, reason="sta is not on PATH")


@pytest.fixture(scope="module")
def unit() -> Generated:
    return generate("block_dot", block=8, format="int4", stages=1)


@pytest.fixture(scope="module")
def found(unit: Generated) -> Callable[..., AreaReport]:
    """Reports on sky130 by their options, each measured once."""
    known: dict[str, AreaReport] = {}

    def measure(**options: Any) -> AreaReport:
        key = repr(options)
        if key not in known:
            given = {"target": "sky130", "breakdown": False, **options}
            known[key] = area(unit.verilog, unit.module, **given)
        return known[key]

    return measure


def delay(report: AreaReport) -> float:
    assert report.timing is not None
    assert report.timing.delay_ps is not None
    return report.timing.delay_ps


def size(report: AreaReport) -> float:
    return report.total.figures["area"]


@pytest.mark.slow
def test_the_smallest_that_meets_it(found: Callable[..., AreaReport]) -> None:
    """Slower clocks take the design for area, faster ones larger designs, up to that for speed."""
    small, fast = (found(optimise=goal) for goal in GOALS)
    assert found(clock=delay(small)).optimise == "area"
    between = found(clock=round((delay(small) + delay(fast)) / 2))
    assert between.optimise in FOR_CLOCK[1:-1]
    assert size(small) < size(between) < size(fast)
    for report in (found(clock=delay(small)), between, found(clock=delay(fast))):
        assert report.timing is not None
        assert report.timing.slack_ps == pytest.approx(report.timing.clock_ps - delay(report))
        assert report.timing.slack_ps >= 0
    assert size(found(clock=delay(fast))) <= size(fast)


@pytest.mark.slow  # the command misses a clock in every run
def test_a_clock_that_cannot_be_met(found: Callable[..., AreaReport]) -> None:
    missed = found(clock=100)
    assert missed.timing is not None
    assert missed.optimise == "speed"
    assert missed.timing.slack_ps == 100 - delay(found(optimise="speed"))


def test_a_goal_of_the_user_is_heeded(found: Callable[..., AreaReport]) -> None:
    report = found(clock=100, optimise="area")
    assert report.optimise == "area"
    assert delay(report) == delay(found(optimise="area"))


@pytest.mark.slow
def test_without_delays_the_first_goal_would_do(
    found: Callable[..., AreaReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The choice rests on the slack of each design."""
    fast = delay(found(optimise="speed"))
    timing = closing.timing
    monkeypatch.setattr(
        closing, "timing", lambda plan, module: timing(plan, {**module, "cells": {}})
    )
    report = found(clock=fast, timeout=500)
    assert report.optimise == "area"
    assert delay(report) > fast


def test_scripts() -> None:
    sized = abc_scripts("sized", timed=True, adders=False, period=1000)
    assert "upsize -D 900\ndnsize -D 900\n" in sized[0]
    for goal in GOALS:
        with_clock = abc_scripts(goal, timed=True, adders=False, period=1000)
        assert with_clock == abc_scripts(goal, timed=True, adders=False)
    with pytest.raises(SynthesisError, match="optimise must be one of area, speed, not 'sized'"):
        abc_scripts("sized", timed=True, adders=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "generic"}, "a clock needs delays and a buffer, but target generic lacks them"),
        ({"target": "ecp5"}, "a clock on target ecp5 needs --fmax: its delays are routed"),
    ],
)
def test_targets_without_delays(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SynthesisError, match=message):
        flow(Synthesis(clock=1000, **options))


def test_libraries_without_buffers_or_delays(without_buffer: Path, tiny: Path) -> None:
    for liberty in (without_buffer, tiny):
        with pytest.raises(SynthesisError, match="a clock needs delays and a buffer, but library"):
            flow(Synthesis(clock=1000, liberty=liberty))


@WITH_OPENSTA
@pytest.mark.parametrize("clock", [None, 4000.0, pytest.param(600.0, marks=pytest.mark.slow)])
def test_opensta_on_the_constraints_of_the_netlist(unit: Generated, clock: float | None) -> None:
    """Without a clock the period leaves a margin; with one it is the user's, met or not."""
    options = {"optimise": "area"} if clock is None else {"clock": clock}
    design = mapped_design(unit.verilog, unit.module, target="sky130", **options)
    slack = design.period_ps - timing_tools(design).opensta_ps
    expected = design.period_ps - design.delay_ps
    assert expected <= slack < expected + 60
    assert (slack >= 0) == (clock != 600)
    assert f"a slack of {expected:+.10g} ps" in design.constraints
    if clock is not None:
        assert design.period_ps == clock
        assert f"-period {clock:g} [get_ports {{clk}}]" in design.constraints


def test_command(main: Cli, tmp_path: Path) -> None:
    done = main("area", *UNIT, "--clock", "200MHz", "--netlist", "n.v", "--json", "f.json")
    said = done.succeeded()
    (report,) = json.loads((tmp_path / "f.json").read_text())
    assert report["timing"]["clock_ps"] == 5000
    slack = report["timing"]["slack_ps"]
    line = f"pass block_dot: clock of 5 ns (200 MHz) met with {slack:,.0f} ps to spare"
    assert said.splitlines()[-1] == line
    assert "The clock is 5 ns (200 MHz), as asked for." in (tmp_path / "n.sdc").read_text()


def test_command_with_a_clock_that_is_missed(main: Cli, tmp_path: Path) -> None:
    swept = ("--sweep", "stages=1,2", "--json", "f.json")
    given = [each for each in UNIT if each not in ("--stages", "1")]
    done = main("area", *given, *swept, "--optimise", "area", "--clock", "100ps")
    assert done.returncode == 1
    points = json.loads((tmp_path / "f.json").read_text())["points"]
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    for point, line in zip(points, lines, strict=True):
        slack, stages = point["timing"]["slack_ps"], point["parameters"]["stages"]
        head = f"FAIL block_dot stages={stages}: clock of 0.1 ns (10000 MHz) missed by "
        assert line.startswith(f"{head}{-slack:,.0f} ps; ")
        assert line.endswith("MHz) can be met")
    line = main("area", *UNIT, "--clock", "fast").refused()
    assert line.startswith("--clock must be a period in fs, ps, ns or us or a frequency")


def test_the_run_that_meets_the_clock_is_the_reported_one(
    unit: Generated, found: Callable[..., AreaReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    period = 0.99 * delay(found(optimise="area"))
    runs: list[Path] = []
    start = process._start

    def counted(module: str, folder: Path, stack: Any) -> Any:
        runs.append(folder)
        return start(module, folder, stack)

    monkeypatch.setattr(process, "_start", counted)
    report = area(unit.verilog, unit.module, target="sky130", breakdown=False, clock=period)
    assert report.optimise in FOR_CLOCK[1:-1]
    assert [folder.name for folder in runs] == [
        f"flat-{goal}" for goal in FOR_CLOCK[: FOR_CLOCK.index(report.optimise) + 1]
    ]
