from fractions import Fraction

import pytest

from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import (
    BF16,
    FP32,
    FP64,
    Special,
    power,
    round_to_float,
)


@pytest.mark.parametrize(
    ("values", "nearest", "toward_zero"),
    [
        ([0, 0], (0, [0, 0]), (0, [0, 0])),
        ([1, -1], (128, [16, 48]), (128, [15, 47])),
        ([Fraction(3, 4), Fraction(-1, 100)], (127, [23, 32]), (127, [23, 32])),
        ([Special.NAN, Fraction(1, 2)], (127, [0, 16]), (127, [0, 15])),
        ([Special.INFINITY, Special.NEGATIVE_INFINITY], (255, [31, 63]), (255, [31, 63])),
        ([-power(200), power(127)], (255, [63, 16]), (255, [63, 15])),
        ([power(128), Special.NAN], (255, [31, 0]), (255, [31, 0])),
        ([-power(-200), 0], (0, [32, 0]), (0, [32, 0])),
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
        (0, 1, power(-127) / 31),
        (255, 63, -power(128)),
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
    expected = round_to_float(Fraction(8 * 256 * 4 + 961, 961), FP32)
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
