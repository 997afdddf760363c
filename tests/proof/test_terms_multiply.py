"""Terms of a step are proved, and faults in them are refuted by inputs."""

from typing import Any

import pytest
from amaranth.hdl import Value

from axs6.golden.formats import ROW_FORMATS
from axs6.hw.dot import terms
from axs6.hw.dot.terms import TermPlan
from axs6.proof import terms_multiply
from axs6.proof.components import ComponentProof
from axs6.proof.prove import Outcome
from axs6.proof.step_meaning import StepMeaning
from tests.helpers.faults import FaultyStep

SMALL = {"accumulator": "volta,reduction=2", "format": "fp8_e5m2"}

JOINED = {"accumulator": "volta", "format": "mx4"}


def outcomes(parameters: dict[str, Any]) -> list[Outcome]:
    return [claim.outcome for claim in ComponentProof("terms_multiply", parameters).specification()]


@pytest.mark.parametrize("parameters", [SMALL, pytest.param(JOINED, marks=pytest.mark.slow)])
def test_terms_are_proved(parameters: dict[str, Any]) -> None:
    assert set(outcomes(parameters)) == {Outcome.PROVED}


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {"accumulator": "hopper", "format": "vsq4"},
        {"accumulator": "paper", "format": "axs6"},
        {"accumulator": "paper,reduction=8", "format": "mxfp6_e2m3"},
        {"accumulator": "volta", "format": "nvfp4"},
        {"accumulator": "blackwell_fp4", "format": "mxfp4"},
        {"accumulator": "volta", "format": "mxfp8_e4m3xmxfp8_e5m2"},
    ],
    ids=str,
)
def test_terms_of_other_formats_are_proved(parameters: dict[str, Any]) -> None:
    assert set(outcomes(parameters)) == {Outcome.PROVED}


FAULTS: dict[str, Any] = {
    "a product is cut": (SMALL, 0, lambda i, o: [Value.cast(o["values"][1])[0].eq(0)]),
    "an infinity is no infinity": (SMALL, 2, lambda i, o: [o.infinite.eq(0)]),
}

SLOW_FAULTS: dict[str, Any] = {
    "a field is that of another lane": (SMALL, 0, lambda i, o: [o.codes[0].eq(i.a.codes[1] >> 2)]),
    "infinities of unlike signs are no NaN": (SMALL, 2, lambda i, o: [o.nan.eq(0)]),
    "a sum is cut": (JOINED, 1, lambda i, o: [Value.cast(o["values"][0])[0].eq(0)]),
    "one exponent is left out": (JOINED, 2, lambda i, o: [o.scales[0].eq(i.a.exponent)]),
}


@pytest.mark.parametrize(
    "fault", [*FAULTS, *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW_FAULTS)]
)
def test_a_fault_is_refuted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, number, change = {**FAULTS, **SLOW_FAULTS}[fault]

    def changed(plan: TermPlan, view: str) -> FaultyStep:
        return FaultyStep(terms.MakeTerms(plan, view), change)

    monkeypatch.setattr(terms_multiply, "MakeTerms", changed)
    proof = ComponentProof("terms_multiply", parameters)
    proof.statements = dict([[*proof.statements.items()][number]])
    (claim,) = proof.specification()
    assert claim.outcome is Outcome.REFUTED, claim
    assert claim.item is not None


def test_what_terms_are_worth_is_what_the_generator_says() -> None:
    """The definitions, and the numbers from which hardware is made, agree for each format."""
    found = 0
    for name in ROW_FORMATS:
        for accumulator in ("paper", "volta", "hopper_fp8", "blackwell_fp4"):
            try:
                meaning = StepMeaning(name, None, accumulator)
            except ValueError:
                continue
            plan = meaning.align.plan.terms
            assert (meaning.unit, meaning.point, meaning.bound, meaning.size) == (
                plan.offset,
                plan.point,
                plan.bound,
                plan.lanes,
            )
            found += 1
    assert found > 40


def test_scales_that_are_not_covered_are_refused() -> None:
    with pytest.raises(ValueError, match="those of hif4 multiply them at several"):
        ComponentProof("terms_multiply", {"accumulator": "hopper", "format": "hif4"})
    with pytest.raises(ValueError, match="at most 24 bits"):
        ComponentProof("terms_multiply", {"accumulator": "volta", "format": "fp8_block"})
    with pytest.raises(ValueError, match="all scales with exponents, of at most 24 bits"):
        ComponentProof("terms_multiply", {"accumulator": "hopper", "format": "nf4q6"})
