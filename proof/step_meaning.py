"""What the fields of a step of an accumulator are worth, by the exact model.

The numbers here come from the definitions of formats and accumulators in
`axs6.golden.check.exact`; only the code that stands for an exponent is the generator's choice.

Source: docs/format.md, "Other accumulators".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from axs6.golden.accumulator import Accumulator as Described
from axs6.golden.accumulator import Alignment
from axs6.golden.accumulator import accumulator as accumulator_of
from axs6.golden.check.exact import formats as exact
from axs6.golden.check.exact.accumulator import ACCUMULATORS, Accumulator, Output
from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import FP32, Format, floor_log2, power
from axs6.golden.check.subjects import definition_of
from axs6.golden.rounding import Rounding
from axs6.hw.core.parameters import (
    STRUCTURE,
    block_format_of,
    block_of,
    formats_of_operands,
)
from axs6.hw.dot.accumulated import dot_terms
from axs6.hw.dot.align import AlignPlan
from axs6.hw.dot.terms import TermPlan
from axs6.proof.scales import largest_field, largest_integer
from axs6.proof.steps import NotShownError

_CHANGES: Final[Mapping[str, Callable[[Described], dict[str, Any]]]] = {
    "reduction": lambda x: {"reduction": x.reduction},
    "fraction": lambda x: {"fraction": x.fraction},
    "alignment": lambda x: {"toward_zero": x.alignment is Alignment.ZERO},
    "least": lambda x: {"least": x.least},
    "fused": lambda x: {"fused": x.fused},
    "output": lambda x: {"output": _output(x), "wide": x.output is None},
    "rounding": lambda x: {"output": _output(x)},
    "promote": lambda x: {"promote": x.promote},
    "term": lambda x: {"joined": x.term or 1},
    "nan": lambda x: {"nan": x.nan},
    "minus_zero": lambda x: {"keeps_minus": x.minus_zero},
    "sum_fraction": lambda x: {"total_fraction": x.sum_fraction},
    "groups": lambda x: {"groups": x.groups},
    "reach": lambda x: {"reach": x.reach},
    "pairwise": lambda x: {"pairs": x.pairwise},
    "flush": lambda x: {"normal": x.flush},
    "scaled": lambda x: {"scaled": x.scaled},
}
"""Fields of the exact model by those of `axs6.golden.accumulator.Accumulator`."""


def _output(x: Described) -> Output:
    fields = Format(x.output.exponent_bits, x.output.fraction_bits) if x.output else FP32
    return Output(fields, x.rounding is Rounding.TOWARD_ZERO)


def exact_accumulator(text: str) -> Accumulator:
    """The exact model's accumulator of a name, with the fields that a string changes."""
    name, *changes = text.split(",")
    found, parsed = ACCUMULATORS[name], accumulator_of(text)
    for change in changes:
        found = found._replace(**_CHANGES[change.partition("=")[0]](parsed))
    return found


@dataclass(frozen=True)
class StepMeaning:
    """A step of an accumulator that aligns.

    A term is an integer v under the sum n of exponent fields, each counted from its least: it is
    v * 2^(n + unit), and its point has the exponent n + exponent. An exponent T has the code
    T - base.

    Args:
        format, block, accumulator: as of `Dot`.
        view: "structure" or "behaviour".

    Raises:
        ValueError: there is no hardware for them, or no step that aligns.
    """

    format: str = "fp8_e4m3"
    block: int | None = None
    accumulator: str = "hopper"
    view: str = STRUCTURE

    def __post_init__(self) -> None:
        terms = dot_terms(self.format, self.block, self.accumulator)
        if terms is None or terms.accumulator.fraction is None:
            raise ValueError(f"{self.accumulator} aligns no terms, and this is about such")

    @cached_property
    def align(self) -> AlignPlan:
        """The generator's plan."""
        terms = dot_terms(self.format, self.block, self.accumulator)
        assert terms is not None
        return AlignPlan(TermPlan(terms))

    @cached_property
    def defined(self) -> Accumulator:
        """The accumulator's definition."""
        return exact_accumulator(self.accumulator)

    @cached_property
    def sides(self) -> list[exact.Definition]:
        """Definitions of both formats, without scales that are no parts of terms."""
        names = formats_of_operands(self.format)
        found = []
        for fmt in (names[0], names[-1]):
            definition = definition_of(block_format_of(fmt, self.block_size)[0])
            levels = tuple(x for x in definition.levels if isinstance(x.group, int))
            found.append(definition._replace(levels=() if self.defined.scaled else levels))
        return found

    @cached_property
    def block_size(self) -> int:
        """Lanes of a block."""
        return block_of(formats_of_operands(self.format), self.block)

    @property
    def lanes(self) -> int:
        """Lanes of a step."""
        return self.defined.reduction or self.block_size

    @cached_property
    def size(self) -> int:
        """Lanes of a term."""
        if self.defined.groups > 1 or (self.defined.joined == 1 and self.floating):
            return 1
        spans = [
            level.group
            for definition in self.sides
            for level in definition.levels
            if isinstance(level, exact.Exponent | exact.Real) and isinstance(level.group, int)
        ]
        together = min([self.block_size, self.lanes, *spans])
        return self.defined.joined if self.defined.joined > 1 else together

    @property
    def floating(self) -> bool:
        """Whether elements have exponents."""
        return any(x.floating for x in self.sides)

    @cached_property
    def apart(self) -> bool:
        """Whether those are a part of the exponents of terms."""
        return self.defined.joined == 1 and self.floating

    @property
    def fraction(self) -> int:
        """Bits that are kept."""
        assert self.defined.fraction is not None
        return self.defined.fraction

    @property
    def toward_zero(self) -> bool:
        """Whether magnitudes are cut, and terms of 0 have no exponent."""
        return self.defined.toward_zero

    @property
    def output(self) -> Format:
        """Format of the accumulator."""
        return self.defined.output.fields

    # What is worth what.

    @cached_property
    def divisor(self) -> Fraction:
        """What products are multiplied by, so that their unit is a power of two."""
        found = Fraction(1)
        for definition in self.sides:
            denominator = definition.unit.denominator
            odd = denominator // (denominator & -denominator)
            found *= Fraction(odd, 2 ** odd.bit_length()) if odd > 1 else 1
        return found

    @cached_property
    def unit(self) -> int:
        """Power of two that a term of 1 is worth under fields of 0."""
        worth = self.divisor
        for definition in self.sides:
            worth *= definition.unit
            for level in definition.levels:
                if isinstance(level, exact.Exponent):
                    worth *= power(1 - 2 ** (level.bits - 1))
                elif isinstance(level, exact.Shift):
                    worth *= power(1 - 2**level.bits)
                elif isinstance(level, exact.Real):
                    step = (scale_value(code, level) for code in (1, 0))
                    one, zero = (x for x in step if isinstance(x, Fraction))
                    worth *= one - zero
        unit = floor_log2(worth)
        assert worth == power(unit)
        return unit

    @cached_property
    def exponent(self) -> int:
        """Exponent of the point of a term under fields of 0."""
        found = 0
        if self.apart:
            found = sum(min(x.element.fields) for x in self.sides if x.floating)
        elif self.defined.joined == 1:
            bounds = [_bound(x) for x in self.sides]
            found = floor_log2(self.size * bounds[0] * bounds[1] * self.divisor)
        for definition in self.sides:
            for level in definition.levels:
                if isinstance(level, exact.Exponent):
                    found += 1 - 2 ** (level.bits - 1)
                elif isinstance(level, exact.Real):
                    found += -126 if level.single else exact.real_element(level).fields[0]
        return found

    @property
    def point(self) -> int:
        """Bits of a term after its point."""
        return self.exponent - self.unit

    @cached_property
    def bound(self) -> int:
        """The largest magnitude of a term."""
        found = self.size
        for definition in self.sides:
            own = [x for x in (definition.element, definition.second) if x]
            each = [numbers_of_element(definition._replace(element=x), self.apart) for x in own]
            largest = max(abs(number) for numbers in each for number in numbers)
            for level in definition.levels:
                largest *= largest_integer(level)
            found *= largest
        return found

    @cached_property
    def most_fields(self) -> int:
        """The largest sum of the fields of two elements that are numbers."""
        if not self.apart:
            return 0
        found = 0
        for definition in self.sides:
            pairs = zip(definition.element.fields, definition.element.values, strict=False)
            fields = [x for x, value in pairs if isinstance(value, Fraction)]
            found += max(fields) - min(fields) if definition.floating else 0
        return found

    @cached_property
    def most_scales(self) -> int:
        """The largest sum of the fields of scales that are numbers."""
        return sum(largest_field(level) for definition in self.sides for level in definition.levels)

    # Codes.

    def check_codes(self) -> None:
        """Check that no code of what counts is 0, which stands for nothing.

        Raises:
            NotShownError: one may be.
        """
        least = [self.term_code]
        if self.defined.fused:
            smallest = 1 - self.output.bias
            if self.toward_zero and self.defined.total_fraction is None:
                smallest = max(smallest, self.least_unit)
            least.append(smallest - self.base)
        if min(least) < 1:
            raise NotShownError(f"an exponent has the code {min(least)}, and 1 is the least")

    @property
    def base(self) -> int:
        """The exponent that the code 0 would stand for."""
        return self.align.base

    @property
    def term_code(self) -> int:
        """The code of a term under fields of 0."""
        return self.exponent - self.base

    @property
    def least_code(self) -> int:
        """The code of the least exponent of a step; 0 or less if there is none."""
        return 0 if self.defined.least is None else self.defined.least - self.base

    @property
    def own_code(self) -> int:
        """The code of the accumulator's exponent, less its field, which counts as 1 at least."""
        return -self.output.bias - self.base

    @property
    def least_unit(self) -> int:
        """The exponent of the last bit that any step keeps: of it all totals are multiples."""
        least = self.defined.least
        return max(self.exponent, self.exponent if least is None else least) - self.fraction

    @property
    def most_terms(self) -> int:
        """The largest code of a step without the accumulator."""
        return max(self.term_code + self.most_fields + self.most_scales, self.least_code)

    @property
    def most(self) -> int:
        """The largest code of a step."""
        own = 2**self.output.exponent_bits - 2 + self.own_code
        return max(self.most_terms, own) if self.defined.fused else self.most_terms


def numbers_of_element(definition: exact.Definition, apart: bool) -> list[int]:
    """The integers of codes: values in units, or significands where exponents are apart."""
    element = definition.element
    found = []
    for code, value in enumerate(element.values):
        x = value / definition.unit if isinstance(value, Fraction) else Fraction(0)
        if apart and definition.floating:
            x /= power(element.fields[code] - min(element.fields))
        assert x.denominator == 1
        found.append(int(x))
    return found


def _bound(definition: exact.Definition) -> Fraction:
    """The largest magnitude of a value over the power of two of its scales."""
    bound = definition.element.bound
    for level in definition.levels:
        if isinstance(level, exact.Integer):
            bound *= 2**level.bits - 1
        elif isinstance(level, exact.Real):
            bound *= 2 - power(-level.fraction_bits)
    return bound
