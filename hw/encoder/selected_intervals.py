"""Intervals of magnitudes that both elements of a selection round alike."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import Element, Selected, ValueTable
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.golden.quantise import Quantiser
from axs6.golden.rounding import Rounding
from axs6.golden.tables import Entries, sides
from axs6.hw.encoder.choice_lanes import fixed_bits

Pair = tuple[int, int]
"""Of both elements, of both signs, or of both ends."""


@dataclass(frozen=True)
class Interval:
    """Magnitudes of a sign that lie between two neighbouring bounds.

    Args:
        codes: in both elements.
        counts: their magnitudes, in units of the selection.
        ends: the smallest and the largest number in it, as `axs6.golden.choice` counts magnitudes.
    """

    codes: Pair
    counts: Pair
    ends: Pair

    @property
    def change(self) -> int:
        """By how much the second count is larger."""
        return self.counts[1] - self.counts[0]

    @property
    def middle(self) -> int:
        """The sum of both."""
        return sum(self.counts)

    @property
    def distances(self) -> Pair:
        """Twice the number less the sum, at both ends."""
        low, high = (2 * end - (self.middle << MERIT_FRACTION) for end in self.ends)
        return low, high


def intervals(element: Selected) -> tuple[list[int], list[Interval], list[Interval]]:
    """The bounds, and between them the intervals of values from 0 up, and of those from 0 down.

    Bounds are counts of half units, as those of `axs6.golden.tables.Entries`; intervals are those
    below the first bound, from it on, and so on.
    """
    signs = [[_in_units(part, sign, element) for part in element.parts] for sign in (False, True)]
    bounds = np.unique(np.concatenate([own for parts in signs for _, own in parts]))
    starts = [0, *(x >> 1 << MERIT_FRACTION - 1 for x in bounds.tolist())]
    ends = list(zip(starts, [*starts[1:], (1 << fixed_bits(element)) - 1], strict=True))
    plus, minus = (_intervals(parts, bounds, ends) for parts in signs)
    return bounds.tolist(), plus, minus


Side = tuple[Entries, NDArray[np.uint64]]
"""Entries of one sign, and the bounds between them."""


def _intervals(parts: list[Side], bounds: NDArray[np.uint64], ends: list[Pair]) -> list[Interval]:
    least = np.concatenate([np.zeros(1, np.uint64), bounds])
    found = [(side, np.searchsorted(own, least, "right")) for side, own in parts]
    codes = zip(*(side.codes[places].tolist() for side, places in found), strict=True)
    counts = zip(*(side.counts[places].tolist() for side, places in found), strict=True)
    return [Interval(*each) for each in zip(codes, counts, ends, strict=True)]


def _in_units(part: Element, negative: bool, element: Selected) -> Side:
    """The entries of a sign of an element, in units of a selection."""
    side, times = _entries(part, negative), np.uint64(part.unit / element.unit)
    bounds, one = side.bounds(Rounding.NEAREST), np.uint64(1)
    beyond = np.uint64(0) if part.ties_away else bounds & one
    wide = (bounds >> one) * times << one | beyond
    return Entries(side.counts * times, side.codes), wide


def _entries(element: Element, negative: bool) -> Entries:
    """The magnitudes of a sign in an element's units, from 0 up, and their codes."""
    if isinstance(element, ValueTable):
        return sides(element)[negative]
    magnitudes = np.arange(element.largest_code + 1, dtype=np.uint8)
    quantiser = Quantiser((element, element), Rounding.NEAREST, 0)
    (codes,) = quantiser.signed(magnitudes[None], np.full((1, len(magnitudes)), negative))
    return Entries(element.integers[magnitudes].astype(np.uint64), codes)
