"""From Yosys JSON to a netlist of single bits."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from axs6.sim.batch.arithmetic import cell_bits
from axs6.sim.batch.logic import FALSE, TRUE, Literal
from axs6.sim.batch.memories import split_memories
from axs6.sim.batch.netlist import TOP, Call, Netlist, NetlistError, Register

REGISTERS = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}
FLIP_FLOP = re.compile(r"\$_(S?DFFC?E?)_([PN])(?:([PN])([01]))?([PN])?_")
"""Yosys's flip-flops of one bit: polarities of clock and reset, reset value, polarity of enable."""
CLOCK, RESET = "clk", "rst"

Bit = int | str
Cell = Mapping[str, Any]


def read_netlist(text: str) -> Netlist:
    """The netlist of module `top` in Yosys JSON, with its functions.

    `rst` is 0: simulations start from the initial values.

    Args:
        text: JSON of `top` and of modules without registers.

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
                functions[name] = _ModuleReader(name, module, functions).netlist()
    return _ModuleReader(TOP, modules[TOP], functions).netlist()


class _ModuleReader:
    def __init__(
        self, name: str, module: Mapping[str, Any], functions: Mapping[str, Netlist]
    ) -> None:
        self._module = module
        self._functions = functions
        cells, self._initial = split_memories(module)
        self._cells = {each: _as_register(cell) for each, cell in cells.items()}
        self._netlist = Netlist(name, functions=list(functions.values()))
        self._bits: dict[Bit, Literal] = {"0": FALSE, "1": TRUE, "x": FALSE, "z": FALSE}

    def netlist(self) -> Netlist:
        """Read the ports, then the cells, each after those that drive it."""
        ports = self._module["ports"]
        for name, port in ports.items():
            if port["direction"] == "input" and name != CLOCK:
                for bit in port["bits"]:
                    self._bits[bit] = FALSE if name == RESET else self._netlist.logic.leaf()
                self._netlist.inputs[name] = self._literals(port["bits"])
        registers = {n: cell for n, cell in self._cells.items() if cell["type"] in REGISTERS}
        for cell in registers.values():
            for bit in cell["connections"]["Q"]:
                self._bits[bit] = self._netlist.logic.leaf()
        for name in self._sorted({n: c for n, c in self._cells.items() if n not in registers}):
            self._read(name, self._cells[name])
        initial = self._initial_bits()
        for name, cell in registers.items():
            self._register(name, cell, initial)
        for name, port in ports.items():
            if port["direction"] == "output":
                self._netlist.outputs[name] = self._literals(port["bits"])
        return self._netlist

    def _literals(self, bits: Iterable[Bit]) -> list[Literal]:
        return [self._bits.get(bit, FALSE) for bit in bits]

    def _sorted(self, cells: Mapping[str, Cell]) -> list[str]:
        """Names of the cells, each after those that drive it, and soon after them."""
        driver = {bit: name for name, cell in cells.items() for bit in _bits(cell, "output")}
        done: dict[str, bool] = {}
        order: list[str] = []
        waiting = list(cells)[::-1]
        while waiting:
            name = waiting[-1]
            if name in done:
                waiting.pop()
                if not done[name]:
                    done[name] = True
                    order.append(name)
                continue
            done[name] = False
            for each in reversed(dict.fromkeys(map(driver.get, _bits(cells[name], "input")))):
                if each is not None and done.get(each) is False:
                    raise NetlistError(f"there is a combinational loop through {each}")
                if each is not None and each not in done:
                    waiting.append(each)
        return order

    def _read(self, name: str, cell: Cell) -> None:
        kind, connections = cell["type"], cell["connections"]
        if kind in self._functions:
            self._call(self._functions[kind], connections)
            return
        if cell["port_directions"].get("CLK"):
            raise NetlistError(
                f"cell {name} is a {kind}, which the batch simulator does not handle"
            )
        operands = {port: self._literals(b) for port, b in connections.items() if port != "Y"}
        parameters = {key: int(value, 2) for key, value in cell["parameters"].items()}
        output = connections["Y"]
        try:
            made = cell_bits(self._netlist.logic, kind, parameters, operands, len(output))
        except NetlistError as error:
            raise NetlistError(f"cell {name}: {error}") from None
        self._bits.update(zip(output, made, strict=True))

    def _call(self, function: Netlist, connections: Mapping[str, list[Bit]]) -> None:
        read = [bit for port in function.inputs for bit in self._literals(connections[port])]
        driven = [bit for port in function.outputs for bit in connections[port]]
        leaves = [self._netlist.logic.leaf() for _ in driven]
        self._bits.update(zip(driven, leaves, strict=True))
        self._netlist.calls.append(Call(function, tuple(read), tuple(leaves)))

    def _register(self, name: str, cell: Cell, initial: Mapping[Bit, bool]) -> None:
        logic, connections, parameters = (
            self._netlist.logic,
            cell["connections"],
            cell["parameters"],
        )
        clock = self._module["ports"][CLOCK]["bits"]
        if connections["CLK"] != clock or int(parameters["CLK_POLARITY"], 2) != 1:
            raise NetlistError(f"register {name} must have the rising edge of {CLOCK}")
        enable, reset = TRUE, FALSE
        if "EN" in connections:
            (enable,) = self._literals(connections["EN"])
            enable ^= int(parameters["EN_POLARITY"], 2) ^ 1
        if "SRST" in connections:
            (reset,) = self._literals(connections["SRST"])
            reset ^= int(parameters["SRST_POLARITY"], 2) ^ 1
        if cell["type"] != "$sdffce":
            enable = logic.either(enable, reset)
        value = int(parameters.get("SRST_VALUE", "0").replace("x", "0"), 2)
        data = self._literals(connections["D"])
        for place, bit in enumerate(connections["Q"]):
            held = self._bits[bit]
            taken = logic.choose(reset, data[place], value >> place & 1)
            following = logic.choose(enable, held, taken)
            start = initial.get(bit, False)
            self._netlist.registers.append(Register(held, following, enable, start))

    def _initial_bits(self) -> Mapping[Bit, bool]:
        initial: dict[Bit, bool] = {bit: bool(value) for bit, value in self._initial.items()}
        for net in self._module["netnames"].values():
            digits = net["attributes"].get("init", "")
            for bit, digit in zip(net["bits"], reversed(digits), strict=False):
                if digit == "1":
                    initial[bit] = True
        return initial


def _bits(cell: Cell, direction: str) -> list[Bit]:
    return [
        bit
        for port, bits in cell["connections"].items()
        if cell["port_directions"][port] == direction
        for bit in bits
        if isinstance(bit, int)
    ]


def _as_register(cell: Cell) -> Cell:
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
