"""`axs6 regress --verilog`: a file in place of what a unit generates."""

from pathlib import Path
from typing import Any

import pytest

from axs6.hw.verilog import generate

RUN = ("regress", "expander", "--block", "8", "--items", "100", "--simulator", "icarus")


@pytest.fixture(scope="module")
def verilog() -> str:
    return generate("expander", block=8).verilog


def test_a_file_that_is_the_unit_passes(main: Any, verilog: str, tmp_path: Path) -> None:
    """In two files, as a netlist and the models of its cells are."""
    head, _, tail = verilog.rpartition("\nmodule ")
    paths = tmp_path / "a.v", tmp_path / "b.v"
    paths[0].write_text(f"{head}\n")
    paths[1].write_text(f"\nmodule {tail}")
    given = (x for path in paths for x in ("--verilog", str(path)))
    done = main(*RUN, "--test", "full_rate", *given)
    assert done.returncode == 0, done.stderr
    assert "pass expander block=8 stages=0" in done.stdout


def test_a_file_with_one_fault_fails(main: Any, verilog: str, tmp_path: Path) -> None:
    """`ready` that is always 1."""
    assert verilog.count("assign i_ready = o_ready;") == 1
    path = tmp_path / "wrong.v"
    path.write_text(verilog.replace("assign i_ready = o_ready;", "assign i_ready = 1;"))
    done = main(*RUN, "--test", "random_stalls", "--verilog", str(path))
    assert done.returncode == 1
    assert "fail expander block=8" in done.stdout.lower()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dot", "--block", "8", "--verilog", "{file}"), "must have the module axs6_dot"),
        (("dot", "--verilog", "none.v"), "none.v"),
        (("--verilog", "{file}"), "--verilog needs one unit, and its parameters without --all"),
        (("expander", "--all", "--verilog", "{file}"), "--verilog needs one unit"),
    ],
)
def test_other_arguments_are_one_line(
    main: Any, verilog: str, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "expander.v"
    path.write_text(verilog)
    done = main("regress", *(each.format(file=path) for each in arguments))
    assert done.returncode == 2
    assert said in done.stderr
