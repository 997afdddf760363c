"""Explanations of formats against the bytes, codes and values that they explain."""

import re
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from axs6.golden import decode, encode, pack
from axs6.golden.explain import drawing, explain, facts, fields, number, symbol, values
from axs6.golden.formats import CATALOG, Float, NotANumber, Real, block_format

COMPOSED = (
    "int8_e8m0_t32s8o2s2o1",
    "axs6_t8",
    "int6_float16_t8",
    "e2m1fn_e4m3fn_t16_float32_t0",
    "e4m3fn_e8m0_t16_bfloat16_t64",
    "uint6_float32_uint6_t16",
)
ML_DTYPES = {
    "mxfp8_e4m3": ml_dtypes.float8_e4m3fn,
    "mxfp8_e5m2": ml_dtypes.float8_e5m2,
    "mxfp6_e3m2": ml_dtypes.float6_e3m2fn,
    "mxfp6_e2m3": ml_dtypes.float6_e2m3fn,
    "mxfp4": ml_dtypes.float4_e2m1fn,
    "fp8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "fp8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}


@pytest.mark.parametrize("name", [*CATALOG, *COMPOSED])
def test_fields_are_where_pack_puts_them(name: str) -> None:
    fmt = block_format(name)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, fmt.block)) * 2.0 ** rng.integers(-3, 4, fmt.block)
    blocks = encode(x, fmt)
    ahead = sum(scale.nbytes for scale in blocks.scales[: len(fmt.ahead)])
    if blocks.zero_points is not None and fmt.outer:
        ahead += blocks.zero_points.nbytes
    data = pack(blocks)[ahead:]
    assert len(data) == fmt.packed_bytes
    packed = int.from_bytes(data, "little")
    expected = {"0": [0, 0], "mode": [0], "code": blocks.codes.ravel().tolist()}
    if blocks.zero_points is not None:
        expected["z"] = blocks.zero_points.ravel().tolist()
    inner = zip(fmt.inner[::-1], blocks.scales[len(fmt.ahead) :], strict=True)
    expected |= {symbol(fmt, level): codes.ravel().tolist() for level, codes in inner}
    end = 0
    for field in fields(fmt):
        assert field.first == end
        end += field.bits
        found = packed >> field.first & (1 << field.bits) - 1
        assert found == expected[field.symbol][field.index or 0], field
    assert end == 8 * fmt.packed_bytes
    assert len({field.label for field in fields(fmt)} - {"0"}) >= fmt.block


def test_a_drawing_has_the_first_bit_above_every_field() -> None:
    bits, top, middle, bottom = drawing(block_format("vsq4"))
    assert bits == "bit  0   4         8               64         68  72"
    assert middle == "     │ s │ code[0] │ code[1] │ ... │ code[15] │ 0 │"
    assert len(top) == len(middle) == len(bottom)
    borders = [at for at, mark in enumerate(middle) if mark == "│"]
    starts = [match.start() for match in re.finditer(r"\d+", bits)]
    assert starts[1:] == [at for at in borders if at != borders[3]][1:]


@pytest.mark.parametrize("name", [name for name, fmt in CATALOG.items() if fmt.exponent])
def test_the_exponent_of_1_is_what_the_rule_says(name: str) -> None:
    fmt = block_format(name)
    (rule,) = [line for line in explain(fmt) if "rule floor" in line]
    match = re.search(r"E = floor\(log2 amax\) ([+-]) (\d+), held within 0 to (\d+)", rule)
    assert match
    exponents = encode(np.float32([[1.0], [2.0**-126], [2.0**127]]), fmt.untiled).exponents
    middle, bottom, top = exponents.ravel().tolist()
    offset = int(match[1] + match[2])
    assert middle == offset
    assert bottom == max(0, offset - 126)
    assert top == min(int(match[3]), offset + 127)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_values_of_codes_are_those_of_ml_dtypes(name: str) -> None:
    element = block_format(name).element
    shown = values(element)
    zeros = {"zero", "minus zero"} if element.has_negative_zero else {"zero", "NaN"}
    assert {"smallest", "smallest normal", "largest", *zeros} <= {x for x, _, _ in shown}
    for what, code, value in shown:
        expected = float(np.uint8(code).view(ML_DTYPES[name]))
        if "^" in value:
            value = str(2.0 ** int(value.partition("^")[2]))
        assert np.array_equal(np.float64(value), expected, equal_nan=True), what
        assert np.signbit(np.float64(value)) == np.signbit(expected) or what == "NaN"


def test_values_of_fixed_elements() -> None:
    assert values(block_format("mxint8").element) == [
        ("zero", 0, "0"),
        ("smallest", 1, "2^-6"),
        ("one", 64, "1"),
        ("largest", 127, "1.984375"),
        ("never written", 128, "-2"),
        ("most negative", 129, "-1.984375"),
    ]
    assert values(block_format("axs6").element)[1:3] == [
        ("smallest", 1, "1/31"),
        ("largest", 31, "1"),
    ]


def test_values_of_a_selection_have_the_bit_that_selects() -> None:
    found = values(block_format("if4").element)
    assert [code >> 4 for _, code, _ in found] == [0] * 6 + [1] * 16
    of_codes = {code: value for _, code, value in found}
    assert [of_codes[code] for code in (0x01, 0x08, 0x11, 0x18)] == ["0.5", "-0", "6/7", "0"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(448), "448"),
        (Fraction(-3, 2), "-1.5"),
        (Fraction(1, 512), "2^-9"),
        (Fraction(-1, 31), "-1/31"),
        (Fraction(2) ** 127, "2^127"),
        (Fraction(1, 8), "0.125"),
        (Fraction(255) * 2**120, "255 * 2^120"),
        (Fraction(57344), "57344"),
        (Fraction(1 << 20), "1048576"),
        (Fraction(1 << 21), "2^21"),
        (Fraction(-3 << 29), "-3 * 2^29"),
        (Fraction(3 << 28), "805306368"),
        (Fraction(3, 1 << 10), "0.0029296875"),
        (Fraction(3, 1 << 11), "3 * 2^-11"),
        (NotANumber.NAN, "NaN"),
    ],
)
def test_numbers(value: Fraction | NotANumber, text: str) -> None:
    assert number(value) == text


def test_facts() -> None:
    assert facts(block_format("mx9")) == {
        "name": "mx9",
        "string": "int8_e8m0_t16s2o1",
        "bits": 9.0,
        "packed_bits": 9.0,
        "memory_bits": 10.0,
        "largest": 127 / 64,
        "smallest": 1 / 64,
        "levels": 255,
        "binades": pytest.approx(np.log2(254)),
        "binades_with_scales": pytest.approx(np.log2(254) + 254),
    }


@pytest.mark.parametrize("name", CATALOG)
def test_binades_are_what_encoding_gives(name: str) -> None:
    """The largest value of a block and the smallest beside it, found by encoding a halving run."""
    fmt = block_format(name)
    if any(isinstance(level.scale, Real) and level.scale.zero_point for level in fmt.levels):
        return
    # AXS-6 gives a largest value of exactly 1 the next exponent.
    largest = np.float64(fmt.element.largest) * (1 - 2**-10)
    x = np.zeros((160 * 4, fmt.block))
    x[:, 0], x[:, -1] = largest, largest * 2.0 ** -(np.arange(0, 160 * 4) / 4)
    y = decode(encode(x, fmt), np.float64)
    smallest = y[y[:, -1] > 0, -1].min()
    assert np.log2(y[0, 0] / smallest) == pytest.approx(fmt.binades[0], abs=1e-6)


def test_scales_have_the_range_of_their_codes() -> None:
    exponent = block_format("mx9").exponent
    assert exponent
    assert (exponent.smallest, exponent.largest) == (Fraction(2) ** -127, Fraction(2) ** 127)
    shift, _ = (level.scale for level in block_format("mx9").levels)
    assert (shift.smallest, shift.largest) == (Fraction(1, 2), 1)
    real = block_format("nvfp4").levels[0].scale
    assert isinstance(real, Real)
    assert isinstance(real.dtype, Float)
    assert (real.smallest, real.largest) == (Fraction(1, 64), 448)
    integer = block_format("vsq4").levels[0].scale
    assert (integer.smallest, integer.largest) == (1, 15)


LINES = {
    "hif4": (
        "r: 8 bits for 64 values: a positive ue6m2 number, factor r",
        "r = bf16(fp32(amax * bf16(1 / 7))), held within 2^-48 to 49152, to the nearest ue6m2",
        "t_8 = 2 - floor(log2 amax), held within 0 to 1; 1 for zeros",
        "t_4 = 2 - t_8 - floor(log2 amax), held within 0 to 1; 1 for zeros",
        "code: 4 bits for each value: sign in bit 3, magnitude q in bits 2 to 0",
        "amax: the largest magnitude in the scale's group, after real scales of it",
    ),
    "uint8": (
        "before the blocks: r of the tensor, 4 bytes, then z, 1 byte",
        "r = fp32(fp32(hi - lo) / 255), at least 2^-126; 1 for zeros",
        "code: 8 bits for each value: an unsigned integer",
        "element = code",
    ),
    "vsq8": (
        "before the blocks: r of each channel, 4 bytes",
        "s = ceil(amax / (127 * r)), held within 1 to 15",
        "code: 8 bits for each value: a two's complement integer q",
        "element = q * 1",
        "never written  0x80  -128",
        "most negative  0x81  -127",
        "amax: the largest magnitude in the scale's group",
    ),
    "if4": (
        "first element, selected by 0: code: 4 bits for each value: sign in bit 3, exponent e in "
        "bits 2 to 1, fraction f in bit 0",
        "second element, selected by 1: code: 4 bits for each value: a place in a table",
    ),
    "nf4": (
        "code: 4 bits for each value: a place in a table",
        "element = the value of the code",
        "most negative  0x00  -1",
        "0x01  -11680177 * 2^-24",
        "zero           0x07  0",
        "largest        0x0f  1",
    ),
    "int4_bfloat16": ("before the blocks: r of the tensor, 2 bytes",),
    "fp8_e4m3": (
        "r = fp32(amax / 448), at least 2^-126; 1 for zeros",
        "code: 8 bits for each value: sign in bit 7, exponent e in bits 6 to 3, fraction f in "
        "bits 2 to 0",
        "element = (-1)^sign * 2^(e - 7) * (1 + f / 8); with e = 0 (-1)^sign * 2^-6 * f / 8",
        "smallest normal  0x08  2^-6",
        "minus zero       0x80  -0",
        "most negative    0xfe  -448",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_of_an_explanation(name: str) -> None:
    text = explain(block_format(name))
    lines = [line.strip() for line in (text.splitlines() if isinstance(text, str) else text)]
    places = [lines.index(line) for line in LINES[name]]
    assert places == sorted(places)
