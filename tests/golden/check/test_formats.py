import re
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from sampling import few, formats

from axs6.golden import decode, encode, pack, unpack
from axs6.golden.check import formats as checked
from axs6.golden.check.comparison import GOLDEN, Model
from axs6.golden.check.exact.formats import CATALOG as DEFINITIONS
from axs6.golden.check.formats import CHECKS, COMPOSED, compare_catalog
from axs6.golden.check.subjects import CheckedFormat, definition_of
from axs6.golden.formats import CATALOG, block_format

SPECIAL, THRESHOLDS, RANDOM, STOCHASTIC, NONFINITE, DECODE, PACK = CHECKS


MOST = 400
"""Comparisons of one kind of a format in the quick tests: few formats have more."""


def differences(model, name, check, blocks=40, most=None):
    """Comparisons made, at most so many, and what is said of those that differ."""
    rng = np.random.default_rng([1, *name.encode()])
    made = list(islice(CHECKS[check](model, CheckedFormat.of(name), rng, blocks), most))
    return len(made), [x.what for x in made if x.model != x.exact]


def assert_caught(model, name, check, what):
    """The first difference is the one that is named, and something before or after it is right."""
    rng = np.random.default_rng([1, *name.encode()])
    made = CHECKS[check](model, CheckedFormat.of(name), rng, 40)
    first = {}
    for comparison in made:
        first.setdefault(comparison.model == comparison.exact, comparison.what)
        if len(first) == 2:
            break
    assert first.keys() == {False, True}
    assert re.search(what, first[False])


@pytest.mark.parametrize("name", CATALOG)
def test_definitions_of_the_catalog_are_the_public_ones(name):
    ours, public = definition_of(CATALOG[name]), DEFINITIONS[name]
    assert (ours.levels, ours.header) == (public.levels, public.header)
    for field in ("values", "precision", "fields", "nan", "zero_sign"):
        assert getattr(ours.element, field) == getattr(public.element, field)


def test_both_catalogs_have_the_same_names():
    assert CATALOG.keys() == DEFINITIONS.keys()


@pytest.mark.parametrize("name", formats([*CATALOG, *COMPOSED], together=1))
def test_the_model_passes(name, request):
    most = None if request.node.get_closest_marker("slow") else MOST
    for check in CHECKS:
        made, found = differences(GOLDEN, name, check, 10, most)
        assert made
        assert not found, found[0]


@pytest.mark.parametrize(
    "names", [few(CATALOG, together=1), pytest.param(list(CATALOG), marks=pytest.mark.slow)]
)
def test_a_share_of_the_catalog(names, monkeypatch):
    monkeypatch.setattr(checked, "CATALOG", names)
    made = list(compare_catalog(GOLDEN, np.random.default_rng(0), 50))
    assert all(x.model == x.exact for x in made)
    named = {re.match(r"\w+ (\w+)", x.what)[1] for x in made}
    assert named == {*names} - {"axs6"}


def of_float32(change):
    """An encoder that is `change(x, blocks)` for float32 that is not propagated, else right."""

    def wrong(x, fmt, *args, axis=-1, **options):
        blocks = encode(x, fmt, *args, axis=axis, **options)
        if x.dtype != np.float32 or options.get("nonfinite") == "propagate":
            return blocks
        rows = np.moveaxis(x, axis, -1)
        rows = np.pad(rows, [(0, 0), (0, -rows.shape[1] % blocks.block)])
        with np.errstate(all="ignore"):
            return change(rows.reshape(blocks.codes.shape), blocks)

    return Model(encode=wrong)


def over_scale(x, blocks):
    """Values over the exponent scale of their block."""
    return np.ldexp(x.astype(np.float64), 127 - blocks.exponents.astype(int)[..., None])


def half_up(x, blocks):
    """Ties of E2M1 away from zero."""
    ties = np.isin(np.abs(over_scale(x, blocks)), [0.25, 1.25, 2.5, 5])
    even = ties & (blocks.codes % 2 == 0)
    return replace(blocks, codes=blocks.codes + even.astype(np.uint8))


def emax_too_small(x, blocks):
    """The largest value of E2M1 brought to [2, 4), not [4, 8)."""
    amax = np.nan_to_num(np.abs(x)).max(axis=-1, keepdims=True)
    wide = np.concatenate([x / 2, amax, np.zeros_like(x)[..., 1:]], axis=-1)
    other = encode(wide, "mxfp4_t64", nonfinite="saturate")
    exponents = np.minimum(blocks.exponents, 253) + np.uint8(1)
    return replace(blocks, scales=(exponents,), codes=other.codes[..., 0, :32])


def shift_one_binade_late(x, blocks):
    """A shift of MX6 only where the largest of a pair lies two binades down."""
    exponents, shifts = blocks.scales
    pairs = np.frexp(np.abs(x).reshape(*shifts.shape, 2).max(axis=-1))[1]
    late = (shifts == 1) & (pairs == pairs.max(axis=-1, keepdims=True) - 1)
    return replace(blocks, scales=(exponents, shifts - late.astype(np.uint8)))


def zero_without_sign(x, blocks):
    sign = blocks.format.element.sign_bit
    return replace(blocks, codes=np.where(blocks.codes == sign, np.uint8(0), blocks.codes))


def nan_for_zero(x, blocks):
    """A sign on all negative values, which makes NaN of those that round to 0."""
    sign = np.signbit(x) & (blocks.codes == 0)
    return replace(blocks, codes=np.where(sign, np.uint8(0x80), blocks.codes))


def no_clamp(x, blocks):
    """What lies above 127.5/64 rounds to 128, the most negative code."""
    above = np.abs(over_scale(x, blocks)) >= 127.5 / 64
    return replace(blocks, codes=np.where(above, np.uint8(0x80), blocks.codes))


def divided_by_the_scale(x, blocks):
    """x / s in place of x * (1 / s)."""
    scale = blocks.scales[0].view(np.float32)
    codes = np.clip(np.rint(x / scale), -127, 127).astype(np.int8).view(np.uint8)
    return replace(blocks, codes=np.where(np.isfinite(x), codes, blocks.codes))


def integer_above(x, blocks):
    """floor + 1 in place of ceil: another scale only where the quotient is an integer."""
    outer = blocks.scales[0]
    step = outer.view(np.float32).astype(np.float64)[..., None] * 7
    amax = np.abs(x).max(axis=-1).astype(np.float64)
    above = np.clip(np.floor(amax / step) + 1, 1, 15)
    return replace(blocks, scales=(outer, np.where(amax > 0, above, 1).astype(np.uint8)))


def scale_below_a_sign(x, blocks):
    """The top bit of the scale kept at 0, as in a signed number."""
    (scales,) = blocks.scales
    return replace(blocks, scales=(np.minimum(scales, np.uint8(0x7E)),))


def shift_of_the_group_above(x, blocks):
    """The shift of 4 values below the largest of their 8, as under exponents."""
    scale, coarse, fine = blocks.scales
    eight, four = (np.abs(x).reshape(*x.shape[:-1], -1, k).max(axis=-1) for k in (8, 4))
    apart = np.frexp(np.repeat(eight, 2, axis=-1))[1] - np.frexp(four)[1]
    shifts = np.minimum(apart, 1).astype(np.uint8)
    return replace(blocks, scales=(scale, coarse, shifts.reshape(fine.shape)))


def ties_to_even(x, blocks):
    """The even one of two codes that are equally near."""
    element = replace(blocks.format.element, ties_away=False)
    found = encode(x, replace(blocks.format, element=element), nonfinite="saturate")
    return replace(blocks, codes=found.codes.reshape(blocks.codes.shape))


def always_first(x, blocks):
    """The first element in all groups, whichever has the smaller error."""
    (part, _) = blocks.format.parts
    found = encode(x, part, nonfinite="saturate")
    scales = [
        each.reshape(own.shape) for each, own in zip(found.scales, blocks.scales, strict=True)
    ]
    return replace(blocks, scales=tuple(scales), codes=found.codes.reshape(blocks.codes.shape))


def tie_to_the_odd_code(x, blocks):
    """The entry after or before that of a table where a value lies halfway."""
    table = blocks.format.element.integers
    scaled = over_scale(x, blocks) / float(blocks.format.element.unit)
    away = np.abs(scaled - table[blocks.codes])
    other = np.where(scaled > table[blocks.codes], blocks.codes + 1, blocks.codes - 1)
    tie = np.abs(table[np.clip(other, 0, 15)] - scaled) == away
    return replace(blocks, codes=np.where(tie, other, blocks.codes).astype(np.uint8))


@pytest.mark.parametrize(
    ("change", "name", "check"),
    [
        (shift_of_the_group_above, "hif4", RANDOM),
        (ties_to_even, "hif4", THRESHOLDS),
        (always_first, "if4", RANDOM),
        (always_first, "razer", THRESHOLDS),
        (tie_to_the_odd_code, "nf4q6_e8m0_t32", THRESHOLDS),
        (half_up, "mxfp4", THRESHOLDS),
        (emax_too_small, "mxfp4", RANDOM),
        (shift_one_binade_late, "mx6", RANDOM),
        (zero_without_sign, "mxfp8_e4m3", SPECIAL),
        (zero_without_sign, "msfp12", SPECIAL),
        (nan_for_zero, "fp8_e4m3fnuz", SPECIAL),
        (nan_for_zero, "fp8_e5m2fnuz", RANDOM),
        (no_clamp, "mxint8", THRESHOLDS),
        (divided_by_the_scale, "int8", THRESHOLDS),
        (integer_above, "vsq4", THRESHOLDS),
        (scale_below_a_sign, "nvfp4_ue5m3", RANDOM),
    ],
)
def test_a_wrong_encoder_is_caught(change, name, check):
    assert_caught(of_float32(change), name, check, f"encode {name} of float32")


@pytest.mark.parametrize(
    ("rule", "instead"),
    [("ceil", "floor"), ("rceil", "ceil"), ("even", "floor"), ("floor", "even")],
)
@pytest.mark.parametrize("name", ["mxfp4", "mxfp8_e4m3", "mx9"])
def test_a_wrong_rule_is_caught(name, rule, instead):
    def wrong(x, fmt, *args, **options):
        return replace(encode(x, fmt.with_rule(instead), *args, **options), format=fmt)

    assert_caught(Model(encode=wrong), f"{name}-{rule}", THRESHOLDS, f"{name}-{rule}")


def test_rounding_up_one_word_late_is_caught():
    def wrong(x, *args, random=None, **options):
        late = None if random is None else np.maximum(random, 1) - np.uint64(1)
        return encode(x, *args, random=late, **options)

    assert_caught(Model(encode=wrong), "mxfp6_e2m3", STOCHASTIC, "stochastic")


def test_encoding_through_float32_is_caught():
    def wrong(x, *args, **options):
        with np.errstate(over="ignore"):
            return encode(x.astype(np.float32) if x.dtype == np.float64 else x, *args, **options)

    assert_caught(Model(encode=wrong), "mxfp8_e5m2", THRESHOLDS, "float64")


def test_nan_in_a_maximum_is_caught():
    def wrong(x, *args, **options):
        if x.dtype == np.float32:
            x = np.where(np.isnan(x), np.float32(3e38), x)
        return encode(x, *args, **options)

    assert_caught(Model(encode=wrong), "mxfp4", NONFINITE, "float32")


def test_infinities_that_become_nan_are_caught():
    def wrong(x, *args, **options):
        if x.dtype == np.float32 and options.get("nonfinite") == "propagate":
            x = np.where(np.isinf(x), np.float32(np.nan), x)
        return encode(x, *args, **options)

    assert_caught(Model(encode=wrong), "mxfp8_e5m2", NONFINITE, "float32, nearest, propagate")


def test_accepting_what_has_no_code_is_caught():
    def wrong(x, *args, nonfinite="error", **options):
        return encode(x, *args, nonfinite="saturate", **options)

    assert_caught(Model(encode=wrong), "int8_float32_t128", NONFINITE, "propagate|refuses")


def decode_scale_without_nan(blocks, dtype):
    (scales,) = blocks.scales
    return decode(replace(blocks, scales=(np.minimum(scales, 254),)), dtype)


def decode_most_negative_as_its_neighbour(blocks, dtype):
    codes = np.where(blocks.codes == 0x80, np.uint8(0x81), blocks.codes)
    return decode(replace(blocks, codes=codes), dtype)


def decode_to_bfloat16_by_truncation(blocks, dtype):
    exact = decode(blocks, dtype)
    if dtype != "bfloat16":
        return exact
    return (decode(blocks, "float32").view(np.uint32) >> 16).astype(np.uint16).view(exact.dtype)


@pytest.mark.parametrize(
    ("wrong", "name", "what"),
    [
        (decode_scale_without_nan, "mxfp4", "float32"),
        (decode_most_negative_as_its_neighbour, "mxint8", "float32"),
        (decode_to_bfloat16_by_truncation, "fp8_e4m3", "bfloat16"),
    ],
)
def test_a_wrong_decoder_is_caught(wrong, name, what):
    assert_caught(Model(decode=wrong), name, DECODE, f"decode {name} to {what}")


def test_wrong_bytes_are_caught():
    def shifts_first(blocks):
        data = np.frombuffer(pack(blocks), np.uint8).reshape(-1, 18)
        return np.concatenate([data[:, 1:2], data[:, :1], data[:, 2:]], axis=1).tobytes()

    def without_signs(data, shape, fmt):
        blocks = unpack(data, shape, fmt)
        return replace(blocks, codes=blocks.codes & np.uint8(7))

    def scale_after(blocks):
        data = pack(blocks)
        return data[4:] + data[:4]

    assert_caught(Model(pack=shifts_first), "mx9", PACK, "^pack mx9, block")
    assert_caught(Model(unpack=without_signs), "mxfp4", PACK, "^unpack mxfp4")
    assert_caught(Model(pack=scale_after), "nvfp4", PACK, "^pack nvfp4, scales before")


def test_strings_are_formats():
    subject = CheckedFormat.of("e3m2fn_e6m0n_t16")
    assert subject.fmt == block_format("e3m2fn_e6m0n_t16")
    assert subject.definition.levels == ((16, 6, "floor", True),)
