"""The factors of a decoded value, by their definitions, as words of a graph.

A factor is an element or a scale. Its magnitude is a significand, an integer whose leading one is
on top, times a power of two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import Special, Value, floor_log2
from axs6.golden.check.exact.formats import Definition, Level, Real
from axs6.proof.aig import FALSE, Graph
from axs6.proof.rounding import PLACE

TABLE_BITS = 16
"""Bits of a factor of which all values are tabulated."""


@dataclass(frozen=True)
class Factor:
    """Literals about a factor.

    Args:
        bits: of its code. significand: lowest bit first; 0 for 0, and anything where the factor is
        no finite number. place: the power of two of the lowest bit, in two's complement. zero, nan,
        infinite: 1 if the factor is that. negative: its sign; -0 is both negative and zero.
    """

    bits: tuple[int, ...]
    significand: tuple[int, ...]
    place: tuple[int, ...]
    zero: int
    nan: int = FALSE
    infinite: int = FALSE
    negative: int = FALSE

    @property
    def width(self) -> int:
        """Bits of the significand."""
        return len(self.significand)


def check_factors(definition: Definition) -> None:
    """Refuse a format with an element or a scale that is no `Factor`.

    Raises:
        ValueError: an element is no integer times a power of two, or a scale has too many bits to
            tabulate and is no number of IEEE 754 with a sign.
    """
    for each in (definition.element, definition.second):
        for x in each.values if each else ():
            if isinstance(x, Fraction) and (odd := _odd(x.denominator)) > 1:
                raise ValueError(f"elements must be integers times powers of two, not over {odd}")
    for level in definition.levels:
        if level.bits > TABLE_BITS and not _ieee(level):
            raise ValueError(
                f"scales of more than {TABLE_BITS} bits must be numbers of IEEE 754 with a sign, "
                f"and one of {level.bits} is not"
            )


def _ieee(level: Level) -> bool:
    return (
        isinstance(level, Real)
        and level.specials == "ieee"
        and level.signed
        and not (level.always_normal or level.selects)
    )


def tabulated(graph: Graph, bits: Sequence[int], values: Sequence[Value]) -> Factor:
    """A factor whose value is that of a table at the number of its bits, lowest first."""
    numbers = [abs(x) if isinstance(x, Fraction) else Fraction(0) for x in values]
    odd = [_odd(x.numerator) for x in numbers]
    width = max(map(int.bit_length, odd))
    significands = [x << width - x.bit_length() if x else 0 for x in odd]
    places = [floor_log2(x) - width + 1 if x else 0 for x in numbers]

    def word(table: Sequence[int], count: int) -> tuple[int, ...]:
        return tuple(graph.look_up(bits, [x >> k & 1 == 1 for x in table]) for k in range(count))

    def among(*specials: Special) -> int:
        return graph.look_up(bits, [x in specials for x in values])

    below = [isinstance(x, Fraction) and x < 0 for x in values]
    zeros = [x is Special.NEGATIVE_ZERO or x == 0 for x in values]
    negative = (Special.NEGATIVE_ZERO, Special.NEGATIVE_INFINITY)
    return Factor(
        tuple(bits),
        word(significands, width),
        word(places, PLACE),
        graph.look_up(bits, zeros),
        among(Special.NAN),
        among(Special.INFINITY, Special.NEGATIVE_INFINITY),
        graph.any([graph.look_up(bits, below), among(*negative)]),
    )


def _odd(number: int) -> int:
    return number // (number & -number) if number else 0


def element(
    graph: Graph, code: Sequence[int], others: Sequence[int], definition: Definition
) -> Factor:
    """The element of a code.

    Args:
        graph: of the literals. code: its bits. others: those of the zero point in a format that has
        one, or the one that selects the element. definition: of the format.
    """
    values: list[Value] = []
    for other in range(1 << len(others)):
        selected = definition.second if definition.second and other else definition.element
        table = selected.values
        if definition.second is None:
            table = tuple(x - other if isinstance(x, Fraction) else x for x in table)
        values += table
    return tabulated(graph, [*code, *others], values)


def scale(graph: Graph, bits: Sequence[int], level: Level) -> Factor:
    """A scale; one that is no number, or has a sign that is 1, is NaN.

    Args:
        graph: of the literals. bits: of the scale, without one that selects the element. level: of
        the definition.
    """
    if len(bits) > TABLE_BITS:
        assert isinstance(level, Real)
        return _real(graph, bits, level)
    values = [scale_value(code, level) for code in range(1 << len(bits))]
    wrong = [isinstance(x, Special) or is_negative(code, level) for code, x in enumerate(values)]
    either = zip(values, wrong, strict=True)
    return tabulated(graph, bits, [Special.NAN if is_wrong else x for x, is_wrong in either])


def is_negative(code: int, level: Level) -> bool:
    """Whether a scale has a sign that is 1: it counts as NaN. See docs/hardware.md, "Decoders"."""
    signed = isinstance(level, Real) and level.signed and not level.selects
    return signed and bool(code >> level.bits - 1)


def _real(graph: Graph, bits: Sequence[int], level: Real) -> Factor:
    """A scale that is a number of IEEE 754 without a sign; a subnormal one goes up to the top."""
    fraction = [*bits[: level.fraction_bits]]
    *field, sign = bits[level.fraction_bits :]
    normal, special = graph.any(field), graph.all(field)
    bias = (1 << level.exponent_bits - 1) - 1 if level.bias is None else level.bias
    top = len(fraction)
    significand, place = [*fraction, normal], _number(1 - bias - top)
    for shift in range(1, top + 1):
        here = graph.all(
            [normal ^ 1, fraction[top - shift], *(x ^ 1 for x in fraction[top - shift + 1 :])]
        )
        moved = [*[FALSE] * shift, *fraction[: top - shift + 1]]
        significand = [graph.choose(here, x, y) for x, y in zip(moved, significand, strict=True)]
        lower = _number(1 - bias - top - shift)
        place = [graph.choose(here, x, y) for x, y in zip(lower, place, strict=True)]
    above = graph.sum(field, _number(-bias - top), PLACE)
    place = [graph.choose(normal, x, y) for x, y in zip(above, place, strict=True)]
    zero = graph.any([*fraction, *field]) ^ 1
    return Factor(tuple(bits), tuple(significand), tuple(place), zero, graph.any([sign, special]))


def _number(value: int) -> list[int]:
    return [value >> k & 1 for k in range(PLACE)]
