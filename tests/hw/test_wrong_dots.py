"""Dot products with one deliberate fault each: corners and random items find all of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import wiring

from axs6.hw.core.pipeline import Step
from axs6.hw.dot import accumulated, align, block_dot, lanes, packed, promote, shape
from axs6.hw.dot.block_dot import BlockDot
from axs6.hw.dot.matmul import Matmul
from axs6.hw.fp32 import add
from axs6.hw.units.block_dot import BLOCK_DOT
from axs6.hw.units.dot import DOT, MATMUL
from axs6.hw.units.unit import Unit
from axs6.sim.batch.engine import ComponentModel, component_source

Change = Callable[[Any, Any, Any], Any]
"""Assignments to the output of a step, from its input, what the right one gives, and the output."""


def faulty(right: type[Step], change: Change) -> Any:
    """A step as another, but for the assignments of `change`."""

    class Faulty(Step):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.right = right(*args, **kwargs)
            super().__init__(self.right.i.shape(), self.right.o.shape(), levels=self.right.levels)

        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.right = inner = self.right
            m.d.comb += [inner.i.eq(self.i), self.o.eq(inner.o)]
            m.d.comb += change(self.i, inner.o, self.o)
            return m

    return Faulty


def of_inputs(inner: Any, change: Callable[[Any, Any], Any]) -> wiring.Component:
    """A unit some of whose inputs are others than those that it is given."""

    class Faulty(wiring.Component):
        def __init__(self) -> None:
            super().__init__(inner.signature)

        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.inner = inner
            wiring.connect(m, inner.o, wiring.flipped(self.o))
            m.d.comb += [
                inner.i.valid.eq(self.i.valid),
                self.i.ready.eq(inner.i.ready),
                inner.i.payload.eq(self.i.payload),
            ]
            m.d.comb += change(self.i.payload, inner.i.payload)
            return m

    return Faulty()


def caught(unit: Unit, component: Any, settings: Any) -> bool:
    """Whether an output of a component differs from that of a unit with these parameters."""
    turns = settings.get("interleave", 1)
    model = ComponentModel(component_source(component), "a wrong dot product", turns)
    for items in (unit.corners(settings), unit.random(settings, np.random.default_rng(3), 2000)):
        given = model.run(items).outputs
        for name, expected in unit.golden(items, settings).items():
            if not np.array_equal(given[name], expected):
                return True
    return False


FUSED = {"format": "mxfp8_e5m2", "block": 8, "accumulator": "volta,reduction=8"}
FLOOR = {"format": "mxfp4", "block": 8, "accumulator": "fp32,fraction=9"}
PROMOTED = {"format": "mxfp4", "block": 8, "accumulator": "fp32,promote=3"}
PACKED = {"format": "int4", "block": 8, "blocks": "packed"}
E5M2_NAN = 0xFF

STEPS: dict[str, tuple[dict[str, Any], Any, str, Change]] = {
    "a lane counts twice": (
        *(FUSED, accumulated, "MakeTerms"),
        lambda i, right, o: o["values"][3].eq(right["values"][3] << 1),
    ),
    "a term moves one place less": (
        *(FLOOR | {"format": "mxfp8_e5m2"}, align, "Distances"),
        lambda i, right, o: o.distances[5].eq(right.distances[5] - right.distances[5].any()),
    ),
    "the NaN of a lane is lost": (
        *(FUSED, accumulated, "MakeTerms"),
        lambda i, right, o: o.nan.eq(right.nan & (i.a.codes[6] != E5M2_NAN)),
    ),
    "a segment has a step more": (
        *(PROMOTED, promote, "Begin"),
        lambda i, right, o: o["count"].eq(right["count"] - (i.total["count"] == 1)),
    ),
    "an error of b is lost": (
        *(PACKED, packed, "CheckPair"),
        lambda i, right, o: o.error.eq(right.error & (i.b.outer >> 31 == 0)),
    ),
    "an outer scale of one item stays": (
        *(PACKED, packed, "ScaledTotal"),
        lambda i, right, o: o.outer.eq(right.outer ^ (right.outer[:23] == 1)),
    ),
}
QUICK = ("a lane counts twice",)


@pytest.mark.parametrize(
    ("given", "module", "name", "change"),
    [
        pytest.param(*fault, id=title, marks=() if title in QUICK else pytest.mark.slow)
        for title, fault in STEPS.items()
    ],
)
def test_a_wrong_step_of_a_dot_product_is_found(
    given: dict[str, Any],
    module: Any,
    name: str,
    change: Change,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = DOT.simulated({"interleave": 2, **given})
    monkeypatch.setattr(module, name, faulty(getattr(module, name), change))
    assert caught(DOT, DOT.build(**settings), settings)


def test_a_wrong_entry_of_a_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = lanes.table_integer

    def wrong(table: Any, code: Any) -> Any:
        return (right(table, code) ^ (code == 9)).as_signed()

    monkeypatch.setattr(lanes, "table_integer", wrong)
    settings = BLOCK_DOT.simulated({"format": "nf4q6_e8m0_t8", "block": 8})
    assert caught(BLOCK_DOT, BLOCK_DOT.build(**settings), settings)


@pytest.mark.parametrize("format", ["if4_t8", pytest.param("razer_t8", marks=pytest.mark.slow)])
def test_a_bit_that_selects_nothing_is_found(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def first(fmt: Any, codes: Any, scales: Any) -> list[Any]:
        return [Cat(code, Const(0, 1)) for code in codes]

    monkeypatch.setattr(shape, "with_selectors", first)
    settings = BLOCK_DOT.simulated({"format": format, "block": 8})
    assert caught(BLOCK_DOT, BLOCK_DOT.build(**settings), settings)


def test_a_row_of_a_tile_that_takes_another_row_is_found() -> None:
    given = {
        "format": "int4",
        "block": 8,
        "rows": 2,
        "columns": 1,
        "accumulator": "fp32,fraction=9",
    }
    settings = MATMUL.simulated(given)
    tile = of_inputs(
        Matmul(**settings),
        lambda i, to: to.a.codes[1][7].eq(i.a.codes[0][7]),
    )
    assert caught(MATMUL, tile, settings)


INPUTS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "a wrong weight": ("mxint8", lambda i, to: to.b.codes[3].eq(i.b.codes[3] << 1)),
    "a wrong alignment": ("mxfp8_e4m3", lambda i, to: to.a.codes[2][3].eq(0)),
    "a wrong shift": ("mx9", lambda i, to: to.a.shifts[1].eq(0)),
    "a dropped NaN": ("mxfp4", lambda i, to: to.a.exponent.eq(i.a.exponent - i.a.exponent.all())),
}


@pytest.mark.parametrize(
    ("fmt", "change"),
    [
        pytest.param(*fault, id=title, marks=() if title == "a dropped NaN" else pytest.mark.slow)
        for title, fault in INPUTS.items()
    ],
)
def test_a_wrong_block_dot_product_is_found(fmt: str, change: Callable[[Any, Any], Any]) -> None:
    settings = BLOCK_DOT.simulated({"format": fmt})
    assert caught(BLOCK_DOT, of_inputs(BlockDot(**settings), change), settings)


def test_a_lost_bit_of_the_sum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = block_dot.AddRows
    wrong = faulty(right, lambda i, right, o: o.sum.eq(right.sum & ~(right.sum == 1)))
    settings = BLOCK_DOT.parameters({"format": "mx4"})
    monkeypatch.setattr(block_dot, "AddRows", wrong)
    assert caught(BLOCK_DOT, BlockDot(**settings), settings)


def no_limit(i: Any, right: Any, o: Any) -> Any:
    """A sum of finite numbers that is too large has the bits of its magnitude."""
    number = Cat(i.magnitude[: len(right.value) - 1], i.sign)
    return o.value.eq(Mux(i.nan | i.infinite, right.value, number))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"block": 8}, marks=pytest.mark.slow),
        pytest.param({"block": 32}, marks=pytest.mark.slow),
        pytest.param({"format": "mxfp8_e4m3", "block": 8}, marks=pytest.mark.slow),
        FLOOR,
        pytest.param({**FLOOR, "format": "mxint8"}, marks=pytest.mark.slow),
        pytest.param(
            {"format": "mxfp8_e5m2", "block": 8, "accumulator": "fp32,fraction=9,output=bf16"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_corners_find_an_accumulator_without_its_limit_to_infinity(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = DOT.simulated(given)
    monkeypatch.setattr(add, "PackFp32", faulty(add.PackFp32, no_limit))
    model = ComponentModel(component_source(DOT.build(**settings)), "a wrong dot product")
    items = DOT.corners(settings)
    given_values, expected = model.run(items).outputs["value"], DOT.golden(items, settings)["value"]
    assert not np.array_equal(given_values, expected)
