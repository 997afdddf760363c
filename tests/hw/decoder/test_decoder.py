"""The decoder in every format: each value equals the golden model's."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Value
from sampling import few

import axs6.golden.scaling
import axs6.hw.decoder.read
import axs6.hw.decoder.value
from axs6 import encode, pack
from axs6.golden.formats import AXS6, CATALOG, ROW_FORMATS, Float, block_format
from axs6.golden.formats.floating import OUTPUT_DTYPES
from axs6.hw.core.layouts import fields, filled_layout
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.decoder.decoder import Decoder, dense_steps, turning_kind
from axs6.hw.decoder.plan import DecoderPlan, decoded
from axs6.hw.decoder.product import DivideLane
from axs6.hw.decoder.value import MeasureLane, RoundSignificandLane, value_steps
from axs6.hw.registry import find
from axs6.hw.verilog import generate
from axs6.sim.batch.engine import ComponentModel, component_source

UNIT = find("decoder")

COMPOSED = (
    "sm4d_e8m0_t8",  # over 2^n - 1, in the general lanes, with NaN
    "sm7d_e8m0f_t16",  # as AXS-6, wider
    "e5m2_e5m0_t8",
    "e3m4f_e8m0n_t16s4o3",
    "int8_e4m0f_t16s4o2_bfloat16",
    "e2m1_e4m3fn_t8_bfloat16_t0_float32",  # scales of channels and of the tensor
    "e5m2_u4_t8_float32_t0",  # infinities times 0
    "int3_e8m0",
    "uint4_float32_uint4_t8",
    "e5m2inuz_e8m0_t8",  # NaN in place of -0, infinities of all ones
    "e3m2fnuz_ue6m2inuz_t8",
    "e2m1inuz_e4m3fnuz_t8_float32",
    "nf4q6_e8m0_t8",
    "razer_float16_t8",
    "sm4+int4_float16_t8",  # -0 in one element of two
    "sm4d_e4m3fn_t8_float32",
    "sm8d_e5m2_t8",
    "table-7:-1:0:3d7q1_e8m0_t8",
)

NAMES = [name for name in (*CATALOG, *COMPOSED) if decoded(block_format(name))]

CASES = [(name, tuple(OUTPUT_DTYPES)[k % 2]) for k, name in enumerate(NAMES)]
"""Each format in one dtype."""

QUICK = few([*COMPOSED, *CATALOG], together=1)
"""Formats with every property of one; the decoders of the others are slow tests."""

DIVIDED = [*COMPOSED[-3:], "if4"]
"""Formats whose values are products over 2^n - 1, or integers of tables over it."""

OTHERS = [
    (name, dtype)
    for name in [*CATALOG, *COMPOSED]
    for dtype in OUTPUT_DTYPES
    if (name, dtype) not in CASES
]


def difference(component: Any, parameters: dict[str, Any], count: int = 4000) -> str | None:
    """The first output field in which a decoder differs from the golden model."""
    model = ComponentModel(component_source(component), "decoder")
    rng = np.random.default_rng(2)
    for items in (UNIT.corners(parameters), UNIT.random(parameters, rng, count)):
        given = model.run(items).outputs
        for name, expected in UNIT.golden(items, parameters).items():
            if not np.array_equal(given[name], expected):
                row = int(np.argwhere(given[name] != expected)[0][0])
                return f"{name} of item {row}: { {k: v[row].tolist() for k, v in items.items()} }"
    return None


def settings(name: str, dtype: str, **more: Any) -> dict[str, Any]:
    """Parameters of a decoder with few lanes."""
    block = UNIT.choices({"format": name})["block"][0]
    return UNIT.parameters({"format": name, "dtype": dtype, "block": block, **more})


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case[0] not in [*QUICK, *DIVIDED]))
        for case in CASES
    ],
)
def test_every_code_of_every_format_is_decoded_as_the_golden_model_does(
    name: str, dtype: str
) -> None:
    parameters = settings(name, dtype)
    assert difference(UNIT.build(**parameters), parameters) is None


@pytest.mark.slow
@pytest.mark.parametrize("blocks", ["dense", "packed"])
@pytest.mark.parametrize(("name", "dtype"), OTHERS)
def test_every_code_in_the_other_dtype(name: str, dtype: str, blocks: str) -> None:
    parameters = settings(name, dtype, blocks=blocks)
    assert difference(UNIT.build(**parameters), parameters, 40_000) is None


@pytest.mark.parametrize(
    "name", [pytest.param("vsq6", marks=pytest.mark.slow), "nvfp4", "uint4_float32_uint4_t8"]
)
def test_packed_blocks_that_cannot_be_read_are_errors(name: str) -> None:
    parameters = settings(name, "bf16", blocks="packed")
    assert difference(UNIT.build(**parameters), parameters) is None
    expected = UNIT.golden(UNIT.corners(parameters), parameters)
    assert 0 < expected["error"].sum() < len(expected["error"])


def test_large_blocks_and_stages() -> None:
    parameters = UNIT.parameters(
        {"format": "mx4", "block": 16, "dtype": "bf16", "stages": 3, "view": "behaviour"}
    )
    assert difference(UNIT.build(**parameters), parameters, 2_000) is None


@pytest.mark.parametrize("dtype", OUTPUT_DTYPES)
def test_the_general_lanes_decode_axs6_too(dtype: str) -> None:
    fmt = AXS6.with_block(8)
    assert turning_kind(fmt, OUTPUT_DTYPES[dtype])
    general = Pipeline(value_steps(DecoderPlan(fmt, 8, OUTPUT_DTYPES[dtype])), 0)
    parameters = UNIT.parameters({"block": 8, "dtype": dtype})
    assert difference(general, parameters) is None


@pytest.mark.parametrize("name", [*ROW_FORMATS, *COMPOSED])
def test_fields_of_packed_blocks_lie_where_golden_pack_puts_them(name: str) -> None:
    fmt = block_format(name)
    if fmt.has_modes:
        return
    rng = np.random.default_rng(3)
    blocks = encode(rng.normal(size=fmt.block).astype(np.float32), fmt)
    bits = int.from_bytes(pack(blocks), "little")
    layout = filled_layout(fmt.block, fmt)
    assert layout.size == 8 * len(pack(blocks))
    found = {}
    for field in fields(layout):
        places = [field.offset + k * field.width for k in range(field.count)]
        found[field.name] = [bits >> place & (1 << field.width) - 1 for place in places]
    assert found.pop("codes") == blocks.codes.ravel().tolist()
    assert found.pop("unused", [0]) == [0]
    if blocks.zero_points is not None:
        assert found.pop("zero_point") == blocks.zero_points.ravel().tolist()
    assert list(found.values()) == [codes.ravel().tolist() for codes in blocks.scales]


def wrong_round(plan: DecoderPlan, i: Any) -> RoundSignificandLane:
    """A lane whose guard bit alone decides."""

    class Wrong(RoundSignificandLane):
        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.inner = inner = RoundSignificandLane(plan, i)
            m.d.comb += [inner.i.eq(self.i), self.value.eq(inner.value)]
            m.d.comb += inner.i.significand.eq(self.i.significand | 1)
            return m

    return Wrong(plan, i)


def wrong_measure(plan: DecoderPlan, i: Any) -> MeasureLane:
    """A lane that forgets the NaN of scales."""

    class Wrong(MeasureLane):
        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.inner = inner = MeasureLane(plan, i)
            m.d.comb += [inner.group.eq(self.group), inner.i.eq(self.i), self.o.eq(inner.o)]
            m.d.comb += inner.group.nan.eq(0)
            return m

    return Wrong(plan, i)


def wrong_divide(plan: DecoderPlan, i: Any) -> DivideLane:
    """A lane that forgets whether anything is left."""

    class Wrong(DivideLane):
        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.inner = inner = DivideLane(plan, i)
            m.d.comb += [inner.i.eq(self.i), self.o.eq(inner.o)]
            m.d.comb += self.o.significand[0].eq(0)
            return m

    return Wrong(plan, i)


@pytest.mark.parametrize(
    ("name", "lane", "wrong"),
    [
        ("mxfp8_e5m2", "RoundSignificandLane", wrong_round),
        ("mx6", "MeasureLane", wrong_measure),
        ("if4", "DivideLane", wrong_divide),
    ],
)
def test_a_wrong_decoder_is_caught(
    name: str, lane: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(axs6.hw.decoder.value, lane, wrong)
    parameters = settings(name, "bf16")
    assert difference(UNIT.build(**parameters), parameters) is not None


def test_a_lost_minus_zero_of_a_selection_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axs6.hw.decoder.read, "negative_zeros", lambda element: [])
    parameters = settings("sm4+int4_float16_t8", "bf16")
    assert difference(UNIT.build(**parameters), parameters) is not None


@pytest.mark.parametrize("name", ["e3m2fnuz_e8m0_t8", "e2m1inuz_float32"])
def test_a_minus_zero_in_the_place_of_nan_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(axs6.hw.decoder.read, "is_nan", lambda element, code: Const(0, 1))
    parameters = settings(name, "bf16")
    assert difference(UNIT.build(**parameters), parameters) is not None


def test_the_top_bit_of_an_unsigned_scale_taken_as_a_sign_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def below_a_sign(dtype: Float, code: Value) -> tuple[Value, Value]:
        return code[: dtype.fraction_bits], code[dtype.fraction_bits : dtype.width - 1]

    parameters = settings("nvfp4_ue5m3", "fp32")
    assert difference(UNIT.build(**parameters), parameters) is None
    monkeypatch.setattr(axs6.hw.decoder.read, "split", below_a_sign)
    assert difference(UNIT.build(**parameters), parameters) is not None


def test_subnormal_values_in_a_scale_without_them_are_caught() -> None:
    parameters = {**settings("hif4", "fp32"), "block": 16}
    other = str(block_format("hif4")).replace("b48h", "b48")
    unit = UNIT.build(**{**parameters, "format": other})
    assert difference(unit, parameters) is not None


@pytest.mark.parametrize("name", ["e2m1fn_e5m2_t8", "nvfp4_ue5m3", "nvfp4"])
def test_verilog_has_no_nets_without_bits(name: str) -> None:
    """Under scales of blocks alone no FP32 value is subnormal, and no significand is moved."""
    assert "[-1:0]" not in generate("decoder", format=name, block=8).verilog


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"format": "mx9", "block": 4}, "block must be one of 8, 16, 32, 64, 128 in mx9, not 4"),
        ({"format": "mxfp4_t256"}, "block must be one of 8, 16, .* in mxfp4_t256, not 256"),
        ({"format": "axs6", "block": 64}, "block must be one of 8, 16, 32, not 64"),
        (
            {"format": "int8_float16_t8_float16_t16_float32"},
            "significands of elements and scales must have 53 bits at most",
        ),
        ({"format": "mxfp9"}, "'mxfp9' is no block format"),
        ({"format": "sm6dz_e6m0f_t8_modes", "blocks": "packed"}, "packed blocks with modes"),
    ],
)
def test_a_format_without_a_decoder_is_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UNIT.build(**parameters)


def test_lanes_that_turn_magnitudes_are_chosen_by_a_property() -> None:
    fp32 = OUTPUT_DTYPES["fp32"]
    for name in ("axs6", "sm6d_e8m0f_t64", "sm8dz_e8m0f_t16"):
        fmt = block_format(name)
        assert len(dense_steps(fmt, fmt.block, fp32, "structure")) == 3
    for name in ("mxfp4", "sm6d_e8m0_t32", "sm6d_e6m0f_t32"):
        assert turning_kind(block_format(name), fp32) is None
    assert Decoder(format="mx9").most_stages == 7
