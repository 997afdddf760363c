"""The plain encoder and decoder that the project's own are measured against."""

from fractions import Fraction

import plain
import pytest
import straightforward
from straightforward import PLAIN, compare, differences

from axs6.golden.formats import BF16, FP32, Float
from axs6.synth.errors import SynthesisError

BLOCK = 8


@pytest.mark.parametrize("dtype", ["bf16", pytest.param("fp32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", ["encoder", "decoder"])
def test_bits_equal_the_golden_model(unit: str, dtype: str) -> None:
    parameters = {"block": BLOCK, "dtype": dtype}
    assert differences(PLAIN[unit](**parameters), unit, parameters, 5000) == 0


@pytest.mark.parametrize("fmt", [BF16, FP32])
def test_table_of_quotients(fmt: Float) -> None:
    for magnitude, (significand, below) in enumerate(plain.quotients(fmt)):
        unit = 1 << fmt.fraction_bits + 2
        exact = Fraction(magnitude, 31) * unit * 2**below
        assert significand >> 1 == exact // 2
        assert significand & 1 == (exact % 2 != 0)
        assert not magnitude or unit <= significand < 2 * unit


def test_wrong_unit_is_counted_and_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    right = plain.quotients
    wrong = [(0, 0), *right(BF16)[:-1]]
    monkeypatch.setattr(plain, "quotients", lambda fmt: wrong)
    parameters = {"block": BLOCK, "dtype": "bf16"}
    assert differences(PLAIN["decoder"](**parameters), "decoder", parameters, 10) > 1000
    monkeypatch.setattr(straightforward, "area", None)
    with pytest.raises(SynthesisError, match=r"must equal the golden model; \d+ items differ"):
        compare("decoder", parameters)


def test_format_with_other_exponents_is_refused() -> None:
    with pytest.raises(ValueError, match="dtype must be one of fp32, bf16, not 'fp16'"):
        PLAIN["encoder"](dtype="fp16")
