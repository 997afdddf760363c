"""From Yosys JSON to a netlist: words are cut where fields and concatenations meet."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from axs6.hw.layouts import Field
from axs6.sim.batch.limbs import split_wide
from axs6.sim.batch.memories import split_memories
from axs6.sim.batch.netlist import (
    TOP,
    Call,
    Cell,
    Netlist,
    NetlistError,
    Operand,
    Piece,
    Register,
    Word,
)
from axs6.sim.batch.operands import operand_width

WIDEST = 64
"""Bits of the widest word."""

BITWISE = {"$mux", "$pmux", "$and", "$or", "$xor", "$xnor", "$not"}
REGISTERS = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}
FLIP_FLOP = re.compile(r"\$_(S?DFFC?E?)_([PN])(?:([PN])([01]))?([PN])?_")
"""Yosys's flip-flops of one bit: polarities of clock and reset, reset value, polarity of enable."""
CLOCK = "clk"

Bit = int | str
Bits = list[Bit]


def read_netlist(text: str, fields: Mapping[str, Sequence[Field]]) -> Netlist:
    """The netlist of module `top` in Yosys JSON, with its functions.

    Args:
        text: JSON of `top` and of modules without registers.
        fields: fields of the payload ports of `top`, by name; each element becomes a word.

    Raises:
        NetlistError: a cell or a clock that the batch simulator does not handle, or a
            combinational loop.
    """
    modules = json.loads(text)["modules"]
    functions: dict[str, Netlist] = {}
    while len(functions) < len(modules) - 1:
        for name, module in modules.items():
            inner = [cell["type"] for cell in module["cells"].values() if cell["type"] in modules]
            if name != TOP and name not in functions and all(each in functions for each in inner):
                functions[name] = _Reader(name, module, {}, functions).netlist()
    return _Reader(TOP, modules[TOP], fields, functions).netlist()


def field_cuts(fields: Sequence[Field]) -> list[int]:
    """Bit offsets at which the elements of a payload begin."""
    return [field.offset + index * field.width for field in fields for index in range(field.count)]


class _Reader:
    def __init__(
        self,
        name: str,
        module: Mapping[str, Any],
        fields: Mapping[str, Sequence[Field]],
        functions: Mapping[str, Netlist],
    ) -> None:
        self._name = name
        self._module = module
        self._fields = fields
        self._functions = functions
        cells, self._memory = split_memories(module)
        narrow = split_wide({**module, "cells": cells}, WIDEST)
        self._cells = {name: _as_register(cell) for name, cell in narrow.items()}
        self._drivers: dict[Bit, tuple[str, int]] = {}
        self._driven_widths: dict[str, int] = {}
        self._cuts: dict[str, set[int]] = {}
        self._words: dict[str, list[tuple[int, Word]]] = {}

    def netlist(self) -> Netlist:
        """Cut, name and connect everything."""
        self._find_drivers()
        self._find_cuts()
        self._make_words()
        netlist = Netlist(self._name)
        for name, port in self._module["ports"].items():
            if port["direction"] == "input":
                if name != CLOCK:
                    netlist.inputs[name] = [word for _, word in self._words[name]]
            else:
                netlist.outputs[name] = list(self._output_fields(name, port["bits"]))
        cells: list[Cell | Call] = []
        for name, cell in self._cells.items():
            if cell["type"] in REGISTERS:
                netlist.registers += self._registers(name, cell)
            elif cell["type"] in self._functions:
                cells.append(self._call(name, cell))
            else:
                cells += self._cell(name, cell)
        netlist.cells = _sorted(cells)
        netlist.functions = list(self._functions.values())
        return netlist

    def _find_drivers(self) -> None:
        for name, port in self._module["ports"].items():
            if port["direction"] == "input":
                self._drive(name, port["bits"])
                self._cuts[name] = set(field_cuts(self._fields.get(name, [])))
        for name, cell in self._cells.items():
            kind = cell["type"]
            if kind in self._functions:
                for port, operands in self._functions[kind].outputs.items():
                    self._drive(f"{name}.{port}", cell["connections"][port])
                    self._cuts[f"{name}.{port}"] = set(_starts(map(operand_width, operands)))
                continue
            if cell["port_directions"].get("CLK") and kind not in REGISTERS:
                raise NetlistError(f"cell {name} is a {kind}, which has no vector form")
            output = "Q" if kind in REGISTERS else "Y"
            self._drive(name, cell["connections"][output])
            self._cuts[name] = set()

    def _drive(self, name: str, bits: Bits) -> None:
        self._driven_widths[name] = len(bits)
        for offset, bit in enumerate(bits):
            self._drivers[bit] = (name, offset)

    def _find_cuts(self) -> None:
        """Cut registers and wide bitwise cells where their operands are cut, until none is new."""
        cuttable = {
            name: list(self._parallel_operands(cell))
            for name, cell in self._cells.items()
            if cell["type"] in REGISTERS or (cell["type"] in BITWISE and _width(cell) > WIDEST)
        }
        for name, port in self._module["ports"].items():
            if port["direction"] == "input" and name not in self._fields:
                self._cuts[name] |= self._unspanned(name, len(port["bits"]), set(cuttable))
        changed = True
        while changed:
            changed = False
            for name, operands in cuttable.items():
                found = set().union(*(self._boundaries(bits) for bits in operands))
                if not found <= self._cuts[name]:
                    self._cuts[name] |= found
                    changed = True

    def _unspanned(self, port: str, width: int, passing: Set[str]) -> set[int]:
        """Offsets in an input port that no operand or output reaches across.

        Cells of `passing`, which can be cut anywhere, do not count.
        """
        cells = [cell for name, cell in self._cells.items() if name not in passing]
        read = [bits for cell in cells for bits in self._operand_words(cell)]
        read += [p["bits"] for p in self._module["ports"].values() if p["direction"] == "output"]
        spanned = set()
        for bits in read:
            for before, after in pairwise(map(self._drivers.get, bits)):
                if before and after and before[0] == port and after == (port, before[1] + 1):
                    spanned.add(after[1])
        return set(range(width)) - spanned

    def _operand_words(self, cell: Mapping[str, Any]) -> Iterator[Bits]:
        """Operands of a cell, those of a call cut where the words of its function begin."""
        for port, direction in cell["port_directions"].items():
            bits = cell["connections"][port]
            if direction == "input" and cell["type"] in self._functions:
                yield from self._argument_bits(cell, port)
            elif direction == "input":
                yield bits

    def _argument_bits(self, cell: Mapping[str, Any], port: str) -> Iterator[Bits]:
        words = self._functions[cell["type"]].inputs[port]
        starts = _starts(word.width for word in words)
        for start, word in zip(starts, words, strict=True):
            yield cell["connections"][port][start : start + word.width]

    @staticmethod
    def _parallel_operands(cell: Mapping[str, Any]) -> Iterator[Bits]:
        """Operands of a bitwise cell whose bits stand one to one with those of its output."""
        width = _width(cell)
        connections = cell["connections"]
        for port in ("A", "D"):
            if port in connections:
                yield connections[port]
        if "B" in connections:
            bits = connections["B"]
            yield from (bits[i : i + width] for i in range(0, len(bits), width))

    def _boundaries(self, bits: Bits) -> set[int]:
        """Offsets at which a new word, or a part of another, begins."""
        found = set()
        for offset in range(1, len(bits)):
            before, after = (self._drivers.get(bit) for bit in bits[offset - 1 : offset + 1])
            if before is None and after is None:
                continue
            if (
                before is None
                or after is None
                or after != (before[0], before[1] + 1)
                or after[1] in self._cuts[after[0]]
            ):
                found.add(offset)
        return found

    def _make_words(self) -> None:
        for name, cuts in self._cuts.items():
            width = self._driven_widths[name]
            starts = sorted({0, *(cut for cut in cuts if cut < width)})
            words = []
            for start, end in zip(starts, [*starts[1:], width], strict=True):
                for low in range(start, end, WIDEST):
                    word = Word(f"{name}[{low}]", min(WIDEST, end - low))
                    words.append((low, word))
            self._words[name] = words

    def _operand(self, bits: Bits) -> Operand:
        """Pieces of words and constants that make up a list of bits; unknown bits are 0."""
        pieces: list[Piece] = []
        for bit in bits:
            driver = self._drivers.get(bit)
            if driver is None:
                piece = Piece(None, 0, 1, int(bit == "1"))
            else:
                word, offset = self._word_at(*driver)
                piece = Piece(word, offset, 1)
            last = pieces[-1] if pieces else None
            if last and last.word is piece.word is None:
                pieces[-1] = Piece(None, 0, last.width + 1, last.value | piece.value << last.width)
            elif last and last.word is piece.word and last.offset + last.width == piece.offset:
                pieces[-1] = Piece(last.word, last.offset, last.width + 1)
            else:
                pieces.append(piece)
        return tuple(pieces)

    def _word_at(self, name: str, offset: int) -> tuple[Word, int]:
        for start, word in reversed(self._words[name]):
            if offset >= start:
                return word, offset - start
        raise AssertionError(f"{name} has no bit {offset}")

    def _output_fields(self, name: str, bits: Bits) -> Iterator[Operand]:
        starts = field_cuts(self._fields.get(name, []))
        if not starts:
            starts = sorted({0, *self._boundaries(bits)})
        for start, end in zip(starts, [*starts[1:], len(bits)], strict=True):
            for low in range(start, end, WIDEST):
                yield self._operand(bits[low : min(low + WIDEST, end)])

    def _call(self, name: str, cell: Mapping[str, Any]) -> Call:
        function = self._functions[cell["type"]]
        operands = [
            self._operand(bits)
            for port in function.inputs
            for bits in self._argument_bits(cell, port)
        ]
        outputs = [word for port in function.outputs for _, word in self._words[f"{name}.{port}"]]
        return Call(function, tuple(operands), tuple(outputs))

    def _cell(self, name: str, cell: Mapping[str, Any]) -> Iterator[Cell]:
        """A cell, or one for each of the words it was cut into."""
        connections = cell["connections"]
        parameters = {key: int(value, 2) for key, value in cell["parameters"].items()}
        width = _width(cell)
        words = self._words[name]
        if len(words) > 1 and cell["type"] not in BITWISE:
            raise NetlistError(
                f"cell {name} is a {cell['type']} of {width} bits; {WIDEST} is the most"
            )
        for start, word in words:
            operands = {}
            for port in cell["port_directions"]:
                if port == "Y":
                    continue
                bits = connections[port]
                if len(words) > 1 and port != "S":
                    copies = range(start, len(bits), width)
                    bits = [bit for low in copies for bit in bits[low : low + word.width]]
                operands[port] = self._operand(bits)
            yield Cell(cell["type"], parameters, operands, word)

    def _registers(self, name: str, cell: Mapping[str, Any]) -> Iterator[Register]:
        connections, parameters = cell["connections"], cell["parameters"]
        clock = self._module["ports"][CLOCK]["bits"]
        if connections["CLK"] != clock or int(parameters["CLK_POLARITY"], 2) != 1:
            raise NetlistError(f"register {name} must have the rising edge of {CLOCK}")
        enable = self._operand(connections["EN"]) if "EN" in connections else None
        reset = self._operand(connections["SRST"]) if "SRST" in connections else None
        value = int(parameters.get("SRST_VALUE", "0").replace("x", "0"), 2)
        initial = self._initial(connections["Q"])
        for start, word in self._words[name]:
            mask = (1 << word.width) - 1
            yield Register(
                output=word,
                data=self._operand(connections["D"][start : start + word.width]),
                enable=enable,
                enable_high=int(parameters.get("EN_POLARITY", "1"), 2) == 1,
                reset=reset,
                reset_high=int(parameters.get("SRST_POLARITY", "1"), 2) == 1,
                reset_value=value >> start & mask,
                reset_needs_enable=cell["type"] == "$sdffce",
                initial=initial >> start & mask,
            )

    def _initial(self, bits: Bits) -> int:
        value = 0
        for offset, bit in enumerate(bits):
            value |= self._initial_bits.get(bit, 0) << offset
        return value

    @cached_property
    def _initial_bits(self) -> Mapping[Bit, int]:
        initials = dict[Bit, int](self._memory.items())
        for net in self._module["netnames"].values():
            digits = net["attributes"].get("init", "")
            for bit, digit in zip(net["bits"], reversed(digits), strict=False):
                if digit == "1":
                    initials[bit] = 1
        return initials


def _as_register(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """A flip-flop of one bit as a register of one bit; other cells as they are."""
    match = FLIP_FLOP.fullmatch(cell["type"])
    if match is None:
        return cell
    kind, clock, reset, value, enable = match.groups()
    parameters = {"CLK_POLARITY": clock}
    connections = {"CLK": cell["connections"]["C"]}
    connections |= {port: cell["connections"][port] for port in ("D", "Q")}
    if reset:
        parameters |= {"SRST_POLARITY": reset, "SRST_VALUE": value}
        connections["SRST"] = cell["connections"]["R"]
    if enable:
        parameters["EN_POLARITY"] = enable
        connections["EN"] = cell["connections"]["E"]
    bits = {"P": "1", "N": "0"}
    return {
        "type": f"${kind.lower()}",
        "parameters": {name: bits.get(value, value) for name, value in parameters.items()},
        "connections": connections,
        "port_directions": {port: "output" if port == "Q" else "input" for port in connections},
    }


def _width(cell: Mapping[str, Any]) -> int:
    return len(cell["connections"]["Q" if cell["type"] in REGISTERS else "Y"])


def _starts(widths: Iterable[int]) -> list[int]:
    """Offset of each of some adjoining words."""
    return list(accumulate(widths, initial=0))[:-1]


def _sorted(cells: list[Cell | Call]) -> list[Cell | Call]:
    """Cells in an order in which each comes after those that drive it, and soon after them."""
    driver = {word: cell for cell in cells for word in cell.driven}
    found: dict[Cell | Call, bool] = {}  # whether all that drives a cell is there
    order: list[Cell | Call] = []
    used = {driver[word] for cell in cells for word in cell.read if word in driver}
    last_first = cells[::-1]
    waiting = sorted(last_first, key=lambda cell: cell not in used)  # from the ends back
    while waiting:
        cell = waiting[-1]
        if cell not in found:
            found[cell] = False
            drivers = [driver[word] for word in cell.read if word in driver]
            for each in drivers:
                if found.get(each) is False:
                    raise NetlistError(
                        f"there is a combinational loop through {cell.driven[0].name}"
                    )
            waiting += [each for each in reversed(drivers) if each not in found]
            continue
        waiting.pop()
        if not found[cell]:
            found[cell] = True
            order.append(cell)
    return order
