"""The last steps of an encoder that chooses the scale, the same under all kinds of scales.

They give the codes and the merit of each candidate, and pick the best.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from axs6.golden.formats import Real, TwosComplement
from axs6.hw.core.layouts import encoded_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import balanced
from axs6.hw.encoder.choice_lanes import RateLane, fixed_bits, term_bits
from axs6.hw.encoder.choice_numbers import (
    SHIFTS,
    Measured,
    candidates,
    common_fields,
    measured_fields,
)
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scheme import Scheme


class Rate(Step):
    """`RateLane` for each lane of each candidate."""

    def __init__(self, scheme: Measured) -> None:
        self._scheme = scheme
        element, n = scheme.element, candidates(scheme.fmt)
        o = {
            **common_fields(scheme),
            "magnitudes": ArrayLayout(ArrayLayout(element.width - 1, scheme.lanes), n),
            "terms": ArrayLayout(ArrayLayout(term_bits(element), scheme.lanes), n),
        }
        super().__init__(StructLayout(measured_fields(scheme)), StructLayout(o), levels=45)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = []
        for k in range(candidates(self._scheme.fmt)):
            for index in range(self._scheme.lanes):
                o = {"magnitude": self.o.magnitudes[k][index], "term": self.o.terms[k][index]}
                lanes.append({"value": self._value(m, k, index), **o})
        add_lanes(m, platform, [partial(RateLane, self._scheme.element)], lanes)
        m.d.comb += [self.o[name].eq(self.i[name]) for name in common_fields(self._scheme)]
        return m

    def _value(self, m: Module, k: int, index: int) -> Value:
        """A value under a candidate."""
        if isinstance(self._scheme, Scaled):
            value: Value = self.i.measured[k][index].as_value()
            return value
        x, bits = self.i.measured[index], fixed_bits(self._scheme.element)
        shift = SHIFTS[k]
        sticky = x.sticky | x.fixed[:shift].any() if shift else x.sticky
        over = x.over | x.fixed[bits + shift :].any() if shift < max(SHIFTS) else x.over
        return Cat(x.fixed[shift : bits + shift], sticky, over)


class SumTerms(Step):
    """The merits in units of the scales."""

    verilog_name = "total"

    def __init__(self, scheme: Measured) -> None:
        self._scheme = scheme
        i = Rate(scheme).o.shape()
        bits = term_bits(scheme.element) + (scheme.lanes - 1).bit_length()
        totals = ArrayLayout(bits, candidates(scheme.fmt))
        o = {**{k: x for k, x in i.members.items() if k != "terms"}, "totals": totals}
        super().__init__(i, StructLayout(o), levels=8 * (scheme.lanes - 1).bit_length())

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        names = [name for name in self.o.shape().members if name != "totals"]
        m.d.comb += [self.o[name].eq(self.i[name]) for name in names]
        for total, terms in zip(self.o.totals, self.i.terms, strict=True):
            m.d.comb += total.eq(balanced(list(terms), lambda a, b: a + b))
        return m


class Pick(Step):
    """The candidate of the first of the largest merits, and its block.

    Where a value is no number and the block's scale or one above it is NaN, codes are 0.
    """

    def __init__(self, scheme: Measured) -> None:
        self._scheme = scheme
        o = encoded_layout(scheme.lanes, fmt=scheme.fmt)
        super().__init__(SumTerms(scheme).o.shape(), o, levels=60)

    def elaborate(self, platform: Any) -> Module:
        """Build the squares of scales, the comparisons and the selection."""
        m = Module()
        i, fmt, element = self.i, self._scheme.fmt, self._scheme.element
        merits = self._merits(m)
        best, most = Const(0, len(merits).bit_length()), merits[0]
        for k in range(1, len(merits)):
            better, chosen, larger = Signal(), Signal.like(best), Signal.like(most)
            m.d.comb += [
                better.eq(merits[k] > most),
                chosen.eq(Mux(better, k, best)),
                larger.eq(Mux(better, merits[k], most)),
            ]
            best, most = chosen, larger
        block, finest = self.o.block, fmt.levels[0].scale
        for index, code in enumerate(block.codes):
            magnitude = Signal(element.width - 1, name=f"magnitude{index}")
            magnitudes = [each[index] for each in i.magnitudes]
            m.d.comb += magnitude.eq(_selected(best, magnitudes))
            side = i.sides[index]
            if not self._scheme.propagates:
                magnitude = Mux(side.infinite, element.largest_code, magnitude)
            word = Cat(magnitude[: element.width - 1], side.sign)
            if isinstance(element, TwosComplement):
                word = (Cat(magnitude, Const(0, 1)) ^ side.sign.replicate(len(word))) + side.sign
            m.d.comb += code.eq(Mux(i.lost, 0, word))
        names = [name for name in block.shape().members if name != "codes"]
        levels = dict(zip(names, fmt.levels[::-1], strict=True))
        nan = [name for name, level in levels.items() if level.scale.nan_code is not None][-1:]
        for name, level in levels.items():
            value = _selected(best, list(i.scales)) if level.scale is finest else i[name]
            if name in nan:
                value = Mux(i.lost, level.scale.nan_code, value)
            m.d.comb += block[name].eq(value)
        m.d.comb += self.o.invalid.eq(i.invalid)
        return m

    def _merits(self, m: Module) -> list[Value]:
        """Merits in one unit."""
        i, scale = self.i, self._scheme.fmt.levels[0].scale
        bits = self._scheme.fmt.merit_bits
        merits = [Signal(bits, name=f"merit{k}") for k in range(len(i.totals))]
        if isinstance(self._scheme, Scheme):
            code = i.scales[0]
            valid = [Const(1, 1), *(each != code for each in list(i.scales)[1:])]
            for merit, total, shift, some in zip(merits, i.totals, SHIFTS, valid, strict=True):
                m.d.comb += merit.eq(Mux(some, total << 2 * shift, 0))
            return merits
        fraction = scale.dtype.fraction_bits if isinstance(scale, Real) else 0
        least = i.scales[0 if len(merits) == 2 else 1]
        for k, (merit, total, code) in enumerate(zip(merits, i.totals, i.scales, strict=True)):
            counted: Value = code
            if isinstance(scale, Real):
                above = code[fraction:] != least[fraction:]
                significand = Cat(code[:fraction], Const(1, 1))
                counted = Mux(above, significand << 1, significand)
            square = Signal(2 * len(counted), name=f"square{k}")
            m.d.comb += [square.eq(counted * counted), merit.eq(total * square)]
        return merits


def _selected(best: Value, values: Sequence[Value]) -> Value:
    found = values[0]
    for k, value in enumerate(values[1:], 1):
        found = Mux(best == k, value, found)
    return found
