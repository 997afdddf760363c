"""C++ for operations on bits: functions of a few hundred statements that compile quickly."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from axs6.sim.batch.logic import FALSE, TRUE, Literal
from axs6.sim.batch.netlist import Netlist
from axs6.sim.batch.order import lean
from axs6.sim.batch.schedule import GuardedOperations
from axs6.sim.batch.tables import LookupTable, Operation, with_tables

STATEMENTS = 400
"""Statements in a part: a compiler's time grows faster than a function's length."""

Results = list[tuple[str, Literal]]


@dataclass
class FunctionPart:
    """Operations of one C++ function, and the results that it gives."""

    operations: Sequence[Operation]
    results: Results


class Emitter:
    """Writes the operations of a module as parts, which hand bits on in an array `w`.

    Args:
        name: of the parts, followed by their numbers.
        parameters: names of the parameters of their C++ functions, with the types.
        leaves: C++ expressions of the bits that no operation drives.
        functions: C++ names of the functions that operations call.

    `texts` holds the C++ of the parts and `room` the length of the array.
    """

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, str],
        leaves: Mapping[Literal, str],
        functions: Mapping[Netlist, str],
    ) -> None:
        self._name, self._parameters, self._functions = name, parameters, functions
        self._leaves = {FALSE: "ZERO", TRUE: "ONES", **leaves}
        self.texts: list[str] = []
        self.room = 0

    def emit(self, groups: Sequence[GuardedOperations]) -> list[list[str]]:
        """Add the parts of groups that follow one another; return each group's calls of them."""
        divided = [list(_parts(group)) for group in groups]
        places = self._places([part for parts in divided for part in parts])
        arguments = ", ".join(self._parameters)
        calls = []
        for parts in divided:
            first = len(self.texts)
            self.texts += [self._text(first + k, part, places) for k, part in enumerate(parts)]
            names = (f"{self._name}{first + k}" for k in range(len(parts)))
            calls.append([f"{name}({arguments});" for name in names])
        return calls

    def _places(self, parts: Sequence[FunctionPart]) -> dict[Literal, str]:
        """An element of `w` for each bit that a part other than its own reads."""
        made = {
            bit: k for k, part in enumerate(parts) for op in part.operations for bit in op.driven
        }
        last: dict[Literal, int] = {}
        for k, part in enumerate(parts):
            last |= {bit: k for bit in _read(part) if made.get(bit, k) != k}
        ends: dict[int, list[Literal]] = {}
        for bit, k in last.items():
            ends.setdefault(k, []).append(bit)
        free: list[int] = []
        numbers: dict[Literal, int] = {}
        for k, part in enumerate(parts):
            for bit in (bit for op in part.operations for bit in op.driven if bit in last):
                if not free:
                    free.append(self.room)
                    self.room += 1
                numbers[bit] = free.pop()
            free += [numbers[bit] for bit in ends.get(k, ())]
        return {bit: f"w[{number}]" for bit, number in numbers.items()}

    def _text(self, number: int, part: FunctionPart, places: Mapping[Literal, str]) -> str:
        names = {**self._leaves, **places}
        lines = []
        for op in part.operations:
            if isinstance(op, LookupTable):
                (bit,) = op.driven
                a, b, c = (names[each] for each in (*op.read, *[op.read[-1]] * 2)[:3])
                lines.append(f"const V t{bit} = look_up<{op.table}>({a}, {b}, {c});")
                names[bit] = f"t{bit}"
                if bit in places:
                    lines.append(f"{places[bit]} = t{bit};")
                continue
            names |= {bit: f"t{bit}" for bit in op.driven if bit not in places}
            declared = [f"t{bit}" for bit in op.driven if bit not in places]
            lines += [f"V {', '.join(declared)};"] if declared else []
            read, driven = (", ".join(f"&{names[bit]}" for bit in b) for b in (op.read, op.driven))
            lines.append(f"{{ const V* i[] = {{{read}}}; V* o[] = {{{driven}}}; ")
            lines[-1] += f"{self._functions[op.function]}(i, o); }}"
        lines += [f"{name} = {names[bit]};" for name, bit in part.results]
        parameters = ", ".join(f"{kind} {name}" for name, kind in self._parameters.items())
        return block(f"NOINLINE void {self._name}{number}({parameters})", lines)


def function(netlist: Netlist, name: str, functions: Mapping[Netlist, str]) -> str:
    """The C++ function of a module without registers: bits in at `i`, bits out at `o`.

    Args:
        netlist: of the module.
        name: for the function.
        functions: names of the functions that this one calls.
    """
    inputs = [bit for port in netlist.inputs.values() for bit in port]
    outputs = [bit for port in netlist.outputs.values() for bit in port]
    leaves = {bit: f"(*i[{index}])" for index, bit in enumerate(inputs)}
    parameters = {"i": "const V* const*", "o": "V* const*", "w": "V*"}
    emitter = Emitter(f"{name}_", parameters, leaves, functions)
    results = [(f"*o[{index}]", bit) for index, bit in enumerate(outputs)]
    operations = lean(with_tables(netlist), netlist.ends())
    (calls,) = emitter.emit([GuardedOperations(TRUE, operations, results)])
    body = [f"V w[{max(1, emitter.room)}];", *calls]
    head = f"NOINLINE void {name}(const V* const* i, V* const* o)"
    return "\n".join([*emitter.texts, block(head, body)])


def block(head: str, lines: Iterable[str]) -> str:
    """A C++ function with this head and these statements."""
    return "\n".join([f"{head} {{", *(f"  {line}" for line in lines), "}"])


def _parts(group: GuardedOperations) -> Iterator[FunctionPart]:
    """A group cut into parts; each result stands in the first part after which it is there."""
    chunks = list(_chunks(group.operations))
    made = {bit: k for k, chunk in enumerate(chunks) for op in chunk for bit in op.driven}
    results: dict[int, Results] = {}
    for each in group.results:
        results.setdefault(made.get(each[1], 0), []).append(each)
    for k, chunk in enumerate(chunks or [[]]):
        yield FunctionPart(chunk, results.get(k, []))


def _chunks(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    """Operations of `STATEMENTS` statements; a call has one for each bit it reads and drives."""
    chunk: list[Operation] = []
    length = 0
    for op in operations:
        if length >= STATEMENTS:
            yield chunk
            chunk, length = [], 0
        chunk.append(op)
        length += 1 if isinstance(op, LookupTable) else len(op.read) + len(op.driven)
    if chunk:
        yield chunk


def _read(part: FunctionPart) -> Iterator[Literal]:
    for op in part.operations:
        yield from op.read
    yield from (bit for _, bit in part.results)
