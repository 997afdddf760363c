"""Encoders of every format against the golden model, in the batch simulator."""

import shutil
from itertools import combinations, cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Value
from numpy.typing import NDArray

from axs6.golden.formats import ROW_FORMATS, Exponent, Integer, Real, Rule, Shift, block_format
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.rounding import Rounding
from axs6.hw.encoder import scaled_steps
from axs6.hw.encoder.feedback import PairDecoded
from axs6.hw.encoder.format_lanes import RoundMagnitudeLane
from axs6.hw.encoder.scaled_lanes import TimesReciprocalLane
from axs6.hw.registry import find
from axs6.hw.units.encoder import encoder_corners
from axs6.hw.units.unit import Unit
from axs6.sim.batch.engine import BatchModel
from axs6.sim.regress import regress

WITH_ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")

ENCODER, FEEDBACK = find("encoder"), find("feedback_encoder")

ENCODED = [
    name
    for name, fmt in ROW_FORMATS.items()
    if not fmt.has_modes and all(isinstance(x.scale, Exponent | Shift) for x in fmt.levels)
]
"""Formats that have names and encoders in words; AXS-6 is in other tests."""

CASES = [
    {"format": f"{name}-{rule}", "rounding": str(rounding), "dtype": dtype, "block": 8}
    for name, rule, (rounding, dtype) in product(ENCODED, Rule, product(Rounding, INPUT_DTYPES))
]

PARTS: dict[str, tuple[str, ...]] = {
    "element": ("sm5", "int6", "e4m3fn", "e5m2"),
    "rule": tuple(Rule),
    "levels": ("t8", "t8s2o1", "t8s4o2s2o1"),
    "rounding": tuple(map(str, Rounding)),
    "dtype": tuple(INPUT_DTYPES),
}
"""What an encoder under an exponent and shifts is made of: a kind of each part of a format."""

Part = tuple[str, str]


def pairs(parts: dict[str, str]) -> set[tuple[Part, Part]]:
    """Any two parts of an encoder."""
    return set(combinations(sorted(parts.items()), 2))


def parts_that_fit() -> list[dict[str, str]]:
    """All encoders of these parts; with shifts, "int" is a sign and a magnitude."""
    rows = [dict(zip(PARTS, row, strict=True)) for row in product(*PARTS.values())]
    return [row for row in rows if row["element"] != "int6" or row["levels"] == "t8"]


def meeting() -> list[dict[str, str]]:
    """Few encoders, in which any two parts that fit meet."""
    rows = parts_that_fit()
    missing = set().union(*map(pairs, rows))
    found = []
    while missing:
        found.append(max(rows, key=lambda row: len(pairs(row) & missing)))
        missing -= pairs(found[-1])
    return found


MEETING = meeting()


def first() -> list[dict[str, str]]:
    """Those of them that every run has: few, in which each part is once."""
    missing = {part for row in MEETING for part in row.items()}
    found = []
    while missing:
        found.append(max(MEETING, key=lambda row: len(row.items() & missing)))
        missing -= found[-1].items()
    return found


FIRST = first()


def given_of(parts: dict[str, str]) -> dict[str, Any]:
    """The parameters of an encoder of some parts."""
    name = f"{parts['element']}_e8m0-{parts['rule']}_{parts['levels']}"
    return {"format": name, "rounding": parts["rounding"], "dtype": parts["dtype"]}


COMPOSED = [
    {"format": "int8_e4m0-ceil_t8s4o2s2o1", "dtype": "bf16"},
    {"format": "sm5d_e6m0-even_t8", "dtype": "bf16"},
    {"format": "e3m2fnuz_e8m0_t8", "dtype": "fp16", "rounding": "toward_zero"},
]
"""Exponents of few bits, units that are divided, and zeros without a sign."""

OTHERS = [
    {"format": "e2m3f_e4m0_t8", "dtype": "bf16", "rounding": "toward_zero"},
    {"format": "e5m2inuz_e5m0-rceil_t8", "dtype": "bf16"},
    {"format": "int4q0_e5m0_t8", "dtype": "fp32", "rounding": "stochastic"},
    {"format": "int8_e4m0-ceil_t16s8o2s2o1", "dtype": "bf16"},
    {"format": "e2m3f_e4m0_t32", "dtype": "bf16", "rounding": "toward_zero"},
    {"format": "int8_e5m0_t16s2o1", "dtype": "fp32"},
    {"format": "int8_e8m0_t32s4o2", "dtype": "fp16"},
    {"format": "sm6dz_e8m0f-rceil_t16", "dtype": "fp16", "rounding": "stochastic"},
    {"format": "e5m2_e5m0-even_t64", "dtype": "bf16"},
    {"format": "e3m4fn_e8m0-ceil_t16", "dtype": "bf16"},
    {"format": "sm2_e8m0_t8", "dtype": "fp16"},
]

SCALES = {
    "a tensor": "float32",
    "a channel": "float32_t0",
    "a block": "e4m3fn_t8",
    "a block in float32": "float32_t8",
    "a block and a tensor": "e4m3fn_t8_float32",
    "a block in float16 and a channel": "float16_t8_float32_t0",
    "integers and a channel": "u4_t8_float32_t0",
}
"""What is scaled by real numbers and integers, in a format's string."""

TURNS = [(str(rounding), dtype) for rounding, dtype in product(Rounding, INPUT_DTYPES)]

SCALED = [
    {"format": f"{element}_{scales}", "rounding": rounding, "dtype": dtype, "block": 8}
    for (element, scales), (rounding, dtype) in zip(
        product(("int4", "int8", "sm5", "e2m1fn", "e4m3fn", "e5m2"), SCALES.values()), cycle(TURNS)
    )
]
"""Each element under each kind of scale; roundings and dtypes take turns."""

FEW_SCALED = [
    {"format": "nvfp4", "dtype": "bf16", "block": 8},
    {"format": "vsq4", "dtype": "fp16", "block": 8, "rounding": "toward_zero"},
    {"format": "fp8_e4m3", "dtype": "fp32", "block": 8, "rounding": "stochastic"},
    {"format": "e5m2_float32_t8", "dtype": "bf16"},
    {"format": "e2m1inuz_e4m3fnuz_t8_float32", "dtype": "fp16", "rounding": "stochastic"},
    {"format": "e3m2fnuz_ue6m2inuz_t8", "dtype": "bf16"},
    {"format": "fp8_e5m2fnuz", "dtype": "fp32", "block": 8},
    {"format": "int4q4_e4m3fn_t8_float32", "dtype": "bf16"},
]
"""An outer scale, one of a block, both, and integers; elements with all kinds of NaN, and one whose
values over the largest may be infinite."""

QUICK = [{**FEW_SCALED[2], "dtype": "bf16"}]
"""That of them that every run has; both scales at once are in test_selected.py."""


def difference(given: dict[str, Any], items: int = 200, unit: Unit = ENCODER) -> str | None:
    """The first difference of an encoder from the golden model on corners and random items."""
    parameters = unit.simulated(given)
    if parameters.get("rounding") == Rounding.STOCHASTIC:
        parameters["random_bits"] = 6
    corners = unit.corners(parameters)
    random = unit.random(parameters, np.random.default_rng(3), items)
    inputs = {name: np.concatenate([array, random[name]]) for name, array in corners.items()}
    return wrong_output(unit, parameters, inputs)


def wrong_output(
    unit: Unit, parameters: dict[str, Any], inputs: dict[str, NDArray[Any]]
) -> str | None:
    """The first output of a unit that is not the golden model's."""
    found = BatchModel(unit.name, **parameters).run(inputs).outputs
    for name, expected in unit.golden(inputs, parameters).items():
        wrong = np.argwhere(found[name] != expected)
        if len(wrong):
            return f"{name}{wrong[0].tolist()}"
    return None


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """For faults in hardware, whose builds are kept apart from those of what is right.

    The cache knows units by the files that they are written in.
    """
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "cache"))
    return monkeypatch


def case_name(given: dict[str, Any]) -> str:
    return "-".join(map(str, given.values()))


@pytest.mark.parametrize("given", [*map(given_of, FIRST), *COMPOSED, *QUICK], ids=case_name)
def test_codes_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [*map(given_of, MEETING), *CASES, *OTHERS, *FEW_SCALED, *SCALED],
    ids=case_name,
)
def test_all_codes_are_those_of_the_golden_model(given: dict[str, Any]) -> None:
    assert difference(given, 20_000) is None


def test_the_stochastic_encoder_is_right() -> None:
    given = {"format": "mxfp4", "dtype": "bf16", "block": 8, "stages": 2, "random_bits": 4}
    assert difference(given, unit=find("stochastic_encoder")) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"format": "mxfp4", "dtype": "bf16", "block": 8, "stages": 2, "random_bits": 4},
        {"format": "mx9", "dtype": "fp32", "stages": 10},
        {"format": "mxfp8_e5m2-rceil", "dtype": "bf16"},
        {"format": "nvfp4", "dtype": "bf16", "stages": 30},
    ],
    ids=case_name,
)
def test_the_verilog_of_the_stochastic_encoder_is_right(given: dict[str, Any]) -> None:
    assert regress("stochastic_encoder", given, items=1000).failures == []


def test_the_stochastic_encoder_has_blocks_of_its_register() -> None:
    with pytest.raises(ValueError, match="block must be one of 8, 16, 32, not 64"):
        find("stochastic_encoder").build(format="mxfp4", block=64)
    with pytest.raises(ValueError, match="stochastic_encoder has no hardware for zero points"):
        find("stochastic_encoder").build(format="uint8")


@pytest.mark.parametrize(
    "given",
    [
        *(
            pytest.param(given, marks=pytest.mark.slow)
            for given in (
                {"format": "mxfp4", "block": 8},
                {"format": "mx9", "rounding": "toward_zero"},
                {"format": "mxfp8_e5m2-ceil", "block": 8},
                {"format": "mxfp8_e4m3-rceil", "block": 8},
                {"format": "mxint8-even", "block": 8, "rounding": "toward_zero"},
                {"format": "int8_e5m0_t16s8o2s2o1"},
                {"format": "sm5d_e6m0_t8"},
            )
        ),
    ],
    ids=case_name,
)
def test_errors_that_are_fed_back_are_right(given: dict[str, Any]) -> None:
    assert difference(given, unit=FEEDBACK) is None


@pytest.mark.slow
def test_errors_of_nan_that_are_fed_back_are_caught(planted: pytest.MonkeyPatch) -> None:
    """A block whose scale became NaN would keep that for ever."""

    def elaborate(self: PairDecoded, platform: object) -> Module:
        self._always = True
        return right(self, platform)

    right = PairDecoded.elaborate
    planted.setattr(PairDecoded, "elaborate", elaborate)
    found = difference({"format": "mxfp4", "block": 8}, unit=FEEDBACK)
    assert found is not None
    assert found.startswith("errors")


@pytest.mark.slow
@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
def test_the_verilog_of_the_feedback_encoder_is_right(simulator: str) -> None:
    given = {"format": "mx6", "stages": 9}
    assert regress("feedback_encoder", given, simulator=simulator, items=500).failures == []


def test_the_feedback_encoder_has_exponents_and_shifts() -> None:
    message = "feedback_encoder has no hardware for real scales, which nvfp4 has"
    with pytest.raises(ValueError, match=message):
        FEEDBACK.build(format="nvfp4")


def test_any_two_parts_of_an_encoder_meet() -> None:
    """All 115 pairs of parts of different kinds, but for int6 under shifts."""
    all_pairs = {
        pair
        for row in product(*PARTS.values())
        for pair in pairs(dict(zip(PARTS, row, strict=True)))
    }
    shifts = {(("element", "int6"), ("levels", levels)) for levels in PARTS["levels"][1:]}
    covered = set().union(*map(pairs, MEETING))
    assert covered == all_pairs - shifts
    assert (len(covered), len(MEETING)) == (113, 16)


def test_the_sample_has_every_kind_of_scale() -> None:
    formats = [block_format(each["format"]) for each in FEW_SCALED]
    kinds = {(bool(fmt.outer), *(type(x.scale) for x in fmt.blocked)) for fmt in formats}
    assert kinds == {(True,), (False, Real), (True, Real), (True, Integer)}
    assert {fmt.element.has_nan + fmt.element.has_infinity for fmt in formats} == {0, 1, 2}
    assert {each["dtype"] for each in FEW_SCALED} == set(INPUT_DTYPES)
    assert {each.get("rounding", "nearest") for each in FEW_SCALED} == set(Rounding)


@pytest.mark.parametrize(
    "name", ["e4m3fnuz_e8m0_t8", pytest.param("e2m1inuz_float32", marks=pytest.mark.slow)]
)
def test_nan_for_a_negative_value_that_rounds_to_zero_is_caught(
    name: str, planted: pytest.MonkeyPatch
) -> None:
    def signed(self: RoundMagnitudeLane, magnitude: Value) -> Value:
        return Cat(magnitude, self.shifted.sign)

    planted.setattr(RoundMagnitudeLane, "_signed", signed)
    found = difference({"format": name, "dtype": "bf16", "block": 8})
    assert found is not None
    assert found.startswith("block.codes")


def test_rounding_half_up_is_caught(planted: pytest.MonkeyPatch) -> None:
    def half_up(self: RoundMagnitudeLane, word: Value) -> Value:
        return word[1:] + word[0]

    given = {"format": "mxfp8_e4m3", "dtype": "bf16", "block": 8}
    planted.setattr(RoundMagnitudeLane, "_rounded", half_up)
    found = difference(given)
    assert found is not None
    assert found.startswith("block.codes")


@pytest.mark.slow
def test_products_that_are_cut_are_caught(planted: pytest.MonkeyPatch) -> None:
    """Values times reciprocals, not rounded to FP32 before they are rounded to codes."""

    def cut(self: TimesReciprocalLane, platform: object) -> Module:
        m = right(self, platform)
        m.d.comb += self.product.up.eq(0)
        return m

    right = TimesReciprocalLane.elaborate
    planted.setattr(TimesReciprocalLane, "elaborate", cut)
    given = {"format": "int8", "dtype": "fp32", "block": 8, "view": "structure"}
    rng = np.random.default_rng(4)
    outer = rng.uniform(1, 2, (200, 1)).astype(np.float32)
    middles = ((rng.integers(0, 126, (200, 8)) + 0.5) * outer).astype(np.float32)
    inputs = {"outer": outer[:, 0].view(np.uint32), "values": middles.view(np.uint32)}
    found = wrong_output(ENCODER, ENCODER.simulated(given), inputs)
    assert found is not None
    assert found.startswith("block.codes")


@pytest.mark.slow
def test_scales_that_are_rounded_up_are_caught(planted: pytest.MonkeyPatch) -> None:
    """The scale of a block rounded half up, not to even."""
    planted.setattr(scaled_steps, "half", lambda held, dropped: 1 << dropped - 1)
    found = difference({"format": "e2m1fn_e4m3fn_t8", "dtype": "bf16"})
    assert found is not None
    assert found.startswith("block.scale")


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
        ({"format": "uint8"}, "encoder has no hardware for zero points, which uint8 has"),
        (
            {"format": "e4m3fn_e8m0_t0"},
            "encoder has no hardware for the exponent of a channel, which e4m3fn_e8m0_t0 has",
        ),
        (
            {"format": "e4m3fn_e8m0_t32_float32"},
            "encoder has no hardware for an exponent under real scales, which e4m3fn_e8m0_t32_",
        ),
        (
            {"format": "int8_bfloat16_t0_float32"},
            "encoder has no hardware for scales of both channels and a tensor, which int8_bfloat16",
        ),
        (
            {"format": "int8_float16"},
            "encoder has no hardware for an outer scale that is not float32, which int8_float16",
        ),
        (
            {"format": "int8_e4m3fn_t8_bfloat16_t16"},
            "encoder has no hardware for two scales within a block, neither a power of two, which",
        ),
        (
            {"format": "sm5dz_float32"},
            "encoder has no hardware for elements that drop the sign of -0.0 under a real scale",
        ),
        (
            {"format": "e2m1fn_e4m3f_t16"},
            "encoder has no hardware for e2m1fn_e4m3f_t16, in which NaN has no code",
        ),
        ({"format": "nvfp4", "block": 256}, "block must be one of 8, 16, 32, 64, 128, not 256"),
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
        {"format": "mxfp4", "dtype": "bf16", "block": 8, "stages": 9},
        pytest.param(
            {"format": "mxfp8_e4m3", "dtype": "bf16", "block": 8, "stages": 9},
            marks=pytest.mark.slow,
        ),
        pytest.param({"format": "mx9", "dtype": "fp32", "stages": 10}, marks=pytest.mark.slow),
        pytest.param({"format": "mxint8-even", "dtype": "fp16"}, marks=pytest.mark.slow),
        pytest.param({"format": "nvfp4", "dtype": "bf16", "stages": 40}, marks=pytest.mark.slow),
        pytest.param({"format": "vsq6", "dtype": "fp32", "stages": 9}, marks=pytest.mark.slow),
        pytest.param({"format": "fp8_e5m2", "dtype": "fp16"}, marks=pytest.mark.slow),
    ],
    ids=case_name,
)
@pytest.mark.parametrize(
    ("simulator", "items"),
    [
        pytest.param(*each, marks=pytest.mark.slow)
        for each in (("icarus", 50), ("icarus", 1000), ("verilator", 1000))
    ],
)
@WITH_ICARUS
def test_the_verilog_is_right(given: dict[str, Any], simulator: str, items: int) -> None:
    assert regress("encoder", given, simulator=simulator, items=items).failures == []
