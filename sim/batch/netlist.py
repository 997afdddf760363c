"""A word-level netlist: cells, registers and ports over words, read from Yosys JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from amaranth._toolchain.yosys import YosysError
from amaranth.lib import wiring

from axs6.hw.rtlil import convert, without_fields
from axs6.sim.batch.modules import with_functions
from axs6.sim.tools import ToolError, yosys

PASSES = ("proc", "flatten", "memory_collect", "opt -full", "wreduce", "opt -full", "clean")
SCRIPT = "\n".join([*PASSES, "write_json -noscopeinfo", ""])
TOP = "top"


@dataclass(frozen=True, eq=False)
class Word:
    """A vector of bits with one driver: a cell, a register, or a field of an input port."""

    name: str
    width: int


@dataclass(frozen=True)
class Piece:
    """`width` bits of a word from `offset` up, or of a constant where `word` is None."""

    word: Word | None
    offset: int
    width: int
    value: int = 0


Operand = tuple[Piece, ...]
"""A value put together from pieces, lowest bits first."""


def _words(operands: Iterable[Operand]) -> list[Word]:
    return [piece.word for operand in operands for piece in operand if piece.word is not None]


@dataclass(frozen=True, eq=False)
class Cell:
    """A combinational cell: its Yosys type and parameters, its operands by port, its output."""

    kind: str
    parameters: Mapping[str, int]
    operands: Mapping[str, Operand]
    output: Word

    @property
    def read(self) -> list[Word]:
        """Words that it reads."""
        return _words(self.operands.values())

    @property
    def driven(self) -> tuple[Word, ...]:
        """Words that it drives."""
        return (self.output,)

    def flag(self, name: str) -> bool:
        """Whether a parameter such as A_SIGNED is set."""
        return bool(self.parameters.get(name, 0))


@dataclass(frozen=True, eq=False)
class Call:
    """An instance of a module without registers: its operands and outputs, in that one's order."""

    function: "Netlist"
    operands: tuple[Operand, ...]
    driven: tuple[Word, ...]

    @property
    def read(self) -> list[Word]:
        """Words that it reads."""
        return _words(self.operands)


@dataclass(frozen=True, eq=False)
class Register:
    """A register on the one clock: `data` when `enable`, `reset_value` when `reset`.

    `enable` and `reset` are None where there is none; with `reset_needs_enable` the reset too
    happens only when enabled. `initial` is the value before the first clock edge.
    """

    output: Word
    data: Operand
    enable: Operand | None
    enable_high: bool
    reset: Operand | None
    reset_high: bool
    reset_value: int
    reset_needs_enable: bool
    initial: int


@dataclass(eq=False)
class Netlist:
    """A module: what drives every word, and what its ports are.

    Args:
        name: of the module.
        inputs: for each input port, its words in bit order.
        outputs: for each output port, an operand for each of its fields.
        cells: combinational cells and calls, each after those that drive it.
        registers: in no particular order.
        functions: the modules that calls in `cells` name.
    """

    name: str
    inputs: dict[str, list[Word]] = field(default_factory=dict)
    outputs: dict[str, list[Operand]] = field(default_factory=dict)
    cells: list[Cell | Call] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    functions: list["Netlist"] = field(default_factory=list)


class NetlistError(ValueError):
    """The netlist has something that the batch simulator does not handle."""


def yosys_json(component: wiring.Component) -> str:
    """A component as word-level Yosys JSON: module `top`, and those that become functions.

    Raises:
        ToolError: Yosys is missing or fails.
    """
    text = with_functions(without_fields(convert(component, TOP)), TOP)
    try:
        return str(yosys().run(["-q", "-"], f"read_rtlil <<rtlil\n{text}\nrtlil\n{SCRIPT}"))
    except YosysError as error:
        raise ToolError(f"Yosys could not flatten the design: {error}") from error
