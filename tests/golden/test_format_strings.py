"""What docs/formats.md promises of each part of a format's string, and how `str` reads back."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import axs6
from axs6.golden.formats import (
    BF16,
    CHANNEL,
    FP16,
    FP32,
    TENSOR,
    Float,
    Level,
    Real,
    Shift,
    SignMagnitude,
    TwosComplement,
    block_format,
    formats,
    name_of,
    operand_formats,
    operands_name,
)
from axs6.golden.formats.codes import NotANumber
from axs6.golden.formats.floating import E4M3

NAN, INF = NotANumber.NAN, NotANumber.INFINITY


def values(text):
    """What each code of an element is, under a scale of 1."""
    element = block_format(text).element
    exact = [element.integer(code) for code in range(1 << element.width)]
    return [x if isinstance(x, NotANumber) else x * element.unit for x in exact]


def floats(exponent_bits, fraction_bits, kind, bias):
    """The values of a floating-point element, positive ones first, by the words of the page."""
    ones = (1 << exponent_bits) - 1
    for sign in (1, -1):
        for magnitude in range(1 << exponent_bits + fraction_bits):
            field, fraction = divmod(magnitude, 1 << fraction_bits)
            significand = fraction + ((field > 0) << fraction_bits)
            last = (1 << exponent_bits + fraction_bits) - 1
            if kind in ("fnuz", "inuz") and sign < 0 and not magnitude:
                yield NAN
            elif kind == "inuz" and magnitude == last:
                yield INF if sign > 0 else NotANumber.NEGATIVE_INFINITY
            elif kind == "ieee" and field == ones:
                yield NAN if fraction else INF if sign > 0 else NotANumber.NEGATIVE_INFINITY
            elif kind == "n" and magnitude == last:
                yield NAN
            else:
                yield sign * significand * Fraction(2) ** (max(field, 1) - bias - fraction_bits)


@pytest.mark.parametrize("suffix", ["", "n", "f", "fn", "fnuz", "inuz"])
@pytest.mark.parametrize("fields", [(1, 2), (2, 1), (2, 3), (3, 3), (2, 5), (4, 3), (5, 2), (3, 4)])
def test_a_floating_point_element(fields, suffix):
    x, y = fields
    kind = {"": "ieee", "fn": "n" if 1 + x + y >= 8 else "f"}.get(suffix, suffix)
    usual = (1 << x - 1) - ("uz" not in suffix)
    assert values(f"e{x}m{y}{suffix}_e8m0_t32") == list(floats(x, y, kind, usual))
    for bias in (usual, 0, -2, 9):
        for both in (f"{suffix}b{bias}", f"b{bias}{suffix}"):
            assert values(f"e{x}m{y}{both}_e8m0_t32") == list(floats(x, y, kind, bias))


SIGNED = [(k, p) for k in range(3, 9) for p in range(max(2, k - 5), k)]


@pytest.mark.parametrize("infinities", ["e", "f"])
@pytest.mark.parametrize(("width", "precision"), SIGNED)
def test_an_element_of_p3109(width, precision, infinities):
    """Binary{K}p{P}s: a bias of 2^(K - P - 1), NaN in place of -0, infinities as the last codes."""
    kind = {"e": "inuz", "f": "fnuz"}[infinities]
    expected = list(floats(width - precision, precision - 1, kind, 1 << width - precision - 1))
    assert values(f"binary{width}p{precision}s{infinities}_e8m0_t32") == expected


@pytest.mark.parametrize("precision", range(2, 9))
def test_an_unsigned_scale_of_p3109(precision):
    """Binary8p{P}u: a bias of 2^(8 - P), NaN as the last code, +Inf before it; no infinity is a
    scale."""
    exponent, bias = 9 - precision, 1 << 8 - precision
    every = list(floats(exponent, precision - 1, "f", bias))[:256]
    for infinities, last in (("f", [NAN]), ("e", [INF, NAN])):
        scale = block_format(f"int8_binary8p{precision}u{infinities}_t8").levels[0].scale
        exact = [scale.dtype.integer(code) for code in range(256)]
        found = [x if isinstance(x, NotANumber) else x * scale.dtype.unit for x in exact]
        assert found == [*every[: 256 - len(last)], *last]
        assert (scale.largest_code, scale.nan_code) == (255 - len(last), 255)


@pytest.mark.parametrize("text", ["e2m5n_e8m0", "e3m4n_e8m0_t32", "e2m1n_e8m0", "e4m3fn_float32"])
def test_the_code_of_all_ones_is_nan_and_is_not_encoded_otherwise(text):
    fmt = block_format(text)
    top = float(fmt.element.largest)
    blocks = axs6.encode([top, top * 1.9, np.nan, -np.nan], fmt, nonfinite="propagate")
    ones = (1 << fmt.element.width - 1) - 1
    kept = blocks.codes[0, :4] & ones
    assert (kept == ones).tolist() == [False, False, True, True]
    assert np.isnan(axs6.decode(blocks)).tolist() == [False, False, True, True]


SCALES = ("e8m0_t32", "e8m0", "e4m0_t8_float32", "e8m0_t16s2o1", "float32", "u4_t16_float32_t0")


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("bits", [2, 5, 8])
@pytest.mark.parametrize("power", [None, 0, 3, -2])
def test_an_integer_element(bits, scales, power):
    fraction = "" if power is None else f"q{power}"
    half = 1 << bits - 1
    unit = Fraction(1) if "m0" not in scales else Fraction(4, 1 << bits)
    if power is not None:
        unit = Fraction(2) ** -power
    two = [unit * (x - 2 * half if x >= half else x) for x in range(2 * half)]
    sign = [unit * (half - x if x >= half else x) for x in range(2 * half)]
    assert values(f"tc{bits}{fraction}_{scales}") == two
    assert values(f"sm{bits}{fraction}_{scales}") == sign
    assert values(f"int{bits}{fraction}_{scales}") == (sign if "s2o1" in scales else two)
    over = [x / unit / (half - 1) * (1 if power is None else unit) for x in sign]
    for kind in ("sm", "int") if "s2o1" in scales else ("sm",):
        assert values(f"{kind}{bits}d{fraction}_{scales}") == over
    for kind in ("tc", "int")[: 1 if "s2o1" in scales else 2]:
        for suffixes in (f"d{fraction}", f"{fraction}z"):
            with pytest.raises(ValueError, match="d and z are for sign and magnitude"):
                block_format(f"{kind}{bits}{suffixes}_{scales}")


@pytest.mark.parametrize("scales", SCALES)
def test_what_an_integer_element_makes_of_zero_and_of_its_lowest_code(scales):
    def codes(element):
        return axs6.encode(
            [-0.0, 1, 1 - 2.0**30], f"{element}_{scales}", nonfinite="saturate"
        ).codes

    assert codes("sm8").flat[0] == 0x80
    assert codes("sm8z").flat[0] == codes("tc8").flat[0] == 0
    assert codes("tc8").flat[2] == 0x81
    assert values(f"tc8_{scales}")[0x80] == -values(f"tc8_{scales}")[0x7F] * Fraction(128, 127)


def test_an_unsigned_element_needs_a_zero_point():
    assert values("uint3_float32_uint3") == list(range(8))
    fmt = block_format("uint8_bfloat16_uint8_t32")
    assert fmt.levels == (Level(Real(BF16, zero_point=True), 32),)
    assert np.array_equal(axs6.decode(axs6.encode([-100.0, 155], fmt)), [-100, 155])
    for text in ("uint8_float32", "uint8_float32_uint7", "int8_float32_uint8", "uint8_e8m0_t32"):
        with pytest.raises(ValueError, match="zero point"):
            block_format(text)


@pytest.mark.parametrize("bits", range(4, 9))
@pytest.mark.parametrize("suffix", ["", "n", "f"])
@pytest.mark.parametrize("rule", ["", "-floor", "-ceil", "-even", "-rceil"])
def test_an_exponent_scale(bits, suffix, rule):
    scale = block_format(f"e2m1fn_e{bits}m0{suffix}{rule}_t32").exponent
    assert scale.bits == bits
    assert scale.bias == (1 << bits - 1) - 1
    assert scale.rule == (rule[1:] or "floor")
    nan = suffix == "n" or (bits == 8 and suffix != "f")
    assert scale.nan_code == ((1 << bits) - 1 if nan else None)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("float32", FP32),
        ("e8m23", FP32),
        ("bfloat16", BF16),
        ("e8m7", BF16),
        ("float16", FP16),
        ("e5m10b15", FP16),
        ("e4m3fn", Float(4, 3, "nan")),
        ("e5m3", Float(5, 3)),
        ("e5m10n", Float(5, 10, "nan")),
        ("e5m10fn", Float(5, 10, "nan")),
        ("e5m10f", Float(5, 10, "none")),
        ("e3m2fn", Float(3, 2, "none")),
        ("e3m2nb4", Float(3, 2, "nan", 4)),
        ("e4m3fnuz", Float(4, 3, "fnuz")),
        ("e4m3b11fnuz", Float(4, 3, "fnuz", 11)),
        ("binary8p3se", Float(5, 2, "inuz")),
        ("ue6m2inuz", Float(6, 2, "inuz", signed=False)),
        ("ue5m3", Float(5, 3, "nan", signed=False)),
        ("ue4m3n", Float(4, 3, "nan", signed=False)),
        ("ue4m3fn", Float(4, 3, "nan", signed=False)),
        ("ue6m2f", Float(6, 2, "none", signed=False)),
        ("ue6m2fb9", Float(6, 2, "none", 9, signed=False)),
        ("ue6m2b48h", Float(6, 2, "nan", 48, signed=False, subnormals=False)),
        ("ue3m4fh", Float(3, 4, "none", signed=False, subnormals=False)),
    ],
)
def test_a_real_scale(text, dtype):
    assert block_format(f"int8_{text}_t0").levels == (Level(Real(dtype), CHANNEL),)


def test_arithmetic_of_a_scale_and_ties_of_an_element():
    fmt = block_format("int4a_e4m3fn-bf16_t16s4o2")
    shift, scale = fmt.levels
    assert fmt.element == SignMagnitude(3, 0, ties_away=True)
    assert (shift, scale) == (Level(Shift(2), 4), Level(Real(E4M3, arithmetic=BF16), 16))
    assert str(fmt) == "int4a_e4m3fn-bf16_t16s4o2"
    assert block_format("tc5q2a_e8m0_t8s4o1").element == TwosComplement(5, -2, ties_away=True)


HIDDEN = ("ue6m2b48h", "ue3m4fh", "ue5m3h")


@pytest.mark.parametrize("text", HIDDEN)
def test_a_scale_without_subnormal_values_has_a_hidden_one_in_every_code(text):
    fmt = block_format(f"int8_{text}_t16")
    scale = fmt.levels[0].scale
    dtype = scale.dtype
    assert str(fmt) == f"int8_{text}_t16"
    values = [dtype.integer(code) * dtype.unit for code in range(scale.largest_code + 1)]
    steps = 1 << dtype.fraction_bits
    powers = [Fraction(2) ** ((code // steps) - dtype.bias) for code in range(len(values))]
    assert values == [(1 + Fraction(k % steps, steps)) * x for k, x in enumerate(powers)]
    assert (scale.smallest, scale.largest) == (values[0], values[-1])
    assert len(values) + dtype.has_nan == 1 << scale.bits


UNSIGNED = {"ue4m3": 7, "ue5m3": 8, "ue6m2": 8, "ue7m1": 8, "ue3m4f": 7, "ue5m3fb9": 8}


@pytest.mark.parametrize("text", UNSIGNED)
def test_an_unsigned_scale_has_the_positive_half_in_one_bit_less(text):
    fields, _, bias = text.removeprefix("u").partition("b")
    x, y = int(fields[1]), int(fields[3])
    fmt = block_format(f"int8_{text}_t16")
    scale = fmt.levels[0].scale
    assert (str(fmt), scale.bits) == (f"int8_{text}_t16", UNSIGNED[text])
    every = floats(x, y, "" if "f" in text else "n", int(bias or (1 << x - 1) - 1))
    half = [next(every) for _ in range(1 << x + y)]
    codes = range(1 << scale.bits)
    exact = [scale.dtype.integer(code) for code in codes]
    assert [v if v is NAN else v * scale.dtype.unit for v in exact] == half
    blocks = axs6.golden.Blocks(
        fmt, (np.array([[*codes]], np.uint8),), np.full((1, len(codes), 16), 1, np.uint8),
        (1, 16 * len(codes)),
    )  # fmt: skip
    decoded = axs6.decode(blocks, np.float64)[0, ::16].tolist()
    assert [NAN if np.isnan(v) else Fraction(v) for v in decoded] == half


def test_groups():
    def groups(text):
        fmt = block_format(f"int4_{text}")
        return [(type(x.scale).__name__, x.scale.bits, x.group) for x in fmt.levels]

    for n in range(11):
        assert groups(f"e8m0_t{1 << n}") == [("Exponent", 8, 1 << n)]
    assert groups("e8m0_t0") == [("Exponent", 8, CHANNEL)]
    assert groups("e8m0") == [("Exponent", 8, TENSOR)]
    assert groups("u4_t16_float32_t0") == [("Integer", 4, 16), ("Real", 32, CHANNEL)]
    for n in (1, 16):
        assert groups(f"u{n}_t16_float32")[0] == ("Integer", n, 16)
    coarse_to_fine = "e8m0_t16s8o3s4o1s2o2"
    shifts = [("Shift", 2, 2), ("Shift", 1, 4), ("Shift", 3, 8)]
    assert groups(coarse_to_fine) == [*shifts, ("Exponent", 8, 16)]
    assert str(block_format(f"int4_{coarse_to_fine}")) == f"int4_{coarse_to_fine}"
    for wrong in ("t3", "t2048", "t16s4o1s8o1", "t16s16o1", "t0s2o1", "t16s2o5", "t16s2o0"):
        with pytest.raises(ValueError, match="is no block format"):
            groups(f"e8m0_{wrong}")


NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16])
FIELDS = st.builds("e{}m{}".format, st.integers(1, 9), st.integers(1, 10))
BIAS = st.just("") | st.builds("b{}".format, st.integers(-20, 40))
FLOATS = st.builds(
    "{}{}{}".format, FIELDS, st.sampled_from(["", "fn", "n", "f", "fnuz", "inuz"]), BIAS
)
SUFFIXES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "d"]),
    st.just("") | st.builds("q{}".format, st.integers(-9, 9)),
    st.sampled_from(["", "z"]),
)
KINDS = st.sampled_from(["int", "sm", "tc"])
INTEGERS = st.builds("{}{}{}".format, KINDS, st.integers(1, 9), SUFFIXES)
POWERS = st.builds(
    "e{}m0{}{}".format,
    st.integers(3, 9),
    st.sampled_from(["", "f", "n"]),
    st.sampled_from(["", "-floor", "-ceil", "-even", "-rceil"]),
)
REALS = st.sampled_from(["float32", "bfloat16", "float16"]) | FLOATS
COUNTS = st.builds("u{}".format, NUMBERS)
SHIFTS = st.lists(st.sampled_from(["s8o1", "s4o2", "s2o1", "s2o4", "s1o3"]), max_size=3)
GROUPS = st.just("") | st.sampled_from(["_t0", "_t1", "_t4", "_t16", "_t32", "_t64", "_t1024"])


@st.composite
def scales(draw):
    """Scales in an order that is mostly allowed: an exponent or a count, then reals."""
    first = draw(st.sampled_from(["", *["power"] * 2, "count"]))
    found = ""
    if first == "power":
        shifts = "".join(draw(SHIFTS)) if draw(st.booleans()) else ""
        group = draw(st.sampled_from(["_t16", "_t32"])) if shifts else draw(GROUPS)
        found = f"_{draw(POWERS)}{group}{shifts}"
    elif first == "count":
        found = f"_{draw(COUNTS)}_t16_float32{draw(st.sampled_from(['', '_t0', '_t64']))}"
    if not found or draw(st.integers(0, 3)) == 0:
        found += f"_{draw(REALS)}{draw(GROUPS)}"
    return found


COUNTS_OF_TABLES = st.lists(st.integers(-99, 99), min_size=3, max_size=8, unique=True)
TABLES = st.sampled_from(["nf4", "nf4q6"]) | st.builds(
    lambda counts, unit: f"table0:{':'.join(map(str, counts))}{unit}",
    COUNTS_OF_TABLES,
    st.sampled_from(["", "q6", "q-3", "d7q1", "d1"]),
)
SELECTIONS = st.sampled_from(
    ["if4", "razer", "sm4+int4", "int4+e2m1fn", "nf4+nf4q6", "e2m1fn+table0:6:1:2:3:4:5:-6"]
)

STRINGS = st.one_of(
    st.builds("{}{}".format, FLOATS | INTEGERS, scales()),
    st.builds("{}{}".format, INTEGERS, scales()),
    st.builds("uint{0}_{1}_uint{0}{2}".format, st.integers(1, 8), REALS, GROUPS),
    st.builds("{}{}".format, TABLES | SELECTIONS, scales()),
    st.builds("sm6dz_{}_t{}_modes".format, POWERS, st.sampled_from([8, 16, 32])),
)


@given(STRINGS)
def test_the_string_of_a_string_that_is_a_format_reads_as_it(text):
    try:
        fmt = block_format(text)
    except ValueError as error:
        assert f"{text!r} is no block format: " in str(error)  # noqa: PT017
        return
    assert block_format(str(fmt)) == fmt
    assert str(block_format(str(fmt))) == str(fmt)
    assert block_format(name_of(fmt)) == fmt


NAMES = formats()
ENDS = [text for name, fmt in NAMES.items() for text in (name, str(fmt))]


@pytest.mark.parametrize("text", [*ENDS, "mxfp4-rceil", "mx9-even", "mx9_t64"])
def test_a_pair_is_joined_by_x(text):
    fmt = block_format(text)
    assert operand_formats(text) == (fmt,)
    for name, other in NAMES.items():
        assert operand_formats(f"{text}x{name}") == (fmt, other)
        assert operand_formats(f"{name}x{text}") == (other, fmt)
        assert operand_formats(operands_name((fmt, other))) == (
            (fmt, other) if fmt != other else (fmt,)
        )


@given(STRINGS)
def test_no_string_reads_as_a_pair(text):
    try:
        fmt = block_format(text)
    except ValueError:
        return
    assert operand_formats(text) == operand_formats(str(fmt)) == (fmt,)


def test_a_pair_is_not_one_format():
    with pytest.raises(
        ValueError, match=r"^format must be one block format, not the pair 'mx9xmx6'$"
    ):
        block_format("mx9xmx6")
    with pytest.raises(ValueError, match=r"^'matrix' is no block format: "):
        block_format("matrix")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mxfp4,mx9", "^two formats are joined by x, mxfp4xmx9, not 'mxfp4,mx9'$"),
        ("mx9xmx6xmx4", "^a product has one format or two, not 3: 'mx9xmx6xmx4'$"),
        ("mxfp4xfp4", "^'fp4' is no block format: "),
        ("mxfp4x", "^'' is no block format: "),
        ("xfp4", "^'xfp4' is no block format: "),
    ],
)
def test_what_is_no_pair_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        operand_formats(text)
