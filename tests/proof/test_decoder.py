"""Decoders are proved, what is wrong is refuted, and formats that are not covered are named."""

from typing import Any

import numpy as np
import pytest

from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import Special, power
from axs6.golden.check.exact.formats import Real
from axs6.golden.formats import ROW_FORMATS
from axs6.hw.verilog import generate
from axs6.proof.aig import Graph
from axs6.proof.campaign import unproved
from axs6.proof.factors import PLACE, scale
from axs6.proof.netlists import verilog_design
from axs6.proof.prove import Outcome, UnitProof

COVERED = [name for name in ROW_FORMATS if not unproved("decoder", name)]

SCALED = {"format": "int4", "block": 8, "dtype": "bf16"}
"""Under an FP32 scale."""


def outcomes(**parameters: Any) -> set[str]:
    claims = UnitProof("decoder", parameters).specification()
    return {f"{claim.outcome} {claim.reason}" for claim in claims}


@pytest.mark.parametrize(
    "parameters",
    [
        {"block": 8},
        {"format": "mx4", "dtype": "bf16", "view": "behaviour"},
        {"format": "e5m2_e8m0_t8"},
        {"format": "sm4_e4m3fn_t8"},
        {"format": "nvfp4_ue5m3"},
        {"format": "e5m2inuz_e8m0_t8", "dtype": "bf16"},
        {"format": "e2m1inuz_e4m3fnuz_t8"},
        {"format": "e3m2fnuz_ue6m2inuz_t8", "view": "behaviour"},
        {"format": "hif4", "block": 16},
        {"format": "if4_e4m3fn_t8"},
        SCALED,
        pytest.param({"format": "e2m1fn_e4m3fn_t8_float32"}, marks=pytest.mark.slow),
        pytest.param(
            {"format": "e5m2_float32", "block": 8, "dtype": "bf16"}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"format": "razer_e4m3fn_t8_float32", "dtype": "bf16"}, marks=pytest.mark.slow
        ),
        pytest.param({"format": "nf4q6_float32_t8"}, marks=pytest.mark.slow),
        pytest.param({"format": "int4_u4_t8_float32_t0"}, marks=pytest.mark.slow),
        pytest.param({"format": "uint4_float32_uint4", "block": 8}, marks=pytest.mark.slow),
        {"format": "int8_e8m0_t8s4o4s2o4", "dtype": "bf16"},
    ],
    ids=str,
)
def test_it_is_proved(parameters: dict[str, Any]) -> None:
    """Each kind of element and of scale; negative values times a scale of 0 among them."""
    assert outcomes(**parameters) == {"proved proof"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("view", ["structure", "behaviour"])
@pytest.mark.parametrize("format", COVERED)
def test_every_format_is_proved(format: str, view: str, dtype: str) -> None:
    assert outcomes(format=format, view=view, dtype=dtype) == {"proved proof"}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"format": "if4"}, "of at most 20 bits, and that of .* has 44; else .* not over 7"),
        ({"blocks": "packed", "block": 8}, "a proof of a decoder is of dense blocks, not packed"),
    ],
)
def test_what_is_not_covered_is_named(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        outcomes(**parameters)


FAULTS = {
    "a bit of the rounding is dropped": ("_03_ = | i[18:0];", "_03_ = | i[18:2];"),
    "NaN is lost": ("assign _046_ = group[35];", "assign _046_ = 1'h0;"),
    "the sign of a scale is ignored": ("= code[31] | _029_;", "= _029_;"),
    "one lane is wrong": ("port_40_0 = _5_;", "port_40_0 = _5_ ^ 21'h10;"),
    "one lane has the code of another": (".i(port_16_0),", ".i(port_17_0),"),
    "a bit of the product is wrong": ("i[3:0] * group[34:11];", "i[3:0] * group[34:11] ^ 28'h20;"),
    "what is too large is infinite": ("15'h7f7f", "15'h7f80"),
}
"""Parts of the Verilog, and what stands in their place."""


SLOW = (
    "one lane is wrong",
    "one lane has the code of another",
    "what is too large is infinite",
    "a bit of the product is wrong",
    "NaN is lost",
    "the sign of a scale is ignored",
)
"""Faults that are tried with the long tests: each is like another one."""


@pytest.mark.parametrize(
    "fault", [pytest.param(x, marks=pytest.mark.slow) if x in SLOW else x for x in FAULTS]
)
def test_a_fault_under_a_scale_is_refuted_by_an_input(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = FAULTS[fault]
    verilog = generate("decoder", **SCALED).verilog
    assert old in verilog
    proof = UnitProof("decoder", SCALED)
    monkeypatch.setattr(proof, "_reference", verilog_design(verilog.replace(old, new, 1)))
    *_, claim = proof.specification()
    assert claim.outcome is Outcome.REFUTED
    assert claim.item is not None


@pytest.mark.parametrize("level", [Real("tensor"), Real("tensor", 8, 7), Real(8, 4, 3, "nan")])
def test_a_scale_is_what_the_exact_model_has(level: Real) -> None:
    """With as many zeros above the highest 1 as there may be; what has a sign is NaN."""
    bits, rng = level.bits, np.random.default_rng(1)
    graph = Graph(f"bit[{k}]" for k in range(bits))
    found = scale(graph, [*graph.inputs.values()], level)
    codes = rng.integers(0, 1 << bits, 640, np.uint64) >> rng.integers(0, bits, 640, np.uint64)
    given = {
        bit: np.packbits((codes >> np.uint64(k) & np.uint64(1)).astype(bool), bitorder="little")
        for k, bit in enumerate(graph.inputs.values())
    }
    ends = [*found.significand, *found.place, found.zero, found.nan]
    words = graph.values(ends, {bit: each.view(np.uint64) for bit, each in given.items()})
    rows = np.unpackbits(np.stack(words).view(np.uint8), axis=1, bitorder="little")
    for code, row in zip(codes.tolist(), rows.T.tolist(), strict=True):
        *low, zero, nan = row
        number = sum(bit << k for k, bit in enumerate(low))
        significand, place = number % (1 << found.width), number >> found.width
        value = scale_value(code, level)
        assert nan == (isinstance(value, Special) or code >> bits - 1)
        assert nan or zero == (value == 0) == (significand >> found.width - 1 == 0)
        exponent = place - (place >> PLACE - 1 << PLACE)
        assert nan or significand * power(exponent) == value
