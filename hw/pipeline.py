"""Combinational steps, and the stream unit that puts registers between them."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from axs6.hw.placement import Ranks, place_registers


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
    """Make each step a submodule named after its class, numbered where a class repeats."""
    names = [_snake_case(type(step).__name__) for step in steps]
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


class Lanes(Step):
    """Equal cores side by side, each with an element of the arrays `i` and `o`."""

    def __init__(self, cores: Sequence[Step]) -> None:
        self._cores = tuple(cores)
        i, o = (data.ArrayLayout(port.shape(), len(cores)) for port in (cores[0].i, cores[0].o))
        super().__init__(i, o, levels=cores[0].levels, held=len(cores) * cores[0].held)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the cores."""
        m = Module()
        for index, core in enumerate(self._cores):
            m.submodules[f"lane{index}"] = core
            m.d.comb += [core.i.eq(self.i[index]), self.o[index].eq(core.o)]
        return m


def in_lanes(make: Callable[[], Sequence[Step]], lanes: int, stages: int) -> list[Step]:
    """Steps for a `Pipeline` whose items are arrays of `lanes` elements.

    What lies between two ranks of registers becomes one core in each lane.

    Args:
        make: gives the steps of one lane, new ones in each call.
        lanes: number of elements.
        stages: ranks of registers that the pipeline will have.
    """
    steps = make()
    ends = [index + 1 for index in place(steps, stages).places if index >= 0] or [len(steps)]
    copies = [make() for _ in range(lanes)]
    return [
        Lanes([Chain(steps[start:end]) for steps in copies]) for start, end in pairwise([0, *ends])
    ]


def _snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def place(steps: Sequence[Step], stages: int) -> Ranks:
    """Place `stages` ranks of registers among steps; see `place_registers`."""
    widths = [steps[0].i.shape().size, *(step.held for step in steps)]
    return place_registers([step.levels for step in steps], widths, stages)


class Pipeline(wiring.Component):
    """A stream unit made of combinational steps with `stages` ranks of registers.

    Ports `i` and `o` are streams with `valid`, `ready` and `payload`. A rank takes new data when
    it is empty or its data moves on, so bubbles close up under backpressure; with no ranks the
    unit is combinational from `i` to `o` and `ready` goes straight back. Only `valid` is reset.

    Args:
        steps: combinational cores, each taking what the one before gives.
        stages: ranks of registers, from 0 to one more than there are steps.
        carry: layout of data that travels with each item past the steps; the payloads are then
            structures of `data` and `carry`.
    """

    def __init__(
        self, steps: Sequence[Step], stages: int, carry: data.StructLayout | None = None
    ) -> None:
        self._steps = tuple(steps)
        self._ranks = place(steps, stages)
        self._carry = carry
        super().__init__(
            {
                "i": In(stream.Signature(self._payload(self._steps[0].i.shape()))),
                "o": Out(stream.Signature(self._payload(self._steps[-1].o.shape()))),
            }
        )

    def _payload(self, layout: data.Layout) -> data.Layout:
        if self._carry is None:
            return layout
        return data.StructLayout({"data": layout, "carry": self._carry})

    @property
    def most_stages(self) -> int:
        """The largest number of stages that the unit can have."""
        return len(self._steps) + 1

    @property
    def latency(self) -> int:
        """Cycles from taking an item to offering its result, when nothing waits."""
        return len(self._ranks.places)

    @property
    def interval(self) -> int:
        """Cycles between items, when nothing waits."""
        return 1

    @property
    def flip_flops(self) -> int:
        """Registers in all ranks, one of each rank for `valid`."""
        carried = 1 if self._carry is None else 1 + self._carry.size
        return self._ranks.bits + self.latency * carried

    def elaborate(self, platform: Any) -> Module:
        """Build the steps and the ranks between them."""
        m = Module()
        add_steps(m, self._steps)
        payload = self.i.payload if self._carry is None else self.i.payload.data
        carry = None if self._carry is None else self.i.payload.carry
        valid: Value = self.i.valid
        readies: list[Value] = [self.i.ready]
        for index in range(-1, len(self._steps)):
            if index >= 0:
                step = self._steps[index]
                m.d.comb += step.i.eq(payload)
                payload = step.o
            if index in self._ranks.places:
                valid, payload, carry = self._rank(m, len(readies), valid, payload, carry, readies)
        m.d.comb += [self.o.valid.eq(valid), readies[-1].eq(self.o.ready)]
        if self._carry is None:
            m.d.comb += self.o.payload.eq(payload)
        else:
            m.d.comb += [self.o.payload.data.eq(payload), self.o.payload.carry.eq(carry)]
        return m

    def _rank(
        self, m: Module, number: int, valid: Value, payload: Any, carry: Any, readies: list[Value]
    ) -> tuple[Value, Any, Any]:
        """Add one rank of registers; `readies` gets the signal that tells it to move on."""
        held = Signal(name=f"valid{number}")
        moves = Signal(name=f"ready{number}")
        taken = Signal(payload.shape(), name=f"stage{number}", reset_less=True)
        m.d.comb += readies[-1].eq(~held | moves)
        readies.append(moves)
        carried = None
        with m.If(readies[-2]):
            m.d.sync += held.eq(valid)
            with m.If(valid):
                m.d.sync += taken.eq(payload)
        if carry is not None:
            carried = Signal(carry.shape(), name=f"carry{number}", reset_less=True)
            with m.If(readies[-2] & valid):
                m.d.sync += carried.eq(carry)
        return held, taken, carried
