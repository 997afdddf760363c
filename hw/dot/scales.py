"""The scales of blocks beside the terms of a step, for an accumulator that multiplies sums by them.

The product of both scales is rounded to FP32, as `factor`, while the terms are made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from amaranth.hdl import Const, Module, Value
from amaranth.lib import data

from axs6.golden.formats import FP32, BlockFormat, Exponent, Real, Scale
from axs6.hw.core.codes import number_bits, significand_and_field
from axs6.hw.core.layouts import scale_names
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import any_of
from axs6.hw.dot.promote import Both, factored
from axs6.hw.fp32.multiply import product
from axs6.hw.fp32.normalise import ScaledInteger, normalising_steps


@dataclass(frozen=True)
class BlockScales:
    """The scales of the blocks of two formats that have one for each block.

    Args:
        formats: of a and b.
    """

    formats: tuple[BlockFormat, BlockFormat]

    @property
    def scales(self) -> list[Real | Exponent]:
        """Both kinds of scales."""
        return [_check_scale(fmt.blocked[-1].scale) for fmt in self.formats]

    @property
    def names(self) -> list[str]:
        """The names of their fields."""
        return [scale_names(fmt)[-1] for fmt in self.formats]

    @property
    def i(self) -> data.StructLayout:
        """The codes of both."""
        return StructLayout(
            {side: scale.bits for side, scale in zip("ab", self.scales, strict=True)}
        )

    @property
    def number(self) -> ScaledInteger:
        """Their product, which is rounded."""
        bits = offset = largest = 0
        for scale in self.scales:
            if isinstance(scale, Real):
                bits += scale.dtype.fraction_bits + 1
                offset += scale.dtype.emin - scale.dtype.fraction_bits
                largest += (1 << scale.dtype.exponent_bits) - 1
            else:
                bits += 1
                offset -= scale.bias
                largest += (1 << scale.bits) - 1
        return ScaledInteger(bits, largest + 1, offset - 1, FP32, toward_zero=False)


def _check_scale(scale: Scale) -> Real | Exponent:
    assert isinstance(scale, Real | Exponent)
    return scale


class SplitScales(Step):
    """A pair of steps, and the scales in it once more, as `inner` and `outer`."""

    def __init__(self, pair: data.StructLayout, scales: BlockScales) -> None:
        self._scales = scales
        super().__init__(pair, StructLayout({"inner": pair, "outer": scales.i}), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the fields."""
        m = Module()
        m.d.comb += self.o.inner.eq(self.i)
        for side, name in zip("ab", self._scales.names, strict=True):
            m.d.comb += self.o.outer[side].eq(Value.cast(self.i[side][name]))
        return m


class MultiplyScales(Step):
    """The product of two scales as an integer under an exponent, and whether it is NaN."""

    def __init__(self, scales: BlockScales, view: str) -> None:
        self._scales, self._view = scales, view
        super().__init__(scales.i, scales.number.magnitude_layout, levels=40)

    def elaborate(self, platform: Any) -> Module:
        """Build the multiplier, the adder and the comparisons."""
        m = Module()
        nan, significands, fields = [], [], []
        for code, scale in zip((self.i.a, self.i.b), self._scales.scales, strict=True):
            significand, field = Const(1, 1), code
            if isinstance(scale, Real):
                significand, field = significand_and_field(scale.dtype, code)
            significands.append(significand)
            fields.append(field)
            if scale.nan_code is not None:
                nan.append(number_bits(scale, code) == scale.nan_code)
        m.d.comb += [
            self.o.magnitude.eq(product(m, significands[0], significands[1], self._view)),
            self.o.top.eq(fields[0] + fields[1] + 1),
            self.o.nan.eq(any_of(nan) if nan else 0),
        ]
        return m


class JoinFactor(Step):
    """The term of a step, with the product of the scales in it."""

    def __init__(self, i: data.StructLayout, term: data.StructLayout) -> None:
        self._names = tuple(term.members)
        super().__init__(i, factored(term), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the fields."""
        m = Module()
        m.d.comb += [self.o[name].eq(self.i.inner[name]) for name in self._names]
        m.d.comb += self.o.factor.eq(self.i.outer.value)
        return m


def with_factors(steps: Sequence[Step], scales: BlockScales, view: str) -> list[Step]:
    """Steps from a pair to a term, and beside them those to the product of its scales, `factor`."""
    pair, term = steps[0].i.shape(), steps[-1].o.shape()
    assert isinstance(pair, data.StructLayout)
    assert isinstance(term, data.StructLayout)
    beside = [MultiplyScales(scales, view), *normalising_steps(scales.number)[1:]]
    found: list[Step] = [SplitScales(pair, scales)]
    for one, other in zip_longest(steps, beside):
        found.append(Both(one, other, _members(found[-1])))
    return [*found, JoinFactor(_members(found[-1]), term)]


def _members(step: Step) -> data.StructLayout:
    layout = step.o.shape()
    assert isinstance(layout, data.StructLayout)
    return layout
