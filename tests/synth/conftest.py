import re
from pathlib import Path

import pytest

from axs6.synth import sky130

_GATES = """
    cell (TINY_INV) {{ area : 1.0;
      pin (A) {{ direction : input; }}
      pin (Y) {{ direction : output; function : "!A"; }} }}
    cell (TINY_NAND2) {{ area : 2.0;
      pin (A) {{ direction : input; }} pin (B) {{ direction : input; }}
      pin (Y) {{ direction : output; function : "!(A*B)"; }} }}
    cell (TINY_NOR2) {{ area : {nor_area};
      pin (A) {{ direction : input; }} pin (B) {{ direction : input; }}
      pin (Y) {{ direction : output; function : "!(A+B)"; }} }}
"""
_FLIP_FLOP = """
    cell (TINY_DFF) { area : 9.0;
      ff (IQ, IQN) { next_state : "D"; clocked_on : "CK"; }
      pin (CK) { direction : input; clock : true; } pin (D) { direction : input; }
      pin (Q) { direction : output; function : "IQ"; } }
"""


def _write(path: Path, cells: str) -> Path:
    path.write_text(f"library (tiny) {{ {cells} }}\n")
    return path


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """INV 1.0, NAND2 2.0, NOR2 2.5 and DFF 9.0 units of area."""
    return _write(tmp_path / "tiny.lib", _GATES.format(nor_area=2.5) + _FLIP_FLOP)


@pytest.fixture
def without_flip_flop(tmp_path: Path) -> Path:
    return _write(tmp_path / "gates.lib", _GATES.format(nor_area=2.5))


@pytest.fixture
def without_gates(tmp_path: Path) -> Path:
    return _write(tmp_path / "registers.lib", _FLIP_FLOP)


@pytest.fixture
def without_area(tmp_path: Path) -> Path:
    return _write(tmp_path / "free.lib", _GATES.format(nor_area=0.0) + _FLIP_FLOP)


TABLES = """
  delay_model : table_lookup; time_unit : "1ps"; capacitive_load_unit (1, ff);
  lu_table_template (grid) { variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance; index_1 ("0, 1000"); index_2 ("0, 100"); }
"""


def _delay(rise: float, fall: float) -> str:
    """Delays in ps at no load, 10 ps for each fF, and slews of 10 ps and more."""

    def table(value: float) -> str:
        return f'(grid) {{ values ("{value}, {value + 1000}", "{value}, {value + 1000}"); }}'

    return (
        f"cell_rise {table(rise)} cell_fall {table(fall)} "
        'rise_transition (grid) { values ("10, 100", "10, 100"); } '
        'fall_transition (grid) { values ("10, 100", "10, 100"); }'
    )


def _timed_library() -> str:
    """Cells with plain delays in ps: INV 30 up and 20 down, BUF 50, NAND2 40 and 30, NOR2 50 and
    30, DFF 100 and a setup of 70 and 60."""
    gates = [
        ("TINY_INV", "!A", "negative_unate", "A", 1.0, 30, 20),
        ("TINY_NAND2", "!(A*B)", "negative_unate", "AB", 2.0, 40, 30),
        ("TINY_NOR2", "!(A+B)", "negative_unate", "AB", 2.5, 50, 30),
        ("TINY_BUF", "A", "positive_unate", "A", 1.5, 50, 50),
    ]
    cells = []
    for name, function, sense, pins, area, rise, fall in gates:
        inputs = " ".join(f"pin ({p}) {{ direction : input; capacitance : 1; }}" for p in pins)
        arcs = " ".join(
            f'timing () {{ related_pin : "{p}"; timing_sense : {sense}; {_delay(rise, fall)} }}'
            for p in pins
        )
        cells.append(
            f"cell ({name}) {{ area : {area}; {inputs} pin (Y) {{ direction : output; "
            f'function : "{function}"; {arcs} }} }}'
        )
    cells.append(
        'cell (TINY_DFF) { area : 9.0; ff (IQ, IQN) { next_state : "D"; clocked_on : "CK"; } '
        "pin (CK) { direction : input; clock : true; capacitance : 1; } "
        "pin (D) { direction : input; capacitance : 1; "
        'timing () { related_pin : "CK"; timing_type : setup_rising; '
        'rise_constraint (scalar) { values ("70"); } '
        'fall_constraint (scalar) { values ("60"); } } } '
        'pin (Q) { direction : output; function : "IQ"; timing () { related_pin : "CK"; '
        f"timing_type : rising_edge; timing_sense : non_unate; {_delay(100, 100)} }} }} }}"
    )
    return f"library (timed) {{ {TABLES} {' '.join(cells)} }}"


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    path = tmp_path / "timed.lib"
    path.write_text(_timed_library())
    return path


@pytest.fixture
def without_buffer(tmp_path: Path) -> Path:
    """The compact sky130 library without its buffers."""
    path = tmp_path / "unbuffered.lib"
    buffers = re.compile(r"  cell \(\w+__(clk)?buf_\d+\) \{.*?\n  \}\n", re.S)
    text, removed = buffers.subn("", sky130.liberty())
    assert removed > 10
    path.write_text(text)
    return path
