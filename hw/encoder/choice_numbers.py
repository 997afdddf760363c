"""The numbers of an encoder that chooses the scale, and the fields between its steps."""

from dataclasses import dataclass
from typing import Any

from axs6.golden.formats import FP32, BlockFormat, Element, ScaleChoice
from axs6.hw.core.layouts import outer_names
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.encoder.choice_lanes import fixed_bits, fixed_layout
from axs6.hw.encoder.format_lanes import sides
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scheme import Scheme

Fields = dict[str, Any]

SHIFTS = (1, 0, 2)
"""Places by which values go to the right under an exponent, the one before it and the one after."""


def unit_exponent(element: Element) -> int:
    """Exponent of an element's unit."""
    return element.emin - element.fraction_bits


@dataclass(frozen=True)
class MeasuredExponents(Scheme):
    """A scheme whose lanes keep what merits need, under the smallest candidate."""

    @property
    def kept_bits(self) -> int:
        """Bits of a value under the smallest of the candidates."""
        return fixed_bits(self.element) + max(SHIFTS)

    @property
    def right(self) -> int:
        """Places by which a value at the place of its block goes to the right."""
        at_top = self.top - unit_exponent(self.element) + max(SHIFTS) - SHIFTS[0]
        return self.element.integer_bits + max(SHIFTS) - at_top

    @property
    def distance_bits(self) -> int:
        """Bits of distances: up to what is 0 under all candidates, and one place more."""
        most = self.kept_bits + 2
        return self.place_bits if self.exceeds else min(self.place_bits, most.bit_length())


@dataclass(frozen=True)
class MeasuredReals(Scaled):
    """The numbers of an encoder under real scales whose lanes keep what merits need."""

    @property
    def kept_bits(self) -> int:
        """Bits of a value over its scale."""
        return fixed_bits(self.element)

    @property
    def right(self) -> int:
        """Places by which a value of the exponent `top` goes to the right."""
        at_top = self.top - unit_exponent(self.element) + self.factor_bits
        return self.element.integer_bits - at_top


Measured = MeasuredExponents | MeasuredReals


def candidates(fmt: BlockFormat) -> int:
    """Candidates of a format."""
    return 2 if fmt.choice is ScaleChoice.FOUR_OVER_SIX else len(SHIFTS)


def common_fields(scheme: Measured) -> Fields:
    """Fields of the last steps: outer scales, codes of candidates, signs, and what is no number."""
    outer = dict.fromkeys(outer_names(scheme.fmt), FP32.width)
    scale = scheme.fmt.levels[0].scale
    lanes = ArrayLayout(StructLayout(sides(scheme)), scheme.lanes)
    codes = ArrayLayout(scale.bits, candidates(scheme.fmt))
    return {**outer, "scales": codes, "sides": lanes, "invalid": 1, "lost": 1}


def measured_fields(scheme: Measured) -> Fields:
    """The common fields, and the values under the candidates, or under the smallest one."""
    one = ArrayLayout(fixed_layout(scheme.kept_bits), scheme.lanes)
    values = one if isinstance(scheme, Scheme) else ArrayLayout(one, candidates(scheme.fmt))
    return {**common_fields(scheme), "measured": values}
