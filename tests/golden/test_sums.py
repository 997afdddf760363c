"""Products of blocks of every format in every accumulator, against fractions, lane by lane."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sampling import few
from tiles import small_tiles

from axs6.golden import Blocks, encode, matmul
from axs6.golden.accumulator import ACCUMULATORS, Accumulator, accumulator
from axs6.golden.formats import (
    BF16,
    CATALOG,
    FP16,
    FP32,
    Exponent,
    Float,
    Integer,
    NotANumber,
    Real,
    Shift,
    block_format,
)

INFINITY, NAN, TENSOR_CORE_NAN = 0x7F800000, 0x7FC00000, 0x7FFFFFFF
SIGN = 1 << 31
E8M13 = Float(8, 13)


def two(exponent):
    return Fraction(2) ** exponent


def log2(x):
    """floor(log2 x)."""
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if two(n) <= x else n - 1


def rounded(x, dtype=FP32, toward_zero=False):
    """A fraction on the grid of a dtype."""
    if not x:
        return x
    quantum = two(max(log2(abs(x)), dtype.emin) - dtype.fraction_bits)
    x = (math.trunc if toward_zero else round)(x / quantum) * quantum
    assert abs(x) <= dtype.largest
    return x


class Row:
    """A row of blocks: in every lane its value, and the exponent fields of element and scales."""

    def __init__(self, blocks, row):
        self.element, self.levels = blocks.format.element, blocks.format.blocked
        self.block = blocks.format.block
        codes = blocks.codes[row].ravel().tolist()
        zero = 0 if blocks.zero_points is None else int(blocks.zero_points)
        self.values = [(self.element.integer(c) - zero) * self.element.unit for c in codes]
        fixed = self.element.fixed
        self.fields = [0 if fixed else exponent_field(c, self.element) for c in codes]
        self.scales, self.outer = [0] * len(codes), Fraction(1)
        for level, scales in zip(blocks.format.levels[::-1], blocks.scales, strict=True):
            if level.blocked:
                own = scales[row // level.rows]
                self.scale_lanes(level, np.repeat(own.ravel(), level.group).tolist())
            else:
                self.outer *= scale_value(level.scale, int(scales[row] if scales.ndim else scales))

    def scale_lanes(self, level, codes):
        for lane, code in enumerate(codes):
            self.values[lane] *= scale_value(level.scale, code)
            if isinstance(level.scale, Exponent):
                self.scales[lane] += code - level.scale.bias
            elif isinstance(level.scale, Real):
                self.scales[lane] += exponent_field(code, level.scale.dtype)

    @property
    def bound(self):
        """The largest magnitude of a lane over the power of two of its exponent fields."""
        bound = int(abs(self.element.integers).max()) * self.element.unit
        for level in self.levels:
            if isinstance(level.scale, Integer):
                bound *= level.scale.largest_code
            elif isinstance(level.scale, Real):
                bound *= 2 - two(-level.scale.dtype.fraction_bits)
        return bound


def exponent_field(code, dtype):
    return max((code & dtype.sign_bit - 1) >> dtype.fraction_bits, 1) - dtype.bias


def scale_value(scale, code):
    if isinstance(scale, Exponent):
        return two(code - scale.bias)
    if isinstance(scale, Shift):
        return two(-code)
    return (
        Fraction(code)
        if isinstance(scale, Integer)
        else scale.dtype.integer(code) * scale.dtype.unit
    )


def terms_of(a, b, lanes, how, unit):
    """Number, exponent, and whether the exponent counts, of each term of some lanes."""
    floor = how.alignment == "floor"
    numbers = [a.values[i] * b.values[i] * unit for i in lanes]
    scales = [a.scales[i] + b.scales[i] for i in lanes]
    if how.term is not None:
        size, top = how.term, 0
    elif a.element.fixed and b.element.fixed:
        kinds = Exponent | Real
        groups = [x.group for row in (a, b) for x in row.levels if isinstance(x.scale, kinds)]
        size = min([*groups, a.block, len(lanes)])
        top = log2(size * a.bound * b.bound * unit)
    else:
        exponents = [e + a.fields[i] + b.fields[i] for e, i in zip(scales, lanes, strict=True)]
        return [(x, e, floor or x != 0) for x, e in zip(numbers, exponents, strict=True)]
    sums = [sum(numbers[i : i + size]) for i in range(0, len(lanes), size)]
    counts = how.term is not None or floor
    return [(x, e + top, counts or x != 0) for x, e in zip(sums, scales[::size], strict=True)]


def aligned(terms, how):
    """The sum of the terms, of which few bits are kept."""
    if how.fraction is None:
        return sum(x for x, _, _ in terms)
    quantum = two(max((e for _, e, counts in terms if counts), default=0) - how.fraction)
    drop = math.floor if how.alignment == "floor" else math.trunc
    return sum(drop(x / quantum) for x, _, _ in terms) * quantum


def by_definition(a, b, how):
    """The FP32 value of the dot product of two rows, whose steps stay within the range."""
    divisor = a.element.divisor * b.element.divisor
    unit = Fraction(divisor, 1 << (divisor - 1).bit_length())
    scale = rounded(a.outer * b.outer)
    to = how.output, how.rounding == "toward_zero"
    step = how.reduction or a.block
    total = promoted = Fraction(0)
    for number, start in enumerate(range(0, len(a.values), step), 1):
        lanes = range(start, min(start + step, len(a.values)))
        terms = terms_of(a, b, lanes, how, unit)
        if how.output is None:
            total += aligned(terms, how)
        elif how.fused:
            own = max(log2(abs(total)), how.output.emin) if total else how.output.emin
            terms.append((total, own, total != 0 or how.alignment == "floor"))
            total = rounded(aligned(terms, how), *to)
        else:
            total = rounded(total + rounded(aligned(terms, how), *to), *to)
        if how.promote and number % how.promote == 0:
            promoted, total = rounded(promoted + total), Fraction(0)
    if how.output is None:
        return rounded(total / unit * scale)
    return rounded(rounded(rounded(promoted + total) / unit) * scale)


def random_blocks(name, rows, k, rng, spread=6):
    """Blocks of random numbers in every code, with exponents up to `spread` from that of 1."""
    fmt = block_format(name)
    count, element = -(-k // fmt.block), fmt.element
    numbers = [c for c in range(1 << element.width) if isinstance(element.integer(c), int)]
    codes = rng.choice(np.array(numbers, np.uint8), (rows, count, fmt.block))
    scales = []
    for level in fmt.levels[::-1]:
        each = fmt.block // level.group if level.blocked else 1
        shape = (rows, count, each) if each > 1 else (rows, count)
        if level.tiled:
            shape = (-(-rows // level.rows), count)
        if not level.blocked:
            shape = (rows,) if level.group == "channel" else ()
        scale, dtype = level.scale, np.uint8
        if isinstance(scale, Exponent):
            code = rng.integers(scale.bias - spread, scale.bias + spread + 1, shape)
        elif isinstance(scale, Real) and scale.dtype == FP32:
            field, dtype = rng.integers(127 - spread, 127 + spread, shape), np.uint32
            code = field << 23 | rng.integers(0, 1 << 23, shape)
        else:
            code = rng.integers(1, scale.largest_code + 1, shape)
        scales.append(np.asarray(code).astype(dtype))
    zero = None if element.signed else np.asarray(rng.integers(0, 256)).astype(np.uint8)
    codes.reshape(rows, -1)[:, k:] = element.zero_code if zero is None else zero
    return Blocks(fmt, tuple(scales), codes, (rows, k), zero_points=zero)


def assert_as_by_definition(a, b, how):
    how = accumulator(how)
    got = matmul(a, b, how)
    expected = [
        [float(by_definition(Row(a, m), Row(b, n), how)) for n in range(b.shape[0])]
        for m in range(a.shape[0])
    ]
    assert got.astype(np.float64).tolist() == expected


PAIRS = [
    *((small_tiles(name), small_tiles(name)) for name in CATALOG),
    ("axs6", "mxfp8_e4m3"),
    ("mxfp4", "axs6"),
    ("axs6", "mxint8"),
    ("mxint8", "mxfp4"),
    ("mxfp8_e4m3", "mxfp8_e5m2"),
    ("int8", "fp8_e5m2"),
    ("uint8", "int4"),
]
COMPOSED = [
    "int8_float32_t32",
    "e5m2_float32_t16",
    "sm5_e8m0_t32s8o2s2o1",
    "e4m3fn_e8m0_t16_e4m3fn_t32_float32",
    "e2m1fn_u4_t16_float32_t0",
    "sm6dz_float32_t0",
    "e4m3fn_e8m0_t0",
]
CUSTOM = [
    Accumulator(reduction=64),
    Accumulator(fused=True),
    Accumulator(fraction=9, fused=True, output=BF16),
    Accumulator(fraction=40, alignment="zero", promote=1),
    Accumulator(16, 12, "zero", output=E8M13, rounding="toward_zero", promote=3),
    Accumulator(fraction=13, output=None),
]


STATED = [
    name
    for name, how in ACCUMULATORS.items()
    if how.output != FP16 and not (how.pairwise or how.scaled) and how.sum_fraction is None
]
"""Accumulators of the steps above, within the range of FP32. The exact model and MMA-Sim state the
others."""

QUICK = few(CATALOG, together=1)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(x, marks=[pytest.mark.slow] * (x[0] == x[1] and x[0] not in QUICK))
        for x in PAIRS
    ],
    ids="-".join,
)
def test_every_format(pair):
    rng = np.random.default_rng([ord(c) for c in "".join(pair)])
    for spread in (2, 14):
        a, b = (random_blocks(name, 2, 80, rng, spread) for name in pair)
        for how in STATED:
            assert_as_by_definition(a, b, how)


@pytest.mark.parametrize("how", CUSTOM, ids=str)
def test_other_accumulators(how):
    rng = np.random.default_rng(how.reduction)
    for name in ("axs6", "mxfp8_e4m3", "mxfp8_e5m2", "mx9", "nvfp4", "vsq6"):
        assert_as_by_definition(*(random_blocks(name, 2, 140, rng) for _ in range(2)), how)


def test_terms_wider_than_an_integer_of_numpy():
    """Sums of four products of E5M2, of which fewer bits after the point are kept than they have:
    2^20 beside 1 and 2^-31."""
    a, b = [two(10), 1, two(-16), 0], [two(10), 1, two(-15), 0]
    assert dot(a, b, "ampere,term=4,fraction=30", "fp8_e5m2") == fp32(two(20) + 1)


@pytest.mark.parametrize("name", COMPOSED)
def test_other_formats(name):
    rng = np.random.default_rng(len(name))
    a, b = (random_blocks(name, 2, 100, rng) for _ in range(2))
    for how in ("fp32", "exact", "paper", "hopper_fp8", *CUSTOM):
        assert_as_by_definition(a, b, how)


# Published corner cases of tensor cores, and what this page's fields mean.


def row(values, fmt="fp8_e4m3", exponents=None):
    """One row of values that the format has; the scales are 1, or of the given exponents."""
    fmt = block_format(fmt)
    codes = {fmt.element.integer(c) * fmt.element.unit: c for c in range(1 << fmt.element.width)
             if isinstance(fmt.element.integer(c), int)}  # fmt: skip
    codes |= {fmt.element.integer(c): c for c in range(1 << fmt.element.width)
              if not isinstance(fmt.element.integer(c), int)}  # fmt: skip
    count = -(-len(values) // fmt.block)
    values = [*values, *[0] * (count * fmt.block - len(values))]
    codes = np.array([codes[x] for x in values], np.uint8).reshape(1, count, fmt.block)
    if fmt.exponent:
        scales = np.full((1, count), fmt.exponent.bias) + (exponents or [0] * count)
        scales = scales.astype(np.uint8)
    else:
        scales = np.array(0x3F800000, np.uint32)
    return Blocks(fmt, (scales,), codes, (1, count * fmt.block))


def dot(a, b, how, fmt="fp8_e4m3", **exponents):
    pattern = matmul(row(a, fmt, **exponents), row(b, fmt), how).view(np.uint32)
    return int(pattern[0, 0])


def fp32(x):
    return int(np.float32(float(x)).view(np.uint32))


def test_products_are_not_normalised():
    """1.75 * 1.75 has the exponent of 1 * 1, so that bits of 2^-25 are kept beside it."""
    a, b = [1.75, *[two(-12)] * 8], [1.75, *[two(-13)] * 8]
    assert dot(a, b, "blackwell", "fp8_e5m2") == fp32(Fraction(49, 16) + two(-22))
    a, b = [1.75, 1.75, *a[1:]], [1.75, 1, *b[1:]]
    assert dot(a, b, "blackwell,fraction=24", "fp8_e5m2") == fp32(Fraction(77, 16))


def test_small_terms_are_truncated_toward_zero():
    a, b = [1, -two(-13)], [1, two(-13)]
    assert dot(a, b, "blackwell", "fp8_e5m2") == fp32(1)
    assert dot(a, b, "blackwell,alignment=floor", "fp8_e5m2") == fp32(1) - 1
    assert dot(a, b, "fp32,rounding=toward_zero", "fp8_e5m2") == fp32(1) - 1
    assert dot(a, b, "fp32", "fp8_e5m2") == fp32(1)


def test_zeros_have_an_exponent_in_floor_alone():
    """0 * 256 has the exponent fields -6 and 8: ten above those of the other product."""
    a, b = [0, two(-4)], [256, two(-4)]
    assert dot(a, b, "fp32,fraction=9") == 0
    assert dot(a, b, "fp32,fraction=10") == fp32(two(-8))
    assert dot(a, b, "fp32,fraction=0,alignment=zero") == fp32(two(-8))


def test_an_accumulator_of_zero_counts_in_floor_alone():
    small = [-63, -63]
    a = row([1], "mxfp8_e4m3", [small[0]])
    for alignment, kept in (("floor", False), ("zero", True)):
        how = f"fp32,fraction=0,fused=true,alignment={alignment}"
        deep = row([two(-6)], "mxfp8_e4m3", [small[1]])
        pattern = int(matmul(a, deep, how).view(np.uint32)[0, 0])
        assert pattern == (fp32(two(-132)) if kept else 0)


def test_the_accumulator_is_one_of_the_terms():
    """2^13 in it leaves no bit of 0.5 in a step of 13 bits, and bits of 1."""
    for small, kept in ((0.5, 0), (1, 1)):
        a, b = [128, *[0] * 31, small], [64, *[0] * 31, 1]
        assert dot(a, b, "hopper_fp8") == fp32(8192 + kept)
        assert dot(a, b, "hopper_fp8,promote=1") == fp32(8192 + small)


def test_steps_of_ada_and_hopper():
    """Sixteen terms of 2^-13 beside 1 in one step are dropped; in the next they are added first."""
    a, b = [1, *[two(-6)] * 16], [1, *[two(-8)] * 16]
    assert dot(a, b, "hopper_fp8") == dot(a, b, "ada_fp8") == fp32(1)
    a, b = [1, *[0] * 15, *[two(-6)] * 16], [1, *[0] * 15, *[two(-8)] * 16]
    assert dot(a, b, "ada_fp8,fused=false") == fp32(1 + two(-10))
    assert dot(a, b, "hopper_fp8,fused=false") == fp32(1)


def test_e8m13_is_truncated():
    a, b = [1.875, 1.875], [1.875, two(-9)]
    exactly = Fraction(225, 64) + Fraction(15, 8) * two(-9)
    assert dot(a, b, "hopper_fp8") == fp32(math.trunc(exactly / two(-12)) * two(-12))
    a = [*a, *a[1:] * 3]
    b = [*b, *b[1:] * 3]
    assert dot(a, b, "hopper_fp8") & 0x3FF == 0


@pytest.mark.parametrize(("exponent", "kept"), [(30, 16), (40, 0)])
def test_sixteen_lanes_of_zero_count(exponent, kept):
    """Products of 16 lanes that cancel have the exponent of their scales all the same."""
    a = [*[1, -1] * 16, *[1] * 16]
    exponents = [exponent, 0]
    assert dot(a, [1] * 64, "blackwell_fp4", "mxfp4", exponents=exponents) == fp32(kept)
    assert dot(a, [1] * 64, "blackwell_mx", "mxfp4", exponents=exponents) == fp32(16)


def test_sixteen_lanes_are_added_exactly():
    """6 * 6 and 0.5 * 0.5 in E2M1 times the significands of E4M3 scales."""
    a = random_blocks("nvfp4", 1, 64, np.random.default_rng(1))
    exact_sum, core = (matmul(a, a, how) for how in ("exact", "blackwell_fp4"))
    assert abs(float(exact_sum[0, 0]) - float(core[0, 0])) <= float(np.spacing(exact_sum[0, 0]))


PLUS, MINUS, NOT = NotANumber.INFINITY, NotANumber.NEGATIVE_INFINITY, NotANumber.NAN


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ([PLUS], [1], INFINITY),
        ([PLUS], [-1], INFINITY | SIGN),
        ([MINUS, 1], [MINUS, 1], INFINITY),
        ([PLUS, PLUS], [1, -1], None),
        ([PLUS], [0], None),
        ([NOT], [0], None),
        ([1], [NOT], None),
        ([PLUS, *[0] * 31, PLUS], [1, *[0] * 31, 2], INFINITY),
        ([PLUS, *[0] * 31, MINUS], [1, *[0] * 31, 2], None),
        ([*[1] * 40, MINUS], [*[1] * 40, 2], INFINITY | SIGN),
    ],
)
def test_infinities_and_nan(a, b, result):
    for how in [*ACCUMULATORS, *map(str, CUSTOM)]:
        if how == "blackwell_fp4" or accumulator(how).scaled:
            continue
        nan = TENSOR_CORE_NAN if "0x7fffffff" in how else accumulator(how).nan
        for x, y in ((a, b), (b, a)):
            assert dot(x, y, how, "mxfp8_e5m2") == (nan if result is None else result)


def test_nan_scales():
    a, b = row([1] * 32, "mxfp4"), row([1] * 32, "mxfp4", [128])
    assert int(matmul(a, b).view(np.uint32)[0, 0]) == NAN
    assert int(matmul(b, a, "blackwell_fp4").view(np.uint32)[0, 0]) == TENSOR_CORE_NAN
    whole = row([1] * 32)
    nan = Blocks(whole.format, (np.array(NAN, np.uint32),), whole.codes, whole.shape)
    for how in ("fp32", "exact"):
        assert int(matmul(whole, nan, how).view(np.uint32)[0, 0]) == NAN


def test_overflow():
    """It is infinite toward zero too, and meets an infinity that comes later."""
    large = [120, 120]
    for how in ("fp32", "blackwell", "hopper_fp8", "fp32,fraction=20"):
        a, b = row([448] * 64, "mxfp8_e4m3", large), row([448, *[0] * 63], "mxfp8_e4m3", [7, 7])
        assert int(matmul(a, b, how).view(np.uint32)[0, 0]) == INFINITY
    a = row([57344, *[0] * 31, MINUS], "mxfp8_e5m2", large)
    b = row([57344, *[0] * 31, 1], "mxfp8_e5m2")
    for how, result in (("fp32", NAN), ("blackwell", TENSOR_CORE_NAN), ("exact", INFINITY | SIGN)):
        assert int(matmul(a, b, how).view(np.uint32)[0, 0]) == result


def test_fp16_output():
    a, b = [448, 448, 1], [448, 0, two(-3)]
    assert dot(a, b, Accumulator(output=FP16)) == INFINITY
    assert dot([448], [64], Accumulator(output=FP16)) == fp32(28672)
    assert dot([448, 1], [64, 4], Accumulator(output=FP16)) == fp32(28672)
    assert dot([448, 1], [64, 12], Accumulator(output=FP16)) == fp32(28688)


def test_blocked_along_the_first_axis():
    x = np.random.default_rng(2).standard_normal((70, 3)).astype(np.float32)
    for name in ("mxfp8_e4m3", "nvfp4", "int8"):
        down, across = encode(x, name, axis=0), encode(x.T.copy(), name)
        assert matmul(down, across).tobytes() == matmul(across, across).tobytes()


@pytest.mark.parametrize(
    ("a", "b", "how", "message"),
    [
        ("mx9", "msfp16", "fp32", "in a block, not 2, 16 of mx9 and 16 of msfp16"),
        ("int8", "mxint8", "fp32", "in a block, not none of int8 and 32 of mxint8"),
        ("mxfp4", "mxfp4", "fp32,reduction=48", "a multiple or a part of the block 32, not 48"),
        ("axs6_t8", "axs6_t8", "blackwell_fp4", "adds 16 lanes with one exponent, and axs6_t8"),
    ],
)
def test_what_does_not_fit(a, b, how, message):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        matmul(random_blocks(a, 1, 32, rng), random_blocks(b, 1, 32, rng), how)


def mx_blocks(name, *blocks):
    """A row of blocks, each a code of the scale and the first codes of elements."""
    fmt = block_format(name)
    codes = np.zeros((1, len(blocks), fmt.block), np.uint8)
    for index, (_, some) in enumerate(blocks):
        codes[0, index, : len(some)] = some
    scales = np.array([[scale for scale, _ in blocks]], np.uint8)
    return Blocks(fmt, (scales,), codes, (1, len(blocks) * fmt.block))


@pytest.mark.parametrize("name", ["volta", "hopper", "blackwell_mx"])
def test_zeros_of_tensor_cores(name):
    one, minus, lowest = 0x38, 0xB8, mx_blocks("mxfp8_e4m3", (0, [0x38]))
    tiny, negative = (mx_blocks("mxfp8_e4m3", (0, [code])) for code in (one, minus))
    # -2^-254 is dropped toward zero, and so is the sign.
    assert matmul(negative, lowest, name).view(np.uint32) == 0
    assert matmul(tiny, lowest, name).view(np.uint32) == 0
    assert matmul(negative, lowest, f"{name},fused=false").view(np.uint32) == 0


@pytest.mark.parametrize("first", [0x3F, 0xBF])
def test_zeros_of_tensor_cores_have_an_exponent(first):
    # 1.875 * 2^-150 + 1.5 * 2^-156 + 30 * 1.875 * 2^-159 is more than 2^-149. Beside an accumulator
    # of 0, at 2^-133, 25 bits are kept: multiples of 2^-158.
    sign = first & 0x80
    a = mx_blocks("mxfp8_e4m3", (52, [first, sign | 0x0C, *[sign | 0x0F] * 30]))
    b = mx_blocks("mxfp8_e4m3", (52, [0x38, 0x38, *[0x20] * 30]))
    assert matmul(a, b, "blackwell_mx").view(np.uint32) == 0
    for other in ("least=none", "least=-137", "fraction=29"):
        assert matmul(a, b, f"blackwell_mx,{other}").view(np.uint32) == sign << 24 | 1


def test_terms_of_zeros_of_tensor_cores():
    # 1 beside zeros at 2^64, and beside 1 - 1 there.
    ones = mx_blocks("mxfp4", (127, [2, 2]), (127, [2, 2]))
    for rest, expected in (([], 1), ([0, 0, 2], 1), ([2, 10], 0)):
        x = mx_blocks("mxfp4", (127, [2]), (191, rest))
        assert matmul(x, ones, "blackwell_fp4") == matmul(ones, x, "blackwell_fp4") == expected
