"""Lanes of an encoder of any format, in words: from a value and the place of its block to a code.

With k the distance of a value's place from its block's, and c by how much the scale is larger than
that place asks for, the value over its scale has the exponent top - k - c. From emin on that says
the exponent field of a floating-point element and the significand keeps its place; below emin, and
in elements with a fixed point, the significand goes to the right.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Float, TwosComplement
from axs6.golden.rounding import Rounding
from axs6.hw.core.layouts import float_layout
from axs6.hw.core.structures import StructLayout
from axs6.hw.encoder.lane_numbers import LaneNumbers
from axs6.hw.encoder.scheme import Scheme
from axs6.hw.fp32.normal import normalised


def special_names(scheme: LaneNumbers) -> list[str]:
    """Special values of a lane, beside the sign."""
    if not scheme.propagates:
        return ["infinite"]
    element = scheme.element
    return ["nan"] * element.has_nan + ["infinite"] * element.has_infinity


def passing_lane(scheme: LaneNumbers) -> dict[str, Any]:
    """Data that bypasses the search for the block's place: the kept bits of the significand."""
    sticky = {"sticky": 1} if scheme.sticky and scheme.cuts else {}
    return {"kept": scheme.kept_bits, **sticky, **sides(scheme)}


def sides(scheme: LaneNumbers) -> dict[str, Any]:
    """A lane's sign, that of its code, and its specials."""
    return {"sign": 1, **dict.fromkeys(special_names(scheme), 1)}


def raising_bits(scheme: Scheme) -> int:
    """Bits of `raises`: whether a largest value adds 1 to the code, and whether to the code 0."""
    never = 2 << scheme.dtype.fraction_bits
    if scheme.raised_from == never:
        return 0
    return 1 + (scheme.first_raised_from != scheme.raised_from)


def aligned_lane(scheme: LaneNumbers) -> StructLayout:
    """A significand and how far it goes to the right, and what stands above it in the code."""
    drop = (scheme.farthest + 1).bit_length()
    return StructLayout({"drop": drop, **above(scheme), **passing_lane(scheme)})


def shifted_lane(scheme: LaneNumbers) -> StructLayout:
    """A magnitude before it is rounded."""
    sticky = {"sticky": 1} if scheme.sticky else {}
    return StructLayout({**above(scheme), "kept": scheme.kept_bits, **sticky, **sides(scheme)})


def above(scheme: LaneNumbers) -> dict[str, Any]:
    """The exponent field of a floating-point element, and whether a value is above the largest."""
    field = {"field": (scheme.normal + 1).bit_length()} if scheme.normal > 0 else {}
    return field | ({"over": 1} if scheme.exceeds else {})


class UnpackSignificandLane(wiring.Component):
    """Place and significand of one value, and what it is if it is special."""

    verilog_name = "unpack_lane"

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        raising = raising_bits(scheme)
        super().__init__(
            {
                "value": In(scheme.dtype.width),
                "place": Out(scheme.place_bits),
                "counts": Out(1),
                "passed": Out(StructLayout(passing_lane(scheme))),
                "special": Out(1),
                "lost": Out(1),
                **({"raises": Out(raising)} if raising else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the normaliser and the tests."""
        m = Module()
        scheme, o = self._scheme, self.passed
        x = data.View(float_layout(scheme.dtype), self.value)
        special, fraction = x.exponent.all(), x.fraction.any()
        nan, infinite = Signal(), Signal()
        nonzero = x.exponent.any() | fraction
        m.d.comb += [nan.eq(special & fraction), infinite.eq(special & ~fraction)]
        significand, place = normalised(m, x, scheme.depth)
        counts, sign = ~nan, x.sign
        if scheme.propagates:
            counts = ~special
        else:
            place = Mux(infinite, scheme.raw(scheme.infinite), place)
        if not scheme.counts_zeros:
            counts &= nonzero
        sign = x.sign & ~nan
        if not scheme.element.signed_zero:
            sign &= nonzero
        specials = {"nan": nan, "infinite": infinite}
        kept = special_names(scheme)
        lost = [each for name, each in specials.items() if name not in kept]
        m.d.comb += [
            self.place.eq(place),
            self.counts.eq(counts),
            self.special.eq(special),
            self.lost.eq(Cat(lost).any() if scheme.propagates else 0),
            o.sign.eq(sign),
            *(o[name].eq(specials[name]) for name in kept),
        ]
        self._raise(m, significand, infinite)
        keep(m, scheme, significand, o)
        return m

    def _raise(self, m: Module, significand: Value, infinite: Value) -> None:
        scheme = self._scheme
        if not raising_bits(scheme):
            return
        found = Cat(
            significand >= least
            for least in (scheme.raised_from, scheme.first_raised_from)[: raising_bits(scheme)]
        )
        if not scheme.propagates:
            ones = Const(-scheme.infinite_raises, len(found))
            found = Mux(infinite, ones, found)
        m.d.comb += self.raises.eq(found)


def keep(m: Module, scheme: LaneNumbers, significand: Value, passed: Any) -> None:
    """The highest bits of the product with the element's divisor, and whether more follow."""
    divisor = scheme.element.divisor
    product = Signal(len(significand) + scheme.factor_bits)
    m.d.comb += product.eq(significand * divisor if divisor > 1 else significand)
    left = len(product) - scheme.kept_bits
    kept = product[left:] if left >= 0 else Cat(Const(0, -left), product)
    m.d.comb += passed.kept.eq(kept)
    if "sticky" in passing_lane(scheme):
        m.d.comb += passed.sticky.eq(product[:left].any())


def align(
    m: Module, scheme: LaneNumbers, total: Value, close: Value, passed: Any, aligned: Any
) -> None:
    """How far a significand goes to the right, and the exponent field.

    Args:
        m: the module.
        scheme: the numbers of the lane.
        total: distance of the value's place from that of a value with the exponent `scheme.top`.
        close: whether the value counts; it is 0 otherwise.
        passed: fields of `passing_lane`.
        aligned: those of `aligned_lane`, which are driven.
    """
    below = total - scheme.normal
    far = Signal.like(below, name="far")
    m.d.comb += [
        far.eq(below),
        aligned.drop.eq(Mux(far < 0, 0, far)),
        *(aligned[name].eq(passed[name]) for name in passing_lane(scheme)),
    ]
    with m.If(~close | (far > scheme.farthest)):
        m.d.comb += aligned.drop.eq(scheme.farthest + 1)
    if scheme.normal > 0:
        some = close & passed.kept[-1]
        with m.If(some & (far <= 0)):
            m.d.comb += aligned.field.eq(scheme.normal + 1 - total)
    if scheme.exceeds:
        m.d.comb += aligned.over.eq(close & (total < min(scheme.normal, 0)))


class AlignLane(wiring.Component):
    """How far a significand goes to the right, and the exponent field.

    A lane that is not `close` is 0.
    """

    def __init__(self, scheme: Scheme, change: Shape) -> None:
        self._scheme = scheme
        self._changes = change.width > 0
        super().__init__(
            {
                "distance": In(scheme.distance_bits),
                "close": In(1),
                **({"change": In(change)} if change.width else {}),
                "passed": In(StructLayout(passing_lane(scheme))),
                "aligned": Out(aligned_lane(scheme)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the adder and the comparisons."""
        m = Module()
        total = self.distance + self.change if self._changes else self.distance
        align(m, self._scheme, total, self.close, self.passed, self.aligned)
        return m


class ShiftSignificandLane(wiring.Component):
    """The significand at its distance."""

    verilog_name = "shift_lane"

    def __init__(self, scheme: LaneNumbers) -> None:
        self._scheme = scheme
        super().__init__(
            {"aligned": In(aligned_lane(scheme)), "shifted": Out(shifted_lane(scheme))}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the shifter, a stage for each bit of the distance, largest first."""
        m = Module()
        scheme, i, o = self._scheme, self.aligned, self.shifted
        word: Value = i.kept
        lost = [i.sticky] if "sticky" in passing_lane(scheme) else []
        for bit in reversed(range(len(i.drop))):
            size, moves = 1 << bit, i.drop[bit]
            if scheme.sticky:
                lost.append(word[:size].any() & moves)
            shifted = Signal(len(word), name=f"shifted{size}")
            m.d.comb += shifted.eq(Mux(moves, word >> size, word))
            word = shifted
        names = (*above(scheme), *sides(scheme))
        m.d.comb += [*(o[name].eq(i[name]) for name in names), o.kept.eq(word)]
        if scheme.sticky:
            m.d.comb += o.sticky.eq(Cat(lost).any())
        return m


class RoundMagnitudeLane(wiring.Component):
    """The code: the magnitude rounded and held to the largest, its sign, and specials."""

    verilog_name = "round_lane"

    def __init__(self, scheme: LaneNumbers) -> None:
        self._scheme = scheme
        random = scheme.rounding is Rounding.STOCHASTIC
        super().__init__(
            {
                "shifted": In(shifted_lane(scheme)),
                **({"random": In(scheme.random_bits)} if random else {}),
                "code": Out(scheme.element.width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the adder, the clamp and the selection of specials."""
        m = Module()
        scheme, x, element = self._scheme, self.shifted, self._scheme.element
        word: Value = x.kept
        if scheme.normal > 0:
            word = Cat(x.kept[:-1], x.field)
        rounded = Signal(len(word) + 1 - scheme.below)
        m.d.comb += rounded.eq(self._rounded(word))
        largest = Const(element.largest_code, element.width)
        magnitude: Value = rounded
        beyond = [rounded > element.largest_code] if scheme.clamps else []
        beyond += [x.over] if scheme.exceeds else []
        beyond += [] if scheme.propagates else [x.infinite]
        if beyond:
            magnitude = Mux(Cat(beyond).any(), largest, rounded)
        held = Signal(element.width - 1)
        m.d.comb += [held.eq(magnitude), self.code.eq(self._signed(held))]
        if scheme.propagates:
            self._add_specials(m)
        return m

    def _rounded(self, word: Value) -> Value:
        scheme, x = self._scheme, self.shifted
        if scheme.rounding is Rounding.STOCHASTIC:
            return word + self.random >> scheme.below
        if scheme.rounding is Rounding.TOWARD_ZERO:
            return word
        if not scheme.sticky:
            return word + 1 >> 1  # up: ties go away from 0, or halfway is at 1/2 alone
        return word[1:] + (word[0] & (word[1] | x.sticky))

    def _signed(self, magnitude: Value) -> Value:
        sign = self.shifted.sign
        if isinstance(self._scheme.element, TwosComplement):
            # truncates: the complement of 0 is 0, with a carry
            return (Cat(magnitude, Const(0, 1)) ^ sign.replicate(len(magnitude) + 1)) + sign
        if not self._scheme.element.has_negative_zero:
            sign = sign & magnitude.any()
        return Cat(magnitude, sign)

    def _add_specials(self, m: Module) -> None:
        element, x = self._scheme.element, self.shifted
        names = special_names(self._scheme)
        if not names:
            return
        assert isinstance(element, Float)
        if "infinite" in names:
            with m.If(x.infinite):
                m.d.comb += self.code.eq(Cat(Const(element.infinity, element.width - 1), x.sign))
        with m.If(x.nan):
            m.d.comb += self.code.eq(element.quiet_nan)
