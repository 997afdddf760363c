"""Dot products of every kind of accumulator equal the golden model in the batch simulator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from numpy.typing import NDArray

from axs6.golden.dot import matmul
from axs6.hw.core.layouts import outer_names
from axs6.hw.dot import fused
from axs6.hw.dot.dot import Dot
from axs6.hw.registry import find
from axs6.hw.units.accumulate import terms_of
from axs6.hw.units.blocks import blocks_of
from axs6.sim.batch.engine import BatchModel, ComponentModel, Stall, component_source

DOT = find("dot")

QUICK = [("fp8_e5m2", "volta"), ("mx6", "fp32,rounding=toward_zero,output=e8m9,promote=3")]
MATRIX_CORES = [
    ("mxfp4", "cdna3_fp8"),
    ("mxfp4", "cdna1"),
    ("mxfp4", "cdna2_bf16_1k"),
]
"""One of each kind of AMD's matrix cores, in a format whose products are short."""

WIDE = ("mxfp8_e5m2", "cdna3_fp8")
"""Products that lie further apart than the first of them reach."""

PAIRS = [
    WIDE,
    ("fp8_e4m3", "hopper_fp8"),
    ("fp8_e4m3", "ada_fp8"),
    ("fp8_e5m2", "hopper_fp8"),
    ("fp8_e4m3xfp8_e5m2", "turing"),
    ("fp8_e5m2", "blackwell"),
    ("mxfp8_e4m3", "blackwell_mx"),
    ("mxfp8_e5m2", "blackwell_mx"),
    ("mxfp6_e2m3xmxfp4", "blackwell_mx"),
    ("mxfp4xmxfp8_e4m3", "blackwell_mx"),
    ("mxfp4", "blackwell_fp4"),
    ("nvfp4", "blackwell_fp4"),
    ("nvfp4", "hopper"),
    ("axs6", "paper"),
    ("mx9", "paper"),
    ("mxfp8_e4m3", "paper"),
    ("mx6", "ampere"),
    ("mxint8xmxfp8_e4m3", "hopper"),
    ("vsq6", "hopper"),
    ("int8", "hopper_fp8"),
    ("axs6", "hopper"),
    ("e5m2_e8m0_t32", "fp32,reduction=8,fraction=9,fused=true"),
    ("mxfp4", "fp32,reduction=16,fraction=3,alignment=zero,fused=true,output=e5m6"),
    ("mxfp6_e3m2", "fp32,reduction=64,fraction=0,alignment=zero"),
    ("fp8_e4m3", "hopper_fp8,promote=4"),
    ("mxfp4", "fp32,promote=1"),
    ("axs6", "exact"),
    ("fp8_e4m3", "exact"),
    ("mxfp8_e5m2", "exact"),
    ("mxfp4", "exact,reduction=64,fraction=20"),
    ("mx6", "fp32,reduction=64"),
    ("mx6", "fp32,rounding=toward_zero,output=e8m9,promote=3"),
    *(("sm4dz_e8m0f_t16", how) for how in ("paper", "hopper", "fp32,promote=2", "exact")),
    ("int8d_e8m0_t16s2o1", "paper"),
    ("fp8_e5m2", "hopper_fp8_to_fp16"),
    *((name, how) for name in ("axs6", "mx9", "nvfp4") for how in ("cdna1", "cdna2", "cdna3_fp8")),
    ("mxfp8_e5m2", "cdna2"),
    ("fp8_e5m2", "cdna1"),
    ("int8", "cdna_fp32,promote=3"),
    ("fp8_e4m3fnuz", "cdna3_fp8,promote=2"),
    ("mxfp8_e4m3", "cdna2_bf16,promote=3"),
    ("mxfp8_e5m2", "cdna3,reduction=32,alignment=floor,groups=4"),
    ("mxfp4", "fp32,reduction=16,output=e8m9,pairwise=true"),
]
"""Formats and accumulators: fused and not, every alignment, parts of blocks and several."""


def settings(pair: tuple[str, str], **changed: Any) -> dict[str, Any]:
    """Parameters of a dot product."""
    return DOT.simulated({"format": pair[0], "accumulator": pair[1], **changed})


def differences(parameters: dict[str, Any], run: Callable[[Any], Any], count: int) -> int:
    """Outputs that are not what the golden model says, of corners and of random items."""
    wrong = 0
    random = DOT.random(parameters, np.random.default_rng(1), count)
    for items in (DOT.corners(parameters), random):
        (expected,) = DOT.golden(items, parameters).values()
        given = run(items)
        assert len(given) == len(expected)
        wrong += int((given != expected).sum())
    return wrong


def check(parameters: dict[str, Any], count: int = 9000) -> None:
    model = BatchModel("dot", **parameters)
    for stall in (None, Stall(0.5, 0.5, seed=3)):
        assert not differences(
            parameters, lambda x, s=stall: model.run(x, s).outputs["value"], count
        )


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (each not in (QUICK[1], MATRIX_CORES[1])))
        for each in (*QUICK, *MATRIX_CORES)
    ],
)
def test_fused_products_equal_the_golden_model(pair: tuple[str, str]) -> None:
    """One of each maker in every run; that of "volta" is in test_accumulator_vectors.py."""
    check(settings(pair, interleave=3, stages=2), 1000)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("view", ["structure", "behaviour"])
def test_every_accumulator_equals_the_golden_model(pair: tuple[str, str], view: str) -> None:
    behaviour = view == "behaviour"
    stages = DOT.most_stages(settings(pair)) if behaviour else 0
    check(settings(pair, view=view, interleave=14 if behaviour else 1, stages=stages))


TINY = "fp32,reduction=16,fraction=9,alignment=zero,rounding=toward_zero,term=4"
"""An accumulator as of tensor cores with terms of four lanes."""


def tiny(parameters: dict[str, Any], count: int) -> Any:
    """Items whose products are about as large as the smallest FP32 values, or 0."""
    rng = np.random.default_rng(7)
    items = DOT.random(parameters, rng, count)
    for name in "ab":
        scales = items[f"{name}.exponent"]
        near = 57 + rng.integers(-8, 9, scales.shape)
        items[f"{name}.exponent"] = np.where(rng.random(scales.shape) < 0.1, 90, near).astype(
            np.uint8
        )
        codes = items[f"{name}.codes"]
        zero = np.repeat(rng.random((len(codes), codes.shape[1] // 8)) < 0.4, 8, axis=1)
        items[f"{name}.codes"] = np.where(zero, codes & 8, codes)
    return items


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(f"{TINY},fused=true,least=-128", marks=pytest.mark.slow),
        pytest.param(f"{TINY},least=-128", marks=pytest.mark.slow),
        "fp32,fraction=9,alignment=zero,rounding=toward_zero,fused=true,least=-128",
    ],
)
def test_tiny_sums_and_terms_of_zeros(how: str) -> None:
    parameters = settings(("e2m1fn_e8m0_t8", how))
    items = tiny(parameters, 4000)
    (expected,) = DOT.golden(items, parameters).values()
    others = [how.replace(",least=-128", ""), how.replace("alignment=zero", "alignment=floor")]
    for other in others:
        (unlike,) = DOT.golden(items, {**parameters, "accumulator": other}).values()
        assert (expected != unlike).sum() > 20
    assert (expected == 0).sum() > 20
    assert not (expected == 0x80000000).any()
    given = component_outputs(DOT.build(**parameters))(items)
    assert not (given != expected).sum()


@pytest.mark.parametrize(
    "pair", [*QUICK, *MATRIX_CORES, ("mxfp4", "blackwell_fp4"), ("axs6", "volta")]
)
def test_expected_results_are_those_of_a_matrix_product(pair: tuple[str, str]) -> None:
    parameters = settings(pair)
    terms = terms_of(parameters)
    items = DOT.random(parameters, np.random.default_rng(5), 60)
    (expected,) = DOT.golden(items, parameters).values()
    ends = np.flatnonzero(items["last"]) + 1
    for result, start, end in zip(expected, [0, *ends[:-1]], ends, strict=True):
        a, b = (_vector(items, f"{name}.", start, end) for name in "ab")
        if "outer" in items:  # the product of both scales; that of b stays 1
            (name,) = outer_names(terms.a.format)
            a[name] = items["outer"][end - 1 : end]
        blocks = blocks_of(a, terms.a.format), blocks_of(b, terms.b.format)
        assert matmul(*blocks, terms.accumulator).view(np.uint32) == result


def _vector(items: Any, prefix: str, start: int, end: int) -> dict[str, NDArray[Any]]:
    """Items of one vector as one row."""
    return {
        name.removeprefix(prefix): array[start:end].reshape(1, -1)
        for name, array in items.items()
        if name.startswith(prefix)
    }


def component_outputs(component: Any) -> Callable[[Any], NDArray[Any]]:
    """The results of a dot product that is in no registry."""
    model = ComponentModel(component_source(component), "a wrong dot product")
    return lambda items: model.run(items).outputs["value"]


RIGHT = fused.CompareOwn


class Forgetful(RIGHT):
    """Takes the largest exponent of the terms alone."""

    def elaborate(self, platform: Any) -> Module:
        """Build the comparison with the accumulator at 0."""
        m = Module()
        m.submodules.right = right = RIGHT(self._align)
        m.d.comb += [right.i.eq(self.i), right.i.own.eq(0), self.o.eq(right.o)]
        return m


def test_an_accumulator_that_is_not_compared_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = settings(QUICK[0])
    monkeypatch.setattr(fused, "CompareOwn", Forgetful)
    assert differences(parameters, component_outputs(DOT.build(**parameters)), 100)


@pytest.mark.parametrize(
    ("pair", "changes"),
    [
        (MATRIX_CORES[2], ("flush=none",)),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [
                (WIDE, ("reach=none",)),
                (MATRIX_CORES[1], ("reduction=4,pairwise=true,fused=false,minus_zero=false",)),
                (WIDE, ("sum_fraction=30", "groups=1", "minus_zero=false")),
                (MATRIX_CORES[2], ("flush=-125", "flush=none,pairwise=false")),
            ]
        ),
    ],
)
def test_hardware_with_another_property_is_found(
    pair: tuple[str, str], changes: tuple[str, ...]
) -> None:
    parameters = settings(pair)
    for change in changes:
        other = settings((pair[0], f"{pair[1]},{change}"))
        assert differences(parameters, component_outputs(DOT.build(**other)), 2000), change


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", ["alignment=floor", "fraction=22", "fraction=24", "output=e8m22"]
)
def test_other_accumulators_are_found(change: str) -> None:
    parameters = settings(QUICK[0])
    other = settings((QUICK[0][0], f"volta,{change}"))
    assert differences(parameters, component_outputs(DOT.build(**other)), 100)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"format": "mxfp4", "accumulator": "hooper"}, "accumulator must be one of fp32"),
        ({"format": "mxfp4xmx9", "block": 16}, "a and b must have levels of the same groups"),
        ({"format": "mxfp8_e5m2", "accumulator": "blackwell_fp4"}, "needs terms of"),
        ({"format": "mx9", "accumulator": "fp32,reduction=2,fraction=9"}, "reduction must be more"),
        ({"format": "mxfp4", "accumulator": "fp32,reduction=24"}, "a multiple or a part of"),
        ({"format": "uint8", "accumulator": "hopper"}, "zero points"),
        ({"accumulator": "hopper", "blocks": "packed"}, "need steps of one block, and hopper has"),
        ({"format": "mxfp4", "accumulator": "hopper", "interleave": 15}, "interleave"),
        (
            {"format": "mxfp4", "accumulator": "fp32,reduction=64,fused=true"},
            "its steps must have one exponent, not 2",
        ),
        ({"accumulator": "cdna2,reduction=1", "format": "mx9"}, "reduction must be more than 2"),
        (
            {"format": "e4m3fn_e8m0_t8", "accumulator": "cdna2,reduction=24"},
            "lanes added in pairs must be a power of two, not 24",
        ),
        (
            {"format": "e4m3fn_e8m0_t8", "accumulator": "cdna3,reduction=24,groups=3"},
            "groups must divide the 8 lanes with the same scales, not 3",
        ),
        (
            {"format": "mxfp8_e4m3", "accumulator": "hopper_fp8_scaled"},
            "hopper_fp8_scaled multiplies sums of 128 lanes by the scales of blocks, and those of "
            "mxfp8_e4m3 have 32",
        ),
        (
            {"format": "fp8_block", "accumulator": "hopper_fp8_scaled", "blocks": "packed"},
            "packed blocks need steps of one block, and hopper_fp8_scaled has others",
        ),
        ({"accumulator": "fp32,output=fp16"}, "an output with the exponents of fp32"),
    ],
)
def test_what_has_no_hardware_is_one_line(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        DOT.build(**parameters)
    assert "\n" not in str(caught.value)


def test_parameters_change_only_with_other_accumulators() -> None:
    assert [*Dot().i.payload.shape().members] == ["a", "b", "last"]
    parameters = DOT.parameters({"format": "fp8_e4m3", "accumulator": "fp32,fraction=25"})
    assert parameters["accumulator"] == "fp32,fraction=25"
