"""Combinational steps, and the stream unit that puts registers between them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.arguments import check_integer
from axs6.hw.core.parameters import STRUCTURE, check_view
from axs6.hw.core.placement import Ranks, handshake_bits, place_registers, spare_ranks
from axs6.hw.core.ranks import ADD_RANK
from axs6.hw.core.rtlil import add_lanes, verilog_name
from axs6.hw.core.structures import ArrayLayout, StructLayout


class Step(wiring.Component):
    """A combinational core: output port `o` is a function of input port `i`.

    Args:
        i, o: layouts of the two ports.
        levels: estimate of its depth in two-input gates, by which registers are placed: about
            0.1 ns each where a 130 nm library is mapped for speed.
        held: bits of `o` that registers after it hold, where some are always equal.
    """

    def __init__(
        self, i: data.Layout, o: data.Layout, *, levels: int, held: int | None = None
    ) -> None:
        self.levels = levels
        self.held = o.size if held is None else held
        super().__init__({"i": In(i), "o": Out(o)})


def add_steps(m: Module, steps: Sequence[Step]) -> None:
    """Make each step a submodule with its `verilog_name`, numbered where a name repeats."""
    names = [verilog_name(step) for step in steps]
    for index, (name, step) in enumerate(zip(names, steps, strict=True)):
        number = names[:index].count(name) if names.count(name) > 1 else ""
        m.submodules[f"{name}{number}"] = step


def cascade(m: Module, steps: Sequence[Step], value: Value) -> Any:
    """Connect steps one after the other, without registers, and return the last output."""
    add_steps(m, steps)
    for step in steps:
        m.d.comb += step.i.eq(value)
        value = step.o
    return value


class Chain(Step):
    """Steps one after the other, as one core."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)
        super().__init__(
            steps[0].i.shape(),
            steps[-1].o.shape(),
            levels=sum(step.levels for step in steps),
            held=steps[-1].held,
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the steps."""
        m = Module()
        m.d.comb += self.o.eq(cascade(m, self._steps, self.i))
        return m


class Past(Step):
    """A core, and data that passes by it: both payloads are the core's fields and those.

    Args:
        step: the core, whose ports are structures.
        passing: fields that pass by.
        shared: bits of the core's output that equal some of those.
    """

    def __init__(self, step: Step, passing: data.StructLayout, shared: int = 0) -> None:
        self._step = step
        self._passing = passing
        i, o = (
            StructLayout({**port.shape().members, **passing.members}) for port in (step.i, step.o)
        )
        super().__init__(i, o, levels=step.levels, held=step.held + passing.size - shared)

    def elaborate(self, platform: Any) -> Module:
        """Connect fields by their names."""
        m = Module()
        add_steps(m, [self._step])
        m.d.comb += [self._step.i[name].eq(self.i[name]) for name in self._step.i.shape().members]
        m.d.comb += [self.o[name].eq(self._step.o[name]) for name in self._step.o.shape().members]
        m.d.comb += [self.o[name].eq(self.i[name]) for name in self._passing.members]
        return m


NOTHING = StructLayout({})
"""No fields."""


def past(steps: Sequence[Step], passing: data.StructLayout) -> list[Step]:
    """Steps that some data passes by, if it has fields; see `Past`."""
    return [Past(step, passing) for step in steps] if passing.size else list(steps)


class Lanes(Step):
    """Equal cores side by side, each with an element of the arrays `i` and `o`."""

    def __init__(self, make: Callable[[], Step], lanes: int) -> None:
        self._make = make
        core = make()
        i, o = (ArrayLayout(port.shape(), lanes) for port in (core.i, core.o))
        super().__init__(i, o, levels=core.levels, held=lanes * core.held)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the cores."""
        m = Module()
        lanes = ({"i": i, "o": o} for i, o in zip(self.i, self.o, strict=True))
        add_lanes(m, platform, [self._make], lanes)
        return m


def in_lanes(make: Callable[[], Sequence[Step]], lanes: int) -> list[Step]:
    """Steps for a `Pipeline` whose items are arrays of `lanes` elements.

    Args:
        make: gives the steps of one lane, new ones in each call.
        lanes: number of elements.
    """
    copies = [make()]

    def step(index: int) -> Callable[[], Step]:
        numbers = count()

        def copy() -> Step:
            number = next(numbers)
            if number == len(copies):
                copies.append(make())
            return copies[number][index]

        return copy

    return [Lanes(step(index), lanes) for index in range(len(copies[0]))]


def place(steps: Sequence[Step], stages: int) -> Ranks:
    """Place `stages` ranks of registers among steps; see `place_registers`."""
    return place_registers([step.levels for step in steps], rank_widths(steps), stages)


def places_in(steps: Sequence[Step], stages: int) -> tuple[int, ...]:
    """Behind which step each rank stands: all that there are no places for behind the last one."""
    fitting = min(stages, len(steps) + 1)
    return place(steps, fitting).places + (len(steps) - 1,) * (stages - fitting)


def most_split_stages(front: Sequence[Step], back: Sequence[Step]) -> int:
    """The maximum number of ranks of two pipelines: one for each step, and one more in each."""
    return len(front) + len(back) + 2


def split_stages(front: Sequence[Step], back: Sequence[Step], stages: int) -> tuple[int, int]:
    """How many of `stages` ranks go among the steps of the first of two pipelines, and the second.

    The split whose deepest stretch is least, and of equal ones that which holds the fewest bits.
    """
    check_integer("stages", stages, 0, most_split_stages(front, back))

    def cost(before: int) -> tuple[int, int]:
        ranks = place(front, before), place(back, stages - before)
        return max(each.depth for each in ranks), sum(each.bits for each in ranks)

    least = max(0, stages - len(back) - 1)
    before = min(range(least, min(stages, len(front) + 1) + 1), key=cost)
    return before, stages - before


def rank_widths(steps: Sequence[Step]) -> list[int]:
    """Bits that a rank of registers holds in front of the first step, and after each."""
    return [steps[0].i.shape().size, *(step.held for step in steps)]


def viewed(make: Callable[[str], list[Step]], view: str) -> tuple[list[Step], list[Step]]:
    """The steps of a view, and those of the structure that they are like; see `Pipeline`.

    Args:
        make: gives the steps of a view.
        view: one of `axs6.hw.core.parameters.VIEWS`.

    Raises:
        ValueError: there is no such view.
    """
    structure = make(STRUCTURE)
    return (structure if check_view(view) == STRUCTURE else make(view)), structure


class Pipeline(wiring.Component):
    """A stream unit made of combinational steps with `stages` ranks of registers.

    A rank takes new data when
    it is empty or its data moves on, so bubbles close up under backpressure; with no ranks the
    unit is combinational from `i` to `o` and `ready` goes straight back. In long pipelines some
    ranks have a spare register, and take new data when that is empty: this cuts the `ready` path.
    Only what says that a register is in use is reset.

    Args:
        steps: combinational cores, each taking what the one before gives.
        stages: ranks of registers, from 0 to one more than there are steps.
        carry: layout of data that travels with each item past the steps; the payloads are then
            structures of `data` and `carry`.
        registered: whether `ready` of a long pipeline comes from a register.
        rigid: whether all ranks but the last move only together with the next one. Then `ready`
            passes no logic, but bubbles do not close up.
        like: steps of another view of the unit. Every rank has a spare where it would have one
            among those, and there may be as many ranks: the ports of both are equal in every
            cycle. The ranks that the steps have no place for stand behind the last one.

    Ports:
        i (in, stream): an item is what the first step takes.
        o (out, stream): an item is what the last step gives.

    Latency is `stages` cycles, interval 1.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        stages: int,
        carry: data.StructLayout | None = None,
        *,
        registered: bool = False,
        rigid: bool = False,
        like: Sequence[Step] | None = None,
    ) -> None:
        like = steps if like is None else like
        self._steps, self._like = steps, like
        self._registered, self._rigid = registered, rigid
        self._carry = carry
        ranks = place(like, stages)
        self._spares = spare_ranks(ranks.depths, self._rank_bits(like, ranks.places), registered)
        self._places = ranks.places if like is steps else places_in(steps, stages)
        self._bits = self._rank_bits(steps, self._places)
        # Of `ready` of each rank, and of the output.
        self._copies = [1] * (len(self._bits) + 1)
        if rigid:
            held = self._rank_bits(like, ranks.places)
            self._copies = [*handshake_bits(held, self._spares), 1]
        super().__init__(
            {
                "i": In(stream.Signature(self._payload(self._steps[0].i.shape()))),
                "o": Out(stream.Signature(self._payload(self._steps[-1].o.shape()))),
            }
        )

    def _rank_bits(self, steps: Sequence[Step], places: Sequence[int]) -> list[int]:
        """Registers of a rank behind each of some steps, `valid` included."""
        carried = 0 if self._carry is None else self._carry.size
        widths = rank_widths(steps)
        return [1 + carried + widths[index + 1] for index in places]

    def _payload(self, layout: data.Layout) -> data.Layout:
        if self._carry is None:
            return layout
        return StructLayout({"data": layout, "carry": self._carry})

    def carrying(self, carry: data.StructLayout) -> "Pipeline":
        """The same steps and ranks, with data that travels with each item past the steps."""
        return Pipeline(
            self._steps,
            self.latency,
            carry,
            registered=self._registered,
            rigid=self._rigid,
            like=self._like,
        )

    @property
    def most_stages(self) -> int:
        """The largest number of stages that the unit can have."""
        return len(self._like) + 1

    @property
    def latency(self) -> int:
        """Cycles from taking an item to offering its result, when nothing waits."""
        return len(self._places)

    @property
    def interval(self) -> int:
        """Cycles between items, when nothing waits."""
        return 1

    @property
    def flip_flops(self) -> int:
        """Registers in all ranks, one of each rank and of each spare says whether it is in use."""
        spares = sum(self._bits[rank] + self._copies[rank] - 1 for rank in self._spares)
        return sum(self._bits) + spares

    def elaborate(self, platform: Any) -> Module:
        """Build the steps and the ranks between them."""
        m = Module()
        add_steps(m, self._steps)
        valid: Value = self.i.valid
        ready: Value = self.i.ready
        if self._rigid:
            ready = Signal(self._copies[0], name="ready0")
            m.d.comb += self.i.ready.eq(ready[0])
        item = self.i.payload
        rank = 0
        for index in range(-1, len(self._steps)):
            if index >= 0:
                item = self._through(m, self._steps[index], item)
            for _ in range(self._places.count(index)):
                moves = Signal(self._copies[rank + 1], name=f"ready{rank + 1}")
                # An output that waits for `valid` must not hold up an empty last rank.
                rigid = self._rigid and rank + 1 < self.latency
                add_rank = ADD_RANK[rigid, rank in self._spares]
                valid, item = add_rank(m, rank + 1, valid, ready, item, moves)
                ready = moves
                rank += 1
        m.d.comb += [self.o.valid.eq(valid), ready.eq(self.o.ready), self.o.payload.eq(item)]
        return m

    def _through(self, m: Module, step: Step, item: Any) -> Any:
        """The result of a step for an item, beside the data that travels with the item."""
        if self._carry is None:
            m.d.comb += step.i.eq(item)
            return step.o
        m.d.comb += step.i.eq(item.data)
        passed = Signal(self._payload(step.o.shape()))
        m.d.comb += [passed.data.eq(step.o), passed.carry.eq(item.carry)]
        return passed


class Wrapper(wiring.Component):
    """A component with other ports around a unit, and the unit's timing.

    Args:
        inner: the unit, kept under that name.
        ports: of the component, which a class that derives from this one lists.

    Latency and interval are those of the unit.
    """

    def __init__(self, inner: Any, ports: Mapping[str, wiring.Member]) -> None:
        self.inner = inner
        super().__init__(ports)

    @property
    def most_stages(self) -> int:
        """The largest number of stages that the unit can have."""
        return int(self.inner.most_stages)

    @property
    def latency(self) -> int:
        """Cycles from taking what completes a result to offering it, when nothing waits."""
        return int(self.inner.latency)

    @property
    def interval(self) -> int:
        """Cycles between items, when nothing waits."""
        return int(self.inner.interval)

    @property
    def flip_flops(self) -> int:
        """Registers of the unit."""
        return int(self.inner.flip_flops)


class UnitSeries(wiring.Component):
    """Units one after the other as one, with an input stream `i` and an output stream `o`.

    Args:
        parts: the units, in order.
        i: the input stream.
        o: the output stream.

    Ports:
        i (in, stream as the argument): an item of the first unit.
        o (out, stream as the argument): an item of the last unit.

    Latency is the sum of those of the units, interval 1.
    """

    interval = 1

    def __init__(self, parts: Sequence[Any], i: Any, o: Any) -> None:
        self._parts = parts
        super().__init__({"i": In(i.signature.flip()), "o": Out(o.signature)})

    @property
    def latency(self) -> int:
        """Cycles from taking what completes a result to offering it, when nothing waits."""
        return sum(part.latency for part in self._parts)

    @property
    def flip_flops(self) -> int:
        """Registers of all parts."""
        return sum(part.flip_flops for part in self._parts)
