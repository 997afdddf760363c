import random
from fractions import Fraction

import pytest

from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.accumulator import (
    ACCUMULATORS,
    E8M13_TOWARD_ZERO,
    FP32_TOWARD_ZERO,
    Accumulator,
    Output,
)
from axs6.golden.check.exact.blocks import Block
from axs6.golden.check.exact.dot import Operand, block_dot, dot
from axs6.golden.check.exact.floats import FP32, Format, Special, power, round_to_float
from axs6.golden.check.exact.formats import CATALOG, Definition, Exponent, floating, twos_complement

ONE = 0x3F800000
ULP = power(-23)
E4M3, NVFP4 = CATALOG["mxfp8_e4m3"], CATALOG["nvfp4"]
BFLOATS = Definition(floating(8, 7, "ieee"), (Exponent(32),))
"""Elements of a range that no step reaches from end to end."""


def bits(x):
    return round_to_float(Fraction(x), FP32)


def floats(values, definition=BFLOATS, exponent=127):
    """A row of one block of values that are codes."""
    codes = [definition.element.codes[x] for x in values]
    return Operand([Block(((exponent,),), (*codes, *[0] * (32 - len(codes))))], definition)


def ones(count):
    return floats([Fraction(1)] * count)


def summed(values, **fields):
    """Values times one, in an accumulator of these fields."""
    exact_values = [x if isinstance(x, Special) else Fraction(x) for x in values]
    return dot(floats(exact_values), ones(32), Accumulator(**fields))


@pytest.mark.parametrize("how", ["fp32", "exact"])
def test_axs6_as_its_own_exact_model(how):
    rng = random.Random(how)
    axs6 = CATALOG["axs6"]
    for _ in range(60):
        low = rng.choice([0, 100, 250])
        rows = [
            [(rng.randint(low, min(255, low + 40)), [rng.randrange(64) for _ in range(32)])
             for _ in range(3)] for _ in range(2)
        ]  # fmt: skip
        operands = [Operand([Block(((e,),), tuple(c)) for e, c in row], axs6) for row in rows]
        got = dot(*operands, ACCUMULATORS[how])
        assert got == exact.vector_dot(*rows, how)


def test_block_dot():
    a = Block(((127,), (0, 1, *[0] * 6)), (64, 0, 64, *[0] * 13))
    assert block_dot(a, a, CATALOG["mx9"], CATALOG["mx9"]) == 1 + Fraction(1, 4)
    nan = Block(((255,),), (0,) * 32)
    assert block_dot(nan, nan, CATALOG["mxfp4"], CATALOG["mxfp4"]) is Special.NAN
    w4a8 = block_dot(
        Block(((128,),), (7,) * 32), Block(((127,),), (0x38,) * 32), CATALOG["mxfp4"], E4M3
    )
    assert w4a8 == 32 * 12


@pytest.mark.parametrize("reduction", [2, 32])
def test_wide_sums_drop_the_bits_of_aligned_terms_in_each_step(reduction):
    values = [Fraction(1), power(-4), power(-4), power(-4)]
    how = Accumulator(reduction=reduction, fraction=3, wide=True)
    kept = 1 + 2 * power(-4) if reduction == 2 else 1
    assert dot(floats(values), ones(4), how) == bits(kept)
    assert dot(floats(values), ones(4), Accumulator(wide=True)) == bits(1 + 3 * power(-4))


def test_steps_are_added_in_order():
    operand = Operand([*floats([Fraction(1)]).blocks, *floats([power(-24)]).blocks * 2], BFLOATS)
    unit = Operand(ones(1).blocks * 3, BFLOATS)
    assert dot(operand, unit, ACCUMULATORS["fp32"]) == ONE
    assert dot(operand, unit, ACCUMULATORS["exact"]) == ONE + 1
    assert dot(operand, unit, Accumulator(reduction=96)) == ONE + 1


def test_outer_scales_come_at_the_end():
    third = bits(Fraction(1, 3))
    a = Operand([Block(((third,), (0x38,)), (2, *[0] * 15))], NVFP4)
    b = Operand([Block(((bits(3),), (0x40,)), (4, *[0] * 15))], NVFP4)
    # 1 * 1 * 2 * 2 = 4, times fp32(fp32(1/3) * 3), which is 1.
    assert dot(a, b, ACCUMULATORS["fp32"]) == bits(4)
    nan = Operand([Block(((0x7FC00000,), (0x38,)), (0,) * 16)], NVFP4)
    assert dot(nan, b, ACCUMULATORS["blackwell_fp4"]) == 0x7FFFFFFF


@pytest.mark.parametrize(
    ("values", "aligned", "result"),
    [
        # Four values of 3/4 of the last kept bit.
        ([1, *[3 * power(-25)] * 4], "zero", 1),
        ([1, *[3 * power(-25)] * 4], "floor", 1),
        ([1, *[-3 * power(-25)] * 4], "zero", 1),
        ([1, *[-3 * power(-25)] * 4], "floor", 1 - 4 * ULP),
        ([1, *[5 * power(-25)] * 4], "zero", 1 + 4 * ULP),
    ],
)
def test_alignment(values, aligned, result):
    assert summed(values, fraction=23, toward_zero=aligned == "zero") == bits(result)


def test_point_of_a_significand_product():
    # 1.5 * 1.5 = 2.25 at exponent 0 is not normalised: 2^-23 is kept beside it.
    a = floats([Fraction(3, 2), power(-23), power(-24)])
    b = floats([Fraction(3, 2), Fraction(1), Fraction(1)])
    how = Accumulator(fraction=23, toward_zero=True, wide=False)
    third = Operand(a.blocks, BFLOATS), Operand(b.blocks, BFLOATS)
    assert dot(*third, how) == bits(Fraction(9, 4))
    b = floats([Fraction(-3, 2), Fraction(1), Fraction(1)])
    a = Operand([*a.blocks, *floats([Fraction(3, 2)]).blocks], BFLOATS)
    b = Operand([*b.blocks, *floats([Fraction(3, 2)]).blocks], BFLOATS)
    wide = Accumulator(64, 23, toward_zero=True)
    assert dot(a, b, wide) == bits(power(-23))


def test_exponents_of_zeros():
    # 0 of a large exponent field (a code of E4M3 in a block of 2^40) beside 1.
    zero, one = floats([Fraction(0)], E4M3, 167), floats([Fraction(1)], E4M3)
    a = Operand([*zero.blocks, *one.blocks], E4M3)
    b = Operand([*floats([Fraction(1)], E4M3).blocks * 2], E4M3)
    assert dot(a, b, Accumulator(64, 10, toward_zero=True)) == ONE
    assert dot(a, b, Accumulator(64, 10)) == 0
    # The field of a zero is that of subnormal numbers: 2^(40 - 6 - 6) with another zero.
    assert dot(a, b, Accumulator(64, 40)) == ONE


def test_subnormal_significands_are_below_one():
    # 2^-9 is 1/8 at 2^-6; beside 1 * 2^-6 with three bits it stays, with two it goes.
    a, b = floats([power(-6), power(-9)], E4M3), floats([Fraction(1)] * 2, E4M3)
    kept = dot(a, b, Accumulator(fraction=3, toward_zero=True))
    assert kept == bits(power(-6) + power(-9))
    assert dot(a, b, Accumulator(fraction=2, toward_zero=True)) == bits(power(-6))


def test_fused_accumulators_lose_bits_with_the_terms():
    a = Operand([*floats([Fraction(1)]).blocks, *floats([power(24)]).blocks], BFLOATS)
    b = Operand(ones(1).blocks * 2, BFLOATS)
    assert dot(a, b, Accumulator(fraction=23, toward_zero=True, fused=True)) == bits(power(24))
    assert dot(a, b, Accumulator(fraction=24, toward_zero=True, fused=True)) == bits(power(24))
    more = Operand([*floats([Fraction(3)]).blocks, *floats([power(24)]).blocks], BFLOATS)
    fused = {"fraction": 23, "toward_zero": True, "fused": True}
    assert dot(more, b, Accumulator(**fused)) == bits(power(24) + 2)
    assert dot(more, b, Accumulator(fraction=23, toward_zero=True)) == bits(power(24) + 4)


@pytest.mark.parametrize(
    ("output", "values", "result"),
    [
        (Output(), [1, power(-24), power(-30)], 1 + ULP),
        (FP32_TOWARD_ZERO, [1, power(-24), power(-30)], 1),
        (FP32_TOWARD_ZERO, [-1, -power(-24), -power(-30)], -1),
        (E8M13_TOWARD_ZERO, [1, power(-13), 15 * power(-17)], 1 + power(-13)),
        (E8M13_TOWARD_ZERO, [-1, -power(-14)], -1),
        (Output(Format(8, 13)), [1, 3 * power(-14)], 1 + power(-12)),
    ],
)
def test_outputs(output, values, result):
    assert summed(values, output=output) == bits(result)


def test_overflow_gives_infinity_whatever_the_rounding():
    assert summed([power(127)] * 2, output=FP32_TOWARD_ZERO) == 0x7F800000
    assert summed([-power(127)] * 2) == 0xFF800000


def test_specials():
    infinity = Special.INFINITY
    assert summed([infinity, 1]) == 0x7F800000
    assert summed([infinity, Special.NEGATIVE_INFINITY]) == 0x7FC00000
    assert dot(floats([infinity]), floats([Fraction(0)]), Accumulator()) == 0x7FC00000
    assert dot(floats([-power(0)]), floats([infinity]), Accumulator(wide=True)) == 0xFF800000
    tensor_core = ACCUMULATORS["hopper"]
    assert dot(floats([Special.NAN]), ones(32), tensor_core) == 0x7FFFFFFF
    rows = Operand([*floats([infinity]).blocks, *ones(1).blocks], BFLOATS)
    assert dot(rows, Operand(ones(1).blocks * 2, BFLOATS), tensor_core) == 0x7F800000
    opposite = Operand([*floats([infinity]).blocks, *floats([infinity]).blocks], BFLOATS)
    signs = Operand([*ones(1).blocks, *floats([Fraction(-1)]).blocks], BFLOATS)
    assert dot(opposite, signs, tensor_core) == 0x7FFFFFFF


def test_promotion():
    rows = Operand([*floats([power(14)]).blocks, *ones(1).blocks * 3], BFLOATS)
    unit = Operand(ones(1).blocks * 4, BFLOATS)
    narrow = Accumulator(output=E8M13_TOWARD_ZERO)
    assert dot(rows, unit, narrow) == bits(power(14))
    assert dot(rows, unit, narrow._replace(promote=1)) == bits(power(14) + 3)
    assert dot(rows, unit, narrow._replace(promote=3)) == bits(power(14) + 1)


def test_the_top_bit_of_a_fixed_term():
    # 32 products of up to -4 * -4 reach 512, whose top bit is 2^9.
    definition = Definition(twos_complement(3, Fraction(1)), (Exponent(32),))
    small, large = Block(((127,),), (1,) * 32), Block(((130,),), (1,) * 32)
    a, unit = Operand([large, small], definition), Operand([small] * 2, definition)
    # 32 beside 32 * 2^3: the unit of f bits is 2^(9 + 3 - f).
    assert dot(a, unit, Accumulator(64, 7)) == bits(256 + 32)
    assert dot(a, unit, Accumulator(64, 6)) == bits(256)


def test_joined_lanes_count_at_the_exponent_of_their_scales():
    one = bits(1)
    scale = {1: 0x38, 2: 0x40, 256: 0x78, Fraction(3, 2): 0x3C}

    def row(*blocks):
        padded = [(s, (*codes, *[0] * (16 - len(codes)))) for s, codes in blocks]
        return Operand([Block(((one,), (scale[s],)), codes) for s, codes in padded], NVFP4)

    how = Accumulator(64, 3, True, None, True, FP32_TOWARD_ZERO, joined=16)
    unit = row(*[(1, [2, 2])] * 4)
    # 6 at 2^0, beside 1 - 1 at 2^8: the unit is 2^(8 - 3).
    a = row((1, [7]), (256, [2, 10]), (1, []), (1, []))
    assert dot(a, unit, how) == 0
    assert dot(a, unit, how._replace(fraction=8)) == bits(6)
    # Products that are all 0 do not count, of either operand.
    assert dot(row((1, [7]), (256, []), (1, []), (1, [])), unit, how) == bits(6)
    assert dot(row((1, [7]), (256, [0, 0, 2]), (1, []), (1, [])), unit, how) == bits(6)
    # The significands of the scales come before the bits are dropped: 0.5 * 1.5 at 2^0.
    a = row((Fraction(3, 2), [1]), *[(1, [])] * 3)
    assert dot(a, unit, how._replace(fraction=2)) == bits(Fraction(3, 4))
    assert dot(a, unit, how._replace(fraction=1)) == bits(Fraction(1, 2))


def test_zero_points_are_subtracted():
    definition = CATALOG["uint8"]
    block = Block(((bits(2),),), (5, *[3] * 31), 3)
    other = Block(((bits(4),),), (1,) * 32, 0)
    assert dot(Operand([block], definition), Operand([other], definition), Accumulator()) == bits(
        16
    )


def test_a_term_ends_with_its_step():
    """Four lanes of MXINT8, up to 4 * 4, have their top bit at 2^4; all 32 have it at 2^7."""
    integers = CATALOG["mxint8"]
    a = Operand([Block(((127,),), (3, *[0] * 31))], integers)
    b = Operand([Block(((127,),), (1, *[0] * 31))], integers)
    for reduction, kept in ((4, 3), (None, 0)):
        how = Accumulator(reduction, fraction=16, toward_zero=True)
        assert dot(a, b, how) == bits(Fraction(kept, 64**2))


def test_a_factor_that_underflows_keeps_the_sign():
    scaled = CATALOG["fp8_e4m3"]
    tiny = 1 << 23
    a = Operand([Block(((tiny,),), (0xB8, *[0] * 31))], scaled)
    b = Operand([Block(((tiny,),), (0x38, *[0] * 31))], scaled)
    for name in ("fp32", "exact"):
        assert dot(a, b, ACCUMULATORS[name]) == 1 << 31
        assert dot(b, b, ACCUMULATORS[name]) == 0


def test_a_sum_that_underflows_keeps_its_sign_unless_it_is_fused():
    scaled = CATALOG["mxfp4"]._replace(levels=(Exponent(32), CATALOG["int8"].levels[0]))
    a, b = ([Block(((bits(3),), (0,)), (code, *[0] * 31))] for code in (10, 2))
    assert dot(Operand(a, scaled), Operand(b, scaled), ACCUMULATORS["exact"]) == 1 << 31
    for name in ("exact", "blackwell"):
        assert dot(Operand(b, scaled), Operand(b, scaled), ACCUMULATORS[name]) == 0
    assert dot(Operand(a, scaled), Operand(b, scaled), ACCUMULATORS["blackwell"]) == 0
