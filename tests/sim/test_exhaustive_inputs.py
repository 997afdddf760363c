"""Enumerations: the inputs of every space are all that its name promises."""

import numpy as np
import pytest

from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.rounding import Rounding
from axs6.sim.exhaustive.catalog import choose
from axs6.sim.exhaustive.conversion_spaces import conversion_space, rounding_sums
from axs6.sim.exhaustive.decoder_spaces import decoder_space
from axs6.sim.exhaustive.encoder_spaces import encoder_spaces, lay_out, maximum_classes
from axs6.sim.exhaustive.fp32_spaces import division_space
from axs6.sim.exhaustive.multiplication_spaces import multiplication_spaces
from axs6.sim.exhaustive.space import Space
from axs6.sim.exhaustive.unit_spaces import product_space


def encoder_space(name: str) -> Space:
    (space,) = choose(encoder_spaces(Rounding.NEAREST), [name])
    return space


@pytest.mark.slow
def test_gaps_hold_every_significand_at_every_gap_with_both_signs() -> None:
    """Chunks are runs of patterns below a maximum of the largest field, without a hole."""
    space = encoder_space("fp32-nearest-gaps")
    firsts = []
    for chunk in range(space.chunks):
        blocks = space.inputs(chunk)["values"]
        lane = chunk % 32
        assert (blocks[:, lane] == 254 << 23).all()
        patterns = np.delete(blocks, lane, axis=1).ravel()[: space.chunk_cases]
        assert (np.diff(patterns) == 1).all()
        firsts.append(int(patterns[0]))
    ranges = [range(start, start + (32 << 23), 1 << 22) for start in (223 << 23, 479 << 23)]
    assert sorted(firsts) == [*ranges[0], *ranges[1]]


def test_every_16_bit_pattern_meets_every_class_of_maximum() -> None:
    space = encoder_space("bf16-nearest-patterns")
    for chunk, maximum in enumerate(maximum_classes(INPUT_DTYPES["bf16"])):
        blocks = space.inputs(chunk)["values"]
        assert (blocks[:, chunk % 16] == maximum).all()
        others = np.delete(blocks, chunk % 16, axis=1)
        met = np.zeros(1 << 16, bool)
        met[others] = True
        assert met.all()
        assert (others >> 7 == others[:, :1] >> 7).all()


def test_blocks_hold_one_run_each() -> None:
    runs = np.arange(1, 11, dtype=np.uint16).reshape(2, 5)
    assert lay_out(runs, 99, 4, 1).tolist() == [
        [1, 99, 2, 3],
        [4, 99, 5, 5],
        [6, 99, 7, 8],
        [9, 99, 10, 10],
    ]


def test_the_decoder_meets_every_code_at_every_exponent_in_every_lane() -> None:
    space = decoder_space("fp32")
    items = space.inputs(0)
    places = items["exponent"][:, None].astype(int) << 6 | items["codes"]
    assert len(np.unique(places * 8 + np.arange(8))) == space.cases


def test_products_meet_every_pair_of_codes_in_every_lane() -> None:
    space = product_space()
    parts = [space.inputs(chunk) for chunk in range(space.chunks)]
    items = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    pairs = items["a.codes"].astype(int) << 6 | items["b.codes"]
    for lane in range(32):
        alone = np.delete(pairs, lane, axis=1) == 0
        assert len(np.unique(pairs[alone.all(axis=1), lane])) == 64 * 64
    exponents = items["a.exponent"].astype(int) << 8 | items["b.exponent"]
    assert len(np.unique(exponents)) == 1 << 16


def test_conversion_meets_every_sum_at_every_exponent() -> None:
    space = conversion_space()
    seen = np.zeros((1 << 16, 511), bool)
    for chunk in range(space.chunks):
        items = space.inputs(chunk)
        seen[items["sum"].view(np.uint16), items["exponent"]] = True
    assert seen.all()


def test_division_meets_every_pattern() -> None:
    space = division_space(961)
    chunks = [space.inputs(chunk)["value"] for chunk in (0, 1, space.chunks - 1)]
    assert [(int(x[0]), int(x[-1])) for x in chunks] == [
        (0, 2**22 - 1),
        (2**22, 2**23 - 1),
        (2**32 - 2**22, 2**32 - 1),
    ]


def test_conversion_meets_what_is_no_number_at_every_exponent() -> None:
    space = conversion_space("mx4")
    for exponent in (0, 510):
        items = space.inputs(exponent)
        assert (items["exponent"] == exponent).all()
        assert len(np.unique(items["sum"][:-3])) == 1 << 11
        assert items["special"].tolist() == [0] * (1 << 11) + [1, 2, 3]


def test_conversion_meets_sums_of_more_than_a_word_in_two_fields() -> None:
    items = conversion_space("fp8_e5m2").inputs(0)
    words = zip(items["sum"].tolist(), items["high"].tolist(), strict=True)
    sums = [low + (high << 64) for low, high in words]
    assert sums == [*rounding_sums(70).tolist(), 0, 0, 0]
    assert sums[0] == 1 - (1 << 69)


def test_sums_meet_every_case_of_a_rounding() -> None:
    """With each highest bit, wherever it cuts: both parities, all that may be dropped, a carry."""
    width = 12
    sums = rounding_sums(width).tolist()
    assert sums == [-x for x in reversed(sums)]
    assert {0, 1, (1 << width - 1) - 1} <= {*sums}
    for top in range(width - 1):
        there = {x for x in sums if 1 << top <= x < 2 << top}
        for cut in range(1, top + 1):
            half, drop = 1 << cut - 1, (1 << cut) - 1
            kept = {x >> cut for x in there}
            assert (2 << top - cut) - 1 in kept
            for odd in {x & 1 for x in kept}:
                rest = {x & drop for x in there if x >> cut & 1 == odd}
                assert {0, half, drop} | ({1, half - 1, half + 1} if cut > 1 else set()) <= rest
                assert {half | 1 << sticky for sticky in range(cut - 1)} <= rest or odd
        assert {1 << top | 1 << place for place in range(top)} <= there


def test_factors_of_bf16_meet_each_other() -> None:
    _, space, *_ = multiplication_spaces()
    for chunk in (0, space.chunks - 1):
        items = space.inputs(chunk)
        assert not ((items["value"] | items["outer"]) & 0xFFFF).any()
        factors = items["value"].astype(np.uint32) | items["outer"].astype(np.uint32) >> 16
        factors.sort()
        assert (factors[1:] > factors[:-1]).all()
        assert len(factors) == space.chunk_cases
    assert items["value"].max() == items["outer"].max() == 0xFFFF0000


def test_fractions_meet_each_bit_on_both_sides() -> None:
    *_, space, _ = multiplication_spaces()
    met = set()
    for chunk in range(space.chunks):
        items = space.inputs(chunk)
        side = "value" if items["value"][0] == items["value"][1] else "outer"
        met.add((side, int(items[side][0]) & 0x7FFFFF))
    assert {fraction for _, fraction in met} > {1 << bit for bit in range(23)}
    assert len(met) == space.chunks == 2 * len({fraction for _, fraction in met})


def test_depths_reach_from_normal_products_to_nothing() -> None:
    *_, space = multiplication_spaces()
    with np.errstate(under="ignore"):
        products = [
            items["value"][:1].view(np.float32) * items["outer"][:1].view(np.float32)
            for items in map(space.inputs, range(space.chunks))
        ]
    patterns = np.concatenate(products).view(np.uint32) & 0x7FFFFFFF
    assert (np.diff(patterns.astype(np.int64)) <= 0).all()
    assert patterns[0] >> 23 == 1
    assert patterns[1] >> 23 == 0
    assert patterns[-1] == 0
