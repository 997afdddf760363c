import re
from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from axs6.golden import Blocks, accumulate, block_dot, decode, encode, fp32, matmul, pack, unpack
from axs6.golden.check import dot
from axs6.golden.check.decode import decode_all, decode_precise
from axs6.golden.check.validate import CHECKS, GOLDEN, Model, validate

SPECIAL, THRESHOLDS, RANDOM, MODES, STOCHASTIC, DECODE, PRECISE, *REST = CHECKS
PACK, DOT, SUMS, ADD, DIVIDE, MATMUL, SHARE, SHARE_DOT = REST


def run(model, name, blocks=20):
    (check,) = validate(seed=1, samples=blocks, model=model, names=[name])
    return check


def up_to_a_difference(comparisons):
    """Comparisons up to the first one that differs: what comes after it would not be shown."""
    for comparison in comparisons:
        yield comparison
        if comparison.model != comparison.exact:
            return


def assert_caught(model, name, what):
    right = CHECKS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CHECKS, name, lambda *args: up_to_a_difference(right(*args)))
        check = run(model, name)
    assert check.mismatches == 1
    assert re.search(what, check.first)
    assert "by definition" in check.first


def float32_only(change):
    """An encoder that is `change(x, blocks)` for float32 and right for other dtypes."""

    def wrong(x, block, rounding="nearest", nonfinite="error"):
        blocks = encode(x, block=block, rounding=rounding, nonfinite=nonfinite)
        if x.dtype != np.float32:
            return blocks
        return change(np.ascontiguousarray(x).reshape(blocks.codes.shape), blocks, rounding)

    return wrong


def half_down(x, blocks, rounding):
    tie = abs(x) == np.ldexp(np.float32(1), blocks.exponents.astype(int) - 128)[..., None]
    codes = blocks.codes - (tie & (rounding == "nearest")).astype(np.uint8)
    return replace(blocks, codes=codes)


def log2_in_float32(x, blocks, rounding):
    with np.errstate(all="ignore"):
        amax = np.where(np.isnan(x), 0, np.abs(x)).max(axis=-1)
        exponents = np.clip(np.nan_to_num(np.floor(np.log2(amax))) + 128, 0, 255)
    return replace(blocks, scales=(np.where(amax > 0, exponents, 0).astype(np.uint8),))


def negative_zero_keeps_its_sign(x, blocks, rounding):
    negative_zero = (x == 0) & np.signbit(x)
    return replace(blocks, codes=blocks.codes | negative_zero.astype(np.uint8) << np.uint8(5))


def fractional_product_in_float32(x, blocks, rounding):
    """31 * |x| rounded to float32 before it is rounded to an integer."""
    with np.errstate(all="ignore"):
        scale = np.ldexp(np.float32(1), 127 - blocks.exponents.astype(int))[..., None]
        product = abs(x) * scale * np.float32(31)
        rounded = np.floor(product) if rounding == "toward_zero" else np.rint(product)
        magnitude = np.minimum(np.nan_to_num(rounded), 31)
    return replace(blocks, codes=blocks.codes & np.uint8(32) | magnitude.astype(np.uint8))


def decode_rounding_twice(blocks, dtype):
    """Round to 24 bits at a normal exponent first, then once more to a subnormal."""
    if dtype != "float32":
        return decode(blocks, dtype)
    low = blocks.exponents < 64
    raised = replace(blocks, scales=(np.where(low, blocks.exponents + 64, blocks.exponents),))
    shift = np.repeat(np.where(low, -64, 0), blocks.block, axis=-1)
    return np.ldexp(decode(raised), shift.reshape(blocks.shape))


def add_without_sticky_bit(a, b):
    """Drop the bits of the smaller operand that lie more than two below the larger one's last."""
    swap = (a & np.uint32(0x7FFFFFFF)) < (b & np.uint32(0x7FFFFFFF))
    large, small = np.where(swap, b, a), np.where(swap, a, b)
    exponents = [((x >> np.uint32(23)) & np.uint32(255)).astype(np.int64) for x in (large, small)]
    distance = np.maximum(exponents[0], 1) - np.maximum(exponents[1], 1)
    dropped = np.clip(distance - 2, 0, 24).astype(np.uint32)
    kept = small >> dropped << dropped
    kept = np.where(dropped > 23, small & np.uint32(1 << 31), kept)
    return fp32.add(large, np.where(exponents[0] == 255, small, kept))


@pytest.mark.slow  # the command's test makes all checks in every run
def test_the_model_passes():
    checks = validate(seed=3, samples=40)
    assert [check.name for check in checks] == list(CHECKS)
    assert [check.mismatches for check in checks] == [0] * len(CHECKS)
    assert [check.first for check in checks] == [None] * len(CHECKS)
    assert all(check.cases > 0 for check in checks)


def test_seed_and_progress():
    seen = []
    names = [DOT, PACK]
    checks = validate(0, 30, lambda check, total: seen.append((check, total)), names=names)
    assert [check.name for check in checks] == [PACK, DOT]
    assert seen == [(check, 2) for check in checks]
    assert checks == validate(0, 30, names=names)


def test_cases_grow_with_blocks():
    for name in (RANDOM, PACK, DOT, DIVIDE):
        assert run(GOLDEN, name, 40).cases > run(GOLDEN, name, 20).cases


@pytest.mark.parametrize(
    ("change", "name", "what"),
    [
        pytest.param(half_down, SPECIAL, "encode float32, nearest", marks=pytest.mark.slow),
        (half_down, THRESHOLDS, "encode float32, nearest"),
        (log2_in_float32, SPECIAL, "encode float32"),
        (negative_zero_keeps_its_sign, SPECIAL, "encode float32.*0x80000000"),
        (fractional_product_in_float32, THRESHOLDS, "encode float32"),
    ],
)
def test_wrong_encoder_is_caught(change, name, what):
    assert_caught(Model(encode=float32_only(change)), name, what)


def test_encoding_through_float32_is_caught():
    def narrow(x, *args, **options):
        with np.errstate(over="ignore"):
            return encode(x.astype(np.float32) if x.dtype == np.float64 else x, *args, **options)

    assert_caught(Model(encode=narrow), THRESHOLDS, "encode float64")


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"mode": "sparse"}, "high_precision, block"),
        ({"mode": "high_precision"}, "sparse, block"),
        ({"mode": "auto"}, "sparse, block|high_precision, block"),
    ],
)
def test_a_wrong_mode_is_caught(changed, what):
    def wrong(x, block, rounding, mode, nonfinite="error"):
        return encode(x, block=block, rounding=rounding, **changed, nonfinite=nonfinite)

    assert_caught(Model(encode=wrong), MODES, what)


def test_dropping_the_last_zeros_is_caught():
    def wrong(x, block, rounding, mode, nonfinite="error"):
        blocks = encode(x, block=block, rounding=rounding, mode=mode, nonfinite=nonfinite)
        codes = encode(
            x[:, ::-1], block=block, rounding=rounding, mode=mode, nonfinite=nonfinite
        ).codes
        sparse = (blocks.modes == 1)[..., None]
        # What is dropped at the end may have a sign at the front, where it is stored.
        reversed_codes = codes.reshape(len(x), -1)[:, ::-1].reshape(blocks.codes.shape)
        object.__setattr__(blocks, "codes", np.where(sparse, reversed_codes, blocks.codes))
        return blocks

    assert_caught(Model(encode=wrong), MODES, "sparse, block")


def test_rounding_up_one_word_late_is_caught():
    def wrong(x, *, random, **options):
        less = np.where(random > 0, random - np.uint64(1), random)
        return encode(x, random=less, **options)

    assert_caught(Model(encode=wrong), STOCHASTIC, "encode float32, 1 random bits")


@pytest.mark.slow  # the enumeration of 100,000 codes takes 4 s
def test_every_code_is_decoded_at_every_exponent():
    rng = np.random.default_rng(0)
    dense = Counter((x.what, x.inputs) for x in decode_all(GOLDEN, rng, 1))
    names = ("float32", "bfloat16", "float64")
    assert dense == {
        (f"decode to {name}, code", (exponent, code)): 3
        for name in names
        for exponent in range(256)
        for code in range(64)
    }
    blocks_of_float32 = islice(decode_precise(GOLDEN, rng, 1), 3 * 256 * 256)
    assert {(x.what, x.inputs) for x in blocks_of_float32} == {
        (f"decode to float32, {bits - 1} magnitude bits, code", (exponent, code))
        for bits in (7, 5)
        for exponent in range(256)
        for code in range(1 << bits)
    }


def test_a_wrong_decoder_of_high_precision_is_caught():
    def wrong(blocks, dtype):
        return decode(replace(blocks, scales=(np.maximum(blocks.exponents, 1),)), dtype)

    assert_caught(Model(decode=wrong), PRECISE, "decode to float32, 6 magnitude bits")


def test_wrong_decoder_is_caught():
    assert_caught(Model(decode=decode_rounding_twice), DECODE, r"decode to float32.*\[0x0, 0x")


def test_wrong_adder_is_caught():
    assert_caught(Model(add=add_without_sticky_bit), ADD, "fp32 addition")


def test_wrong_divider_is_caught():
    def by_reciprocal(a, divisor):
        with np.errstate(all="ignore"):
            return (a.view(np.float32) * np.float32(1024 / divisor)).view(np.uint32)

    assert_caught(Model(divide=by_reciprocal), DIVIDE, "fp32 division")


def test_wrong_packing_is_caught():
    def without_aligned_tail(blocks, align):
        data = bytearray(pack(blocks, align))
        data[-1] |= align == 32
        return bytes(data)

    def without_sign(data, *args, **options):
        blocks = unpack(data, *args, **options)
        return replace(blocks, codes=blocks.codes & np.uint8(31))

    assert_caught(Model(pack=without_aligned_tail), PACK, "^pack align=32")
    assert_caught(Model(unpack=without_sign), PACK, "^unpack align=1")


def test_wrong_dot_product_is_caught():
    def in_fewer_bits(a, b):
        sums, exponents = block_dot(a, b)
        return np.clip(sums, -(1 << 14), (1 << 14) - 1), exponents

    assert_caught(Model(block_dot=in_fewer_bits), DOT, "block_dot")


def test_wrong_accumulation_is_caught():
    def in_other_order(sums, exponents, how):
        return accumulate(sums[..., ::-1], exponents[..., ::-1], how)

    def through_float64(sums, exponents, how):
        with np.errstate(all="ignore"):
            total = np.ldexp(sums / 961, exponents - 254).sum(axis=-1)
            return total.astype(np.float32) if how == "exact" else accumulate(sums, exponents)

    assert_caught(Model(accumulate=in_other_order), SUMS, "accumulate fp32")
    assert_caught(Model(accumulate=through_float64), SUMS, "accumulate exact")


def test_wrong_matmul_is_caught():
    def without_last_block(a, b, how):
        def shortened(x):
            codes = x.codes.copy()
            codes[:, -1:] = 0
            return Blocks.with_modes(x.exponents, x.modes, codes, x.shape)

        return matmul(shortened(a), shortened(b), how)

    assert_caught(Model(matmul=without_last_block), MATMUL, "matmul fp32, block size 8")


def test_other_formats_are_checked_too():
    def signs_lost(x, format, *args, **options):
        return encode(abs(x) if x.dtype == np.float32 else x, format, *args, **options)

    assert_caught(Model(encode=signs_lost), SHARE, "encode mx9 of")


def test_dot_products_of_other_formats_are_checked_too():
    def toward_zero(a, b, how):
        return matmul(a, b, f"{how},rounding=toward_zero")

    assert_caught(Model(matmul=toward_zero), SHARE_DOT, r"matmul \w+ of mx")


def test_formats_are_checks_of_their_own(monkeypatch):
    """Of elements of one exponent bit, which have a fixed point, and of blocks of one value too."""
    few = dict(islice(dot.ACCUMULATORS.items(), 0, None, 4))
    monkeypatch.setattr(dot, "ACCUMULATORS", few)
    formats = ["e1m2f_e8m0_t8", "e2m1fn_e8m0_t1"]
    checks = validate(samples=1, names=[], formats=formats)
    names = [f"format {x}" for x in formats]
    assert [x.name for x in checks] == [x + y for x in names for y in ("", ": dot products")]
    assert all(check.cases > 100 and not check.mismatches for check in checks)
    with pytest.raises(ValueError, match=r"^'mxfp5' is no block format: .* name is mxfp4$"):
        validate(formats=["mxfp5"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "formats", [["mxfp4", "e2m3fn_e8m0_t32"], ["e1m2f_e8m0_t8", "e2m1fn_e8m0_t1"]]
)
def test_checks_of_formats_with_all_accumulators(formats):
    checks = validate(samples=1, names=[], formats=formats)
    names = [f"format {x}" for x in formats]
    assert [x.name for x in checks] == [x + y for x in names for y in ("", ": dot products")]
    assert all(check.cases > 300 and not check.mismatches for check in checks)


def test_checks_in_processes_have_the_same_outcomes_in_the_same_order():
    seen = []
    # A format whose sums no accumulator has, over which the others take most of the time.
    wide = "e5m2_bfloat16_t8_bfloat16_t16_float32_t32"
    options = {"seed": 2, "samples": 1, "names": [PACK, DIVIDE], "formats": [wide]}
    found = validate(progress=lambda check, total: seen.append((check, total)), jobs=2, **options)
    assert found == validate(**options)
    assert seen == [(check, 4) for check in found]
    with pytest.raises(ValueError, match=r"^jobs must be an integer of at least 1, not 0$"):
        validate(jobs=0)


@pytest.mark.parametrize("samples", [0, -1])
def test_samples(samples):
    with pytest.raises(
        ValueError, match=f"^samples must be an integer of at least 1, not {samples}$"
    ):
        validate(samples=samples)


def test_names():
    with pytest.raises(ValueError, match=r"^names must be among encode: .*, not 'all'$"):
        validate(names=["all"])
