"""Second alignments are proved, and faults in them are refuted by inputs."""

from typing import Any

import pytest

from axs6.hw.core.pipeline import Step
from axs6.hw.dot import joined
from axs6.hw.fp32 import normalise
from axs6.proof import terms_join, terms_round
from axs6.proof.components import ComponentProof
from axs6.proof.prove import Outcome
from tests.helpers.faults import FaultyStep

SMALL = {"accumulator": "cdna3_fp8,reduction=4,reach=20", "format": "mxfp4"}


OTHERS = ("terms_align", "terms_round")


def outcomes(name: str, parameters: dict[str, Any]) -> set[Outcome]:
    return {claim.outcome for claim in ComponentProof(name, parameters).specification()}


@pytest.mark.parametrize(
    "name",
    [
        "terms_join",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("terms_align", "terms_round")),
    ],
)
def test_a_second_alignment_is_proved(name: str) -> None:
    assert outcomes(name, SMALL) == {Outcome.PROVED}


def test_what_the_second_alignment_drops_counts_toward_zero_too() -> None:
    """A negative sum may become the next magnitude."""
    parameters = {"accumulator": f"{SMALL['accumulator']},rounding=toward_zero", "format": "mxfp4"}
    assert outcomes("terms_round", parameters) == {Outcome.PROVED}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["terms_join", "terms_align", "terms_round"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"accumulator": "cdna3"},
        {"accumulator": "cdna3_xf32", "format": "axs6"},
        {"accumulator": "cdna3_fp8", "format": "mxfp8_e5m2"},
        {"accumulator": "cdna3,alignment=floor,fraction=30", "format": "mxfp6_e2m3"},
        {"accumulator": "cdna3,sum_fraction=27,rounding=toward_zero", "format": "mxfp4"},
        {"accumulator": "cdna3,output=bf16,minus_zero=false", "format": "nvfp4"},
    ],
    ids=str,
)
def test_accumulators_that_align_twice_are_proved(name: str, parameters: dict[str, Any]) -> None:
    assert outcomes(name, parameters) == {Outcome.PROVED}


FAULTS: dict[str, tuple[str, type[Step], Any]] = {
    "the reach is one too far": (
        "reach",
        joined.CompareCodes,
        lambda i, o: [o.reached.eq((i.total[23:31] > i.term.top) | (o.own_below <= 21))],
    ),
}

SLOW_FAULTS: dict[str, tuple[str, type[Step], Any]] = {
    "one group is left out": ("groups", joined.JoinGroups, lambda i, o: [o.sum.eq(i[0].sum)]),
    "a large term is a number": ("2^128", joined.Overflows, lambda i, o: [o.infinite.eq(0)]),
    "a bit below is lost": ("dropped", joined.ShiftBoth, lambda i, o: [o.sum[0].eq(0)]),
    "the accumulator is left out": ("both", joined.AddBoth, lambda i, o: [o.sum.eq(i.sum)]),
}


@pytest.mark.parametrize(
    "fault", [*FAULTS, *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW_FAULTS)]
)
def test_a_fault_is_refuted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only, kind, change = {**FAULTS, **SLOW_FAULTS}[fault]
    steps = joined.joining_steps

    def faulty(join: joined.JoinPlan, skips: bool) -> list[Step]:
        return [FaultyStep(x, change) if isinstance(x, kind) else x for x in steps(join, skips)]

    monkeypatch.setattr(terms_join, "joining_steps", faulty)
    for name in ("JoinGroups", "Overflows"):
        if kind.__name__ == name:
            monkeypatch.setattr(terms_join, name, lambda plan: FaultyStep(kind(plan), change))
    proof = ComponentProof("terms_join", SMALL)
    proof.statements = {text: x for text, x in proof.statements.items() if only in text}
    assert {claim.outcome for claim in proof.specification()} == {Outcome.REFUTED}


@pytest.mark.slow
@pytest.mark.parametrize("more", [-1, 1])
def test_what_a_second_sum_keeps_is_what_the_accumulator_says(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(meaning: Any) -> list[list[Step]]:
        align = meaning.align
        plan = joined.JoinPlan(align)
        assert plan.wide.guard is not None
        wide = normalise.ScaledInteger(**{**vars(plan.wide), "guard": plan.wide.guard + more})
        return [[], [], [], [], normalise.normalising_steps(wide)]

    monkeypatch.setattr(terms_round, "steps_of", faulty)
    assert outcomes("terms_round", SMALL) == {Outcome.REFUTED}


def test_an_accumulator_that_aligns_once_is_refused() -> None:
    with pytest.raises(ValueError, match="volta aligns once"):
        ComponentProof("terms_join", {"accumulator": "volta"})
