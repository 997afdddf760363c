"""Placement of ranks of registers among the steps of a pipeline."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise

from axs6.golden.arguments import check_integer


@dataclass(frozen=True)
class Ranks:
    """Ranks of registers among steps.

    `places` are the indices of the steps after which a rank stands, -1 for one in front of the
    first; `depths` are those of the stretches that end at them, or of all steps where there are no
    ranks; and `bits` is what all ranks hold.
    """

    places: tuple[int, ...]
    depths: tuple[int, ...]
    bits: int

    @property
    def depth(self) -> int:
        """The depth of the deepest stretch."""
        return max(self.depths)


def place_registers(levels: Sequence[int], widths: Sequence[int], stages: int) -> Ranks:
    """Place `stages` ranks of registers among steps.

    One stands after the last step. The others go between steps so that the deepest stretch is as
    shallow as possible and, among equal choices, so that they hold the fewest bits. If there are
    more ranks than places, one stands in front of the first step.

    Args:
        levels: depth of each step.
        widths: bits in front of the first step, and after each.
        stages: number of ranks.

    Raises:
        ValueError: there are fewer places than ranks.
    """
    check_integer("stages", stages, 0, len(levels) + 1)
    sums = list(accumulate(levels, initial=0))
    if not stages:
        return Ranks((), (sums[-1],), 0)
    between = min(stages, len(levels)) - 1
    ahead = stages - 1 - between
    depths = sorted({b - a for a, b in combinations(sums, 2)})
    least = bisect_left(
        depths, True, key=lambda depth: _fewest_bits(sums, widths, between, depth) is not None
    )
    depth = depths[least]
    found = _fewest_bits(sums, widths, between, depth)
    assert found is not None, "one stretch over all steps is always allowed"
    bits, inner = found
    places = (*[-1] * ahead, *inner, len(levels) - 1)
    borders = [sums[place + 1] for place in places]
    stretches = tuple(b - a for a, b in pairwise([0, *borders]))
    return Ranks(places, stretches, bits + widths[-1] + ahead * widths[0])


LONG = 8
"""Ranks from which `ready` may be slower than what lies between ranks."""

REACH = 3
"""Ranks that `ready` passes in a cycle in a long pipeline."""


def spare_ranks(depths: Sequence[int], bits: Sequence[int], registered: bool) -> tuple[int, ...]:
    """The ranks that are skid buffers: a few of a long pipeline, to cut the `ready` path.

    The input of a skid buffer passes a multiplexer. So skid buffers are the ranks with the
    shallowest stretches in front and, among equal choices, the fewest bits.

    Args:
        depths: of the stretch in front of each rank.
        bits: that each rank holds.
        registered: whether the first rank has one, whose `ready` is that of the pipeline.
    """
    if len(bits) < LONG:
        return ()
    start = -REACH if registered else -1
    options = (
        _fewest_spares(
            [held if depth <= limit else None for depth, held in zip(depths, bits, strict=True)],
            start,
        )
        for limit in sorted(depths)
    )
    return next(option for option in options if option is not None)


PART = 128
"""Maximum number of bits of a rank that one bit of a handshake drives."""


def handshake_bits(bits: Sequence[int], spares: Sequence[int]) -> list[int]:
    """Equal bits that the `ready` of each rank has in a pipeline of rigid ranks: a power of two.

    The `ready` of a rank with a spare register enables that rank and all before it, back to the
    one before with a spare register. The ranks that end at the last one have one bit.

    Args:
        bits: that each rank holds.
        spares: ranks with a spare register.
    """
    copies = [1] * len(bits)
    for before, rank in pairwise([-1, *spares]):
        reached = slice(before + 1, rank + 1)
        widest = max(bits[max(before, 0) : rank + 1])
        if rank < len(bits) - 1:
            copies[reached] = [1 << (-(-widest // PART) - 1).bit_length()] * (rank - before)
    return copies


def _fewest_spares(bits: Sequence[int | None], start: int) -> tuple[int, ...] | None:
    """The ranks of fewest bits that are in reach of each other; or None.

    `start` is what the first one must be in reach of. A rank without bits must not be taken. The
    `ready` that comes to the last rank has logic of its own, which counts as a rank.
    """
    best: dict[int, tuple[int, tuple[int, ...]]] = {start: (0, ())}
    for rank, held in enumerate([*bits, None, 0]):
        options = [best[before] for before in range(rank - REACH, rank) if before in best]
        if options and held is not None:
            total, ranks = min(options)
            best[rank] = (total + held, (*ranks, rank))
    end = best.get(len(bits) + 1)
    return end[1][:-1] if end else None


def _fewest_bits(
    sums: Sequence[int], widths: Sequence[int], ranks: int, depth: int
) -> tuple[int, tuple[int, ...]] | None:
    """Fewest bits and places of ranks between steps with no stretch above `depth`; or None.

    `sums` are the depths from the first step to each border between steps, both ends included.
    """
    end = len(sums) - 1
    reached: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    for _ in range(ranks):
        further: dict[int, tuple[int, tuple[int, ...]]] = {}
        for start, (bits, places) in reached.items():
            for border in range(start + 1, end):
                if sums[border] - sums[start] > depth:
                    break
                option = (bits + widths[border], (*places, border - 1))
                further[border] = min(option, further.get(border, option))
        reached = further
    return min(
        (state for border, state in reached.items() if sums[end] - sums[border] <= depth),
        default=None,
    )
