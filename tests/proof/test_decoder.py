"""Decoders are proved, and formats that a proof does not cover are named."""

from typing import Any

import pytest

from axs6.golden.formats import ROW_FORMATS
from axs6.proof.prove import UnitProof

COVERED = [name for name, fmt in ROW_FORMATS.items() if not fmt.outer]


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
        ({"format": "nvfp4"}, "those of channels and tensors, which e2m1fn_e4m3fn_t16_float32 has"),
        ({"format": "int8_e8m0_t8s4o4s2o4"}, "of at most 20 bits, and that of .* has 24"),
        ({"blocks": "packed", "block": 8}, "a proof of a decoder is of dense blocks, not packed"),
    ],
)
def test_what_is_not_covered_is_named(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        outcomes(**parameters)
