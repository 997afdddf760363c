from itertools import combinations, pairwise

import numpy as np
import pytest

from axs6.hw.core.pipeline import place, split_stages
from axs6.hw.core.placement import (
    LONG,
    PART,
    REACH,
    handshake_bits,
    place_registers,
    spare_ranks,
)
from axs6.hw.dot.block_dot import block_dot_steps
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.divide import division_steps

FLAT = [8] * 9
"""Equal widths in front of and after each of up to eight steps."""


def test_no_stages_means_no_registers() -> None:
    ranks = place_registers([5, 5, 5], FLAT[:4], 0)
    assert (ranks.places, ranks.depth, ranks.bits) == ((), 15, 0)


def test_the_first_rank_is_at_the_output() -> None:
    ranks = place_registers([5, 1, 1], [9, 9, 9, 3], 1)
    assert (ranks.places, ranks.depth, ranks.bits) == ((2,), 7, 3)


@pytest.mark.parametrize(
    ("levels", "stages", "places"),
    [
        ([1, 1, 10, 1], 2, (1, 3)),
        ([10, 1, 1, 1], 2, (0, 3)),
        ([4, 4, 4, 4], 2, (1, 3)),
        ([4, 4, 4, 4], 4, (0, 1, 2, 3)),
        ([4, 4], 3, (-1, 0, 1)),
    ],
)
def test_ranks_halve_the_deepest_stretch(
    levels: list[int], stages: int, places: tuple[int, ...]
) -> None:
    assert place_registers(levels, FLAT[: len(levels) + 1], stages).places == places


def test_of_equal_depths_the_fewest_bits_are_held() -> None:
    assert place_registers([3, 3, 3, 3], [0, 90, 40, 50, 5], 3).places == (1, 2, 3)
    assert place_registers([3, 3, 3, 3], [0, 90, 50, 40, 5], 3).places == (1, 2, 3)
    assert place_registers([1, 9, 1], [0, 90, 7, 5], 2).places == (1, 2)
    ranks = place_registers([4, 5], [1000, 20, 3], 3)
    assert (ranks.places, ranks.depths, ranks.bits) == ((-1, 0, 1), (0, 4, 5), 1023)


def test_every_placement_is_the_best_of_all() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        count = int(rng.integers(1, 7))
        levels = rng.integers(1, 12, count).tolist()
        widths = rng.integers(1, 30, count + 1).tolist()
        for stages in range(1, count + 1):
            costs = []
            for inner in combinations(range(1, count), stages - 1):
                borders = [0, *inner, count]
                depth = max(sum(levels[a:b]) for a, b in pairwise(borders))
                costs.append((depth, sum(widths[border] for border in borders[1:])))
            ranks = place_registers(levels, widths, stages)
            assert (ranks.depth, ranks.bits) == min(costs)


def test_more_ranks_never_deepen_the_deepest_stretch() -> None:
    levels = [5, 30, 14, 10, 7]
    depths = [place_registers(levels, FLAT[:6], n).depth for n in range(7)]
    assert depths == sorted(depths, reverse=True)
    assert depths[0] == sum(levels)
    assert depths[-1] == max(levels)


@pytest.mark.parametrize("stages", [-1, 4, 1.0, "2"])
def test_stages_must_fit(stages: object) -> None:
    with pytest.raises(ValueError, match=r"stages must be an integer from 0 to 3, not"):
        place_registers([1, 1], FLAT[:3], stages)  # type: ignore[arg-type]


def test_stages_are_split_where_the_logic_is_deepest() -> None:
    front, back = block_dot_steps(DotShape.of("axs6")), division_steps()
    most = len(front) + len(back) + 2
    for stages in range(most + 1):
        costs = {}
        for before in range(stages + 1):
            if before <= len(front) + 1 and stages - before <= len(back) + 1:
                ranks = place(front, before), place(back, stages - before)
                cost = max(each.depth for each in ranks), sum(each.bits for each in ranks)
                costs[before, stages - before] = cost
        assert costs[split_stages(front, back, stages)] == min(costs.values())
    with pytest.raises(ValueError, match=f"stages must be an integer from 0 to {most}, not"):
        split_stages(front, back, most + 1)


def in_reach(spares: tuple[int, ...], ranks: int, registered: bool) -> bool:
    """Whether `ready` passes at most three ranks between registers, and two from the output."""
    first = 0 if registered else REACH - 1
    gaps = [b - a for a, b in pairwise([*spares, ranks + 1])]
    return bool(spares) and spares[0] <= first and max(gaps) <= REACH


@pytest.mark.parametrize("registered", [False, True])
def test_spares_are_the_shallowest_ranks_of_fewest_bits(registered: bool) -> None:
    rng = np.random.default_rng(4)
    for ranks in range(LONG):
        assert spare_ranks([1] * ranks, [1] * ranks, registered) == ()
    for ranks in [LONG, 9, 10, 11] * 5:
        depths = rng.integers(0, 5, ranks).tolist()
        bits = rng.integers(1, 30, ranks).tolist()
        costs = {
            spares: (max(depths[rank] for rank in spares), sum(bits[rank] for rank in spares))
            for count in range(1, ranks + 1)
            for spares in combinations(range(ranks), count)
            if in_reach(spares, ranks, registered)
        }
        assert costs[spare_ranks(depths, bits, registered)] == min(costs.values())


def test_no_bit_of_a_handshake_reaches_more_than_a_part_of_a_rank() -> None:
    rng = np.random.default_rng(5)
    for ranks in range(LONG, 20):
        bits = rng.integers(1, 1500, ranks).tolist()
        spares = spare_ranks([1] * ranks, bits, False)
        copies = handshake_bits(bits, spares)
        ends = [next((s for s in spares if s >= rank), ranks - 1) for rank in range(ranks)]
        for rank, (end, number) in enumerate(zip(ends, copies, strict=True)):
            assert number == (1 if end == ranks - 1 else copies[end])
            assert number & number - 1 == 0
            if end < ranks - 1:
                assert number * PART >= bits[rank]
        for before, rank in pairwise(spares):
            if rank < ranks - 1:
                assert copies[rank] * PART >= bits[before]
        assert handshake_bits([PART] * ranks, spares) == [1] * ranks
