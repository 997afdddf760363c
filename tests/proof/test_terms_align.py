"""Aligned sums and their rounding are proved, and faults in them are refuted by inputs."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Cat, Mux, Value

from axs6.golden import accumulator as golden
from axs6.golden.check.exact.accumulator import ACCUMULATORS
from axs6.hw.core.pipeline import Step
from axs6.hw.dot import align, fused
from axs6.hw.fp32 import normalise
from axs6.hw.fp32.common import limited
from axs6.proof import terms_align, terms_round
from axs6.proof.components import ComponentProof
from axs6.proof.prove import Claim, Outcome
from axs6.proof.step_meaning import StepMeaning, exact_accumulator
from tests.helpers.faults import FaultyStep

SMALL = {"accumulator": "volta,reduction=2", "format": "fp8_e4m3"}

FLOOR = {"accumulator": "volta,reduction=2,alignment=floor", "format": "fp8_e4m3"}

LEAST = {"accumulator": "volta,reduction=2,least=-5", "format": "fp8_e4m3"}

NEAREST = {"accumulator": "volta_to_fp16,reduction=2", "format": "fp8_e4m3"}


def claims(name: str, parameters: dict[str, Any], only: str = "") -> list[Claim]:
    proof = ComponentProof(name, parameters)
    proof.statements = {text: x for text, x in proof.statements.items() if only in text}
    assert proof.statements
    return [*proof.specification()]


def outcomes(name: str, parameters: dict[str, Any]) -> set[Outcome]:
    return {claim.outcome for claim in claims(name, parameters)}


def test_an_alignment_is_proved() -> None:
    assert outcomes("terms_align", SMALL) == {Outcome.PROVED}


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param(NEAREST),
        pytest.param({"accumulator": "paper,reduction=2"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_rounding_is_proved(parameters: dict[str, Any]) -> None:
    assert outcomes("terms_round", parameters) == {Outcome.PROVED}


ALIGNING = [x for x, each in ACCUMULATORS.items() if each.fraction and not each.total_fraction]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["terms_align", "terms_round"])
@pytest.mark.parametrize("accumulator", [x for x in ALIGNING if x != "hopper_fp8_scaled"])
def test_every_accumulator_that_aligns_once_is_proved(name: str, accumulator: str) -> None:
    assert outcomes(name, {"accumulator": accumulator}) == {Outcome.PROVED}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["terms_align", "terms_round"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"accumulator": "hopper_fp8_scaled", "format": "fp8_block"},
        {"accumulator": "paper", "format": "axs6"},
        {"accumulator": "hopper", "format": "axs6", "view": "behaviour"},
        {"accumulator": "hopper_fp8", "format": "mxfp8_e5m2"},
        {"accumulator": "hopper_fp8", "format": "int8"},
        {"accumulator": "blackwell_fp4", "format": "nvfp4"},
        {"accumulator": "blackwell_fp4", "format": "mxfp4"},
        {"accumulator": "ampere,fraction=48", "format": "mxfp4"},
        {"accumulator": "ampere,fraction=0", "format": "fp8_e5m2"},
        {"accumulator": "volta,fraction=7,alignment=floor", "format": "mxfp6_e3m2"},
        {"accumulator": "paper,alignment=zero,rounding=toward_zero,reduction=8"},
        {"accumulator": "turing,output=bf16,fraction=30", "format": "mx9"},
        {"accumulator": "hopper_fp8,least=none", "format": "nvfp4"},
    ],
    ids=str,
)
def test_formats_and_composed_accumulators_are_proved(
    name: str, parameters: dict[str, Any]
) -> None:
    assert outcomes(name, parameters) == {Outcome.PROVED}


def at_three(i: Any, o: Any) -> list[Any]:
    total = Value.cast(i.distances[1]) + i.below
    far = limited(total, len(o.distances[1]))
    return [o.distances[1].eq(Mux(far == 3, 2, far))]


def floored(i: Any, o: Any) -> list[Any]:
    """What is dropped of a negative term toward minus infinity, in the inverted form."""
    value, width = Value.cast(i["values"][0]), len(o.terms[0])
    negative = value[-1]
    placed = (Cat(value[:-1]) << 17).as_unsigned()
    moved = Mux(negative, (-placed >> i.distances[0]) - 1, placed >> i.distances[0])
    return [Value.cast(o.terms[0]).eq(moved[:width])]


FAULTS: dict[str, Any] = {
    "a bit below is lost": (SMALL, "dropped", fused.ShiftAll, lambda i, o: [o.terms[0][0].eq(0)]),
    "a shift is one too few at one distance": (SMALL, "larger exponent", fused.Amounts, at_three),
    "the largest exponent is that of the first term": (
        SMALL,
        "largest exponent of a step",
        align.LargestPairs,
        lambda i, o: [o.largest[0][0].eq(i.largest[0][0])],
    ),
}

SLOW_FAULTS: dict[str, Any] = {
    "a distance has no limit": (
        SMALL,
        "its distance",
        align.Distances,
        lambda i, o: [o.distances[0].eq(i.local[0][:4])],
    ),
    "what is dropped goes down": (SMALL, "dropped", fused.ShiftAll, floored),
    "a NaN of the accumulator is lost": (
        SMALL,
        "IEEE",
        fused.OwnCode,
        lambda i, o: [o.nan.eq(i.term.nan)],
    ),
    "the accumulator's sign is lost": (
        FLOOR,
        "dropped",
        fused.ShiftAll,
        lambda i, o: [o.own.eq(i.significand >> i.own_distance)],
    ),
    "an accumulator of 0 counts": (
        SMALL,
        "larger exponent",
        fused.OwnCode,
        lambda i, o: [o.own.eq(i.total[23:31] - 80)],
    ),
    "the least exponent counts for nothing": (
        LEAST,
        "largest exponent of a step",
        align.Distances,
        lambda i, o: [o.top.eq(i.largest[0][0])],
    ),
}


@pytest.mark.parametrize(
    "fault", [*FAULTS, *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW_FAULTS)]
)
def test_a_fault_of_the_alignment_is_refuted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, only, kind, change = {**FAULTS, **SLOW_FAULTS}[fault]
    refuted(monkeypatch, "terms_align", parameters, only, kind, change)


ROUNDING_FAULTS: dict[str, Any] = {
    "what is too large is no infinity": (
        SMALL,
        normalise.Move,
        lambda i, o: [o.infinite.eq(i.infinite)],
    ),
    "a tie or more is dropped": (NEAREST, normalise.Move, lambda i, o: [o.round_up.eq(0)]),
    "NaN is another": (SMALL, normalise.RoundUp, lambda i, o: [o.value.eq(0x7FC00001)]),
    "a sum of 0 keeps its sign": (
        NEAREST,
        normalise.RoundUp,
        lambda i, o: [o.value[-1].eq(i.sign & ~i.nan)],
    ),
}


@pytest.mark.parametrize(
    "fault",
    [
        x if x.startswith("what is too large") else pytest.param(x, marks=pytest.mark.slow)
        for x in ROUNDING_FAULTS
    ],
)
def test_a_fault_of_the_rounding_is_refuted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, kind, change = ROUNDING_FAULTS[fault]
    refuted(monkeypatch, "terms_round", parameters, "rounded", kind, change)


def refuted(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    parameters: dict[str, Any],
    only: str,
    kind: type[Step],
    change: Any,
) -> None:
    right, found = terms_align.steps_of, []

    def changed(meaning: StepMeaning) -> list[list[Step]]:
        groups = [[faulty(x, kind, change) for x in group] for group in right(meaning)]
        found.append(groups)
        return groups

    monkeypatch.setattr(terms_align, "steps_of", changed)
    monkeypatch.setattr(terms_round, "steps_of", changed)
    (claim,) = claims(name, parameters, only)
    assert any(isinstance(x, FaultyStep) for group in found[0] for x in group)
    assert claim.outcome is Outcome.REFUTED, claim
    assert claim.item is not None


def faulty(step: Step, kind: type[Step], change: Any) -> Step:
    inner = getattr(step, "_step", step)
    if not isinstance(inner, kind):
        return step
    return FaultyStep(step, change)


def one_more(kind: Any, name: str) -> property:
    known = getattr(kind, name).fget
    return property(lambda self: known(self) + 1)


NUMBERS = {
    "a bit more is kept": ("fraction", "dropped"),
    "the point is elsewhere": ("drop", "dropped"),
    "terms have a code too many": ("term_code", "its distance"),
    "the accumulator has a code too many": ("own_code", "larger exponent"),
}
"""Numbers of the generator that are wrong, in all steps alike."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", NUMBERS)
def test_what_numbers_are_worth_is_not_taken_from_the_generator(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, only = NUMBERS[fault]
    monkeypatch.setattr(align.AlignPlan, name, one_more(align.AlignPlan, name))
    found = claims("terms_align", {**SMALL, "accumulator": "volta,reduction=4"}, only)
    assert {claim.outcome for claim in found} == {Outcome.REFUTED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "only"), [({"fraction": 22}, "dropped"), ({"least": -5}, "largest exponent of a")]
)
def test_what_a_name_says_is_not_taken_from_the_generator(
    changes: dict[str, int], only: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(golden.ACCUMULATORS["volta"], **changes)
    monkeypatch.setitem(golden.ACCUMULATORS, "volta", other)
    (claim,) = claims("terms_align", {"accumulator": "volta"}, only)
    assert claim.outcome is Outcome.REFUTED


def test_every_accumulator_of_the_exact_model_is_one_that_strings_compose() -> None:
    """Each field of a name, written as a change of another name, gives that field."""
    for name, wanted in ACCUMULATORS.items():
        changes = golden.accumulator(name).changes
        text = ",".join(["fp32", *(f"{field}={value}" for field, value in changes.items())])
        assert exact_accumulator(text) == wanted._replace(output=exact_accumulator(text).output)


def test_accumulators_that_do_not_align_are_refused() -> None:
    with pytest.raises(ValueError, match="fp32 aligns no terms"):
        ComponentProof("terms_align", {"accumulator": "fp32"})
    with pytest.raises(ValueError, match="cdna2 aligns no terms"):
        ComponentProof("terms_round", {"accumulator": "cdna2"})
