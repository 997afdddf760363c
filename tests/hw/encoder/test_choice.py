"""The encoder that chooses scales, and ones with a deliberate fault each."""

import re
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal

from axs6.golden.encode import encode
from axs6.golden.formats import block_format
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.hw.encoder import choice as module
from axs6.hw.encoder.choice import ChoiceEncoder
from axs6.hw.units.choice import CHOICE_ENCODER, beside_ties, each_value
from axs6.sim.batch.engine import ComponentModel, Stall, component_source

SETTINGS = {"block": 8, "dtype": "bf16", "stages": 0, "format": "e2m1fn_e5m0n_t8_mse"}
FORMATS = ("mxfp4_mse", "nvfp4_mse", "nvfp4_four-over-six", "vsq4_mse", "mxfp4-rceil_mse")


def differing(component: Any, settings: dict[str, Any], stall: Stall | None = None) -> list[str]:
    """Fields in which corners or random items have other results than the golden model gives."""
    model = ComponentModel(component_source(component), "an encoder")
    rng = np.random.default_rng(3)
    found = []
    for items in (CHOICE_ENCODER.corners(settings), CHOICE_ENCODER.random(settings, rng, 3000)):
        outputs = model.run(items, stall).outputs
        expected = CHOICE_ENCODER.golden(items, settings)
        found += [name for name, x in expected.items() if not np.array_equal(outputs[name], x)]
    return found


@pytest.mark.slow  # every run has the unit in tests/sim/test_batch.py
def test_the_right_one_is_not_caught() -> None:
    assert not differing(ChoiceEncoder(**SETTINGS), SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_whole_blocks_of_formats(format: str, dtype: str) -> None:
    settings = CHOICE_ENCODER.parameters({"format": format, "dtype": dtype, "stages": 3})
    assert not differing(ChoiceEncoder(**settings), settings, Stall(0.3, 0.3, seed=5))


def never_after(m: Module, o: Any) -> None:
    """The code after is that of the rule, which is no other candidate."""
    m.d.comb += o.scales[2].eq(o.scales[0])


def tie_to_the_last(m: Module, o: Any) -> None:
    """Lanes of the last candidate add one more."""
    m.d.comb += o.terms[2][0][0].eq(1)


def drop_lowest_bits(m: Module, o: Any) -> None:
    m.d.comb += [lane.fixed[:8].eq(0) for lane in o.measured]


def halve_a_total(m: Module, o: Any) -> None:
    m.d.comb += o.totals[0][-1].eq(0)


@pytest.mark.parametrize(
    ("step", "change"),
    [
        ("MeasureShared", never_after),
        pytest.param("MeasureShared", drop_lowest_bits, marks=pytest.mark.slow),
        pytest.param("Rate", tie_to_the_last, marks=pytest.mark.slow),
        pytest.param("SumTerms", halve_a_total, marks=pytest.mark.slow),
    ],
)
def test_a_fault_is_caught(step: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = getattr(module, step)

    class Faulty(right):
        verilog_name = "faulty"

        def elaborate(self, platform: Any) -> Module:
            faulty, self.o = self.o, Signal(self.o.shape())
            m: Module = super().elaborate(platform)
            m.d.comb += faulty.eq(self.o)
            change(m, faulty)
            return m

    monkeypatch.setattr(module, step, Faulty)
    assert differing(ChoiceEncoder(**SETTINGS), SETTINGS)


REFUSED = {
    "mxfp4": "choice_encoder needs a format with a choice of scales, unlike mxfp4",
    "mxfp8_e4m3_mse": "choice_encoder has no hardware for the elements or scales of mxfp8_e4m3_mse",
    "sm4d_e8m0_t16_mse": "choice_encoder has no hardware for the elements or scales of sm4d_e8m0",
    "e2m1fn_e8m0_t32_float32_mse": "choice_encoder has no hardware for an exponent under real",
    "mxfp4_t256_mse": "block must be one of 8, 16, 32, 64, 128, not 256",
}


@pytest.mark.parametrize("format", REFUSED)
def test_what_has_no_hardware(format: str) -> None:
    with pytest.raises(ValueError, match=re.escape(REFUSED[format])) as caught:
        ChoiceEncoder(format=format)
    assert "\n" not in str(caught.value)


def test_the_plain_encoder_refuses_a_choice() -> None:
    from axs6.hw.encoder.encoder import Encoder

    with pytest.raises(ValueError, match="encoder has no hardware for the choice mse, which mxfp4"):
        Encoder(format="mxfp4_mse")


def test_corners_have_ties_below_which_the_chosen_scale_drops_a_bit() -> None:
    """Codes change when the lowest bits of the values are cleared, in more than 20 of the blocks
    that take the next larger scale."""
    fmt = block_format("mxfp4_mse").with_block(8)
    rows = beside_ties(fmt, INPUT_DTYPES["fp32"], 8)
    values = rows.astype(np.uint32).view(np.float32)
    blocks = encode(values, fmt)
    largest = np.floor(np.log2(np.abs(values).max(axis=1))).astype(int)
    after = blocks.scales[0].ravel() > largest + 127 - fmt.element.emax
    lowest = 2.0 ** (blocks.scales[0].astype(int) - 127 - MERIT_FRACTION - 3)
    less = encode((np.abs(values) // (2 * lowest) * (2 * lowest)).astype(np.float32), fmt)
    changed = (less.codes.reshape(rows.shape) & 7) != (blocks.codes.reshape(rows.shape) & 7)
    assert changed[after].any(axis=1).sum() > 20


def test_corners_have_each_value_of_fp16_in_each_lane() -> None:
    """Below a maximum beside 7, of which 6 is the largest element and 8 the next one."""
    rows = each_value(block_format("mxfp4_mse"), INPUT_DTYPES["fp16"], 8) & 0x7FFF
    np.testing.assert_array_equal(np.unique(rows.max(axis=1)) & 0x3FF, [0x2FF, 0x300, 0x301])
    for top in np.unique(rows.max(axis=1)):
        for lane in range(8):
            found = rows[rows.max(axis=1) == top, lane]
            assert len(np.unique(found)) > 0.95 * (3 * 1024 + 0x300)
