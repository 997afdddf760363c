"""C++ functions for modules without registers, compiled once and called for each instance."""

from collections.abc import Mapping, Sequence

from axs6.sim.batch.emit import Emitter, Function
from axs6.sim.batch.netlist import Netlist
from axs6.sim.batch.values import Value, element_bits

NOINLINE = "__attribute__((noinline))"
"""Keeps what is compiled once from being compiled into every place that calls it."""


def stored(text: str, width: int) -> Value:
    """A word in a variable, as an unsigned value."""
    return Value(text, element_bits(width), 0, (1 << width) - 1)


def function(netlist: Netlist, name: str, functions: Mapping[Netlist, Function]) -> Function:
    """The C++ function of a module without registers.

    Args:
        netlist: of the module.
        name: for the function.
        functions: those of the modules that this one calls.

    Raises:
        NetlistError: a cell has no vector form.
    """
    words = [word for port in netlist.inputs.values() for word in port]
    values = {word: stored(f"i{index}", word.width) for index, word in enumerate(words)}
    arguments = [
        f"const V<{value.bits}>{'&' * (value.bits > 1)} {value.text}" for value in values.values()
    ]
    emitter = Emitter(values, functions)
    for cell in netlist.cells:
        emitter.add(cell)
    results: list[Value] = []
    for operand in (operand for port in netlist.outputs.values() for operand in port):
        result = emitter.word(operand)
        emitter.lines.append(f"o{len(results)} = {result.text};")
        arguments.append(f"V<{result.bits}>& o{len(results)}")
        results.append(result)
    head = f"static {NOINLINE} void {name}({', '.join(arguments)})"
    return Function(name, block(head, emitter.lines), tuple(results))


def block(head: str, lines: Sequence[str]) -> str:
    """A C++ function with this head and these statements."""
    return "\n".join([f"{head} {{", *(f"  {line}" for line in lines), "}"])
