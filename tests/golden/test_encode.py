import re
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axs6.golden import decode, encode
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import FP32, float_value

SUBNORMAL = 2.0**-149


def encode_one(x, rounding="nearest", dtype=np.float32):
    """Exponent and code of the first value of a block of 8 that holds `x` and zeros."""
    block = encode(np.array([x] + [0] * 7, dtype), block=8, rounding=rounding, nonfinite="saturate")
    assert not block.codes[0, 1:].any()
    return int(block.exponents[0]), int(block.codes[0, 0])


def same(a, b):
    return np.array_equal(a.exponents, b.exponents) and np.array_equal(a.codes, b.codes)


@pytest.mark.parametrize(
    ("x", "nearest", "toward_zero"),
    [
        (0.0, (0, 0), (0, 0)),
        (-0.0, (0, 0), (0, 0)),
        (1.0, (128, 16), (128, 15)),  # 15.5 is the one tie
        (-1.0, (128, 48), (128, 47)),
        (1 - 2.0**-24, (127, 31), (127, 30)),
        (1 + 2.0**-23, (128, 16), (128, 15)),
        (1.5, (128, 23), (128, 23)),  # 23.25
        (2.0**127 * (2 - 2.0**-23), (255, 31), (255, 30)),
        (2.0**-126, (2, 16), (2, 15)),
        (2.0**-126 - SUBNORMAL, (1, 31), (1, 30)),
        (2.0**-127, (1, 16), (1, 15)),
        (2.0**-128, (0, 16), (0, 15)),
        (2.0**-129, (0, 8), (0, 7)),  # 7.75: the exponent has ended at 0
        (2.0**-132, (0, 1), (0, 0)),  # 31/32
        (2.0**-133, (0, 0), (0, 0)),  # 31/64
        (-(2.0**-133), (0, 32), (0, 32)),
        (-SUBNORMAL, (0, 32), (0, 32)),
        (np.inf, (255, 31), (255, 31)),
        (-np.inf, (255, 63), (255, 63)),
        (np.nan, (0, 0), (0, 0)),
    ],
)
def test_one_value(x, nearest, toward_zero):
    assert encode_one(x) == nearest
    assert encode_one(x, "toward_zero") == toward_zero


def test_block():
    x = np.array([1, 0.5, -0.25, 2.0**-5, -(2.0**-6), -(2.0**-30), -0.0, 0.1], np.float32)
    block = encode(x, block=8)
    assert block.exponents.tolist() == [128]
    # 15.5, 7.75, -3.875, 0.484, -0.242, tiny, zero, 1.55
    assert block.codes.tolist() == [[16, 8, 36, 0, 32, 32, 0, 2]]
    assert encode(x, block=8, rounding="toward_zero").codes.tolist() == [
        [15, 7, 35, 0, 32, 32, 0, 1]
    ]


def test_saturated_block_keeps_its_other_values():
    x = np.array([np.nan, -np.inf, 2.0**127, -(2.0**126), 1, -1, 0, np.inf], np.float32)
    block = encode(x, block=8, nonfinite="saturate")
    assert block.exponents.tolist() == [255]
    assert block.codes.tolist() == [[0, 63, 16, 40, 0, 32, 0, 31]]


def test_nan_has_no_part_in_the_maximum():
    block = encode(
        np.array([np.nan, -np.nan] + [0.25] * 6, np.float32), block=8, nonfinite="saturate"
    )
    assert block.exponents.tolist() == [126]
    assert block.codes.tolist() == [[0, 0] + [16] * 6]


@pytest.mark.parametrize(
    ("x", "dtype", "expected"),
    [
        (1 - 2.0**-53, np.float64, (127, 31)),  # 1.0 in float32
        (np.nextafter(2.0**128, 0), np.float64, (255, 31)),
        (2.0**128, np.float64, (255, 31)),
        (-1e300, np.float64, (255, 63)),
        (np.nextafter(2.0**-128, 0), np.float64, (0, 15)),
        (-5e-324, np.float64, (0, 32)),
        (2**63 - 1, np.int64, (190, 31)),  # 2^63 in float64
        (-(2**63), np.int64, (191, 48)),
        (2**64 - 1, np.uint64, (191, 31)),
        (-128, np.int8, (135, 48)),
        (255, np.uint8, (135, 31)),
        (2**31 - 1, np.int32, (158, 31)),
        (1, np.uint32, (128, 16)),
        (-1, np.int16, (128, 48)),
    ],
)
def test_exact_value_of_wide_dtypes(x, dtype, expected):
    assert encode_one(x, dtype=dtype) == expected


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_every_narrow_float_as_float32(name):
    dtype = np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):
        widened = x.astype(np.float32)
    assert same(
        encode(x, block=8, nonfinite="saturate"), encode(widened, block=8, nonfinite="saturate")
    )


def test_bfloat16_bit_patterns():
    x = np.linspace(-3, 3, 96).astype(ml_dtypes.bfloat16)
    assert same(encode(x), encode(x.view(np.uint16)))


def test_every_tie_is_half_the_scale():
    """docs/format.md: 31 * M / 2^s is a half only for M = 2^23, s = 24, so half up is enough."""
    scaled = np.arange(1 << 23, 1 << 24, dtype=np.uint32)
    scaled *= np.uint32(31)
    ties = []
    for s in range(24, 30):
        half = np.uint32(1 << (s - 1))
        remainder = scaled & np.uint32((1 << s) - 1)
        ties += [(int(scaled[i]) // 31, s) for i in np.flatnonzero(remainder == half)]
    assert ties == [(1 << 23, 24)]
    assert int(scaled.max()) < 1 << 29  # below half of 2^s for every s of 30 or more


def test_every_tie_of_the_smallest_exponent_is_half_the_scale():
    """Subnormals below 2^-127 are 31 * M / 2^22 with M below 2^22."""
    scaled = np.arange(1 << 22, dtype=np.uint32) * np.uint32(31)
    ties = np.flatnonzero(scaled & np.uint32((1 << 22) - 1) == 1 << 21)
    assert ties.tolist() == [1 << 21]


def test_exponent_next_to_every_power_of_two():
    powers = np.ldexp(np.float32(1), np.arange(-126, 128))
    for x, offset in ((powers, 128), (np.nextafter(powers, np.float32(0)), 127)):
        blocks = encode(np.stack([x] + [np.zeros_like(x)] * 7, axis=1), block=8)
        assert blocks.exponents.ravel().tolist() == [n + offset for n in range(-126, 128)]


def test_encoding_is_not_idempotent():
    x = np.full(8, 0.99, np.float32)
    once = encode(x, block=8)
    twice = encode(decode(once), block=8)
    assert (once.exponents[0], once.codes[0, 0]) == (127, 31)
    assert (twice.exponents[0], twice.codes[0, 0]) == (128, 16)


float32_patterns = st.one_of(
    st.integers(0, 2**32 - 1),
    st.builds(lambda a, b: (a << 23) + b & 2**32 - 1, st.integers(0, 511), st.integers(-2, 2)),
)


@settings(deadline=None)
@given(
    st.sampled_from([8, 16, 32]).flatmap(
        lambda size: st.lists(float32_patterns, min_size=size, max_size=size)
    ),
    st.sampled_from(["nearest", "toward_zero"]),
)
def test_any_float32_block_by_definition(patterns, rounding):
    x = np.array(patterns, np.uint32).view(np.float32)
    block = encode(x, block=len(patterns), rounding=rounding, nonfinite="saturate")
    values = [float_value(pattern, FP32) for pattern in patterns]
    expected = exact.encode_block(values, rounding)
    assert (int(block.exponents[0]), block.codes[0].tolist()) == expected


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=8, max_size=8))
def test_any_int64_block_by_definition(values):
    block = encode(np.array(values, np.int64), block=8)
    expected = exact.encode_block([Fraction(v) for v in values])
    assert (int(block.exponents[0]), block.codes[0].tolist()) == expected


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u2", "i4", "i8", "u8"])
def test_byte_order_and_strides(dtype):
    x = (np.arange(4 * 70).reshape(4, 70) * 37 % 1000).astype(dtype)
    expected = encode(x)
    wider = np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)
    for same_values in (
        x.astype(f">{dtype}"),
        np.asfortranarray(x),
        wider[::2, ::3],
        x[::-1, ::-1].copy()[::-1, ::-1],
        x.tolist() if dtype == "i8" else x,
    ):
        assert same(encode(same_values), expected)


@pytest.mark.parametrize("size", [8, 16, 32])
@pytest.mark.parametrize("k", [1, 7, 8, 9, 31, 32, 33])
def test_padding_is_zeros(size, k):
    x = np.random.default_rng(k).standard_normal((3, k)).astype(np.float32)
    n = -(-k // size)
    padded = np.zeros((3, n * size), np.float32)
    padded[:, :k] = x
    blocks = encode(x, block=size)
    assert blocks.shape == (3, k)
    assert blocks.exponents.shape == (3, n)
    assert blocks.codes.shape == (3, n, size)
    assert same(blocks, encode(padded, block=size))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0), (2, 0, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_empty(shape, dtype):
    blocks = encode(np.zeros(shape, dtype))
    assert blocks.shape == shape
    assert blocks.codes.size == 0


def test_input_is_left_alone():
    x = np.array([np.nan, -0.0, 1, 2, 3, 4, 5, np.inf], np.float32)
    before = x.tobytes()
    encode(x, block=8, nonfinite="saturate")
    assert x.tobytes() == before


@pytest.mark.parametrize("x", [1.0, np.float32(2), np.array(3)])
def test_scalar(x):
    with pytest.raises(ValueError, match=r"^values must have at least one axis, not shape \(\)$"):
        encode(x)


@pytest.mark.parametrize(
    "dtype", [np.complex64, object, np.longdouble, np.bool_, "S4", "M8[s]", "m8[s]"]
)
@pytest.mark.parametrize("n", [0, 3])
def test_dtype(dtype, n):
    name = re.escape(str(np.dtype(dtype)))
    message = rf"values must be float32, float16, bfloat16 .*, float64 or integers, not {name}$"
    with pytest.raises(TypeError, match=message):
        encode(np.zeros(n, dtype))


@pytest.mark.parametrize("size", [0, 4, 24, 64, -8, "32"])
def test_block_size(size):
    message = f"^block must be one of 8, 16, 32, not {size!r}$"
    with pytest.raises(ValueError, match=message):
        encode(np.zeros(8, np.float32), block=size)


def test_rounding():
    message = "^rounding must be one of nearest, toward_zero, stochastic, not 'up'$"
    with pytest.raises(ValueError, match=message):
        encode(np.zeros(8, np.float32), rounding="up")


def test_mode():
    message = "^mode must be one of dense, sparse, high_precision, auto, not 'reserved'$"
    with pytest.raises(ValueError, match=message):
        encode(np.zeros(8, np.float32), mode="reserved")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounding": "stochastic"}, "needs random, an integer for each value$"),
        ({"random": np.zeros(8, int)}, "^random is for rounding \"stochastic\", not 'nearest'$"),
        (
            {"rounding": "stochastic", "random": np.zeros(7, int)},
            r"^random must have the shape of the values \(8,\), not \(7,\)$",
        ),
        (
            {"rounding": "stochastic", "random": np.full(8, 16), "random_bits": 4},
            r"^random must be from 0 to 2\^4 - 1: element \(0,\) is 16$",
        ),
        (
            {"rounding": "stochastic", "random": -np.arange(8)},
            r"^random must be from 0 to 2\^16 - 1: element \(1,\) is -1$",
        ),
        ({"random_bits": 0}, "^random_bits must be an integer from 1 to 32, not 0$"),
        ({"random_bits": 33}, "^random_bits must be an integer from 1 to 32, not 33$"),
    ],
)
def test_random(options, message):
    with pytest.raises(ValueError, match=message):
        encode(np.zeros(8, np.float32), block=8, **options)


def test_spans_of_time_are_no_random_words():
    words = np.zeros(8, "m8[s]")
    with pytest.raises(TypeError, match=r"^random must hold integers, not timedelta64\[s\]$"):
        encode(np.zeros(8, np.float32), block=8, rounding="stochastic", random=words)


def test_random_must_hold_integers():
    with pytest.raises(TypeError, match=r"^random must hold integers, not float64$"):
        encode(np.zeros(8, np.float32), block=8, rounding="stochastic", random=np.zeros(8))


def test_a_sparse_block_drops_the_first_quarter_of_zeros():
    x = np.array([0, 1, -1e-9, 0, 1, -1e-9, 1, 1], np.float32)
    blocks = encode(x, block=8, mode="sparse")
    assert blocks.modes.tolist() == [1]
    # 16/31 of the scale is 1; the third and sixth values round to -0, of which one is stored.
    assert blocks.codes.tolist() == [[0, 16, 0, 0, 16, 32, 16, 16]]
    assert np.array_equal(decode(blocks), decode(encode(x, block=8)))


def test_a_block_with_too_few_zeros_stays_dense():
    x = np.array([0, 1, 1, 1, 1, 1, 1, 1], np.float32)
    assert encode(x, block=8, mode="sparse").modes.tolist() == [0]


def test_high_precision_by_hand():
    x = np.array([0.5, 0.5, -0.25, 0.25, 0.999, 0.999, -1e-9, 0], np.float32)
    blocks = encode(x, block=8, mode="high_precision")
    assert blocks.modes.tolist() == [2]
    # round(63 |x|) with sign 64 at even indices, round(15 |x|) with sign 16 at odd ones.
    assert blocks.codes.tolist() == [[32, 8, 64 + 16, 4, 63, 15, 64, 0]]


def test_zeros_of_high_precision_have_no_sign():
    x = np.array([-0.0, -0.0, 0.999, 0.999] * 2, np.float32)
    assert encode(x, block=8, mode="high_precision").codes.tolist() == [[0, 0, 63, 15] * 2]


def test_auto_takes_what_the_values_ask_for():
    fine_at_even = np.tile(np.array([1 / 63, 0.9], np.float32), 16)
    sparse = np.where(np.arange(32) % 4 == 0, 0, fine_at_even).astype(np.float32)
    coarse_at_odd = np.tile(np.array([0.9, 1 / 31], np.float32), 16)
    blocks = encode(np.stack([fine_at_even * 0 + 0.5, sparse, coarse_at_odd]), mode="auto")
    assert blocks.modes.ravel().tolist()[1:] == [1, 0]
    errors = {
        mode: float(np.sum((decode(encode(fine_at_even, mode=mode), float) - fine_at_even) ** 2))
        for mode in ("dense", "high_precision", "auto")
    }
    assert errors["auto"] == min(errors.values())


def test_auto_counts_the_errors_of_all_values():
    """Seven bits hold the first value exactly, and codes of six bits all others."""
    x = np.tile(np.float32([16 / 31, 17 / 31]), 16)
    x[0] = 33 / 63
    assert encode(x, mode="auto").modes.tolist() == [0]


def test_stochastic_rounding_has_the_predicted_mean():
    """Over all words it is floor(31 |x| / scale * 2^R) / 2^R: below the value by less than 2^-R."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(32).astype(np.float32)
    words = np.arange(256)
    blocks = encode(
        np.tile(x, (256, 1)),
        block=32,
        rounding="stochastic",
        random=np.tile(words[:, None], 32),
        random_bits=8,
    )
    total = (blocks.codes & 31).astype(int).sum(axis=0).ravel()
    steps = np.abs(x.astype(float)) * 31 / 2.0 ** (int(blocks.exponents[0, 0]) - 127)
    assert np.array_equal(total, np.floor(steps * 256))


def test_nonfinite():
    message = "^nonfinite must be one of error, saturate, propagate, not 'ignore'$"
    with pytest.raises(ValueError, match=message):
        encode(np.zeros(8, np.float32), nonfinite="ignore")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_first_value_without_a_code_is_named(dtype, bad):
    x = np.zeros((1100, 47), dtype)
    x[1, 40] = bad
    x[1, 41] = x[2, 3] = np.nan
    with pytest.raises(ValueError, match=rf"below 2\^128: element \(1, 40\) is {bad} \("):
        encode(x)
    x[1] = 0
    x[2, 3] = 0
    x[1099, 46] = bad
    with pytest.raises(ValueError, match=rf"element \(1099, 46\) is {bad} \("):
        encode(x, block=8)


@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
def test_bfloat16_without_a_code_is_named_by_its_bits(dtype):
    with pytest.raises(ValueError, match=r"element \(2,\) is bits 0x7f80 \("):
        encode(np.array([0, 1, 0x7F80], dtype))


def test_float64_too_large_is_named():
    with pytest.raises(ValueError, match=r"element \(1,\) is 3\.402823669209385e\+38 \("):
        encode(np.array([1, 2.0**128]))


@pytest.mark.parametrize("large", [2.0**128, 1.5 * 2.0**128, np.inf])
def test_auto_is_dense_where_a_value_saturates(large):
    """Halfway between codes of six bits, and next to those of seven, but for one value."""
    x = np.tile([3 / 63, 14 / 15], 16) * 2.0**128
    assert encode(x, mode="auto").modes.tolist() == [2]
    x[1] = large
    assert encode(x, mode="auto", nonfinite="saturate").modes.tolist() == [0]


def test_half_a_step_under_every_small_scale():
    """FP32 values next to scale / 62, subnormal ones among them."""
    for exponent in range(1, 40):
        scale = 2.0 ** (exponent - 127)
        below = np.float32(scale / 62)
        if float(below) > scale / 62:
            below = np.nextafter(below, np.float32(0))
        above = np.nextafter(below, np.float32(1))
        x = np.array([0.75 * scale, below, above, -below, -above, below / 2, 0, 0], np.float32)
        blocks = encode(x, block=8)
        assert blocks.exponents.tolist() == [exponent]
        assert (blocks.codes[0, 1:] & 31).tolist() == [0, 1, 0, 1, 0, 0, 0]
