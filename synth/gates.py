"""The generic gate library: gate equivalents and transistors of each gate and flip-flop.

Gate equivalents are areas over that of a two-input NAND, averaged over the smallest drive
strengths of two open 130 nm libraries (SkyWater sky130_fd_sc_hd, IHP sg13g2) and rounded to a
quarter. Transistors are those of the plain static CMOS circuit; a flip-flop is the
transmission-gate master and slave with its two clock inverters.
"""

import re
from typing import NamedTuple


class Size(NamedTuple):
    """Gate equivalents and transistors of one cell."""

    gate_equivalents: float
    transistors: int


_LOGIC = {
    "INV": (Size(0.75, 2), "!A"),
    "NAND2": (Size(1.0, 4), "!(A*B)"),
    "NOR2": (Size(1.0, 4), "!(A+B)"),
    "XOR2": (Size(2.25, 12), "A*!B+!A*B"),
    "XNOR2": (Size(2.25, 12), "A*B+!A*!B"),
    "MUX2": (Size(2.75, 12), "A*!S+B*S"),
    "MUXI2": (Size(2.5, 10), "!(A*!S+B*S)"),
    "AOI21": (Size(1.25, 6), "!(A*B+C)"),
    "OAI21": (Size(1.25, 6), "!((A+B)*C)"),
    "AOI22": (Size(1.75, 8), "!(A*B+C*D)"),
    "OAI22": (Size(1.75, 8), "!((A+B)*(C+D))"),
}

_STORAGE = (
    (re.compile(r"\$_DFF_[NP]_"), Size(5.5, 24)),
    (re.compile(r"\$_DFF_[NP]{2}[01]_"), Size(6.5, 28)),
    (re.compile(r"\$_DFFSR_[NP]{3}_"), Size(8.75, 32)),
    (re.compile(r"\$_DLATCH_[NP]_"), Size(4.0, 16)),
    (re.compile(r"\$_DLATCH_[NP]{2}[01]_"), Size(4.75, 18)),
)

LEGALIZE = (
    "dfflegalize -cell $_DFF_?_ 01 -cell $_DFF_???_ 01 -cell $_DFFSR_???_ 01 "
    "-cell $_DLATCH_?_ 01 -cell $_DLATCH_???_ 01"
)
"""The Yosys command that leaves only the storage cells which have a size here: enables and
synchronous resets become gates."""


def genlib() -> str:
    """Return the gates as a genlib library, in which ABC minimises the gate equivalents.

    Yosys turns the two constants, under these names, back into wires.
    """
    pins = "PIN * UNKNOWN 1 999 1 0 1 0"
    gates = [
        f"GATE {name} {size.gate_equivalents} Y={function}; {pins}"
        for name, (size, function) in _LOGIC.items()
    ]
    constants = ["GATE _const0_ 0 Y=CONST0;", "GATE _const1_ 0 Y=CONST1;"]
    return "\n".join([*gates, *constants, ""])


def verilog() -> str:
    """Return the gates as Verilog modules, in the words of their functions."""
    modules = []
    for name, (_, function) in _LOGIC.items():
        inputs = sorted(set(re.findall("[A-DS]", function)))
        expression = function.replace("*", "&").replace("+", "|").replace("!", "~")
        ports = ", ".join([*(f"input {pin}" for pin in inputs), "output Y"])
        modules.append(f"module {name}({ports}); assign Y = {expression}; endmodule")
    return "\n".join([*modules, ""])


def is_gate(name: str) -> bool:
    """Say whether a cell is a gate of this library (not storage)."""
    return name in _LOGIC


def is_flip_flop(name: str) -> bool:
    """Say whether a cell is an edge-triggered register of this library."""
    return name.startswith("$_DFF") and size(name) is not None


def size(name: str) -> Size | None:
    """Return what a gate or storage cell counts for, None where the library has no such cell."""
    if name in _LOGIC:
        return _LOGIC[name][0]
    return next((size for pattern, size in _STORAGE if pattern.fullmatch(name)), None)
