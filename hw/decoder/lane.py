"""One lane of the decoder: from a code and its block's exponent to a floating-point value.

The value of a magnitude m of n bits, over the scale, is 0.mmm... with the n bits of m for ever;
place p is worth 2^-(p + 1). A normal value with z leading zeros has the fraction from place z + 1
on and the exponent field E - 1 - z. Where that field would be below 1, the value is subnormal and
its fraction starts at place E - 1. So the fraction starts at the smaller of the two places, and is
n bits, turned and repeated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Float, SignMagnitude
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.formats.modes import HIGH_CODE, LOW_CODE
from axs6.hw.core.layouts import code_layout_of
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of, chosen

LOW_BITS = 3
"""Bits of an exponent field that differ between all places; the others differ by a borrow."""


@dataclass(frozen=True)
class LaneKind:
    """The codes that a lane takes, whose magnitudes are given with their highest bits aligned.

    Args:
        code: the widest code.
        narrow: the code of one bit less that it takes too, if any.
    """

    code: SignMagnitude
    narrow: SignMagnitude | None = None

    @property
    def width(self) -> int:
        """Bits of the widest magnitude."""
        return self.code.magnitude_bits

    @property
    def layout(self) -> data.StructLayout:
        """Fields of a code; the lowest bit of a narrow magnitude is 0."""
        return code_layout_of(self.code)

    @property
    def turned_layout(self) -> data.StructLayout:
        """A code's fraction and exponent field.

        The first places of the fraction, the first one lowest; the exponent field; the sign; and
        whether m is the largest, a power of two.
        """
        return StructLayout({"places": self.width, "field": AXS6_SCALE.bits, "sign": 1, "power": 1})


DENSE_KIND = LaneKind(AXS6_ELEMENT)


def lane_kinds(every_mode: bool) -> list[LaneKind]:
    """Kinds of lanes, which take turns, for dense blocks or for blocks of every mode."""
    if not every_mode:
        return [DENSE_KIND]
    codes = [sorted({AXS6_ELEMENT, x}, key=lambda c: -c.width) for x in (HIGH_CODE, LOW_CODE)]
    return [LaneKind(*pair) for pair in codes]


def aligned(kinds: Sequence[LaneKind], codes: Sequence[Value], precise: Value) -> list[Value]:
    """Codes of all lanes of a block of any mode, narrow ones with a zero below."""
    zero = Const(0, 1)
    wide = kinds[0].layout.size
    found = []
    for even, odd in zip(codes[::2], codes[1::2], strict=True):
        pair = Cat(even, odd)
        found.append(Mux(precise, pair[:wide], Cat(zero, even)))
        found.append(Mux(precise, Cat(zero, pair[wide:]), odd))
    return found


def with_narrow(
    kinds: Sequence[LaneKind], block: Any, lanes: Iterable[Mapping[str, ValueLike]]
) -> Iterable[Mapping[str, ValueLike]]:
    """Connections of lanes, with that of the port `narrow` where lanes have one."""
    if len(kinds) == 1:
        return lanes
    return [
        {**lane, "narrow": block.high_precision ^ (kind.narrow == AXS6_ELEMENT)}
        for lane, kind in zip(lanes, cycle(kinds), strict=False)
    ]


def places_of(kinds: Sequence[LaneKind]) -> int:
    """Places at which a fraction may start: 1 to n, and 0, which stands for a power of two."""
    return max(kind.width for kind in kinds) + 1


ends_layout = StructLayout({"lowest": 1, "highest": 1})
"""Whether E is 0, and whether it is 255."""


def scale_layout(places: int) -> data.StructLayout:
    """Tables of the shared exponent E for all lanes.

    A fraction from place k on has the exponent field E - k where `reaches[k - 1]`, E > k: `low[k]`
    and `high`, or `high_less_one` where `borrow[k - 1]`.
    """
    return StructLayout(
        {
            "low": ArrayLayout(LOW_BITS, places),
            "borrow": places - 1,
            "high": AXS6_SCALE.bits - LOW_BITS,
            "high_less_one": AXS6_SCALE.bits - LOW_BITS,
            "reaches": places - 1,
            "ends": ends_layout,
        }
    )


def repeated_bits(places: int) -> int:
    """Bits of the tables that repeat others.

    Bit b of E - k has period 2^(b + 1) in k, but for k = 0, which the highest exponent changes;
    and the borrow of E - 4 is bit 2 of it.
    """
    return 1 + sum(max(0, places - 1 - (2 << bit)) for bit in range(LOW_BITS))


class TurnLane(wiring.Component):
    """The exponent field of a value, and the places that its fraction repeats.

    Args:
        kind: codes that the lane takes; if there are two, `narrow` says which one is there.
        places: of the tables.
    """

    def __init__(self, kind: LaneKind, places: int) -> None:
        self._kind = kind
        ports = {
            "scale": In(scale_layout(places)),
            "code": In(kind.layout),
            "turned": Out(kind.turned_layout),
        }
        super().__init__(ports | ({"narrow": In(1)} if kind.narrow else {}))

    def elaborate(self, platform: Any) -> Module:
        """Build the search for the first place and the two selections that it makes."""
        m = Module()
        magnitude, scale, turned = self.code.magnitude, self.scale, self.turned
        width = self._kind.width
        power = magnitude.all()
        if self._kind.narrow:
            power = magnitude[1:].all() & (magnitude[0] | self.narrow)
        zeros = [~magnitude[-k:].any() if k else Const(1, 1) for k in range(width + 1)]
        reached = [zeros[place] & scale.reaches[place] for place in range(width)]
        normal = [here & magnitude[-place] for place, here in enumerate(reached, 1)]
        normal[0] = normal[0] & ~power
        uses = [power, *normal]
        borrow = Cat(Const(0, 1), scale.borrow[:width])
        borrows, stays = (Cat(uses) & borrow).any(), (Cat(uses) & ~borrow).any()
        highs = [scale.high_less_one, scale.high]
        lows = [scale.low[place] for place in range(width + 1)]
        limits = [~scale.ends.lowest, *reached, Const(0, 1)]
        starts = [here & ~further for here, further in pairwise(limits)]
        places = self._turned(magnitude, starts)
        if self._kind.narrow:
            # The lowest place is not looked at where the code is narrow.
            short = Cat(self._turned(magnitude[1:], starts), Const(0, 1))
            places = Mux(self.narrow, short, places)
        m.d.comb += [
            turned.sign.eq(self.code.sign),
            turned.power.eq(power),
            turned.field.eq(Cat(chosen(uses, lows), chosen([borrows, stays], highs))),
            turned.places.eq(places),
        ]
        return m

    def _turned(self, magnitude: Value, starts: Sequence[Value]) -> Value:
        """Places from the first one of the fraction on.

        `starts[k]` says that it is place k, the last of all places where E is 0.
        """
        width = len(magnitude)
        uses: list[list[Value]] = [[] for _ in range(width)]
        for place, start in enumerate(starts):
            uses[place % width].append(start)
        uses[-1].append(self.scale.ends.lowest)
        turns = [magnitude.rotate_left(place)[::-1] for place in range(width)]
        return chosen([any_of(each) for each in uses], turns)


class RoundTurnedLane(wiring.Component):
    """The value, rounded to nearest even.

    As many places in a row as m has bits are never all ones unless m is the largest, so a carry
    ends within that many of the lowest bits; and the places go on for ever, so there is no tie.

    Args:
        dtype: format of the value.
        kind: as in `TurnLane`.
    """

    verilog_name = "round_lane"

    def __init__(self, dtype: Float, kind: LaneKind) -> None:
        self._dtype = dtype
        self._kind = kind
        ports = {
            "ends": In(ends_layout),
            "turned": In(kind.turned_layout),
            "value": Out(dtype.width),
        }
        super().__init__(ports | ({"narrow": In(1)} if kind.narrow else {}))

    def elaborate(self, platform: Any) -> Module:
        """Build the increment and the powers of two."""
        m = Module()
        turned, ends = self.turned, self.ends
        width, count = self._kind.width, self._dtype.fraction_bits
        exact = turned.power & ~ends.highest
        places = Signal(width)
        low = Signal(width)

        def place(index: int) -> Value:
            if not self._kind.narrow:
                return places[index % width]
            return Mux(self.narrow, places[index % (width - 1)], places[index % width])

        fraction = [place(index) for index in reversed(range(count))]
        up = place(count) & ~turned.power
        top = Mux(ends.lowest, exact, fraction[-1])
        m.d.comb += [
            places.eq(turned.places & ~exact.replicate(width)),
            low.eq(Cat(fraction[:width]) + up),
            self.value.eq(Cat(low, fraction[width:-1], top, turned.field, turned.sign)),
        ]
        return m
