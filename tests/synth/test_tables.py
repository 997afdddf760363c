from rich.console import Console

from axs6.synth.report import AreaReport, Part, Resources
from axs6.synth.tables import render

LANE = Resources({"luts": 100, "flip_flops": 2}, {"SB_DFF": 2, "SB_LUT4": 100})
WHOLE = Resources({"luts": 4000, "flip_flops": 64}, {"SB_DFF": 64, "SB_LUT4": 4000})
TOOLS = {"pyosys": "0.70", "yosys": "0.70 (abc)"}


def printed(parts: tuple[Part, ...]) -> str:
    report = AreaReport("axs6_dot", "ice40", None, WHOLE, WHOLE, parts, TOOLS)
    console = Console(width=80)
    with console.capture() as capture:
        console.print(render(report))
    return capture.get()


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
