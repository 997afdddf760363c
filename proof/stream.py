"""Whether a pipelined unit is a function behind a queue, for any payload and any stalls.

Everything is read from the flat netlist with its registers; names of nets mean nothing.

1. Control registers are those that `valid` and `ready` depend on. No payload may be among what they
   depend on, and reset has to make each of them a constant. Those that are copies of another one
   are that one.
2. A register that takes a constant in every cycle, of a reset too, is that constant after it. Every
   other register holds its value or takes a function of others, as a few control nodes say.
   Registers that do so alike are a bank.
3. With a colour in place of each bank's value, the machine is a queue of items
   (`axs6.proof.colours`), which induction or ABC's `pdr` shows for all numbers of cycles. Colours
   that banks have at first are arbitrary, so nothing from before a reset matters.
4. With each bank replaced by what it takes, the output is a function of the input, which another
   step compares with the unit without registers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from axs6.proof.aig import FALSE, NEXT, TRUE, Graph
from axs6.proof.colours import INPUT, Control, Handshakes, Load
from axs6.proof.steps import NotShownError

CONTROLS = 8
"""Control nodes, at most, that decide what a register takes."""


class PipelinedUnit:
    """The graph of a unit with streams `i` and `o` and registers.

    Args:
        graph: as `axs6.proof.aig.read_aiger` reads it.
        ends: names of those bits of the input's payload on which control may depend. Where there
            are any, registers that reset leaves as they are start with any value.

    Raises:
        NotShownError: control depends on other payload, is not reset, or makes `valid` wait for
            `ready`; or registers take more than functions under a few control nodes.
    """

    def __init__(self, graph: Graph, ends: Iterable[str] = ()) -> None:
        self._graph = graph
        self._ends = {graph.inputs[name] for name in ends}
        nexts = [name for name in graph.outputs if name.startswith(NEXT)]
        self._next = {
            graph.inputs[name.removeprefix(NEXT)] >> 1: graph.outputs[name] for name in nexts
        }
        self._rst, self._i_valid, self._o_ready = (
            graph.inputs.get(name, FALSE) for name in ("rst[0]", "i_valid[0]", "o_ready[0]")
        )
        self._i_ready, self._o_valid = graph.outputs["i_ready[0]"], graph.outputs["o_valid[0]"]
        self._payload = {
            bit >> 1 for name, bit in graph.inputs.items() if name.startswith("i_payload[")
        }
        self._out = {
            name: bit for name, bit in graph.outputs.items() if name.startswith("o_payload[")
        }
        self._put({2 * x: after for x, after in self._next.items() if after in (FALSE, TRUE)})
        self._control = self._join_twins(self._find_control())
        self._cut = self._find_cut()
        self._rows = {
            node: self._under_controls(literal)
            for node, literal in self._next.items()
            if node not in self._control
        }
        self._loop = self._find_loop()
        self._bank, self._loads = self._find_banks()
        self._unknown = self._join_constants()

    def _put(self, values: Mapping[int, int]) -> None:
        """Put other literals in place of registers or inputs."""
        self._next = {node: after for node, after in self._next.items() if 2 * node not in values}
        wanted = [*self._next.values(), *self._out.values(), self._i_ready, self._o_valid]
        *found, self._i_ready, self._o_valid = self._graph.cofactor(wanted, values)
        self._next = dict(zip(self._next, found, strict=False))
        self._out = dict(zip(self._out, found[len(self._next) :], strict=True))

    def _find_control(self) -> dict[int, int | None]:
        """Control registers with their values after reset, without reset from now on."""
        graph = self._graph
        left, found, inputs = [self._i_ready, self._o_valid], set[int](), set[int]()
        left += [2 * node for node in self._more_control()]
        while left:
            for node in graph.leaves([left.pop()]):
                if node not in self._next:
                    inputs.add(node)
                elif node not in found:
                    found.add(node)
                    left.append(self._next[node])
        if both := inputs & self._payload - {bit >> 1 for bit in self._ends}:
            raise NotShownError(f"valid and ready depend on {len(both)} bits of the payload")
        if self._o_ready >> 1 in graph.leaves([self._o_valid]):
            raise NotShownError("valid depends on ready in the same cycle")
        nodes = sorted(found)
        after = graph.cofactor([self._next[node] for node in nodes], {self._rst: TRUE})
        reset = [each if each in (FALSE, TRUE) else None for each in after]
        if (not_reset := reset.count(None)) and not self._ends:
            raise NotShownError(f"reset leaves {not_reset} control registers as they are")
        self._put({self._rst: FALSE})
        return dict(zip(nodes, reset, strict=True))

    def _join_twins(self, control: Mapping[int, int | None]) -> dict[int, int | None]:
        """Control registers without those that start as another one, and always take the same.

        Copies of a register share its fan-out. All that start alike are taken to be one, and those
        are told apart that take another function then, until nothing changes.
        """
        graph = self._graph
        kind = {node: after for node, after in control.items() if after is not None}
        while True:
            first = {k: node for node, k in reversed(kind.items())}
            same = {2 * node: 2 * first[k] for node, k in kind.items()}
            taken = graph.cofactor([self._next[node] for node in kind], same)
            number: dict[tuple[int, int], int] = {}
            for (node, k), after in zip(kind.items(), taken, strict=True):
                kind[node] = number.setdefault((k, after), len(number))
            if len(number) == len(first):
                break
        self._put({bit: one for bit, one in same.items() if bit != one})
        return {node: after for node, after in control.items() if node in self._next}

    def _more_control(self) -> list[int]:
        """Registers that are control though `valid` and `ready` may not depend on them."""
        return []

    def _find_cut(self) -> Callable[[int], frozenset[int]]:
        """For a node the control nodes through which it depends on control."""
        graph = self._graph
        control = {*self._control, self._i_valid >> 1, self._o_ready >> 1}
        kinds = {bit >> 1: 1 if bit >> 1 in control else 2 for bit in graph.inputs.values()}
        return graph.cuts([*self._next.values(), *self._out.values()], graph.supports(kinds), 2)

    def _under_controls(self, literal: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The control nodes of a literal, and what it is by their values."""
        controls = tuple(sorted(self._cut(literal >> 1)))
        if len(controls) > CONTROLS:
            raise NotShownError(f"{len(controls)} control nodes decide what a register takes")
        rows = []
        for case in range(1 << len(controls)):
            values = {2 * node: case >> k & 1 for k, node in enumerate(controls)}
            rows += self._graph.cofactor([literal], values)
        return controls, tuple(rows)

    def _find_loop(self) -> set[int]:
        """Registers that take functions of themselves: none, as a function behind a queue has no
        totals."""
        return set()

    def _find_banks(self) -> tuple[dict[int, int], dict[int, Load]]:
        """The bank of each register and of the input's payload, and what banks do.

        Registers are split by their control nodes and when they hold, then by the banks that they
        take, until nothing changes.
        """
        bank = dict.fromkeys(self._payload, INPUT)
        bank |= dict.fromkeys(self._rows, 0)
        count = 1
        while True:
            groups: dict[tuple[int, Load], list[int]] = defaultdict(list)
            for node, (controls, rows) in self._rows.items():
                taken = tuple(None if x == 2 * node else self._banks_of(x, bank) for x in rows)
                groups[bank[node], Load(controls, taken)].append(node)
            for number, nodes in enumerate(groups.values()):
                bank |= dict.fromkeys(nodes, number)
            if len(groups) == count:
                return bank, {number: load for number, (_, load) in enumerate(groups)}
            count = len(groups)

    def _join_constants(self) -> set[int]:
        """Join banks that take constants to banks of items that load when they do.

        So they have the colour of an item, and must be loaded with it. Banks without such another
        one are returned: they may still have what they started with.
        """

        def loads_when(load: Load) -> tuple[tuple[int, ...], tuple[bool, ...]]:
            return load.controls, tuple(row is None for row in load.rows)

        constant = {
            bank: loads_when(load) for bank, load in self._loads.items() if not any(load.rows)
        }
        others = {
            loads_when(load): bank for bank, load in self._loads.items() if bank not in constant
        }
        new = {bank: others[when] for bank, when in constant.items() if when in others}
        self._bank = {node: new.get(bank, bank) for node, bank in self._bank.items()}
        self._loads = {
            bank: Load(
                load.controls,
                tuple(row and frozenset(new.get(x, x) for x in row) for row in load.rows),
            )
            for bank, load in self._loads.items()
            if bank not in new
        }
        return set(constant) - set(new)

    def _banks_of(self, literal: int, bank: Mapping[int, int]) -> frozenset[int]:
        return frozenset(bank[node] for node in self._graph.leaves([literal]) if node in bank)

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of registers, of control registers, and of banks."""
        return {
            "registers": len(self._next),
            "control registers": len(self._control),
            "banks": len(self._loads),
        }

    def function(self) -> Graph:
        """The graph with the output's payload as a function of the input's.

        Raises:
            NotShownError: a register takes several functions of the input.
        """
        value = self._values(self._out.values())
        outputs = {}
        for name, bit in self._out.items():
            given = {self._replaced(x, value) for x in self._under_controls(bit)[1]}
            if len(given) != 1:
                raise NotShownError(f"an output bit gives {len(given)} functions of the input")
            outputs[name] = given.pop()
        return self._graph.with_outputs(outputs)

    def _replaced(self, literal: int, value: Mapping[int, int]) -> int:
        """A literal with what registers take in their place."""
        known = {2 * x: value[x] for x in self._graph.leaves([literal]) if x in value}
        return self._graph.cofactor([literal], known)[0]

    def _values(self, literals: Iterable[int]) -> dict[int, int]:
        """The registers that literals depend on, as functions of the input and of the loop."""
        value: dict[int, int] = {}
        for node in self._in_order(literals):
            loads = {x for x in self._rows[node][1] if x != 2 * node}
            taken = {self._replaced(x, value) for x in loads}
            if len(taken) != 1:
                raise NotShownError(f"a register takes {len(taken)} functions of the input")
            if self._bank[node] in self._unknown:
                raise NotShownError("a register that takes a constant may start with another value")
            value[node] = taken.pop()
        return value

    def _in_order(self, literals: Iterable[int]) -> list[int]:
        """Registers that literals depend on, each after those that it takes."""
        found: dict[int, None] = {}
        begun: set[int] = set()
        outside = self._rows.keys() - self._loop
        left = [node for node in self._graph.leaves(literals) if node in outside]
        while left:
            node = left[-1]
            below = {x for each in self._rows[node][1] for x in self._graph.leaves([each])}
            waiting = [x for x in below - {node} if x in outside and x not in found]
            if node in found or not waiting:
                left.pop()
                found[node] = None
            elif node in begun:
                raise NotShownError("registers take each other's values in a loop")
            else:
                begun.add(node)
                left += waiting
        return list(found)

    def control(self) -> Control:
        """The unit without its payload."""
        out = {
            Load(controls, tuple(self._banks_of(x, self._bank) for x in rows))
            for controls, rows in (self._under_controls(bit) for bit in self._out.values())
        }
        return self._controlled(self._handshakes, out)

    @property
    def _handshakes(self) -> Handshakes:
        both = self._graph.both
        return Handshakes(
            inputs=[self._i_valid, self._o_ready, *self._ends],
            push=both(self._i_valid, self._i_ready),
            pop=both(self._o_valid, self._o_ready),
            shown=self._o_valid,
            ready=self._o_ready,
            takes=self._i_ready,
        )

    def _controlled(self, handshakes: Handshakes, out: Iterable[Load]) -> Control:
        """The unit without its payload, with some handshakes and outputs."""
        registers = [
            (2 * node, self._next[node], None if after is None else after == TRUE)
            for node, after in self._control.items()
        ]
        return Control(self._graph, registers, handshakes, self._loads, tuple(out))
