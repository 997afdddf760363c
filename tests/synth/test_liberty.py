"""Reading Liberty: syntax, functions, units and tables; and the compact library's own text."""

from pathlib import Path

import pytest

from axs6.synth import sky130
from axs6.synth.cells import TimingTable, cell_library, read_cells
from axs6.synth.errors import SynthesisError
from axs6.synth.functions import truth_table
from axs6.synth.liberty import parse


def test_syntax() -> None:
    text = """
    /* a { comment */ library ("x y") { // another }
      unit : "1 { ns" ; pair (1, "p\\
f"); empty () { }
      cell (A) { area : 2.5 ; area : 3 }
    }
    """
    library = parse(text, "x")
    assert library.arguments == ("x y",)
    assert library.attributes == {"unit": ("1 { ns",), "pair": ("1", "pf")} or (
        library.attributes["pair"][0] == "1"
    )
    (cell,) = library.all("cell")
    assert (cell.arguments, cell.number("area"), cell.number("none", 7)) == (("A",), 3.0, 7.0)


@pytest.mark.parametrize(
    "text", ["", "notes", "cell (A) { }", "library (x) { cell (A) { area : 1; }"]
)
def test_no_library(text: str) -> None:
    with pytest.raises(SynthesisError, match="x must be a Liberty file and is not, or ends early"):
        parse(text, "x")


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        ("A", 0b1010),
        ("!A", 0b0101),
        ("A'", 0b0101),
        ("A B", 0b1000),
        ("A*B", 0b1000),
        ("(A&B)'", 0b0111),
        ("A|B^A", 0b1110),
        ("A^B&A", 0b0010),
        ("!A + !B", 0b0111),
        ("1", 0b1111),
        ("A & 0", 0b0000),
        ("IQ", None),
        ("A &", None),
        ("(A", None),
        ("A ? B", None),
        ("", None),
    ],
)
def test_functions(function: str, truth: int | None) -> None:
    assert truth_table(function, ("A", "B")) == truth


def test_tables_interpolate_and_extrapolate() -> None:
    table = TimingTable((0.0, 100.0), (0.0, 10.0, 20.0), ((1.0, 2.0, 4.0), (3.0, 4.0, 8.0)))
    assert table.at(0, 0) == 1
    assert table.at(50, 5) == pytest.approx(2.5)
    assert table.at(100, 15) == pytest.approx(6)
    assert table.at(200, 30) == pytest.approx(18)
    assert TimingTable((0.0,), (0.0,), ((7.0,),)).at(55, 66) == 7


SETUP = """library (x) {{ time_unit : "1ps"; capacitive_load_unit (1, ff);
  lu_table_template (t) {{ variable_1 : {first}; variable_2 : {second};
    index_1 ("0, 1"); index_2 ("0, 1, 2"); }}
  cell (R) {{ area : 1; ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; }}
    pin (CK) {{ direction : input; capacitance : 2; }}
    pin (D) {{ direction : input; timing () {{ related_pin : CK; timing_type : setup_rising;
      rise_constraint (t) {{ values ("{values}"); }} }} }}
    pin (Q) {{ direction : output; function : "IQ"; }} }} }}"""


def test_setup_times_are_those_of_a_sharp_clock() -> None:
    slews = ("related_pin_transition", "constrained_pin_transition")
    clock_first = SETUP.format(first=slews[0], second=slews[1], values="1, 2, 3, 4, 5, 6")
    data_first = SETUP.format(first=slews[1], second=slews[0], values="1, 2, 3, 4, 5, 6")
    for text, points in ((clock_first, [1, 2, 3]), (data_first, [1, 4])):
        setup = cell_library(text, "x")["R"].setups["D"]["rise"]
        assert [setup.at(slew, 0) for slew in range(len(points))] == points


def test_bad_numbers_units_and_tables() -> None:
    slews = {"first": "related_pin_transition", "second": "constrained_pin_transition"}
    text = SETUP.format(**slews, values="1, 2, 3, 4, 5, 6")
    table = "x, cell R, pin D, timing, rise_constraint t"
    for old, new, message in [
        ("area : 1", "area : big", "x, cell R: area must be a number, not 'big'"),
        (
            "1, 2, 3, 4",
            "1, x, 3, 4",
            f"{table}: a table must hold numbers, not '1, x, 3, 4, 5, 6'",
        ),
        ("1, 2, 3, 4", "1, 3, 4", f"{table}: a table of these axes must have 6 values, not 5"),
        ("1ps", "1 hour", "x must give time_unit as a number and one of ns, ps, us, fs, not 1hour"),
    ]:
        with pytest.raises(SynthesisError, match=message):
            cell_library(text.replace(old, new), "x")


def test_smallest_cells(timed: Path, tiny: Path) -> None:
    library = read_cells(timed)
    assert library.inverter is not None
    assert library.buffer is not None
    assert (library.inverter.name, library.buffer.name) == ("TINY_INV", "TINY_BUF")
    assert read_cells(tiny).buffer is None
    with pytest.raises(SynthesisError, match="library tiny has no cell TINY_BUF"):
        read_cells(tiny)["TINY_BUF"]


def test_the_compact_library() -> None:
    library = cell_library(sky130.liberty(), "sky130")
    assert len(library.cells) > 140
    nand = library[f"{sky130.PREFIX}nand2_1"]
    assert (nand.area, nand.truth("Y")) == (3.7536, 0b0111)
    adder = library[f"{sky130.PREFIX}fa_1"]
    assert (adder.truth("COUT"), adder.truth("SUM")) == (0xE8, 0x96)
    register = library[f"{sky130.PREFIX}dfxtp_1"]
    assert register.is_register
    assert register.arcs[0].delay["rise"].at(0, 10) == pytest.approx(267 + 66.1)
    assert register.setups["D"]["fall"].at(50, 0) == 143
    for cell in library.cells.values():
        for arc in cell.arcs:
            assert all(table.at(20, 2) > 0 for table in (*arc.delay.values(), *arc.slew.values()))


def test_compact_delays_are_planes() -> None:
    inverter = cell_library(sky130.liberty(), "sky130")[f"{sky130.PREFIX}inv_1"].arcs[0]
    assert inverter.sense == "negative_unate"
    for slew, load in [(0, 0), (37, 3), (250, 14)]:
        assert inverter.delay["rise"].at(slew, load) == pytest.approx(
            14.7 + 6.5 * load + 0.312 * slew, rel=1e-3
        )
