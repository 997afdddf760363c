"""C++ for a netlist: one vector expression for each cell, a function call for each call."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from axs6.sim.batch.cells import HANDLERS
from axs6.sim.batch.netlist import Call, Cell, Netlist, NetlistError, Word
from axs6.sim.batch.operands import Words
from axs6.sim.batch.values import Value, element_bits, resized


@dataclass(frozen=True)
class Function:
    """A module as a C++ function: its name, its text, and the ranges of its results.

    Its arguments are the words of the input ports and then those of the output ports.
    """

    name: str
    text: str
    results: tuple[Value, ...]


class Emitter(Words):
    """Writes the statements of a netlist.

    Args:
        values: where the words that no cell drives are found: inputs and registers.
        functions: what calls in the netlist call.
    """

    def __init__(self, values: Mapping[Word, Value], functions: Mapping[Netlist, Function]) -> None:
        super().__init__(values)
        self._functions = functions
        self._bits: dict[str, str] = {}

    def add(self, cell: Cell | Call) -> None:
        """Add the statements of a cell or a call.

        Raises:
            NetlistError: the cell's type has no vector form.
        """
        if isinstance(cell, Call):
            self._call(cell)
        else:
            self._cell(cell)

    def state(self, statement: str) -> None:
        """Add a statement that declares nothing and is always reached."""
        self.lines.append(statement)

    def _call(self, call: Call) -> None:
        callee = self._functions[call.function]
        arguments = [self._argument(self.word(operand)) for operand in call.operands]
        for word, result in zip(call.driven, callee.results, strict=True):
            name = f"w{len(self.lines)}"
            self.lines.append(f"V<{result.bits}> {name};")
            self.define(word, Value(name, result.bits, result.low, result.high))
            arguments.append(name)
        self.lines.append(f"{callee.name}({', '.join(arguments)});")

    def _argument(self, value: Value) -> str:
        """The text of an argument; the lanes of a tile share variables for the bits of a word."""
        if not value.text.startswith("test("):
            return value.text
        if value.text not in self._bits:
            self._bits[value.text] = self.named(value).text
        return self._bits[value.text]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A context whose statements stand between braces: what they declare ends with it."""
        before = dict(self._bits)
        yield
        self._bits = before

    def _cell(self, cell: Cell) -> None:
        handler = HANDLERS.get(cell.kind)
        if handler is None:
            raise NetlistError(
                f"cell {cell.output.name} is a {cell.kind}, which has no vector form"
            )
        value = handler(self, cell)
        bits = element_bits(cell.output.width)
        if bits == 1 or value.bits == 1:
            value = resized(value, bits)
        self.define(cell.output, self.named(value))
