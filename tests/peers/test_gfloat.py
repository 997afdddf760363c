"""gfloat's P3109 numbers and FNUZ ones: the same values of codes, the same codes of values."""

import numpy as np
import pytest

from axs6.golden import encode
from axs6.golden.formats import NotANumber, block_format, p3109

pytestmark = pytest.mark.peers

WIDTHS = [(width, p) for width in range(3, 9) for p in range(2, width + 1)]
"""Widths and precisions."""

ELEMENTS = [
    f"binary{width}p{p}s{infinities}"
    for width, p in WIDTHS
    if width > p >= width - 5
    for infinities in "ef"
]
"""Those whose largest value is below 2^62 smallest ones."""

BITS = 5
"""Random bits of stochastic rounding."""


@pytest.fixture(scope="module")
def gfloat(peer):
    return peer("gfloat", "gfloat")


@pytest.fixture(scope="module")
def info(peer):
    """Its description of a number of P3109, from whether there are signs and infinities."""
    formats, module = peer("gfloat", "gfloat.formats"), peer("gfloat", "gfloat")

    def described(width, precision, signed, infinities):
        sign = module.Signedness.Signed if signed else module.Signedness.Unsigned
        domain = module.Domain.Extended if infinities else module.Domain.Finite
        return formats.format_info_p3109(width, precision, sign, domain)

    return described


@pytest.mark.parametrize("infinities", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("width", "precision"), WIDTHS)
def test_values_of_all_codes(gfloat, info, width, precision, signed, infinities):
    if signed and precision == width:
        return  # P3109 has none
    theirs = info(width, precision, signed, infinities)
    expected = [gfloat.decode_float(theirs, code).fval for code in range(1 << width)]
    number = p3109(width, precision, signed, infinities)
    exact = [number.integer(code) for code in range(1 << width)]
    ours = [float(x.value if isinstance(x, NotANumber) else x * number.unit) for x in exact]
    assert np.array_equal(ours, expected, equal_nan=True)


def bf16_numbers():
    """Every finite BF16 number, as float32."""
    x = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    return x[np.isfinite(x)]


@pytest.mark.parametrize("rounding", ["nearest", "toward_zero", "stochastic"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_codes_of_all_bf16_numbers(gfloat, info, name, rounding):
    """Under a scale of 1; overflows saturate, as P3109's SatFinite and SatPropagate have it."""
    x = bf16_numbers()
    width, precision = int(name[6]), int(name[8])
    theirs = info(width, precision, True, name.endswith("e"))
    modes, how, words = gfloat.RoundMode, {}, {}
    mode = {"nearest": modes.TiesToEven, "toward_zero": modes.TowardZero}.get(rounding)
    if mode is None:
        mode, random = modes.StochasticFastest, np.arange(x.size, dtype=np.int64) % (1 << BITS)
        how = {"srbits": random, "srnumbits": BITS}
        padded = np.concatenate([random, np.zeros(-x.size % 32, np.int64)])
        words = {"random": padded.astype(np.uint64), "random_bits": BITS}
    rounded = gfloat.round_ndarray(theirs, x.astype(np.float64), mode, sat=True, **how)
    expected = gfloat.encode_ndarray(theirs, rounded)
    blocks = encode(x, f"{name}_float32", rounding=rounding, scale=1, **words)
    assert np.array_equal(blocks.codes.ravel()[: x.size], expected)


def test_infinities_and_nan(gfloat, info):
    """They keep their codes where there are infinities, and saturate where that is asked."""
    x = np.array([np.inf, -np.inf, np.nan], np.float32)
    theirs = info(8, 3, True, True)
    for nonfinite, sat, count in (("propagate", False, 3), ("saturate", True, 2)):
        rounded = gfloat.round_ndarray(theirs, x.astype(np.float64), sat=sat)
        blocks = encode(x, "binary8p3se_float32", scale=1, nonfinite=nonfinite)
        expected = gfloat.encode_ndarray(theirs, rounded)
        assert blocks.codes.ravel()[:count].tolist() == expected[:count].tolist()


@pytest.mark.parametrize("name", ["binary8p4sf", "binary8p3sf"])
def test_fnuz_are_the_numbers_of_p3109_without_infinities(name):
    fnuz = {"binary8p4sf": "e4m3fnuz", "binary8p3sf": "e5m2fnuz"}[name]
    assert block_format(f"{name}_float32") == block_format(f"{fnuz}_float32")
