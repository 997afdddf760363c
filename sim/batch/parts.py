"""Statements of a netlist of gates, divided among functions that compile quickly."""

from collections.abc import Mapping

from axs6.sim.batch.emit import Emitter, Function
from axs6.sim.batch.function import NOINLINE, block
from axs6.sim.batch.netlist import Netlist, Word
from axs6.sim.batch.values import Value

STATEMENTS = 300
"""Statements in a function: a compiler's time grows faster than a function's length."""

STEP_ARGUMENTS = "State& s, const In& in, Out& out"


class PartEmitter(Emitter):
    """An emitter whose values are the elements of an array `out.w`, so that functions share them.

    `parts` holds the C++ of the functions, which `lines` call, and `stored` is the length of
    the array.

    Args:
        values: where the words that no cell drives are found: inputs and registers.
        functions: what calls in the netlist call.
    """

    def __init__(self, values: Mapping[Word, Value], functions: Mapping[Netlist, Function]) -> None:
        super().__init__(values, functions)
        self.parts: list[str] = []
        self.stored = 0
        self._kept = 0

    def named(self, value: Value) -> Value:
        """The value as an element of the array."""
        assert value.bits == 1, "gates have values of one bit"
        name = f"out.w[{self.stored}]"
        self.stored += 1
        self.state(f"{name} = {value.text};")
        return Value(name, value.bits, value.low, value.high)

    def state(self, statement: str) -> None:
        """Add a statement; a full function takes the place of its statements."""
        super().state(statement)
        if len(self.lines) - self._kept == STATEMENTS:
            name = f"part{self._kept}"
            head = f"static {NOINLINE} void {name}({STEP_ARGUMENTS})"
            self.parts.append(block(head, self.lines[self._kept :]))
            self.lines[self._kept :] = [f"{name}(s, in, out);"]
            self._kept += 1
