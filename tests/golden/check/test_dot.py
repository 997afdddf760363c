import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sampling import few

from axs6.golden import Blocks, block_dot, kulisch, matmul
from axs6.golden.accumulator import ACCUMULATORS, accumulator
from axs6.golden.check import dot as checked
from axs6.golden.check.comparison import GOLDEN, Model
from axs6.golden.check.dot import ACCUMULATORS as COMPARED
from axs6.golden.check.dot import compare_catalog, compare_products, fits, partners
from axs6.golden.check.exact import accumulator as exact_accumulator
from axs6.golden.check.exact.formats import Exponent, Real
from axs6.golden.check.formats import ALL
from axs6.golden.check.subjects import CheckedFormat
from axs6.golden.formats import CATALOG, block_format

PARTS = 4
"""Parts of the accumulators, of which a quick test of a format has one."""


def part(number):
    """Every so manieth accumulator, counted from another one for each number."""
    return {
        how: exact
        for place, (how, exact) in enumerate(COMPARED.items())
        if place % PARTS == number % PARTS
    }


QUICK = [
    *(pytest.param(x, part(number), id=x) for number, x in enumerate(few(ALL, together=1))),
    pytest.param("fp8_block", {how: COMPARED[how] for how in COMPARED if "scaled" in how}),
]
"""Formats that have each property, in turn with another part of the accumulators, and one whose
blocks are those of the accumulators that multiply sums by scales."""

EVERY = [pytest.param(name, COMPARED, id=f"{name}-all", marks=pytest.mark.slow) for name in ALL]


def compare_few(monkeypatch, *names):
    """Compare with these accumulators beside plain FP32 and "paper" alone."""
    few = {how: exact for how, exact in COMPARED.items() if how in ("fp32", "paper", *names)}
    monkeypatch.setattr(checked, "ACCUMULATORS", few)


def comparing(model, name, names=(), seed=1):
    rng = np.random.default_rng([seed, *name.encode()])
    return compare_products(model, rng, 1, CheckedFormat.of(name), names)


def compared(model, name, names=()):
    return list(comparing(model, name, names))


def assert_caught(model, name, what, names=()):
    """Within a few seeds: a small share of what `validate` compares by default has few corners."""
    for seed in range(1, 6):
        right = caught = False
        for made in comparing(model, name, names, seed):
            right |= made.model == made.exact
            caught |= made.model != made.exact and re.search(what, made.what) is not None
            if right and caught:
                return
        assert right
    raise AssertionError(f"{what!r} is not found")


@pytest.mark.parametrize(("name", "accumulators"), [*QUICK, *EVERY])
def test_the_model_passes(name, accumulators, monkeypatch):
    monkeypatch.setattr(checked, "ACCUMULATORS", accumulators)
    made = compared(GOLDEN, name, ALL)
    assert [x.what for x in made if x.model != x.exact] == []
    alone = [x.what for x in made if f" of {name} and {name}, " in x.what]
    named = {what.split()[1] for what in alone if what.startswith("matmul")}
    both = block_format(name), block_format(name)
    assert named == {how for how in accumulators if fits(*both, how)}


def test_every_accumulator_meets_a_format_of_the_quick_tests():
    met = {how for name, hows in (x.values for x in QUICK) for how in hows
           if fits(block_format(name), block_format(name), how)}  # fmt: skip
    assert met == COMPARED.keys()


@pytest.mark.parametrize("accumulators", [part(0), pytest.param(COMPARED, marks=pytest.mark.slow)])
def test_a_share_of_the_catalog(accumulators, monkeypatch):
    monkeypatch.setattr(checked, "ACCUMULATORS", accumulators)
    made = list(compare_catalog(GOLDEN, np.random.default_rng(0), 50))
    assert all(x.model == x.exact for x in made)
    assert {re.search(r" of (\w+) and", x.what)[1] for x in made} == CATALOG.keys() - {"axs6"}


def test_every_named_accumulator_is_compared():
    assert exact_accumulator.ACCUMULATORS.keys() == ACCUMULATORS.keys() <= COMPARED.keys()
    for a, b in combinations(COMPARED, 2):
        assert (accumulator(a) == accumulator(b)) == (COMPARED[a] == COMPARED[b])


def lanes_of_one_exponent(name):
    """Lanes that share the exponents of all their scales in a block."""
    definition = CheckedFormat.of(name).definition
    groups = [x.group for x in definition.levels if isinstance(x, Exponent | Real)]
    return min((x for x in groups if isinstance(x, int)), default=definition.block)


def promotes_blocks(name, how):
    """Whether the accumulator promotes blocks, which have one scale each."""
    definition = CheckedFormat.of(name).definition
    scales = [x for x in definition.levels if isinstance(x.group, int)]
    block = definition.block
    return (
        len(scales) == 1
        and isinstance(scales[0], Exponent | Real)
        and how.promote * (how.reduction or block) == block
    )


def test_what_formats_do_not_have():
    """Terms of 8 or 16 lanes with one exponent, which "blackwell_fp4" and three like it need, or
    the scales that "hopper_fp8_scaled" multiplies by."""
    lacking = {(name, how) for name in ALL for how in COMPARED
               if not fits(block_format(name), block_format(name), how)}  # fmt: skip
    assert lacking == {
        (name, how)
        for name in ALL
        for how, exact in COMPARED.items()
        if lanes_of_one_exponent(name) < exact.joined
        or (exact.scaled and not promotes_blocks(name, exact))
    }
    assert {how for _, how in lacking} == {
        how for how, exact in COMPARED.items() if exact.joined > 1 or exact.scaled
    }
    joining = {name for name, how in lacking if COMPARED[how].joined > 1}
    assert {"sm8d_e8m0_t4", "axs6_t8"} <= joining < set(ALL)
    assert ("fp8_block", "hopper_fp8_scaled") not in lacking


def test_formats_without_products_have_nothing_to_compare():
    wide = "e5m2_bfloat16_t8_bfloat16_t16_float32_t32"
    assert not fits(block_format(wide), block_format(wide), "fp32")
    assert compared(GOLDEN, wide, ALL) == []


def test_partners_have_the_same_groups(monkeypatch):
    compare_few(monkeypatch)
    names = ("mx9", "mx6", "mx4", "msfp16", "mx9-rceil", "mx6-ceil", "mxfp4")
    assert partners(CATALOG["mx9"], names) == ["mx6", "mx4", "mx9-rceil", "mx6-ceil"]
    assert partners(CATALOG["axs6"], ("mxfp4", "nvfp4", "axs6")) == ["mxfp4"]
    made = compared(GOLDEN, "axs6", ("mxfp4", "nvfp4"))
    assert any(re.search("axs6 and mxfp4|mxfp4 and axs6", x.what) for x in made)


def changed(**fields):
    """A matrix product whose accumulator has other fields, where it has one alignment."""

    def wrong(a, b, how):
        right = accumulator(how)
        if right.fraction is None or right.sum_fraction is not None:
            return matmul(a, b, right)
        return matmul(a, b, replace(right, **{k: f(getattr(right, k)) for k, f in fields.items()}))

    return Model(matmul=wrong)


def having(name, **fields):
    """A matrix product with other fields where the accumulator has one of a name."""

    def wrong(a, b, how):
        right, plain = accumulator(how), getattr(accumulator("fp32"), name)
        changes = {} if getattr(right, name) == plain else fields
        return matmul(a, b, replace(right, **changes))

    return Model(matmul=wrong)


def without_outer_scales(a, b, how):
    ones = np.array(0x3F800000, np.uint32)
    a = Blocks(
        a.format, (np.broadcast_to(ones, a.scales[0].shape), *a.scales[1:]), a.codes, a.shape
    )
    return matmul(a, b, how)


def whole(x):
    """Blocks without padding: the zeros beyond the shape are values too."""
    return replace(x, shape=(len(x.codes), x.codes[0].size))


def inner_order(a, b, how):
    """The blocks in the other order."""
    a, b = (
        replace(x, scales=tuple(y[:, ::-1] for y in x.scales), codes=x.codes[:, ::-1])
        for x in map(whole, (a, b))
    )
    return matmul(a, b, how)


def nan_scale_of_zeros_is_zero(a, b, how):
    codes = a.codes.copy()
    (scales,) = a.scales
    codes[scales == 255] = 0
    return matmul(replace(a, scales=(np.minimum(scales, 254),), codes=codes), b, how)


def canonical_nan(a, b, how):
    y = matmul(a, b, how)
    return np.where(np.isnan(y), np.float32(np.nan), y)


def zeros_without_sign(a, b, how):
    return matmul(a, b, how) + np.float32(0)


def infinities_as_largest(a, b, how):
    y = matmul(a, b, how)
    return np.where(np.isinf(y), np.copysign(np.finfo(np.float32).max, y), y)


@pytest.mark.parametrize(
    ("wrong", "name", "what"),
    [
        (changed(fraction=lambda f: f - 1), "mxfp8_e4m3", "matmul (hopper|blackwell)"),
        (changed(fraction=lambda f: f + 1), "mx9", "matmul paper"),
        (
            changed(alignment=lambda x: "floor"),
            "mxfp4",
            "matmul (ampere|hopper|blackwell) of mxfp4",
        ),
        (changed(fused=lambda x: False), "mxint8", "matmul volta"),
        (changed(reduction=lambda r: r // 2 if r else r), "nvfp4", "matmul (ada|hopper)_fp8"),
        (having("groups", groups=1, reach=None), "mxfp8_e4m3", "matmul cdna3_fp8"),
        (having("reach", reach=8), "mxfp8_e5m2", "matmul cdna3_fp8"),
        (having("sum_fraction", sum_fraction=30), "mxfp8_e4m3", "matmul cdna3"),
        (having("flush", flush=None), "mxfp8_e5m2", "matmul cdna2"),
        (having("pairwise", pairwise=False, flush=None), "mx9", "matmul cdna2"),
        (having("scaled", scaled=False), "fp8_block", "matmul hopper_fp8_scaled"),
        (having("scaled", fraction=14), "mxfp8_e4m3", "matmul hopper_fp8,promote=1,scaled"),
        (Model(matmul=without_outer_scales), "nvfp4", "matmul fp32"),
        (Model(matmul=inner_order), "msfp12", "matmul fp32"),
        (Model(matmul=nan_scale_of_zeros_is_zero), "mxfp4", "a NaN scale, rows"),
        (Model(matmul=canonical_nan), "mxfp8_e5m2", "matmul (hopper|cdna1) .*NaN"),
        (Model(matmul=zeros_without_sign), "int8", "largest scales, rows"),
        (Model(matmul=infinities_as_largest), "mx9", "largest scales, rows"),
    ],
)
def test_a_wrong_matrix_product_is_caught(wrong, name, what, monkeypatch):
    """Beside plain FP32 among the accumulators that the text names."""
    named = re.sub("(matmul .*?) .*", r"\1", what)
    compare_few(monkeypatch, *(how for how in COMPARED if re.match(named, f"matmul {how}")))
    assert_caught(wrong, name, what)


def test_formats_exchanged_in_a_product_are_caught(monkeypatch):
    compare_few(monkeypatch)

    def wrong(a, b, how):
        return (
            matmul(a, b, how)
            if a.format == b.format
            else matmul(replace(whole(a), codes=a.codes ^ 1), whole(b), how)
        )

    assert_caught(Model(matmul=wrong), "mxfp6_e3m2", "mxfp6_e2m3", ("mxfp6_e2m3",))


def test_a_wrong_block_product_is_caught(monkeypatch):
    compare_few(monkeypatch)

    def off_by_one(a, b):
        sums, exponents = block_dot(a, b)
        return sums + (np.abs(sums) > 2**8), exponents

    def wrapped(a, b):
        sums, exponents = block_dot(a, b)
        return sums.astype(np.int8), exponents

    def biased(a, b):
        sums, exponents = block_dot(a, b)
        return sums, exponents - np.uint16(1)

    def accepting(a, b):
        numbers = (replace(x, scales=(np.minimum(x.exponents, 254),)) for x in (a, b))
        return block_dot(*numbers)

    for wrong in (off_by_one, wrapped, biased):
        assert_caught(Model(block_dot=wrong), "mx6", "block_dot of mx6 and mx6, .*, blocks")
    assert_caught(Model(block_dot=accepting), "mxfp4", "block_dot of mxfp4 and mxfp4, a NaN scale")


def test_wide_sums_that_lose_their_high_bits_are_caught(monkeypatch):
    right = kulisch.parted
    monkeypatch.setattr(kulisch, "parted", lambda x, bits: right(x & (1 << 62) - 1, bits))
    wide = {how for how in COMPARED if how.endswith(("term=8", "term=16"))}
    compare_few(monkeypatch, "hopper", *wide)
    made = compared(GOLDEN, "mxfp8_e4m3", ("mxfp8_e5m2",))
    wrong = {x.what.split()[1] for x in made if x.model != x.exact}
    assert wrong
    assert wrong <= wide
