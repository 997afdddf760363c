"""The explorer's page as a user meets it, in chromium."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axs6
from axs6.golden.formats import CATALOG
from axs6.studies.explorer.measured import measured
from axs6.studies.explorer.page import page

Cli = Callable[..., Any]


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, address: str) -> Any:
    """The page in a window of its own, with what went wrong in it: errors, and anything fetched."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.wrong = []
    tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
    tab.on("console", lambda message: tab.wrong.append(message.text))
    tab.on("request", lambda request: tab.wrong.append(request.url))
    tab.goto(address)
    assert tab.wrong == [address]
    tab.wrong.clear()
    yield tab
    assert not tab.wrong
    tab.close()


def test_the_command_writes_the_page(main: Cli, tmp_path: Path) -> None:
    target = tmp_path / "new" / "explore.html"
    assert main("explore", "-o", str(target)).succeeded() == f"wrote {target}\n"
    assert target.read_text() == page()


def test_the_command_refuses_a_folder(main: Cli, tmp_path: Path) -> None:
    assert "cannot write to" in main("explore", "-o", str(tmp_path)).refused()


def test_what_is_measured_is_on_the_page() -> None:
    found = measured()
    assert len(found["costs"]) > 20
    assert {series["format"] for series in found["accumulators"]["series"]} >= {"mx9", "axs6"}
    points = {point["format"]: point for point in found["pareto"]["points"]}
    assert len(points) > 800
    assert points["fp8_e4m3"]["area"] == points["fp8_e4m3"]["memory"] == 1


def cells(tab: Any) -> list[list[str]]:
    script = "[...byId('table').tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent))"
    return tab.evaluate(script)


def test_values_by_keyboard_alone(opened: Any) -> None:
    opened.focus("#values")
    opened.keyboard.press("Control+a")
    opened.keyboard.type("1, -0.5 0.25\n0x3e20 nan 0x00000001")
    for _ in range(4):  # the example, its button, the file, the rounding
        opened.keyboard.press("Tab")
    opened.keyboard.press("ArrowRight")  # toward zero
    opened.keyboard.press("Tab")
    opened.keyboard.type("mxfp4")
    opened.keyboard.press("Tab")
    opened.keyboard.type("ceil")
    x = np.array([1, -0.5, 0.25, 0.15625, np.nan, 2**-149], np.float32)
    left = axs6.encode(x, "mxfp4-ceil", rounding="toward_zero", nonfinite="propagate")
    right = axs6.encode(x, "axs6", rounding="toward_zero", nonfinite="saturate")
    rows = cells(opened)
    for blocks, at, bits in ((left, 2, 4), (right, 5, 6)):
        codes = blocks.codes.ravel()[:6]
        assert [row[at] for row in rows] == [f"{code:0{bits}b}" for code in codes]
        decoded = [float(row[at + 1].replace("NaN", "nan")) for row in rows]
        assert np.array_equal(np.float32(decoded), axs6.decode(blocks).round(6), equal_nan=True)
    assert "255: NaN" in opened.inner_text("#panel-a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a value is needed"),
        ("1, 0x12", "value 2 must be a number, nan, inf, or bits such as 0x3f800000, not 0x12"),
        ("1 " * 257, "at most 256 values, not 257"),
    ],
)
def test_other_text_is_refused(opened: Any, text: str, message: str) -> None:
    opened.fill("#values", text)
    assert opened.inner_text("#message") == message
    opened.fill("#values", "1")
    assert opened.inner_text("#message") == ""


def test_a_string_is_a_format_too(opened: Any) -> None:
    opened.select_option("#format-b", "a string")
    opened.fill("#string-b", "int8_e8m0_t16s2o2")
    assert "Shift of 2 values: 2 bits" in opened.inner_text("#panel-b")
    opened.fill("#string-b", "int8_e8m0_t17")
    assert "must be a power of two, not 17" in opened.inner_text("#message")


def test_a_dropped_file_is_read(opened: Any) -> None:
    opened.set_input_files("#file", {"name": "x.csv", "mimeType": "text/csv", "buffer": b"1,2\n3"})
    opened.wait_for_function("byId('table').tBodies[0].rows.length === 3")
    drop = """() => {
        const data = new DataTransfer();
        data.setData("text", "4 5");
        byId("values").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
    }"""
    opened.evaluate(drop)
    assert [row[1] for row in cells(opened)] == ["4", "5"]


def test_points_say_what_they_cost_and_how_to_make_them(opened: Any) -> None:
    for axis in opened.locator("#axis option").all_inner_texts():
        opened.select_option("#axis", axis)
        assert opened.locator("#scatter circle").count() >= 6
    opened.select_option("#axis", "area a lane, µm²")
    assert opened.locator("#scatter circle").count() == len(measured()["costs"])
    opened.focus("#scatter circle[aria-label^='mx9:']")
    assert "axs6 generate block_dot --format mx9 -o mx9" in opened.inner_text("#point")
    opened.keyboard.press("Enter")
    assert opened.input_value("#format-b") == "mx9"


def test_points_of_the_study_are_reached_by_keyboard(opened: Any) -> None:
    found = measured()
    study = found["pareto"]
    points = sorted(study["points"], key=lambda x: (x["area"] * x["memory"], -x["qsnr_db"]))
    circles = opened.locator("#study circle")
    assert circles.count() == len(points)
    assert opened.locator("#study circle[tabindex='0']").count() == 1
    opened.focus("#study circle[tabindex='0']")
    at = next(i for i, x in enumerate(points) if not x["named"])
    for _ in range(at):
        opened.keyboard.press("ArrowRight")
    name = points[at]["format"]
    shown = opened.inner_text("#study-point")
    assert f"axs6 generate dot --format {name} --accumulator paper,reduction=64" in shown
    assert f"{points[at]['qsnr_db']:.2f} dB" in shown
    opened.keyboard.press("Enter")
    assert opened.input_value("#string-b") == name
    assert opened.inner_text("#message") == ""
    opened.focus("#study circle[aria-label^='mx9:']")
    (cost,) = (x["mac_fj"] for x in found["costs"] if x["format"] == "mx9")
    assert f"takes {cost:,} fJ" in opened.inner_text("#study-point")
    opened.select_option("#family", "AXS-6")
    family = [x for x in points if x["family"] == "AXS-6"]
    assert opened.locator("#study circle:not(.other)").count() == len(family) > 0
    for axis in opened.locator("#study-axis option").all_inner_texts():
        opened.select_option("#study-axis", axis)
        assert circles.count() == len(points)


def test_the_slider_shows_errors_of_accumulators(opened: Any) -> None:
    study = measured()["accumulators"]
    opened.focus("#fraction")
    opened.keyboard.press("End")
    most = study["fractions"][-1]
    assert opened.inner_text("#fraction-value") == str(most)
    (series,) = (
        each
        for each in study["series"]
        if (each["format"], each["accumulator"])
        == ("mxfp8_e4m3", study["series"][0]["accumulator"])
    )
    row = opened.inner_text("#line-table tbody tr:first-child").split("\t")
    assert row[1] == f"{series['error_db'][-1]:.1f} dB"


CONTRAST = """() => {
    const luminance = (color) => {
        const parts = color.match(/\\d+/g).map((x) => x / 255);
        const line = parts.map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
        return 0.2126 * line[0] + 0.7152 * line[1] + 0.0722 * line[2];
    };
    const ground = luminance(getComputedStyle(document.querySelector("article")).backgroundColor);
    return [...document.querySelectorAll("article *, .hint, td, th, .legend span")].map((x) => {
        const ink = luminance(getComputedStyle(x).color);
        return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    });
}"""
UNNAMED = """() => [...document.querySelectorAll("input, select, textarea, button")].filter((x) =>
    !(x.labels && x.labels.length) && !x.textContent.trim()).map((x) => x.id)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_is_readable(opened: Any, scheme: str, width: int) -> None:
    opened.emulate_media(color_scheme=scheme)
    opened.set_viewport_size({"width": width, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert min(opened.evaluate(CONTRAST)) >= 4.5
    assert opened.evaluate(UNNAMED) == []


def test_every_format_of_the_catalog_can_be_chosen(opened: Any) -> None:
    names = opened.locator("#format-a option").all_inner_texts()
    assert names == [*CATALOG, "a string"]
