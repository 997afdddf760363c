"""Places where a design drops the highest bits of a result, and the design cut open there.

Amaranth makes each operator wide enough for its result. Bits are lost only where that is assigned
to something narrower or sliced, and then nothing reads the highest bits of the operator.
"""

import json
import linecache
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axs6.hw.core.rtlil import convert
from axs6.proof.netlists import Design, operator_design
from axs6.sim.batch.netlist import TOP, flattened

KINDS = ("add", "sub", "mul", "neg", "shl", "shr", "sshr", "shift", "shiftx", "divfloor")
"""Yosys's cells of operators whose highest bits are more than those of their operands."""

BITWISE = {"$and", "$or", "$xor", "$xnor", "$not", "$pos", "$mux", "$pmux"}
"""Cells in which a bit of an operand is read only if the bit in its place of the result is."""

TO_OPERATORS = "hierarchy -top top\nproc\nflatten\nopt_clean -purge\nwrite_json -noscopeinfo\n"

MARK = re.compile(r"#\s*truncates:\s*(\S.*)$")
"""The comment that gives the reason why an operator on its line, or the next one, loses bits."""

FULL = "result_before_cut"
"""Prefix of the outputs of a design that is cut open which have these results."""

_PACKAGE = Path(__file__).parents[1]

Bit = int | str


@dataclass(frozen=True)
class Place:
    """An operator in the source whose highest bits nothing reads, in all copies that a unit has.

    Args:
        file: of the source. line: in it. kind: of the operator, in Yosys's words. kept: bits that
        something reads, from the lowest. width: bits of the result.
    """

    file: str
    line: int
    kind: str
    kept: int
    width: int

    @property
    def source(self) -> str:
        """File, from the package on, and line."""
        path = Path(self.file)
        inside = path.is_relative_to(_PACKAGE)
        return f"{path.relative_to(_PACKAGE.parent) if inside else path.name}:{self.line}"

    @property
    def reason(self) -> str:
        """Why bits are lost here, as a comment in the source says; nothing if there is none."""
        above = linecache.getline(self.file, self.line - 1).strip()
        for text in (linecache.getline(self.file, self.line), above if above[:1] == "#" else ""):
            if found := MARK.search(text.strip()):
                return found[1]
        return ""


@dataclass(frozen=True)
class Copy:
    """One operator of a place: a number for names of ports, and the signal that takes its result.

    In the design that is cut open, the output `full` has what the operator gives, and the input
    `cut` has what others read in its place. `bits` are those of its result in the uncut netlist.
    """

    number: int
    signal: str
    bits: tuple[Bit, ...]

    @property
    def full(self) -> str:
        """Name of the output."""
        return f"{FULL}{self.number}"

    @property
    def cut(self) -> str:
        """Name of the input."""
        return f"cut{self.number}"


@dataclass(frozen=True)
class Opened:
    """A design cut open at all its places, and its netlist before that."""

    design: Design
    places: Mapping[Place, Sequence[Copy]]
    netlist: str

    def with_result(self, copy: Copy) -> str:
        """The netlist before that, whose output `o_payload` is the result of one operator."""
        whole = json.loads(self.netlist)
        whole["modules"][TOP]["ports"]["o_payload"]["bits"] = copy.bits
        return json.dumps(whole)


def opened(component: Any, seconds: float) -> Opened:
    """A component cut open at all places where it drops the highest bits of a result.

    Args:
        component: with streams. seconds: limit of Yosys.

    Raises:
        SynthesisError, ToolError: Yosys is missing, fails, or takes too long.
    """
    text = flattened(convert(component, TOP, sources=True), TO_OPERATORS)
    netlist = json.loads(text)
    module = netlist["modules"][TOP]
    copies: dict[Place, list[Copy]] = defaultdict(list)
    free = 1 + max(bit for net in module["netnames"].values() for bit in _numbers(net["bits"]))
    names = _names(module)
    for number, (cell, place) in enumerate(_places(module)):
        old, new = cell["connections"]["Y"], [*range(free, free + place.width)]
        free += place.width
        named = next((names[bit] for bit in old if bit in names), "")
        copies[place].append(copy := Copy(number, named, tuple(old)))
        cell["connections"]["Y"] = new
        module["ports"][copy.cut] = {"direction": "input", "bits": old}
        module["ports"][copy.full] = {"direction": "output", "bits": new}
    return Opened(operator_design(json.dumps(netlist), seconds), copies, text)


def _numbers(bits: Sequence[Bit]) -> list[int]:
    return [bit for bit in bits if isinstance(bit, int)]


def _names(module: Mapping[str, Any]) -> dict[Bit, str]:
    """The shortest name of a signal that starts with a bit."""
    named = [(name, net["bits"]) for name, net in module["netnames"].items()]
    named.sort(key=lambda each: (each[0][:1] == "$", each[0].count("."), -len(each[1])))
    found: dict[Bit, str] = {}
    for name, bits in named:
        if name[:1] != "$":
            found.setdefault(bits[0], name)
    return found


def _places(module: Mapping[str, Any]) -> Iterator[tuple[Any, Place]]:
    """The cells of which something reads low bits and nothing the highest, each with its place."""
    read = _read(module)
    for cell in module["cells"].values():
        if cell["type"].removeprefix("$") not in KINDS:
            continue
        bits = cell["connections"]["Y"]
        kept = 1 + max((place for place, bit in enumerate(bits) if bit in read), default=-1)
        if 0 < kept < len(bits):
            file, _, line = cell["attributes"]["src"].split("|")[-1].rpartition(":")
            yield cell, Place(file, int(line), cell["type"][1:], kept, len(bits))


def _read(module: Mapping[str, Any]) -> set[Bit]:
    """The bits that something reads: outputs, registers and operators, but not bit-wise cells for
    bits of their result that nothing reads."""
    read: set[Bit] = set()
    readers: dict[Bit, list[list[Bit]]] = defaultdict(list)
    left: list[Bit] = []
    for port in module["ports"].values():
        if port["direction"] == "output":
            left += port["bits"]
    for cell in module["cells"].values():
        of = {
            port: bits
            for port, bits in cell["connections"].items()
            if cell["port_directions"][port] == "input"
        }
        if cell["type"] not in BITWISE:
            left += [bit for bits in of.values() for bit in bits]
            continue
        width = len(cell["connections"]["Y"])
        for place, bit in enumerate(cell["connections"]["Y"]):
            for port, bits in of.items():
                if port == "S":
                    readers[bit].append(bits)
                elif port == "B" and cell["type"] == "$pmux":
                    readers[bit].append(bits[place::width])
                else:
                    readers[bit].append([bits[min(place, len(bits) - 1)]])
    while left:
        bit = left.pop()
        if bit not in read:
            read.add(bit)
            for each in readers[bit]:
                left += each
    return read - {"0", "1", "x", "z"}
