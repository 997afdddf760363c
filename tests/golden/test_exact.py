from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from axs6.golden import exact
from axs6.golden.exact import BF16, FP16, FP32, FP64, Special

ULP = Fraction(1, 2**23)


def numbers(count, seed):
    """Random float64 patterns, half of them in the range of FP32."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1 << 64, count, np.uint64).view(np.float64)
    near = np.ldexp(rng.uniform(-2, 2, count), rng.integers(-155, 130, count))
    x = np.concatenate([x, near])
    return x[np.isfinite(x)]


def test_shares_nothing_with_the_model():
    lines = Path(exact.__file__).read_text().splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    modules = {line.split()[1] for line in imports}
    assert modules == {"collections.abc", "enum", "fractions", "functools", "math", "typing"}


@pytest.mark.parametrize(
    ("fmt", "unsigned", "dtype"),
    [(FP16, np.uint16, np.float16), (BF16, np.uint16, ml_dtypes.bfloat16)],
)
def test_every_short_float_has_the_value_numpy_gives(fmt, unsigned, dtype):
    with np.errstate(invalid="ignore"):
        values = np.arange(1 << 16, dtype=unsigned).view(dtype).astype(np.float64).tolist()
    for bits, value in enumerate(values):
        got = exact.float_value(bits, fmt)
        if value != value:
            assert got is Special.NAN
        elif isinstance(got, Special):
            assert got.value == f"{value:+}"
        else:
            assert got == Fraction(value)
            assert exact.round_to_float(got, fmt) == (bits if value else 0)


def test_float_values_and_rounding_as_numpy():
    x = numbers(3000, 0)
    with np.errstate(over="ignore"):
        single = x.astype(np.float32).view(np.uint32)
    for value, double_bits, single_bits in zip(
        x.tolist(), x.view(np.uint64).tolist(), single.tolist(), strict=True
    ):
        fraction = exact.float_value(double_bits, FP64)
        assert fraction == Fraction(value)
        assert exact.round_to_float(fraction, FP64) == double_bits
        assert exact.round_to_float(fraction, FP32) == single_bits


def test_bfloat16_rounding_as_ml_dtypes():
    with np.errstate(over="ignore"):
        x = numbers(3000, 1).astype(np.float32)
    x = x[np.isfinite(x) & (x != 0)]
    expected = x.astype(ml_dtypes.bfloat16).view(np.uint16).tolist()
    assert [exact.round_to_float(Fraction(v), BF16) for v in x.tolist()] == expected


@pytest.mark.parametrize(
    ("x", "bits"),
    [
        (1 + ULP / 2, 0x3F800000),
        (1 + 3 * ULP / 2, 0x3F800002),
        (1 + ULP / 2 + exact.power(-200), 0x3F800001),
        (2 - ULP / 2, 0x40000000),
        (exact.power(-150), 0),
        (-exact.power(-150), 0x80000000),
        (exact.power(-150) + exact.power(-300), 1),
        (3 * exact.power(-150), 2),
        (exact.power(-126) - exact.power(-150), 0x00800000),
        (exact.power(128) - exact.power(103), 0x7F800000),
        (exact.power(128) - exact.power(103) - 1, 0x7F7FFFFF),
        (-exact.power(128), 0xFF800000),
    ],
)
def test_rounding_at_borders(x, bits):
    assert exact.round_to_float(x, FP32) == bits


def test_saturation_is_for_what_rounds_to_infinity():
    assert exact.round_to_float(exact.power(128), FP32, saturate=True) == 0x7F7FFFFF
    assert exact.round_to_float(-exact.power(128), BF16, saturate=True) == 0xFF7F
    assert exact.round_to_float(exact.power(127), FP32, saturate=True) == 0x7F000000


@pytest.mark.parametrize(("x", "n"), [(1, 0), (Fraction(2, 3), -1), (3, 1), (Fraction(1, 8), -3)])
def test_floor_log2(x, n):
    assert exact.floor_log2(Fraction(x)) == n


@pytest.mark.parametrize(
    ("values", "nearest", "toward_zero"),
    [
        ([0, 0], (0, [0, 0]), (0, [0, 0])),
        ([1, -1], (128, [16, 48]), (128, [15, 47])),
        ([Fraction(3, 4), Fraction(-1, 100)], (127, [23, 32]), (127, [23, 32])),
        ([Special.NAN, Fraction(1, 2)], (127, [0, 16]), (127, [0, 15])),
        ([Special.INFINITY, Special.NEGATIVE_INFINITY], (255, [31, 63]), (255, [31, 63])),
        ([-exact.power(200), exact.power(127)], (255, [63, 16]), (255, [63, 15])),
        ([exact.power(128), Special.NAN], (255, [31, 0]), (255, [31, 0])),
        ([-exact.power(-200), 0], (0, [32, 0]), (0, [32, 0])),
    ],
)
def test_encode_block(values, nearest, toward_zero):
    values = [v if isinstance(v, Special) else Fraction(v) for v in values]
    assert exact.encode_block(values) == nearest
    assert exact.encode_block(values, "toward_zero") == toward_zero


def test_encode_vector_pads_with_zeros():
    ones = [Fraction(1)] * 9
    second = (128, [16] + [0] * 7)
    assert exact.encode_vector(ones, 8, "nearest") == [(128, [16] * 8), second]
    assert exact.encode_vector([], 8, "nearest") == []


@pytest.mark.parametrize(
    ("exponent", "code", "value"),
    [
        (127, 31, Fraction(1)),
        (128, 33, Fraction(-2, 31)),
        (0, 1, exact.power(-127) / 31),
        (255, 63, -exact.power(128)),
        (255, 32, Fraction(0)),
    ],
)
def test_decode_value(exponent, code, value):
    assert exact.decode_value(exponent, code) == value


def test_decoded_zeros_keep_their_sign():
    assert exact.decode_bits(200, 0, FP32) == 0
    assert exact.decode_bits(200, 32, FP32) == 0x80000000
    assert exact.decode_bits(200, 32, FP64) == 1 << 63


def test_two_to_the_128():
    assert exact.decode_bits(255, 31, FP32) == 0x7F7FFFFF
    assert exact.decode_bits(255, 63, BF16) == 0xFF7F
    assert exact.decode_bits(255, 31, FP64) == (1023 + 128) << 52


def test_pack_block():
    # 1 | 2 << 6 | 3 << 12 | 4 << 18 = 0x103081
    assert exact.pack_block(0x81, [1, 2, 3, 4]).hex() == "0402" + "813010"
    assert exact.pack_block(255, [63] * 8).hex() == "fc03" + "ff" * 6
    assert len(exact.pack_block(0, [0] * 32)) == 26
    assert exact.pack_block(0, [1] + [0] * 31, 32) == b"\0\0\1" + bytes(29)


def test_block_dot():
    a, b = (100, [31, 63, 1, 32]), (200, [31, 31, 33, 31])
    assert exact.block_dot(a, b) == (961 - 961 - 1, 300)


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [
        (0x80000000, 0x80000000, 0x80000000),
        (0x80000000, 0, 0),
        (0x3F800000, 0xBF800000, 0),
        (0x7F7FFFFF, 0x73000000, 0x7F800000),  # a tie at the largest value goes to infinity
        (0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF),
        (0x7F800000, 0xFF7FFFFF, 0x7F800000),
        (0x7F800000, 0xFF800000, 0x7FC00000),
        (0xFF800000, 0xFF800000, 0xFF800000),
        (0xFF800001, 0, 0x7FC00000),
        (0x7F800000, 0xFFC00000, 0x7FC00000),
        (1, 0x80000002, 0x80000001),
    ],
)
def test_add(a, b, total):
    assert exact.add_fp32(a, b) == total
    assert exact.add_fp32(b, a) == total


@pytest.mark.parametrize(
    ("a", "quotient"),
    [
        (0, 0),
        (0x80000000, 0x80000000),
        (1, 1),
        (8, 9),  # 8.52
        (0xFF800000, 0xFF800000),
        (0x7F800001, 0x7FC00000),
        (0x7F7FFFFF, 0x7F800000),
        (0x3F704000, 0x3F800000),  # 961/1024
    ],
)
def test_divide(a, quotient):
    assert exact.divide_fp32(a) == quotient


def test_accumulate():
    one = 0x3F800000
    assert exact.accumulate([], []) == exact.accumulate([], [], "exact") == 0
    assert exact.accumulate([961], [254]) == exact.accumulate([961], [254], "exact") == one
    assert exact.accumulate([-1], [0]) == 0
    assert exact.accumulate([-1], [0], "exact") == 0x80000000
    overflow = ([30752, -30752], [510, 510])
    assert exact.accumulate(*overflow) == 0x7FC00000
    assert exact.accumulate(*overflow, "exact") == 0
    # Two halves of the last bit are lost one after the other, but not together.
    # 1024/961 is 549929.6 steps of 2^-23 above one.
    halves = ([1024] * 3, [254, 230, 230])
    assert exact.accumulate(*halves) == one + 549930
    assert exact.accumulate(*halves, "exact") == one + 549931


def test_vector_dot():
    a = [(128, [16] * 8), (127, [31] + [0] * 7)]
    # 8 * 256/961 * 4 + 961/961
    expected = exact.round_to_float(Fraction(8 * 256 * 4 + 961, 961), FP32)
    assert exact.vector_dot(a, a, "exact") == expected
    assert exact.vector_dot(a, a) == expected


@pytest.mark.parametrize("align", [1, 32])
@pytest.mark.parametrize(
    ("mode", "codes"),
    [
        (0, [1, 2, 3, 63, 32, 0, 31, 16]),
        (1, [0, 1, 0, 63, 32, 0, 31, 16]),
        (2, [127, 31, 64, 16, 0, 1, 63, 15]),
    ],
)
def test_unpack_reads_what_pack_writes(mode, codes, align):
    packed = exact.pack_block(200, codes, align, mode)
    assert exact.unpack(packed * 3, 8, 3, align) == [(mode, (200, codes))] * 3


@pytest.mark.parametrize(
    ("packed", "count", "fault", "block"),
    [
        ("0002104a00000004", 2, "truncated", 1),
        ("0002104a000000", 1, "truncated", 0),
        ("0002104a00000004" + "00", 1, "trailing", 1),
        ("0006104a00000004", 1, "header", 0),
        ("0002104a00000004" + "0302104a00000004", 2, "reserved", 1),
        ("0102fe108c10a203", 1, "mask", 0),
        ("01026e108c10a203", 1, "mask", 0),
        ("2500f90051180702", 1, "mask", 0),
        ("0102ee108c10a213", 1, "padding", 0),
    ],
)
def test_unpack_names_what_is_wrong(packed, count, fault, block):
    with pytest.raises(exact.MalformedError, match=f"^block {block}: {fault}$") as raised:
        exact.unpack(bytes.fromhex(packed), 8, count)
    assert (raised.value.fault, raised.value.block) == (fault, block)


def test_encode_in_mode_with_random_words():
    values = [Fraction(1)] * 6 + [Fraction(0)] * 2
    words = exact.Random([127, 128] * 3 + [255] * 2, 8)
    dense = (128, [15, 16] * 3 + [0, 0])
    assert exact.encode_in_mode(values, "stochastic", "dense", words) == (0, dense)
    assert exact.encode_in_mode(values, "stochastic", "sparse", words) == (1, dense)
    precise = (128, [31, 8] * 3 + [0, 0])
    assert exact.encode_in_mode(values, "stochastic", "high_precision", words) == (2, precise)
