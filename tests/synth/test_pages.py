import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axs6.hw.verilog import Generated
from axs6.synth.flow import Synthesis
from axs6.synth.pages import html, icicle, markdown, page, pictures
from axs6.synth.pages.conditions import telling, telling_growth
from axs6.synth.report import AreaReport, Part, Resources, Timing
from axs6.synth.sweep import Measured, Point, Result, Sweep
from axs6.synth.sweep.axes import Axes
from axs6.synth.sweep.growth import fit, growth, series
from axs6.synth.sweep.points import all_points

COMMAND = ["axs6", "area", "block_dot", "--sweep", "block=8,16,32", "--html", "<b>&\"'.html"]


def resources(area: float, flip_flops: int, **more: float) -> Resources:
    figures = {"gate_equivalents": area, "gates": 7, "flip_flops": flip_flops, **more}
    return Resources(figures, {"NAND2": 7})


def measured(point: Point, area: float, flip_flops: int = 0, **more: float) -> Measured:
    total = resources(area, flip_flops, **more)
    parts = tuple(
        Part(path, path, n, resources(area * share / n, 0))
        for path, n, share in (("a", 1, 0.25), ("b", 1, 0.7), ("b/lane[0-3]", 4, 0.5))
    )
    tools = {"pyosys": "0.70", "yosys": "0.70 <script>alert(1)</script>"}
    report = AreaReport("top", "generic", None, total, total, parts, tools)
    return Measured(Generated("top", "", {"latency": 3}), report)


def made(unit: str, axes: Axes, area: Callable[..., float | None], **more: float) -> Sweep:
    """A sweep whose areas are given by a function of the swept parameters; None is missing."""
    results = []
    for point in all_points([unit], axes, {}, Synthesis()):
        swept = {axis: point.value(axis) for axis in axes}
        size = area(**swept)
        found = None if size is None else measured(point, size, int(size) % 100, **more)
        results.append(Result(point, found, None if found else "no <room> | left"))
    return Sweep((unit,), axes, tuple(results))


GRID: Axes = {"stages": (0, 1, 2), "block": (8, 16, 32)}


def grid() -> Sweep:
    """One point missing; area 3 per value and 100 per stage."""
    return made(
        "block_dot", GRID, lambda stages, block: None if stages > block // 8 else 3 * block + stages
    )


class Reader(HTMLParser):
    """Checks that elements nest, and collects what a page says and refers to."""

    VOID = frozenset({"meta", "link", "img", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in {"href", "src", "xlink:href", "action"}:
                self.references.append(value)
            self.references += re.findall(r"url\((.*?)\)", value or "")

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_well_formed_and_needs_nothing_else() -> None:
    text = html(page(grid(), COMMAND))
    read = Reader(text)
    assert "script" not in read.tags
    assert "http" not in text
    assert "@import" not in text
    assert len(set(read.ids)) == len(read.ids)
    assert read.references
    assert {reference.removeprefix("#") for reference in read.references} <= set(read.ids)
    assert all(reference.startswith("#") for reference in read.references)


def test_html_shows_pictures_contents_tools_and_command() -> None:
    text = html(page(grid(), COMMAND))
    read = Reader(text)
    assert read.tags.count("svg") == read.tags.count("figure") == 5
    assert "prefers-color-scheme: dark" in text
    assert pictures.INK not in text
    assert "currentColor" in text
    assert read.text.count("Growth of block_dot on generic with block") >= 2
    assert "0.70 <script>alert(1)</script>" in read.text
    assert """axs6 area block_dot --sweep block=8,16,32 --html '<b>&"'"'"'.html'""" in read.text
    assert "no <room> | left" in read.text
    assert "stages=2 block=8" in read.text


def test_a_reader_that_checks_nesting_catches_a_broken_page() -> None:
    text = html(page(grid()))
    with pytest.raises((AssertionError, IndexError)):
        Reader(text.replace("</td>", "", 1))


def test_pages_are_the_same_whenever_they_are_made() -> None:
    assert html(page(grid(), COMMAND)) == html(page(grid(), COMMAND))
    assert markdown(page(grid()), "a.md") == markdown(page(grid()), "a.md")


def test_markdown_and_its_pictures() -> None:
    files = markdown(page(grid(), COMMAND), "what it takes.md")
    text = str(files.pop("what it takes.md"))
    shown = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert [name.replace("%20", " ") for name in shown] == list(files)
    assert len(files) == 5
    for svg in files.values():
        root = ET.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert pictures.INK not in str(svg)
    assert "| block\\_dot stages=2 block=8 | no \\<room\\> \\| left |" in text
    rows = [row for row in text.splitlines() if row.startswith("| 1 | 16 |")]
    assert rows == ["| 1 | 16 | 3 | 49.0 | 7 | 49 |"]


def test_pictures_say_what_they_show() -> None:
    found = grid()
    lines = series(found.results, found.axes, "block")
    svg = pictures.curves("block", lines, ["gate_equivalents", "flip_flops"])
    for words in ("area (gate equivalents)", "flip-flops", "block", "stages = 2", "16"):
        assert f">{words}</text>" in svg
    bars = pictures.bars(["a", "b"], [1.0, 3.0], "gate_equivalents")
    assert ">3.0</text>" in bars
    assert "<dc:" not in bars


def test_fitted_lines_have_their_equations() -> None:
    found = made("block_dot", {"block": (8, 16, 32)}, lambda block: 3 * block - 2)
    svg = pictures.growth([growth(found)[0]])
    assert ">3 · block \N{MINUS SIGN} 2</text>" in svg
    steep = made("block_dot", {"block": (8, 16, 32)}, lambda block: 24_341 * block)
    assert ">24,341 · block + 0</text>" in pictures.growth([growth(steep)[0]])
    many = [each for each in growth(grid()) if each.axis == "block"]
    assert ">stages = 0: 3 · block + 0</text>" in pictures.growth(many)


def test_an_icicle_has_each_part_beside_its_own() -> None:
    parts = {"a": 1.0, "a/b": 60.0, "a/b/c": 30.0, "a/b/d": 20.0, "a/e": 25.0}
    found = {box.name: box for box in icicle.boxes("top", 100.0, {**parts, "a": 90.0})}
    assert [(box.level, box.top, box.size) for box in found.values()] == [
        *((0, 0.0, 100.0), (1, 0.0, 90.0), (2, 0.0, 60.0)),
        *((3, 0.0, 30.0), (3, 30.0, 20.0), (2, 60.0, 25.0)),
    ]
    assert found["b"].colour == found["c"].colour == found["d"].colour
    assert len({found[name].colour for name in ("a", "b", "e")}) == 3
    assert [name for name, box in found.items() if box.whole] == ["top", "a", "b"]
    svg = icicle.icicle("top", 100.0, {"a": 90.0, "a/b": 1.0}, "gate_equivalents")
    assert ">a</text>" in svg
    assert ">90.0 (90.0%)</text>" in svg
    assert ">b" not in svg


def test_a_figure_that_is_not_known_is_drawn_under_its_name() -> None:
    axes: Axes = {"block": (8, 16, 32)}
    found = made("block_dot", axes, lambda block: block)
    results = tuple(
        Result(r.point, measured(r.point, 5, energy_pj=0.5 * r.point.parameters["block"]))
        for r in found.results
    )
    text = html(page(Sweep(found.units, axes, results)))
    assert ">energy pj</text>" in text
    assert ">energy pj</th>" in text


def test_targets_are_never_in_one_picture() -> None:
    axes: Axes = {"target": ("generic", "ecp5"), "rounding": ("nearest", "toward_zero")}
    found = made("encoder", axes, lambda target, rounding: 10 + len(rounding) + len(target))
    titles = [section.title for section in page(found).sections if section.level == 2]
    assert [title for title in titles if "compared" in title] == [
        "encoder on generic, compared",
        "encoder on ecp5, compared",
    ]


def test_a_single_unit_has_its_parts_and_cells() -> None:
    found = made("decoder", {}, lambda: 100.0)
    read = Reader(html(page(found)))
    assert "What decoder takes" in read.text
    assert "Submodules of decoder on generic" in read.text
    assert "lane[0-3]" in read.text
    assert "50.0%" in read.text
    assert "NAND2" in read.text


def test_a_sweep_without_any_result_has_a_page() -> None:
    read = Reader(html(page(made("block_dot", GRID, lambda stages, block: None))))
    assert read.text.count("no <room> | left") == 9
    assert "svg" not in read.tags


def mapped(
    target: str, axes: Axes, figures: Callable[[int], dict[str, float]], **options: Any
) -> Sweep:
    """A sweep over block whose points have these figures, and a timing that says what it is."""
    library: Path | None = options.get("liberty")
    results = []
    for point in all_points(["dot"], axes, {}, Synthesis(target=target, **options)):
        total = Resources(figures(point.parameters["block"]), {"NAND2": 1})
        report = AreaReport(
            *("top", target, str(library) if library else None, total, total, (), {"yosys": "1"}),
            optimise=point.options.optimise,
            adder_cells=point.options.adder_cells,
            timing=Timing(f"model of {target}", levels=point.parameters["block"] + 1),
        )
        results.append(Result(point, Measured(Generated("top", "", {"latency": 0}), report)))
    return Sweep(("dot",), axes, tuple(results))


BLOCKS: Axes = {"block": (8, 16, 32)}


def areas(block: int) -> dict[str, float]:
    return {"area": 2.5 * block + 1, "sequential_area": 0.0}


def test_pages_say_what_holds_for_all_points_of_a_design() -> None:
    found = mapped("sky130", BLOCKS, areas, optimise="speed", adder_cells=True)
    intro = "Figures of the flattened designs, for speed, adder cells; the latency is in cycles."
    text = str(markdown(page(found), "a.md")["a.md"])
    assert text.count(f"\n{intro}\n") == text.count("\ntiming: model of sky130\n") == 1
    read = Reader(html(page(found))).text
    assert read.count(intro) == read.count("timing: model of sky130") == 1


def test_a_goal_that_is_swept_is_said_by_its_axis_alone() -> None:
    found = mapped("sky130", {**BLOCKS, "optimise": ("area", "speed")}, areas)
    text = str(markdown(page(found), "a.md")["a.md"])
    assert "\nFigures of the flattened designs; the latency is in cycles.\n" in text
    assert "| block | optimise | latency | area µm² | seq. area µm² | levels |" in text


def test_areas_have_the_unit_of_their_target() -> None:
    files = markdown(page(mapped("sky130", BLOCKS, areas)), "a.md")
    text = str(files["a.md"])
    assert "\n| block | latency | area µm² | seq. area µm² | levels |\n" in text
    assert "\n| area (µm²) |  | 3 | 0.974 | 1 | 2.5 | 0.00% |\n" in text
    drawn = [str(svg) for name, svg in files.items() if name != "a.md"]
    assert len(drawn) == 2
    assert all(">area (µm²)</text>" in svg for svg in drawn)


def test_areas_of_a_library_are_in_units_of_it() -> None:
    files = markdown(page(mapped("generic", BLOCKS, areas, liberty=Path("lib/a.lib"))), "a.md")
    text = str(files["a.md"])
    assert "\n| block | latency | area | seq. area | levels |\n" in text
    assert "\narea: units of a.lib\n" in text
    assert "\n| area (units of a.lib) |  | 3 |" in text
    drawn = [str(svg) for name, svg in files.items() if name != "a.md"]
    assert all(">area (units of a.lib)</text>" in svg for svg in drawn)


def test_levels_are_drawn_where_they_are_the_only_timing() -> None:
    only = mapped("generic", BLOCKS, lambda block: {"gate_equivalents": block, "gates": block})
    assert telling(only.results) == ["gate_equivalents", "levels"]
    assert [each.figure for each in telling_growth(only)] == ["gate_equivalents", "levels"]
    read = Reader(html(page(only)))
    assert read.text.count("cells in the longest path") == 2
    timed = mapped("sky130", BLOCKS, lambda block: {"area": block, "delay_ps": 9.0 * block})
    assert telling(timed.results) == ["area", "delay_ps"]
    assert "cells in the longest path" not in html(page(timed))


def test_fit_of_a_line_and_a_power() -> None:
    line = fit([1, 2, 4, 8], [3 + 5 * x for x in (1, 2, 4, 8)])
    assert line is not None
    assert (line.intercept, line.slope) == pytest.approx((3, 5))
    assert line.deviation == pytest.approx(0)
    square = fit([1, 2, 4], [7 * x**2 for x in (1, 2, 4)])
    assert square is not None
    assert square.exponent == pytest.approx(2)
    assert square.deviation is not None
    assert square.deviation > 0.5


def test_fit_needs_three_places_and_a_change() -> None:
    assert fit([1, 2], [1, 2]) is None
    assert fit([1, 1, 2], [1, 2, 3]) is None
    assert fit([1, 2, 3], [1, np.nan, 2]) is None
    assert fit([1, 2, 3], [4, 4, 4]) is None


def test_fit_with_zeros() -> None:
    found = fit([0, 1, 2], [0, 1, 2])
    assert found is not None
    assert (found.exponent, found.deviation) == (None, None)
    at_zero = fit([0, 1, 2], [1, 2, 3])
    assert at_zero is not None
    assert at_zero.exponent is None
    assert at_zero.deviation == pytest.approx(0)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1 / 3, 7.7, 3e5])
def test_rounding_beside_a_fit_is_0(scale: float) -> None:
    xs = [1, 3, 7, 14]
    proportional = fit(xs, [scale * x for x in xs])
    assert proportional is not None
    assert (proportional.intercept, proportional.deviation) == (0, 0)
    level = fit([1, 2, 3], [scale, 2 * scale, scale])
    assert level is not None
    assert level.slope == 0
    power = fit([1, 2, 4], [scale, 2 * scale, scale])
    assert power is not None
    assert power.exponent == 0


def test_a_small_value_of_a_fit_is_no_rounding() -> None:
    found = fit([1, 2, 3], [1e6 * x + 1e-3 for x in (1, 2, 3)])
    assert found is not None
    assert found.intercept == pytest.approx(1e-3, rel=1e-3)


def test_growth_with_the_size_of_a_tile() -> None:
    axes: Axes = {"rows": (1, 2, 4), "columns": (1, 2)}
    found = growth(made("matmul", axes, lambda rows, columns: 10.0 * rows * columns))
    area = [each for each in found if each.figure == "gate_equivalents"]
    assert [(each.axis, each.line.name) for each in area] == [
        ("rows", "columns = 1"),
        ("rows", "columns = 2"),
        ("rows x columns", ""),
    ]
    assert area[-1].line.xs == (1, 2, 2, 4, 4, 8)
    assert area[-1].fit.slope == pytest.approx(10)
    assert area[-1].to_dict()["exponent"] == pytest.approx(1)
