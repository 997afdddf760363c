"""The last lane of an encoder of a table: the code of a magnitude by comparisons."""

from collections.abc import Callable
from typing import Any

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from axs6.golden.formats import ValueTable
from axs6.golden.rounding import Rounding
from axs6.golden.tables import Entries, sides
from axs6.hw.core.trees import any_of, chosen
from axs6.hw.encoder.format_lanes import shifted_lane
from axs6.hw.encoder.lane_numbers import LaneNumbers


class RoundTableLane(wiring.Component):
    """The code of the entry that a value is rounded to, of its sign or 0.

    A magnitude in units is compared with the bound of each entry, both signs at once: the bounds
    are those of the sign. With random words they are the entries, and a word w of b bits takes the
    next entry where the rest is at least gap * (2^b - w), in 2^-b units.
    """

    verilog_name = "round_lane"

    def __init__(self, scheme: LaneNumbers) -> None:
        self._scheme = scheme
        self._random = scheme.rounding is Rounding.STOCHASTIC
        super().__init__(
            {
                "shifted": In(shifted_lane(scheme)),
                **({"random": In(scheme.random_bits)} if self._random else {}),
                "code": Out(scheme.element.width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the comparisons and the selections."""
        m = Module()
        scheme, x = self._scheme, self.shifted
        assert isinstance(scheme.element, ValueTable)
        plus, minus = _alike(scheme.element)

        def of_sign(numbers: Callable[[Entries], NDArray[Any]]) -> list[Value]:
            pairs = zip(numbers(minus).tolist(), numbers(plus).tolist(), strict=True)
            return [Mux(x.sign, *pair) for pair in pairs]

        codes = of_sign(lambda side: side.codes)
        beyond = [x[name] for name in ("over", "infinite") if name in x.shape().members]
        count = Cat(x.sticky, x.kept) if scheme.sticky else x.kept
        reached = Signal(len(codes) - 1)
        bounds = of_sign(self._bounds)
        m.d.comb += reached.eq(Cat(any_of([count >= bound, *beyond]) for bound in bounds))
        last = [*(~reached & Cat(Const(1, 1), reached[:-1])), reached[-1]]
        code = chosen(last, codes)
        if self._random:
            rest = x.kept - (chosen(last, of_sign(lambda side: side.counts)) << scheme.random_bits)
            gap = chosen(last[:-1], of_sign(lambda side: np.diff(side.counts)))
            up = ~reached[-1] & (rest >= gap * ((1 << scheme.random_bits) - self.random))
            code = Mux(up, chosen(last[:-1], codes[1:]), code)
        m.d.comb += self.code.eq(code)
        return m

    def _bounds(self, side: Entries) -> NDArray[np.uint64]:
        """The least count that gives each entry but the first."""
        scheme = self._scheme
        if scheme.sticky:
            return side.bounds(scheme.rounding)
        return side.counts[1:] << np.uint64(scheme.below)


def _alike(table: ValueTable) -> list[Entries]:
    """The entries from 0 up and those from 0 down, as many of both: the last one is repeated."""
    found = sides(table)
    most = max(len(side.codes) for side in found)
    more = [(0, most - len(side.codes)) for side in found]
    return [
        Entries(np.pad(side.counts, width, "edge"), np.pad(side.codes, width, "edge"))
        for side, width in zip(found, more, strict=True)
    ]
