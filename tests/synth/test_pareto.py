"""The Pareto study: its formats, its file, what it makes of measurements, and the command."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from axs6.golden.formats import ROW_FORMATS, block_format, name_of
from axs6.hw.dot.shape import multiplied
from axs6.hw.verilog import generate
from axs6.studies.pareto.data import Conditions, FormatRow, Measurement, read_rows, write_rows
from axs6.studies.pareto.picture import picture
from axs6.studies.pareto.results import frontier_of, knees_of, study_of
from axs6.studies.pareto.run import measure
from axs6.studies.pareto.space import BASELINE, space
from axs6.studies.pareto.tables import markdown
from axs6.synth.registered import registered

DATA = Path(__file__).parents[2] / "docs" / "data" / "pareto.jsonl"
SMALL = ("--reduction", "2", "--vectors", "5")
UNBUILDABLE = "uint8"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose cache all tests here share."""
    found = tmp_path_factory.mktemp("pareto")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXS6_CACHE", str(found / "cache"))
        yield found


@pytest.fixture(scope="module")
def conditions() -> Conditions:
    return Conditions.here(2, 5)


@pytest.fixture(scope="module")
def killed(folder: Path) -> Path:
    """The file of a run that was killed when it had measured one of two formats."""
    path = folder / "first.jsonl"
    command = [sys.executable, "-m", "axs6", "study", "pareto", "--data", str(path), *SMALL]
    started = subprocess.Popen([*command, "--format", UNBUILDABLE], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while not read_rows(path) and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(ValueError, match="another run of the study is writing"):
        measure(path, ["mx4"], Conditions.here(2, 5))
    started.kill()
    started.communicate()
    return path


@pytest.fixture(scope="module")
def measured(killed: Path, conditions: Conditions) -> Path:
    """The same file after the next run, of a format without hardware too."""
    before = read_rows(killed)
    assert list(before) == ["fp8_e4m3"]
    done: list[str] = []
    names = [*BASELINE, UNBUILDABLE]
    assert measure(killed, names, conditions, order=names, progress=noting(done)) == {}
    assert sorted(done) == ["fp8_e5m2", UNBUILDABLE]
    assert list(read_rows(killed)) == names
    assert read_rows(killed)["fp8_e4m3"] == before["fp8_e4m3"]
    return killed


def noting(done: list[str]) -> Callable[[str, int, int], None]:
    """Progress that notes the names."""
    return lambda name, *counts: done.append(name)


def test_formats_are_many_and_differ_and_those_with_names_come_first() -> None:
    names = [each.name for each in space()]
    formats = {block_format(name) for name in names}
    assert len(names) == len(formats) >= 840
    assert all(name_of(block_format(name)) == name for name in names)
    named = {name for name, fmt in ROW_FORMATS.items() if multiplied(fmt)}
    assert set(names[: len(named)]) == named


@pytest.mark.slow
def test_a_unit_between_registers_keeps_its_bits(tmp_path: Path) -> None:
    """The wrapper and the unit alone, two cycles apart, on the same random items."""
    parameters = {"format": "int8", "accumulator": "paper,reduction=4"}
    design = generate("dot", **parameters)
    wrapped = registered(design)
    assert wrapped.manifest["latency"] == design.manifest["latency"] + 2
    bench = f"""
module bench;
  reg clk = 0, rst = 1, valid = 0;
  reg [64:0] item;
  wire [31:0] value, own;
  wire ready, out, own_out;
  reg [32:0] late [0:1];
  integer k, compared = 0, different = 0;
  {wrapped.module} whole(clk, rst, valid, {{32'h7fc00000, item}}, out, value);
  {design.module} alone(.clk(clk), .rst(rst), .i_valid(valid), .i_ready(ready),
    .i_payload({{32'h3f800000, item}}), .o_valid(own_out), .o_ready(1'b1), .o_payload(own));
  initial begin
    for (k = 0; k < 400; k = k + 1) begin
      item = {{$random, $random, $random}}; valid = k > 3 && k % 5 != 0; rst = k < 3;
      #1;
      if (k > 8 && (late[1][32] !== out || (out && late[1][31:0] !== value)))
        different = different + 1;
      compared = compared + (k > 8 && out);
      clk = 1; late[1] = late[0]; late[0] = {{own_out, own}}; #1; clk = 0;
    end
    $display("%0d %0d", compared, different);
  end
endmodule
"""
    (tmp_path / "bench.v").write_text(wrapped.verilog + bench)
    subprocess.run(["iverilog", "-g2005", "-o", "bench", "bench.v"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "bench"], cwd=tmp_path, check=True, capture_output=True).stdout
    compared, different = map(int, said.split())
    assert compared > 100
    assert different == 0


def test_rows_come_back_and_other_lines_are_refused(tmp_path: Path, conditions: Conditions) -> None:
    rows = {
        "mx9": FormatRow("mx9", conditions, "1" * 16, "0.70", 100.5, 20.25, 9, 1500.0, 46.6),
        "mx4": FormatRow("mx4", conditions, reason="no hardware"),
    }
    path = tmp_path / "rows.jsonl"
    assert read_rows(path) == {}
    write_rows(path, rows, ["mx4"])
    assert list(read_rows(path).items()) == [("mx4", rows["mx4"]), ("mx9", rows["mx9"])]
    for wrong in ("{", "[]", '{"format": "mx9"}'):
        path.write_text(rows["mx9"].to_line() + wrong)
        with pytest.raises(ValueError, match="line 2"):
            read_rows(path)


@pytest.mark.slow
def test_a_run_measures_what_its_file_lacks(
    measured: Path, folder: Path, conditions: Conditions
) -> None:
    """The row that another version of a tool measured, and not those of this one."""
    rows = read_rows(measured)
    assert str(rows[UNBUILDABLE].reason).startswith("uint8 has zero points")
    path, others = folder / "second.jsonl", replace(conditions, pyosys="0.1")
    changed = {"fp8_e4m3": replace(rows["fp8_e4m3"], conditions=others, area=1e9)}
    write_rows(path, rows | changed, [])
    with pytest.raises(ValueError, match="relative to those of fp8_e4m3 and fp8_e5m2: measure"):
        study_of(read_rows(path), list(BASELINE), conditions)
    done: list[str] = []
    measure(path, list(rows), conditions, progress=noting(done))
    assert done == ["fp8_e4m3"]
    assert read_rows(path) == rows
    names = [UNBUILDABLE, *BASELINE]
    measure(path, names, conditions, again=True, most=1, progress=noting(done))
    assert done == ["fp8_e4m3", UNBUILDABLE]
    assert read_rows(path) == rows
    study = study_of(rows | {"mx9": replace(rows["fp8_e4m3"], conditions=others)}, [], conditions)
    assert (list(study.measurements), study.stale) == (list(BASELINE), ["mx9"])
    assert max(x.area for x in study.measurements.values()) == 1


@pytest.mark.slow
def test_what_a_lost_process_measured_is_measured_again(
    folder: Path, conditions: Conditions
) -> None:
    path, ended, killed = folder / "lost.jsonl", threading.Event(), []

    def kill() -> None:
        while not ended.wait(0.05):
            for stat in Path("/proc").glob("[0-9]*/stat"):
                fields = stat.read_text().rpartition(")")[2].split()
                text = (stat.parent / "cmdline").read_bytes()
                if int(fields[1]) == os.getpid() and b"spawn_main" in text:
                    killed.append(int(stat.parent.name))
                    os.kill(killed[0], signal.SIGKILL)
                    return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        assert measure(path, ["int4", "int6"], conditions, jobs=2) == {}
    finally:
        ended.set()
        thread.join()
    assert killed
    assert sorted(read_rows(path)) == ["int4", "int6"]


def _at(cost: float, qsnr_db: float) -> Measurement:
    return Measurement(f"{cost} {qsnr_db}", cost, 1.0, qsnr_db, 1000.0)


def test_the_frontier_has_what_nothing_beats_and_its_knees_where_it_turns() -> None:
    points = [_at(4, 30), _at(1, 10), _at(2, 22), _at(2, 21), _at(3, 20), _at(8, 40), _at(16, 44)]
    frontier = frontier_of(points)
    assert [(x.cost, x.qsnr_db) for x in frontier] == [(1, 10), (2, 22), (4, 30), (8, 40), (16, 44)]
    assert [x.cost for x in knees_of(frontier)] == [2, 8]
    assert knees_of(frontier[:2]) == []


def test_claims_and_laws_follow_from_the_rows(conditions: Conditions) -> None:
    def row(name: str, area: float, qsnr_db: float = 20.0) -> FormatRow:
        return FormatRow(name, conditions, "1", "0.70", area, 1.0, 1, 1000.0, qsnr_db)

    shapes = {"int8_e8m0_t16s8o1": 190, "int8_e8m0_t16s4o1": 195, "mx9": 200, "fp8_e4m3": 80}
    rows = {name: row(name, area) for name, area in shapes.items()}
    rows |= {"mx9": row("mx9", 200, 22.0), "fp8_e5m2": row("fp8_e5m2", 100)}
    study = study_of(rows, list(shapes), conditions)
    with_fp8, *others = [x for x in study.claims if x.cost is not None]
    assert (with_fp8.format, with_fp8.area, with_fp8.db) == ("mx9", 2.0, 2.0)
    assert with_fp8.cost == 2 * study.measurements["mx9"].memory == 2.5
    assert [(x.format, x.other, x.db) for x in others] == [("mx9", "int8_e8m0_t16s8o1", 2.0)]
    (law,) = study.laws
    assert (law.format, law.axis, law.points) == ("mx9", "k2", [(2, 2.0), (4, 1.95), (8, 1.9)])
    assert "k2 from 8 to 2" in markdown(study)


@pytest.mark.slow
def test_the_command_shows_the_file_and_writes_pages(
    main: Callable[..., Any], measured: Path, conditions: Conditions, tmp_path: Path
) -> None:
    asked = ("study", "pareto", "--data", str(measured), "--most", "0", *SMALL)
    out = main(*asked, "-o", str(tmp_path), "--json", str(tmp_path / "study.json")).succeeded()
    assert "2 formats measured" in out
    assert f"no hardware for {UNBUILDABLE}" in out
    study = json.loads((tmp_path / "study.json").read_text())
    assert [x["format"] for x in study["measurements"]] == [*BASELINE]
    assert "fp8_e4m3" in study["frontier"]
    assert (tmp_path / "pareto.md").read_text().startswith("# Pareto study")
    drawn = (tmp_path / "pareto.svg").read_text()
    ElementTree.fromstring(drawn)
    assert drawn == picture(study_of(read_rows(measured), [], conditions), space())
    other = main("study", "pareto", "--data", str(measured), "--most", "0").refused()
    assert "areas are relative to those of fp8_e4m3 and fp8_e5m2: measure them" in other


@pytest.mark.skipif(not DATA.exists(), reason="the sweep has not begun")
def test_the_data_in_the_docs_can_be_read() -> None:
    rows = read_rows(DATA)
    assert {row.conditions.reduction for row in rows.values()} == {64}
    assert {row.conditions.vectors for row in rows.values()} == {10_000}
    assert all((row.area is None) is (row.reason is not None) for row in rows.values())
