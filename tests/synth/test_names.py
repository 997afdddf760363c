"""Names from files never become commands of the programs that read them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.sim.tools import ToolError
from axs6.synth.area import area
from axs6.synth.cells import cell_library
from axs6.synth.errors import SynthesisError
from axs6.synth.netlist import mapped_design
from axs6.synth.place import wrapper

HOSTILE = (
    "x; exec -- touch PWNED ;",
    "x\nexec -- touch PWNED",
    "[exec touch PWNED]",
    "}] [exec touch PWNED] {",
    "$env(HOME)",
    "$(touch PWNED)",
    "`touch PWNED`",
    "x#",
    "x*",
    "-x y",
    "x (); initial $system(0); y",
    "\\x",
    "x\0",
    "ü",
    "",
)
IN_A_LIBRARY = [name for name in HOSTILE if name]
"""The names of Liberty groups, in which an empty one is none."""


def quoted(name: str) -> str:
    """A name as Liberty has it in a string."""
    return '"' + name.replace("\\", "\\\\") + '"'


PLACES = ("cell (TINY_INV)", "cell (TINY_DFF)", "pin (A)", "pin (Y)", "pin (CK)")
"""A gate, which drives inputs, a register, and their pins."""


@pytest.mark.parametrize("name", IN_A_LIBRARY)
@pytest.mark.parametrize("place", PLACES)
def test_names_in_a_library_are_plain(place: str, name: str, tiny: Path) -> None:
    text = tiny.read_text()
    assert place in text
    with pytest.raises(SynthesisError, match=r"must be a name of letters, digits and _, not ") as e:
        cell_library(text.replace(place, f"{place.split()[0]} ({quoted(name)})"), "library f.lib")
    assert str(e.value).startswith("library f.lib, ")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("name", ["x\nexec touch PWNED", "x\rputs 1", "x\x1b[2J", "x\0"])
def test_a_librarys_own_name_stays_on_its_line(name: str, tiny: Path) -> None:
    text = tiny.read_text().replace("tiny", quoted(name), 1)
    with pytest.raises(SynthesisError, match=r"^f: the library's name must be printable, not "):
        cell_library(text, "f")


@pytest.mark.parametrize("name", ["sky130_fd_sc_hd__tt_025C_1v80", "a lib-1.0", "Bücherei"])
def test_a_librarys_own_name_need_not_be_plain(name: str, tiny: Path) -> None:
    text = tiny.read_text().replace("tiny", quoted(name), 1)
    assert cell_library(text, "f").name == name


@pytest.mark.parametrize("name", ["A[0]", "D[31]", "2INP", "_"])
def test_plain_names_are_taken(name: str, tiny: Path) -> None:
    text = tiny.read_text().replace("pin (A)", f"pin ({quoted(name)})")
    assert name in cell_library(text, "f").cells["TINY_INV"].inputs


@pytest.mark.parametrize("name", HOSTILE)
def test_the_top_module_is_plain(name: str) -> None:
    with pytest.raises(SynthesisError, match=r"^the top module must be a name of letters"):
        area("", name)


@pytest.mark.parametrize("name", HOSTILE)
def test_ports_of_a_placed_module_are_plain(name: str) -> None:
    ports: dict[str, Any] = {
        "clk": {"direction": "input", "bits": [2]},
        name: {"direction": "input", "bits": [3]},
    }
    with pytest.raises(SynthesisError, match=r"^a port of t must be a name of letters"):
        wrapper("t", ports)


def test_ports_of_a_netlist_are_plain() -> None:
    verilog = (
        "module t(input \\a}][exec(touch) , output y); assign y = ~\\a}][exec(touch) ; endmodule"
    )
    with pytest.raises(SynthesisError, match=r"^a port of t must be .*not 'a}\]\[exec\(touch\)'"):
        mapped_design(verilog, "t", target="sky130")


def test_a_cell_that_no_logic_is_mapped_to_runs_no_command(
    tiny: Path, tmp_path: Path, main: Callable[..., Any]
) -> None:
    cell = 'cell ("x; exec -- touch PWNED ;") { dont_use : true; area : 1; }'
    tiny.write_text(tiny.read_text().rstrip().removesuffix("}") + cell + "}")
    refused = main("area", "decoder", "--block", "8", "--liberty", str(tiny)).refused()
    assert "cell must be a name of letters, digits and _" in refused
    assert not list(tmp_path.rglob("PWNED"))


@pytest.mark.parametrize(
    "name",
    ["ü@home+x", "a b", "a;touch x;", "$(touch x)", "a#b", "a'b", 'a"b', "a`b", "a\\b", "a\nb"],
)
def test_a_folder_of_temporary_files_is_used_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    verilog = "module t(input a, b, output y); assign y = a & b; endmodule"
    if name == "ü@home+x":
        assert area(verilog, "t").total.figures["gates"] == 2
        return
    with pytest.raises(ToolError, match=r"^the folder of temporary files \(TMPDIR\) must "):
        area(verilog, "t")
