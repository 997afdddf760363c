"""Encoders are proved, and what a proof does not cover is named."""

from collections.abc import Callable
from typing import Any

import pytest

from axs6.golden.formats import ROW_FORMATS, Exponent
from axs6.hw.registry import UNITS
from axs6.hw.verilog import generate
from axs6.proof.aig import Graph
from axs6.proof.netlists import verilog_design
from axs6.proof.prove import UnitProof
from axs6.proof.specifications import SPECIFICATIONS
from axs6.proof.steps import NotShownError, Subject

COVERED = [
    name
    for name, fmt in ROW_FORMATS.items()
    if not fmt.outer and isinstance(fmt.levels[-1].scale, Exponent)
]


def outcomes(**parameters: Any) -> set[str]:
    claims = UnitProof("encoder", parameters).specification()
    return {f"{claim.outcome} {claim.reason}" for claim in claims}


@pytest.mark.parametrize(
    "parameters",
    [
        {"block": 8},
        {"block": 8, "view": "behaviour"},
        pytest.param({"block": 8, "format": "mx4"}, marks=pytest.mark.slow),
        pytest.param({"block": 8, "format": "mxfp8_e5m2"}, marks=pytest.mark.slow),
        pytest.param({"block": 8, "format": "e3m2fnuz_e8m0_t8"}, marks=pytest.mark.slow),
        {"block": 8, "format": "e2m2inuz_e8m0_t8", "rounding": "toward_zero"},
        pytest.param(
            {"block": 8, "format": "mxint8-ceil", "rounding": "toward_zero"}, marks=pytest.mark.slow
        ),
        {"block": 8, "format": "table-6:-3:0:3:5:7::-7_e8m0_t8"},
    ],
    ids=str,
)
def test_it_is_proved(parameters: dict[str, Any]) -> None:
    """With and without NaN, infinities, -0, shifts and subnormal elements."""
    assert outcomes(dtype="fp16", **parameters) == {"proved proof"}


@pytest.mark.slow
@pytest.mark.parametrize("format", COVERED)
def test_every_format_is_proved(format: str) -> None:
    assert outcomes(format=format) == {"proved proof"}


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["floor", "ceil", "even", "rceil"])
@pytest.mark.parametrize("rounding", ["nearest", "toward_zero"])
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_every_rule_is_proved(dtype: str, rounding: str, rule: str) -> None:
    parameters = {"dtype": dtype, "rounding": rounding, "block": 8}
    assert outcomes(format=f"mxfp8_e4m3-{rule}", **parameters) == {"proved proof"}


def graph_of(settings: dict[str, Any]) -> Graph:
    design = generate("encoder", **settings)
    return verilog_design(design.verilog, design.module).graph


def show_blocks(unit: UnitProof, graph: Graph, settings: dict[str, Any]) -> None:
    """Show that a graph with a unit's ports is the encoder with some settings."""
    wanted = UNITS["encoder"].parameters(settings)
    proof = SPECIFICATIONS["encoder"](Subject(graph, wanted, unit.inputs, unit.outputs, 600))
    *_, blocks = proof.steps().values()
    blocks()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        pytest.param(
            *({"rounding": "toward_zero"}, "the code of lane 0 is wrong"), marks=pytest.mark.slow
        ),
        ({"format": "mxint8-ceil"}, "the exponent is not 1"),
        ({"format": "sm8_e8m0_t8"}, "the code of lane 0 is wrong"),
    ],
)
def test_another_encoder_is_not_proved(made: dict[str, Any], said: str) -> None:
    settings = {"block": 8, "dtype": "fp16", "format": "mxint8"}
    unit = UnitProof("encoder", settings | made)
    with pytest.raises(NotShownError, match=said):
        show_blocks(unit, graph_of(settings | made), settings)


def test_another_encoder_in_the_behaviour_view_is_not_proved() -> None:
    settings = {"block": 8, "dtype": "fp16", "view": "behaviour"}
    made = settings | {"rounding": "toward_zero"}
    with pytest.raises(NotShownError):
        show_blocks(UnitProof("encoder", made), graph_of(made), settings)


def swapped_shifts(graph: Graph, first: str, second: str) -> dict[str, int]:
    """Outputs in which each of two pairs has the shift of the other."""
    return {
        **graph.outputs,
        first: graph.outputs[second],
        second: graph.outputs[first],
    }


def wrong_where_all_are_nan(graph: Graph, first: str, second: str) -> dict[str, int]:
    """Outputs with a shift that is inverted in blocks in which no value counts."""
    lanes = [graph.bus("i_payload", 16 * k, 16) for k in range(8)]
    every = graph.all(graph.both(graph.all(bits[10:15]), graph.any(bits[:10])) for bits in lanes)
    return {**graph.outputs, first: graph.unlike(graph.outputs[first], every)}


@pytest.mark.parametrize("wrong", [swapped_shifts, wrong_where_all_are_nan])
def test_wrong_shifts_are_not_proved(
    wrong: Callable[[Graph, str, str], dict[str, int]],
) -> None:
    """Such encoders were called proved: a shift of other lanes, and one that nothing checked."""
    settings = {"block": 8, "dtype": "fp16", "format": "mx4"}
    unit, graph = UnitProof("encoder", settings), graph_of(settings)
    shifts = next(field for field in unit.outputs if field.name == "block.shifts")
    outputs = wrong(graph, *(f"o_payload[{shifts.offset + k}]" for k in range(2)))
    with pytest.raises(NotShownError, match="a shift is not 1"):
        show_blocks(unit, graph.with_outputs(outputs), settings)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"format": "sm4_e4m3fn_t8"}, "is of blocks with an exponent, unlike sm4_e4m3fn_t8"),
        ({"format": "vsq4", "view": "behaviour"}, "is of blocks with an exponent, unlike int4_"),
        ({"rounding": "stochastic"}, "to nearest or toward zero, not dense and stochastic"),
        ({"mode": "sparse"}, "is of dense blocks, to nearest or toward zero, not sparse and near"),
    ],
)
def test_what_is_not_covered_is_named(parameters: dict[str, Any], said: str) -> None:
    assert said in UnitProof("encoder", {"block": 8, "dtype": "fp16", **parameters}).unspecified
    with pytest.raises(ValueError, match=said):
        outcomes(block=8, dtype="fp16", **parameters)
