"""A netlist of single bits: logic, registers and calls of functions, with the ports of a module."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from amaranth.lib import wiring

from axs6.hw.core.amaranth_internals import YosysError
from axs6.hw.core.rtlil import convert, without_fields
from axs6.sim.batch.logic import Literal, Logic
from axs6.sim.batch.modules import with_functions
from axs6.sim.tools import ToolError, yosys

PASSES = ("proc", "flatten", "memory_collect", "opt -full", "wreduce", "opt -full", "clean")
SCRIPT = "\n".join([*PASSES, "write_json -noscopeinfo", ""])
TOP = "top"


@dataclass(frozen=True, eq=False)
class Call:
    """An instance of a module without registers: the bits that it reads and drives.

    Both are in the order of the module's ports.
    """

    function: "Netlist"
    read: tuple[Literal, ...]
    driven: tuple[Literal, ...]


@dataclass(frozen=True, eq=False)
class Register:
    """A flip-flop on the one clock.

    Args:
        output: its value.
        following: its value after the clock edge, which is `output` where `enable` is 0.
        enable: 1 where it may change.
        initial: its value before the first clock edge.
    """

    output: Literal
    following: Literal
    enable: Literal
    initial: bool


@dataclass(eq=False)
class Netlist:
    """A module: what drives every bit, and what its ports are.

    Args:
        name: of the module.
        logic: its gates; inputs, registers and calls drive the leaves.
        inputs: the bits of each input port, lowest first.
        outputs: the bits of each output port, lowest first.
        registers: in no particular order.
        calls: of `functions`, each after those that drive it.
        functions: the modules that calls in this one and in others name, callees first.
    """

    name: str
    logic: Logic = field(default_factory=Logic)
    inputs: dict[str, list[Literal]] = field(default_factory=dict)
    outputs: dict[str, list[Literal]] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    functions: list["Netlist"] = field(default_factory=list)

    def ends(self) -> Iterator[Literal]:
        """The bits that outputs, registers and calls read."""
        for port in self.outputs.values():
            yield from port
        for register in self.registers:
            yield from (register.following, register.enable)
        for call in self.calls:
            yield from call.read


class NetlistError(ValueError):
    """The netlist has something that the batch simulator does not handle."""


def yosys_json(component: wiring.Component) -> str:
    """A component as word-level Yosys JSON: module `top`, and those that become functions.

    Raises:
        ToolError: Yosys is missing or fails.
    """
    return flattened(with_functions(without_fields(convert(component, TOP)), TOP), SCRIPT)


def flattened(rtlil: str, script: str) -> str:
    """What Yosys prints of a design after the commands of a script.

    Raises:
        ToolError: Yosys is missing or fails.
    """
    try:
        return str(yosys().run(["-q", "-"], f"read_rtlil <<rtlil\n{rtlil}\nrtlil\n{script}"))
    except YosysError as error:
        raise ToolError(f"Yosys could not flatten the design: {error}") from error
