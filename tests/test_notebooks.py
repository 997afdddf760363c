"""Notebooks show objects as small tables, in which all text is escaped."""

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import axs6
from axs6.golden.accumulator import accumulator
from axs6.golden.formats import CATALOG
from axs6.studies.qsnr import QsnrRow, QsnrStudy
from axs6.synth.report import AreaReport, Part, Resources
from axs6.torch.report import Report, ReportRow

SMALL = 20_000
"""Characters that what is shown has at most."""

ATTACK = "<script>alert('&')</script>"


class Shown(HTMLParser):
    """The tags and the text of what is shown; elements must nest."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        text = value._repr_html_()
        assert len(text) < SMALL
        self.feed(text)
        assert not self.open
        assert set(self.tags) <= {"table", "tr", "th", "td", "div"}

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        assert all(name in ("style", "colspan") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def report(name: str) -> AreaReport:
    size = Resources({"gate_equivalents": 12.5, "flip_flops": 3}, {"NAND2": 7})
    return AreaReport(name, "generic", None, size, size, (Part(name, name, 2, size),), {})


def test_a_shown_object_that_is_not_escaped_is_found() -> None:
    class Bad:
        def _repr_html_(self) -> str:
            return f"<table><tr><td>{ATTACK}</td></tr></table>"

    with pytest.raises(AssertionError):
        Shown(Bad())


def test_blocks_show_their_format_shape_and_first_codes() -> None:
    blocks = axs6.encode(np.arange(64, dtype=np.float32).reshape(2, 32), format="mxfp4")
    cells = Shown(blocks).cells
    for expected in ("mxfp4", "2 x 32", "34", "uint8 (2, 1)"):
        assert expected in cells
    assert " ".join(map(str, blocks.codes[1, 0].tolist())) in cells


def test_large_arrays_are_shown_in_part() -> None:
    whole = axs6.encode(np.zeros((1000, 1024), np.float32), format="int8")
    assert "1000 x 1024" in Shown(whole).cells
    wide = axs6.encode(np.zeros(4096, np.float32), format="int4_float32_t128")
    assert any(cell.endswith(" ...") for cell in Shown(wide).cells)


@pytest.mark.parametrize("name", [*CATALOG])
def test_formats(name: str) -> None:
    cells = Shown(CATALOG[name]).cells
    assert name in cells
    assert str(CATALOG[name]) in cells
    assert "memory bits" in cells


def test_accumulators_mark_what_is_unlike_fp32() -> None:
    cells = Shown(accumulator("hopper_fp8")).cells
    assert cells[cells.index("reduction") + 1 : cells.index("reduction") + 3] == ["32", "*"]
    assert "hopper_fp8; * is unlike fp32" in cells
    assert "*" not in Shown(accumulator("fp32")).cells


def test_area_reports_and_names_in_them() -> None:
    shown = Shown(report(ATTACK))
    assert "12.5" in shown.cells
    assert f"{ATTACK} on generic" in shown.cells


def test_studies() -> None:
    study = QsnrStudy(1, 2, 3, [QsnrRow(ATTACK, 4.25, 18.123)], [])
    assert {ATTACK, "4.25", "18.12"} <= set(Shown(study).cells)
    long = QsnrStudy(1, 2, 3, [QsnrRow("a", 4.25, 18.123)] * 500, [])
    assert "and 440 more rows" in Shown(long).cells


def test_reports_of_converted_models() -> None:
    found = Report("rtl", [ReportRow(ATTACK, "emulated", 1, 2000, packed_bytes=10)])
    found.unconverted.append(ReportRow("b", "torch", 1, 3))
    cells = Shown(found).cells
    assert {ATTACK, "2,000", "total", "bits unlike rtl", "not converted, by torch"} <= set(cells)
