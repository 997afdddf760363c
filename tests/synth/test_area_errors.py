import os
import tempfile
import time
from pathlib import Path

import pytest

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
    assert fails(NAND, top) == f"the top module must be a Verilog name, not {top!r}"


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
    assert fails(NAND, "gate", liberty=without_gates).startswith(
        f"library {without_gates} must have an inverter and a two-input NAND, NOR, AND or OR"
    )


def test_library_without_area(without_area: Path) -> None:
    source = "module t(input a, b, output y); assign y = ~(a | b); endmodule"
    assert fails(source, "t", liberty=without_area) == (
        f"library {without_area} must give an area for TINY_NOR2 and does not"
    )


def test_time_limit_ends_the_processes(folder: Path) -> None:
    assert fails(MULTIPLIER, "multiply", timeout=1.5) == (
        "target generic: Yosys must finish within 1.5 s and has not"
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
        "target generic: Yosys was ended by SIGKILL, out of memory perhaps"
    )


def test_nothing_is_left_after_success_and_failure(folder: Path) -> None:
    area(NAND, "gate")
    fails("module gate(input a;\nendmodule", "gate")
    assert list(folder.iterdir()) == []
    assert _processes_in(folder) == []


def test_pyosys_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "find_spec", lambda name: None)
    assert fails(NAND, "gate") == "area reports need pyosys: pip install 'axs6[synth]'"


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
