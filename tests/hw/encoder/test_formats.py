"""Encoders of every format against the golden model, in the batch simulator."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Value

from axs6.golden.formats import CATALOG, Exponent, Rule, Shift
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.rounding import Rounding
from axs6.hw.encoder.format_lanes import RoundLane
from axs6.hw.registry import find
from axs6.hw.units.encoder import encoder_corners
from axs6.sim.batch.engine import ComponentModel, component_source
from axs6.sim.regress import regress

ENCODER = find("encoder")

ENCODED = [
    name
    for name, fmt in CATALOG.items()
    if not fmt.has_modes and all(isinstance(x.scale, Exponent | Shift) for x in fmt.levels)
]
"""Formats that have names and encoders in words; AXS-6 is in other tests."""

CASES = [
    {"format": f"{name}-{rule}", "rounding": str(rounding), "dtype": dtype, "block": 8}
    for name, rule, (rounding, dtype) in product(ENCODED, Rule, product(Rounding, INPUT_DTYPES))
]


def turns(per_format: int) -> list[dict[str, Any]]:
    """So many cases of each format, in which all rules, roundings and dtypes have their turn."""
    each = len(CASES) // len(ENCODED)
    return [
        CASES[each * f + (9 * (f + k) + (4 * k + f)) % each]
        for f in range(len(ENCODED))
        for k in range(per_format)
    ]


FEW = turns(2)

COMPOSED = [
    {"format": "int8_e5m0_t16s2o1", "dtype": "fp32"},
    {"format": "int8_e4m0-ceil_t16s8o2s2o1", "dtype": "bf16"},
    {"format": "int8_e8m0_t32s4o2", "dtype": "fp16"},
    {"format": "e2m3f_e4m0_t32", "dtype": "bf16", "rounding": "toward_zero"},
    {"format": "sm5d_e6m0-even_t8", "dtype": "bf16"},
    {"format": "sm6dz_e8m0f-rceil_t16", "dtype": "fp16", "rounding": "stochastic"},
    {"format": "e5m2_e5m0-even_t64", "dtype": "bf16"},
    {"format": "int4q0_e8m0_t8", "dtype": "fp32", "rounding": "stochastic"},
    {"format": "e3m4fn_e8m0-ceil_t16", "dtype": "bf16"},
    {"format": "sm2_e8m0_t8", "dtype": "fp16"},
]
"""Narrow exponents, several levels of shifts, other elements and blocks."""


def difference(given: dict[str, Any], items: int = 500) -> str | None:
    """The first difference of an encoder from the golden model on corners and random items."""
    parameters = ENCODER.simulated(given)
    if parameters["rounding"] == Rounding.STOCHASTIC:
        parameters["random_bits"] = 6
    model = ComponentModel(component_source(ENCODER.build(**parameters)), "encoder")
    random = ENCODER.random(parameters, np.random.default_rng(3), items)
    for inputs in (ENCODER.corners(parameters), random):
        found = model.run(inputs).outputs
        for name, expected in ENCODER.golden(inputs, parameters).items():
            wrong = np.argwhere(found[name] != expected)
            if len(wrong):
                return f"{name}{wrong[0].tolist()}"
    return None


def case_name(given: dict[str, Any]) -> str:
    return "-".join(map(str, given.values()))


@pytest.mark.parametrize("given", [*FEW, *COMPOSED], ids=case_name)
def test_codes_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given) is None


@pytest.mark.slow
@pytest.mark.parametrize("given", [each for each in CASES if each not in FEW], ids=case_name)
def test_all_codes_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given, 20_000) is None


@pytest.mark.parametrize(
    "given",
    [
        {"format": "mxfp4", "dtype": "bf16", "block": 8, "stages": 2, "random_bits": 4},
        pytest.param({"format": "mx9", "dtype": "fp32", "stages": 12}, marks=pytest.mark.slow),
        pytest.param({"format": "mxfp8_e5m2-rceil", "dtype": "bf16"}, marks=pytest.mark.slow),
    ],
    ids=case_name,
)
def test_the_stochastic_encoder_is_right(given: dict[str, Any]) -> None:
    assert regress("stochastic_encoder", given, items=1000).failures == []


def test_the_stochastic_encoder_has_blocks_of_its_register() -> None:
    with pytest.raises(ValueError, match="block must be one of 8, 16, 32, not 64"):
        find("stochastic_encoder").build(format="mxfp4", block=64)
    with pytest.raises(ValueError, match="stochastic_encoder has no hardware for real scales"):
        find("stochastic_encoder").build(format="nvfp4")


def test_the_feedback_encoder_has_one_format() -> None:
    with pytest.raises(ValueError, match="feedback_encoder has no parameter 'format'"):
        find("feedback_encoder").build(format="mx9")


def test_each_rule_rounding_and_dtype_has_its_turn() -> None:
    parts = [case["format"].split("-")[1] for case in FEW]
    assert set(parts) == set(Rule)
    for name, known in (("rounding", Rounding), ("dtype", INPUT_DTYPES)):
        assert {case[name] for case in FEW} == set(known)
    assert {case["format"].split("-")[0] for case in FEW} == set(ENCODED)


def test_rounding_half_up_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def half_up(self: RoundLane, word: Value) -> Value:
        return word[1:] + word[0]

    given = {"format": "mxfp8_e4m3", "dtype": "bf16", "block": 8}
    monkeypatch.setattr(RoundLane, "_rounded", half_up)
    found = difference(given)
    assert found is not None
    assert found.startswith("block.codes")


def test_corners_have_every_boundary_of_an_element() -> None:
    """Around each E2M1 element and each middle, under a maximum of 1, of both signs."""
    parameters = ENCODER.parameters({"format": "mxfp4", "dtype": "bf16"})
    values = encoder_corners(parameters)["values"]
    under_one = values[values[:, -1] == 0x3F80]
    for quarters in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14):
        bits = np.float32(quarters / 4 / 4).view(np.uint32) >> 16
        for near in (bits - 1, bits, bits + 1):
            assert {int(near), int(near) | 0x8000} <= set(under_one.ravel().tolist())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"format": "nvfp4"}, "encoder has no hardware for real scales, which nvfp4 has"),
        ({"format": "vsq6"}, "encoder has no hardware for real scales, which vsq6 has"),
        (
            {"format": "e4m3fn_e8m0_t0"},
            "encoder has no hardware for the scale of a channel, which e4m3fn_e8m0_t0 has",
        ),
        ({"format": "mx9", "mode": "sparse"}, "mode must be dense for mx9, not 'sparse'"),
        ({"format": "mx9", "block": 256}, "block must be one of 8, 16, 32, 64, 128, not 256"),
        ({"format": "mx9", "block": 2}, "groups must grow from level to level"),
        (
            {"format": "e4m3fn_e5m0_t32"},
            "encoder has no hardware for e4m3fn_e5m0_t32, in which infinities have no code",
        ),
        (
            {"format": "sm8q64_e4m0_t8", "dtype": "fp16"},
            "dtype fp16 has no value but 0 in the range of sm8q64_e4m0_t8",
        ),
    ],
)
def test_what_has_no_hardware_is_said_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        ENCODER.build(**given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        {"format": "mxfp8_e4m3", "dtype": "bf16", "block": 8, "stages": 3},
        pytest.param({"format": "mx9", "dtype": "fp32", "stages": 11}, marks=pytest.mark.slow),
        pytest.param({"format": "mxint8-even", "dtype": "fp16"}, marks=pytest.mark.slow),
    ],
    ids=case_name,
)
@pytest.mark.parametrize("simulator", ["verilator", pytest.param("icarus", marks=pytest.mark.slow)])
def test_the_verilog_is_right(given: dict[str, Any], simulator: str) -> None:
    assert regress("encoder", given, simulator=simulator, items=1000).failures == []
