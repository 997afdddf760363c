from pathlib import Path

import pytest

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
