from rich.console import Console

from axs6.synth.report import AreaReport, Part, Resources, Timing
from axs6.synth.tables import render

LANE = Resources({"luts": 100, "flip_flops": 2}, {"SB_DFF": 2, "SB_LUT4": 100})
WHOLE = Resources({"luts": 4000, "flip_flops": 64}, {"SB_DFF": 64, "SB_LUT4": 4000})
TOOLS = {"pyosys": "0.70", "yosys": "0.70 (abc)"}


def shown(report: AreaReport, latency: int | None = None) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(render(report, latency))
    return capture.get()


def printed(parts: tuple[Part, ...]) -> str:
    return shown(AreaReport("axs6_dot", "ice40", None, WHOLE, WHOLE, parts, TOOLS))


def test_totals_and_cells() -> None:
    text = printed(())
    assert "axs6_dot on ice40" in text
    assert "Yosys 0.70 (abc)" in text
    assert "4,000" in text
    assert "SB_LUT4" in text
    assert "By submodule" not in text


def test_parts_are_indented_and_brackets_kept() -> None:
    rows = [row.rstrip() for row in printed((Part("a/lane[0-31]", "lane", 32, LANE),)).splitlines()]
    row = next(row for row in rows if "lane[0-31]" in row)
    assert row.split() == ["lane[0-31]", "32", "100", "2", "80.0%"]
    assert row.index("lane") - next(r for r in rows if " axs6_dot  " in r).index("axs6") == 4


def on_cells(target: str, library: str | None) -> AreaReport:
    """A report of cells of a library, with half of its area below one submodule."""
    whole = Resources({"area": 12.5, "sequential_area": 2.0, "flip_flops": 1}, {"INV": 9})
    half = Part("a", "a", 1, Resources({"area": 6.25, "sequential_area": 0.0}, {"INV": 5}))
    timing = Timing("tables of delays", delay_ps=10.0, levels=2)
    return AreaReport("top", target, library, whole, whole, (half,), TOOLS, timing=timing)


def test_areas_have_the_unit_of_the_target() -> None:
    report = on_cells("sky130", None)
    assert report.to_dict()["area_unit"] == "µm²"
    lines = [" ".join(line.split()) for line in shown(report).splitlines()]
    assert lines[0] == "top on sky130, flattened, for area"
    assert "area µm² seq. area µm² FFs delay ps levels" in lines
    assert "part count area µm² seq. area µm² FFs share" in lines
    assert "Each row is one instance; the share is that of all instances in the area." in lines
    assert not any(line.startswith("area: ") for line in lines)


def test_areas_of_a_library_name_it() -> None:
    report = on_cells("liberty", "cells/fast.lib")
    assert report.to_dict()["area_unit"] == "units of fast.lib"
    lines = [" ".join(line.split()) for line in shown(report, 3).splitlines()]
    assert lines[0] == "top on cells/fast.lib, flattened, for area"
    assert "area seq. area FFs delay ps levels" in lines
    first = lines.index("timing: tables of delays")
    assert lines[first : first + 3] == [
        "timing: tables of delays",
        "area: units of fast.lib",
        "latency: 3 cycles",
    ]


def test_other_targets_have_the_unit_in_the_name_of_the_figure() -> None:
    units = [on_cells(target, None).area_unit for target in ("generic", "ice40")]
    assert units == ["gate equivalents", None]


def test_latency_in_cycles() -> None:
    report = on_cells("sky130", None)
    lines = {latency: shown(report, latency).splitlines() for latency in (None, 0, 1)}
    assert not any(line.startswith("latency") for line in lines[None])
    assert "latency: 0 cycles" in lines[0]
    assert "latency: 1 cycle" in lines[1]
