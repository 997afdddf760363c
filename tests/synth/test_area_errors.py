import os
import re
import tempfile
import time
from pathlib import Path

import pytest

from axs6.install import install_command
from axs6.synth import process
from axs6.synth.area import area
from axs6.synth.errors import SynthesisError

NAND = "module gate(input a, b, output y); assign y = ~(a & b); endmodule"
DELAY = "module delay(input clk, d, output reg q); always @(posedge clk) q <= d; endmodule"
MULTIPLIER = """
module multiply(input signed [255:0] a, b, output signed [511:0] y); assign y = a * b; endmodule
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the temporary folders of the runs go."""
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def fails(verilog: str, top: str, **options: object) -> str:
    with pytest.raises(SynthesisError) as caught:
        area(verilog, top, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_unknown_target() -> None:
    assert fails(NAND, "gate", target="asic") == (
        "target must be one of generic, sky130, ice40, ecp5, xc7, not 'asic'"
    )


def test_target_and_library(tiny: Path) -> None:
    assert fails(NAND, "gate", target="xc7", liberty=tiny) == (
        "a library and target 'xc7' cannot go together: give one"
    )


def test_top_not_found() -> None:
    assert fails(f"{NAND}\n{DELAY}", "top") == (
        "the Verilog must have the top module 'top'; it has gate, delay"
    )
    assert fails("", "top") == "the Verilog must have the top module 'top'; it has no module"


@pytest.mark.parametrize("top", ["", "a b", "a;b"])
def test_top_is_no_name(top: str) -> None:
    assert fails(NAND, top) == (
        f"the top module must be a name of letters, digits and _, not {top!r}"
    )


def test_verilog_with_an_error_quotes_yosys() -> None:
    message = fails("module gate(input a;\nendmodule", "gate")
    assert message.startswith("target generic: Yosys failed: design.v:1: ERROR: syntax error")


def test_missing_submodule() -> None:
    message = fails("module t(input a, output y); other u(a, y); endmodule", "t", target="xc7")
    assert message.startswith("target xc7: Yosys failed: ERROR: Module `\\other' referenced")


def test_tri_state_has_no_size() -> None:
    source = "module t(input a, en, output y); assign y = en ? a : 1'bz; endmodule"
    assert fails(source, "t", target="ice40") == "target ice40 has no cell for $_TBUF_"


def test_library_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.lib"
    assert fails(NAND, "gate", liberty=missing) == (
        f"cannot read the library {missing}: No such file or directory"
    )
    assert fails(NAND, "gate", liberty=tmp_path) == (
        f"cannot read the library {tmp_path}: Is a directory"
    )


def test_library_that_is_empty(tmp_path: Path) -> None:
    empty = tmp_path / "empty.lib"
    empty.touch()
    assert fails(NAND, "gate", liberty=empty) == (
        f"library {empty} must be a Liberty file and is not, or ends early"
    )


def test_library_that_is_no_liberty(tmp_path: Path) -> None:
    text = tmp_path / "notes.lib"
    text.write_text("these are notes\n")
    assert fails(NAND, "gate", liberty=text) == (
        f"library {text} must be a Liberty file and is not, or ends early"
    )


def test_library_without_flip_flop(without_flip_flop: Path) -> None:
    assert fails(DELAY, "delay", liberty=without_flip_flop) == (
        f"library {without_flip_flop} has no flip-flop or latch that can do $_DFF_P_, "
        "which the design needs"
    )


def test_library_without_gates(without_gates: Path) -> None:
    assert fails(NAND, "gate", liberty=without_gates) == (
        f"library {without_gates} must have an inverter and has none"
    )


def test_library_without_area(without_area: Path) -> None:
    source = "module t(input a, b, output y); assign y = ~(a | b); endmodule"
    assert fails(source, "t", liberty=without_area) == (
        f"library {without_area} must give an area for TINY_NOR2 and does not"
    )


INV_TIMING = ", cell TINY_INV, pin Y: timing from A must have"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"cell \(TINY_INV\)", "cell ()", ": each cell must have a name and one has none"),
        (
            r"pin \(A\)",
            "pin ()",
            ", cell TINY_INV: each pin must have a name and one has none",
        ),
        (
            r"lu_table_template \(grid\)",
            "lu_table_template ()",
            ": each lu_table_template must have a name and one has none",
        ),
        (
            "direction : input;",
            "",
            ", cell TINY_INV, pin A: direction must be one of input, output, inout, internal, "
            "not nothing",
        ),
        (
            "timing_sense : negative_unate",
            "timing_sense : weird",
            ", cell TINY_INV, pin Y, timing: timing_sense must be one of positive_unate, "
            "negative_unate, non_unate, not 'weird'",
        ),
        ("area : 1.0", "area : foo", ", cell TINY_INV: area must be a number, not 'foo'"),
        ("area : 1.0", "area : nan", ", cell TINY_INV: area must be a number, not 'nan'"),
        (
            "capacitance : 1",
            "capacitance : x",
            ", cell TINY_INV, pin A: capacitance must be a number, not 'x'",
        ),
        (
            r'values \("30,',
            'values ("x,',
            ", cell TINY_INV, pin Y, timing, cell_rise grid: a table must hold numbers, "
            "not 'x, 1030'",
        ),
        (
            r'index_1 \("0, 1000"',
            'index_1 ("1000, 1000"',
            ", cell TINY_INV, pin Y, timing, cell_rise grid: index_1 must be rising numbers, "
            "not '1000, 1000'",
        ),
        (
            r'function : "!A"',
            'function : "!(A"',
            ", cell TINY_INV, pin Y: function must be an expression of A, not '!(A'",
        ),
        (
            "cell_(rise|fall) .*? }",
            "",
            f"{INV_TIMING} cell_rise and cell_fall, and does not",
        ),
        ("cell_rise .*? }", "", f"{INV_TIMING} cell_rise, and does not"),
        (
            "(rise|fall)_transition .*? }",
            "",
            f"{INV_TIMING} rise_transition and fall_transition, and does not",
        ),
        ("fall_transition .*? }", "", f"{INV_TIMING} fall_transition, and does not"),
        (
            'related_pin : "B"',
            'related_pin : "C"',
            ", cell TINY_NAND2, pin Y must have timing from B, since other gates have delays, "
            "and has none",
        ),
        (r'function : "!A"', 'function : "A"', " must have an inverter and has none"),
        (
            r'function : "!\(A.B\)"',
            'function : "A^B"',
            " must have a gate of two inputs, NAND, NOR, AND or OR, and has none",
        ),
    ],
)
def test_library_with_a_fault(timed: Path, old: str, new: str, message: str) -> None:
    """Faults in all places that match, so that the first cell is named."""
    timed.write_text(re.sub(old, new, timed.read_text()))
    assert fails(NAND, "gate", liberty=timed) == f"library {timed}{message}"


@pytest.mark.parametrize("delays", [True, False])
def test_library_of_two_gates(timed: Path, tiny: Path, delays: bool) -> None:
    """ABC needs a third function, whatever it is."""
    path = timed if delays else tiny
    marked = re.sub(r"cell \((TINY_NOR2|TINY_BUF)\) {", r"\g<0> dont_use : true;", path.read_text())
    path.write_text(marked)
    assert fails(NAND, "gate", liberty=path) == (
        f"library {path} must have gates of three functions or more and has only those of "
        "TINY_INV and TINY_NAND2"
    )
    path.write_text(marked.replace("cell (TINY_NOR2) { dont_use : true;", "cell (TINY_NOR2) {"))
    assert area(NAND, "gate", liberty=path).total.cells == {"TINY_NAND2": 1}


def test_faults_of_cells_that_are_not_used_do_not_count(timed: Path) -> None:
    special = (
        "cell (SPECIAL) { area : 1; dont_use : true; pin (A) { direction : input; } pin (Y) { "
        'direction : output; function : "(A"; timing () { related_pin : "A"; } } }'
    )
    timed.write_text(timed.read_text().replace("cell (TINY_INV)", f"{special} cell (TINY_INV)"))
    assert area(NAND, "gate", liberty=timed).total.cells == {"TINY_NAND2": 1}


def test_gates_that_abc_does_not_use(tiny: Path) -> None:
    """Three-state gates do not count."""
    text = tiny.read_text()
    at = text.index("cell (TINY_NOR2)")
    old = 'function : "!(A+B)";'
    tiny.write_text(text[:at] + text[at:].replace(old, f'{old} three_state : "B";'))
    assert fails(NAND, "gate", liberty=tiny) == (
        f"library {tiny} must have gates of three functions or more; ABC found too few that it "
        "can use"
    )


def test_time_limit_ends_the_processes(folder: Path) -> None:
    assert fails(MULTIPLIER, "multiply", timeout=1.5) == (
        "target generic: Yosys did not finish within 1.5 s"
    )
    assert list(folder.iterdir()) == []
    assert _processes_in(folder) == []


def test_time_limit_ends_grandchildren(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nsleep 60 &\nsleep 60\n")
    python.chmod(0o755)
    monkeypatch.setattr(process.sys, "executable", str(python))
    assert "within 0.5 s" in fails(NAND, "gate", timeout=0.5)
    # They are killed with their group, but nobody waits for them.
    deadline = time.monotonic() + 10
    while _processes_in(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _processes_in(folder) == []


def test_worker_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -KILL $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(process.sys, "executable", str(python))
    assert fails(NAND, "gate") == (
        "target generic: Yosys was ended by SIGKILL, perhaps out of memory"
    )


def test_nothing_is_left_after_success_and_failure(folder: Path) -> None:
    area(NAND, "gate")
    fails("module gate(input a;\nendmodule", "gate")
    assert list(folder.iterdir()) == []
    assert _processes_in(folder) == []


def test_pyosys_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "find_spec", lambda name: None)
    assert fails(NAND, "gate") == f"area reports need pyosys: {install_command('synth')}"


def _processes_in(folder: Path) -> list[str]:
    """Processes whose working directory is below a folder, deleted or not."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd").startswith(str(folder)):
                found.append(entry.name)
        except OSError:
            continue
    return found
