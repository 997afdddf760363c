"""Block dot products are proved, and what is wrong is not."""

from collections.abc import Callable
from typing import Any

import pytest

from axs6.golden.formats import ROW_FORMATS
from axs6.hw.dot.shape import DotShape, multiplied
from axs6.hw.verilog import generate
from axs6.proof.aig import FALSE
from axs6.proof.netlists import verilog_design
from axs6.proof.prove import Outcome, UnitProof
from axs6.proof.steps import NotShownError

COMPOSED = (
    *("mx9_t64", "mx4_t128", "e3m2fn_u3_t8_float32_t0", "e5m2_e8m0_t16", "e4m3_e8m0_t16"),
    *("mxfp4xmxfp8_e4m3", "mxint8xmxfp4", "e5m2inuz_e8m0_t16", "e3m2fnuz_ue6m2inuz_t16"),
    "nf4q6_e8m0_t8",
)
"""Beside the catalog: other blocks, elements and scales, and pairs."""

NAMED = [name for name, fmt in ROW_FORMATS.items() if multiplied(fmt)]
"""Formats with names."""


def outcomes(**parameters: Any) -> dict[str, str]:
    claims = UnitProof("block_dot", parameters).specification()
    return {claim.text: f"{claim.outcome} {claim.reason}" for claim in claims}


@pytest.mark.parametrize(
    "parameters",
    [
        {"block": 8},
        {"block": 8, "view": "behaviour"},
        {"format": "mx4"},
        pytest.param({"format": "nvfp4"}, marks=pytest.mark.slow),
        pytest.param({"format": "nvfp4_ue5m3", "block": 8}, marks=pytest.mark.slow),
        {"format": "e2m2inuz_e8m0_t8"},
        {"format": "e2m1fn_e4m3fnuz_t8"},
        {"format": "sm4_ue6m2b48h_t8"},
        pytest.param({"format": "e3m2fn_u3_t8_float32_t0"}, marks=pytest.mark.slow),
        {"format": "nf4q6_e8m0_t4"},
        {"format": "nvfp4", "view": "behaviour"},
        {"format": "mxint8xmxfp4", "block": 4},
        {"format": "mxfp8_e5m2", "block": 4, "view": "behaviour"},
    ],
    ids=str,
)
def test_it_is_proved(parameters: dict[str, Any]) -> None:
    """Each kind of element and of scale, each special value, and sums of more than 64 bits."""
    assert set(outcomes(**parameters).values()) == {"proved proof"}


STUCK = {
    "int4a_ue6m2b48h-bf16_t8s4o1s2o1": [("a.shifts2", 0), ("b.shifts4", 0), ("a.scale", 0)],
    "razer": [("a.scale", 0), ("b.scale", 7)],
    "sm3_float16_t4": [("a.scale", 0), ("b.scale", 9)],
}
"""Bits of scales at several depths of the tree, that select elements, and of many bits."""


@pytest.mark.parametrize("format", STUCK)
def test_a_scale_with_a_bit_that_has_no_effect_is_not_proved(format: str) -> None:
    block = {"block": 4} if format == "razer" else {}
    proof = UnitProof("block_dot", {"format": format, **block}, 60)
    assert {claim.outcome for claim in proof.specification()} == {Outcome.PROVED}
    graph = proof._reference.graph
    offsets = {field.name: field.offset for field in proof.inputs}
    for name, place in STUCK[format]:
        bit = graph.inputs[f"i_payload[{offsets[name] + place}]"]
        known = graph.cofactor([*graph.outputs.values()], {bit: FALSE})
        stuck = graph.with_outputs(dict(zip(graph.outputs, known, strict=True)))
        *_, last = proof.held(stuck).steps().values()
        with pytest.raises(NotShownError):
            last()


@pytest.mark.slow
@pytest.mark.parametrize("format", [*NAMED, *COMPOSED])
def test_every_format_is_proved(format: str) -> None:
    assert set(outcomes(format=format).values()) == {"proved proof"}


@pytest.mark.slow
@pytest.mark.parametrize("format", NAMED)
def test_every_format_in_words_is_proved(format: str) -> None:
    assert set(outcomes(format=format, view="behaviour").values()) == {"proved proof"}


def test_the_rtl_of_another_format_is_refuted() -> None:
    """Of two formats, the RTL of the pair the other way round, which has the same ports."""
    formats = ["e2m1fn_e8m0_t8", "tc4_e8m0_t8"]
    proof = UnitProof("block_dot", {"format": "x".join(formats)})
    other = generate("block_dot", format="x".join(formats[::-1]))
    proof._reference = verilog_design(other.verilog, other.module)
    *_, last = proof.specification()
    assert last.outcome is Outcome.REFUTED
    assert last.item is not None
    assert set(last.item) == {"a.exponent", "a.codes", "b.exponent", "b.codes"}


@pytest.mark.parametrize(
    ("format", "what", "wrong"),
    [
        ("e2m1fn_e4m3fn_t4", "exponent_bits", lambda shape: 4),
        ("int8_e8m0_t4", "exponent_bits", lambda shape: 8),
        ("int8_e8m0_t4", "exponent_bits", lambda shape: 0),
        ("int8_e8m0_t4", "special", lambda shape: False),
        ("e4m3fn_e8m0f_t4", "special", lambda shape: False),
    ],
)
def test_fields_that_are_missing_or_too_narrow_are_not_proved(
    format: str, what: str, wrong: Callable[[DotShape], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exponents lose their highest bit, or have no field; scales or elements are NaN unseen."""
    monkeypatch.setattr(DotShape, what, property(wrong))
    design = verilog_design(generate("block_dot", format=format).verilog)
    steps = UnitProof("block_dot", {"format": format}, 60).held(design.graph).steps()
    name = what.removesuffix("_bits")
    (step,) = (step for text, step in steps.items() if text.removeprefix("the ").startswith(name))
    with pytest.raises(NotShownError, match=f"^{name}"):
        step()


def test_outputs_that_are_always_0_are_not_proved() -> None:
    parameters = {"format": "int3_e8m0_t2"}
    graph = verilog_design(generate("block_dot", **parameters).verilog).graph
    known = {name: FALSE if "payload" in name else bit for name, bit in graph.outputs.items()}
    steps = UnitProof("block_dot", parameters, 60).held(graph.with_outputs(known)).steps()
    for step in [*steps.values()][-3:]:
        with pytest.raises(NotShownError):
            step()


def test_scales_with_too_many_bits_are_refused() -> None:
    proof = UnitProof("block_dot", {"format": "int3_u12_t4_float32_t0"})
    with pytest.raises(
        ValueError, match=r"all scales of groups of one size, of at most 20 bits.*have 24"
    ):
        list(proof.specification())
