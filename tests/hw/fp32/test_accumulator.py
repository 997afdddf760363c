"""Vectors that take turns: what is finished comes out, and what goes around stays as it is."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module

from axs6.hw.core.pipeline import Step
from axs6.hw.dot import fused, promote
from axs6.hw.fp32 import accumulator
from axs6.hw.fp32.accumulator import Skips
from axs6.hw.units.dot import DOT
from axs6.sim.batch.engine import ComponentModel, component_source
from axs6.sim.compiled import Stall
from axs6.sim.tools import ToolError


def model(settings: Any) -> ComponentModel:
    component = component_source(DOT.build(**settings))
    return ComponentModel(component, "a dot product", settings["interleave"])


SMALL = {"format": "mxfp4", "block": 8}


def unfinished(settings: Any) -> dict[str, Any]:
    """Two items of each vector in turn, of which the last one alone ends."""
    count = 2 * settings["interleave"]
    items = DOT.random(settings, np.random.default_rng(5), count)
    return {**items, "last": np.arange(count) == count - 1}


@pytest.mark.parametrize(
    ("interleave", "stages"),
    [(2, 1), *(pytest.param(*each, marks=pytest.mark.slow) for each in [(3, 0), (8, 3), (14, 2)])],
)
def test_a_result_comes_though_the_other_vectors_never_end(interleave: int, stages: int) -> None:
    settings = DOT.simulated({**SMALL, "interleave": interleave, "stages": stages})
    items = unfinished(settings)
    run = model(settings).run(items)
    assert np.array_equal(run.outputs["value"], DOT.golden(items, settings)["value"])
    assert run.cycles == 2 * interleave + stages + 2 * interleave


@pytest.mark.slow
@pytest.mark.parametrize("interleave", [2, 3, 4, 8, 14])
def test_no_result_takes_longer_than_the_page_says(interleave: int) -> None:
    """One vector begins in some turn, and another one ends in each other turn behind it."""
    settings = DOT.simulated({**SMALL, "interleave": interleave, "stages": 1})
    one = model(settings)
    latencies = []
    for begun in range(interleave - 1):
        for ended in range(begun + 1, interleave):
            items = DOT.random(settings, np.random.default_rng(5), ended + 1)
            last = np.arange(ended + 1) != begun
            latencies.append(one.run({**items, "last": last}).cycles - (ended + 1))
    assert max(latencies) <= 1 + 3 * interleave


ACCUMULATORS = {
    "axs6": {},
    "bits below": {
        "format": "mxfp4",
        "accumulator": "fp32,reduction=8,fraction=5,fused=true",
    },
    "promoted": {"format": "mxfp4", "accumulator": "fp32,fraction=9,promote=3"},
    "two's complement, not fused": {"format": "mxfp4", "accumulator": "paper"},
    "bits below, magnitudes": {
        "format": "mxfp8_e4m3",
        "accumulator": "fp32,reduction=8,fraction=9,fused=true,alignment=zero",
    },
    "bits below, promoted": {
        "format": "mxfp8_e4m3",
        "accumulator": "fp32,reduction=8,fraction=5,fused=true,rounding=toward_zero,promote=2",
    },
    "fewer bits": {
        "format": "mxfp6_e2m3",
        "accumulator": "fp32,reduction=8,fraction=12,fused=true,output=bf16,alignment=zero",
    },
    "exact": {"format": "e2m1fn_e4m0_t8", "accumulator": "exact"},
    "tensor core": {"format": "mxfp8_e5m2", "accumulator": "volta,reduction=8"},
    "tensor core, promoted": {
        "format": "fp8_e4m3",
        "accumulator": "hopper_fp8,reduction=8,promote=2",
    },
    "scaled": {
        "format": "e4m3fn_float32_t8",
        "accumulator": "hopper_fp8,reduction=4,promote=2,scaled=true",
    },
    "packed": {"format": "int4", "blocks": "packed"},
}
QUICK = ("bits below, promoted",)
SPARSE = Stall(0.9, 0.2, 3)
"""So few items that totals go around."""


def settings_of(name: str, interleave: int = 2) -> dict[str, Any]:
    return DOT.simulated({"block": 8, "interleave": interleave, **ACCUMULATORS[name]})


def differs(settings: Any, count: int) -> bool:
    """Whether results of sparse items are others than those of the golden model."""
    items = DOT.random(settings, np.random.default_rng(7), count)
    given = model(settings).run(items, SPARSE).outputs
    expected = DOT.golden(items, settings)
    return any(not np.array_equal(given[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in ACCUMULATORS],
)
def test_totals_that_go_around_keep_their_bits(name: str) -> None:
    assert not differs(settings_of(name), 1500)


@pytest.mark.slow
@pytest.mark.parametrize("interleave", [3, 8, 14])
@pytest.mark.parametrize("name", ["axs6", "bits below, promoted"])
def test_totals_of_many_turns_keep_their_bits(name: str, interleave: int) -> None:
    assert not differs(settings_of(name, interleave), 6000)


class Never(Skips):
    """Skips no turn."""

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += [
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
            self.o.payload.data.eq(self.i.payload.data),
            self.o.payload.carry.eq(self.i.payload.carry),
        ]
        return m


def test_a_unit_that_keeps_results_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulator, "Skips", Never)
    settings = DOT.simulated({**SMALL, "interleave": 2})
    with pytest.raises(ToolError, match="stopped"):
        model(settings).run(unfinished(settings))


class Forgets(fused.PutBack):
    """Loses the bits that were set aside."""

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.o.value.eq(self.i.value)
        return m


class Counts(promote.Begin):
    """Counts turns that are skipped as steps."""

    def elaborate(self, platform: Any) -> Module:
        self._skips = False
        return super().elaborate(platform)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "wrong", "name"),
    [(fused, Forgets, "bits below"), (promote, Counts, "promoted")],
)
def test_a_unit_that_changes_what_goes_around_is_found(
    module: Any, wrong: type[Step], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, wrong.__base__.__name__, wrong)
    assert differs(settings_of(name), 1500)
