"""Where ranks of registers go among the steps of a pipeline."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations


@dataclass(frozen=True)
class Ranks:
    """Ranks of registers among steps.

    `places` are the indices of the steps after which a rank stands, -1 for one in front of the
    first; `depth` is that of the deepest stretch between ranks, and `bits` what all ranks hold.
    """

    places: tuple[int, ...]
    depth: int
    bits: int


def place_registers(levels: Sequence[int], widths: Sequence[int], stages: int) -> Ranks:
    """Place `stages` ranks of registers among steps.

    One stands after the last step. The others go between steps: so that the deepest stretch is
    least, and where that leaves a choice, so that they hold the fewest bits. Where there are more
    of them than places, one stands in front of the first step.

    Args:
        levels: depth of each step.
        widths: bits in front of the first step, and after each.
        stages: number of ranks.

    Raises:
        ValueError: there are fewer places than ranks.
    """
    check_stages(stages, len(levels) + 1)
    sums = list(accumulate(levels, initial=0))
    if not stages:
        return Ranks((), sums[-1], 0)
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
    return Ranks(places, depth, bits + widths[-1] + ahead * widths[0])


LONG = 8
"""Ranks from which `ready` may be slower than what lies between ranks."""

REACH = 2
"""Ranks that `ready` passes in a cycle in a long pipeline."""


def with_spares(ranks: int, registered: bool) -> range:
    """Which of so many ranks have a spare register: every second one of a long pipeline.

    They are counted from the end, where ranks tend to hold fewer bits, or with `registered` from
    the first, whose `ready` then is that of the pipeline.
    """
    if ranks < LONG:
        return range(0)
    return range(0, ranks, REACH) if registered else range(ranks - 1, 0, -REACH)


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


def check_stages(stages: int, most: int) -> None:
    """Raise ValueError unless `stages` is an integer from 0 to `most`."""
    if isinstance(stages, bool) or not isinstance(stages, int) or not 0 <= stages <= most:
        raise ValueError(f"stages must be an integer from 0 to {most}, not {stages!r}")
