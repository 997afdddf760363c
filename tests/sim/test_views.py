"""Both views of a unit are equal at all ports in every cycle, with and without stalls."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.hw.core.layouts import fields
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.dot.block_dot import AddRows, BlockDot, block_dot_steps
from axs6.hw.dot.shape import DotShape
from axs6.hw.dot.words import MultiplyCodes, block_dot_words
from axs6.hw.registry import UNITS, find
from axs6.sim.batch.engine import ComponentModel, component_source
from axs6.sim.compiled import Stall
from axs6.sim.regress import configurations
from axs6.sim.words import Items

VIEWED = [name for name, unit in UNITS.items() if "view" in unit.choices({})]
STALLS = (None, Stall(0.5, 0.5, seed=3), Stall(0.0, 0.9, seed=4), Stall(0.9, 0.0, seed=5))
ITEMS = 8_000
FEW = ("block_dot", "decoder")
"""Units that every run has. The views of the others equal the golden model in other tests, and one
another in the slow ones."""

SMALL = {"block": 8, "rows": 1, "columns": 2}


class Miter(wiring.Component):
    """Two units with the same ports, the same inputs and the same stalls.

    The outputs are those of the first; `differs` says that up to this cycle the two differed in
    `ready`, in `valid`, or in a payload that is valid.
    """

    def __init__(self, first: Any, second: Any) -> None:
        self._units = first, second
        self._fields = fields(first.o.payload.shape())
        payload = data.StructLayout({**first.o.payload.shape().members, "differs": 1})
        super().__init__(
            {
                "i": In(first.i.signature.flip()),
                "o": Out(type(first.o.signature)(payload)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        first, second = self._units
        for unit in self._units:
            m.submodules += unit
            m.d.comb += [
                unit.i.valid.eq(self.i.valid),
                unit.i.payload.eq(self.i.payload),
                unit.o.ready.eq(self.o.ready),
            ]
        wrong = [a != b for a, b in zip(*map(self._numbers, self._units), strict=True)]
        now, before = Signal(), Signal()
        ready, valid = first.i.ready ^ second.i.ready, first.o.valid ^ second.o.valid
        m.d.comb += [
            now.eq(before | ready | valid | (first.o.valid & Cat(wrong).any())),
            self.i.ready.eq(first.i.ready),
            self.o.valid.eq(first.o.valid),
            self.o.payload.eq(Cat(first.o.payload, now)),
        ]
        m.d.sync += before.eq(now)
        return m

    def _numbers(self, unit: Any) -> Iterator[Value]:
        payload = Value.cast(unit.o.payload)
        for field in self._fields:
            for index in range(field.count):
                yield payload[field.offset + index * field.width :][: field.width]


def differences(first: Any, second: Any, turns: int, items: Items) -> list[bool]:
    """Whether two units differ in a run with each of `STALLS`."""
    model = ComponentModel(component_source(Miter(first, second)), "miter", turns)
    return [bool(model.run(items, stall).outputs["differs"].any()) for stall in STALLS]


def unit_cases(unit: str) -> Iterator[Any]:
    """Every number of stages, with the other parameters in turn; a few of them at once."""
    small = {name: SMALL[name] for name in SMALL if name in UNITS[unit].defaults}
    others = configurations(unit, {**small, "view": STRUCTURE})
    most = [UNITS[unit].most_stages(each) for each in others]
    for stages in range(most[0] + 1):
        parameters = {**others[stages % len(others)], "stages": stages}
        if stages > most[stages % len(others)]:
            continue
        # Without registers a path is the same gates: one unit shows it in every run.
        few = unit in FEW and (stages == most[0] or (not stages and unit == VIEWED[0]))
        yield pytest.param(unit, parameters, marks=() if few else pytest.mark.slow)


@pytest.mark.parametrize(
    ("unit", "parameters"), [case for unit in VIEWED for case in unit_cases(unit)]
)
def test_views_are_equal_in_every_cycle(unit: str, parameters: dict[str, Any]) -> None:
    entry = UNITS[unit]
    structure: Any = entry.build(**parameters)
    words: Any = entry.build(**{**parameters, "view": BEHAVIOUR})
    assert (structure.latency, structure.interval) == (words.latency, words.interval)
    assert structure.most_stages == words.most_stages
    stimulus = find(unit)
    corners = stimulus.corners(parameters)
    random = stimulus.random(parameters, np.random.default_rng(1), ITEMS)
    items = {name: np.concatenate([corners[name], random[name]]) for name in random}
    assert not any(differences(structure, words, parameters.get("interleave", 1), items))


class SumWithoutSign(AddRows):
    """The last adder of the structure, wrong where the sum is negative."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        m.d.comb += self.o.sum[-1].eq(0)
        return m


class ProductOfZero(MultiplyCodes):
    """Products in words, wrong in one lane for one pair of codes: -0 times 31."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)
        with m.If((self.i.a.codes[3] == 0b100000) & (self.i.b.codes[3] == 31)):
            m.d.comb += self.o.terms[3].eq(1)
        return m


SHAPE = DotShape.of("axs6", 8)


def structure_of(stages: int, change: Callable[[Any], Any] = lambda steps: steps) -> Pipeline:
    """The structure of a block dot product, which may have another step in place of one."""
    return Pipeline(change(block_dot_steps(SHAPE)), stages, like=block_dot_steps(SHAPE))


def words_of(stages: int, change: Callable[[Any], Any] = lambda steps: steps) -> Pipeline:
    """The same in words."""
    return Pipeline(change(block_dot_words(SHAPE)), stages, like=block_dot_steps(SHAPE))


class WithoutSpares(Pipeline):
    """A pipeline whose `ready` goes through all ranks, however many."""

    def __init__(self, stages: int) -> None:
        super().__init__(block_dot_words(SHAPE), stages, like=block_dot_steps(SHAPE))
        self._spares = ()


def without_sign(steps: Any) -> Any:
    """The structure with a wrong last adder."""
    return [*steps[:-1], SumWithoutSign(steps[-1].heap)]


def wrong_product(steps: Any) -> Any:
    """The words with a wrong product."""
    return [ProductOfZero(SHAPE, steps[0].terms), *steps[1:]]


PLANTED = {
    "structure": lambda: structure_of(2, without_sign),
    "words": lambda: words_of(2, wrong_product),
    "spares": lambda: WithoutSpares(8),
    "latency": lambda: words_of(3),
}


@pytest.mark.parametrize(
    "planted",
    [pytest.param(each, marks=[pytest.mark.slow] * (each == "words")) for each in PLANTED],
)
def test_a_difference_in_either_view_is_found(planted: str) -> None:
    view = BEHAVIOUR if planted == "structure" else STRUCTURE
    stages = 8 if planted == "spares" else 2
    right, wrong = BlockDot(8, stages, view), PLANTED[planted]()
    small = {"block": 8, "format": "axs6"}
    items = find("block_dot").random(small, np.random.default_rng(1), ITEMS)
    items["a.codes"][1000, 3], items["b.codes"][1000, 3] = 0b100000, 31
    found = differences(right, wrong, 1, items)
    if planted == "spares":
        assert found == [False, True, True, False]
    else:
        assert all(found)


def test_simulators_take_the_behaviour_view_unless_asked() -> None:
    assert UNITS["dot"].simulated({})["view"] == BEHAVIOUR
    assert UNITS["dot"].simulated({"view": STRUCTURE})["view"] == STRUCTURE
    assert "view" not in UNITS["lfsr"].simulated({})
    assert UNITS["dot"].defaults["view"] == STRUCTURE


def test_unknown_view_is_refused() -> None:
    for name in VIEWED:
        with pytest.raises(ValueError, match="view must be one of structure, behaviour, not 'x'"):
            UNITS[name].build(view="x")
