"""Steps of accumulators: the terms of a step, and the running sum after it."""

from fractions import Fraction
from math import floor, trunc
from typing import NamedTuple

from axs6.golden.check.exact.accumulator import Accumulator
from axs6.golden.check.exact.arithmetic import ZERO, add, multiply, number, rounded, sum_bits
from axs6.golden.check.exact.floats import FP32, Special, Value, floor_log2, power


class Term(NamedTuple):
    """A number that a step adds.

    Args:
        value: the number.
        exponent: power of two of its point.
        counts: whether the exponent counts where the number is 0, and magnitudes are aligned.
    """

    value: Fraction
    exponent: int
    counts: bool = False


class ExactStep(NamedTuple):
    """What a step adds.

    Args:
        terms: its terms.
        special: the sum of its products that are no numbers, 0 if there are none.
        factors: of its products, lane by lane.
    """

    terms: list[Term]
    special: Value
    factors: list[tuple[Value, ...]]


def stepped(running: int, step: ExactStep, accumulator: Accumulator) -> int:
    """Pattern of the running sum after a step."""
    output = accumulator.output
    if accumulator.pairs:
        sums = [_product(x, y, accumulator) for x, y in step.factors]
        while len(sums) > 1:
            odd = sums[len(sums) // 2 * 2 :]
            pairs = zip(sums[::2], sums[1::2], strict=False)
            sums = [*(_sum(x, y, accumulator) for x, y in pairs), *odd]
        return _sum(running, sums[0], accumulator)
    before, terms = number(running), step.terms
    if not accumulator.fused:
        total = aligned(terms, accumulator) if step.special == 0 else step.special
        return sum_bits(running, rounded(total, output, accumulator), output, accumulator)
    total = step.special
    if accumulator.total_fraction is not None:
        large = [x.value for x in terms if abs(x.value) >= power(FP32.bias + 1)]
        infinities = [Special.NEGATIVE_INFINITY if x < 0 else Special.INFINITY for x in large]
        total = add([total, *infinities])
    if isinstance(before, Special):
        total = add([before, total])
    if total == 0 and isinstance(before, Fraction):
        own = Term(before, max((running >> 23 & 255) - 127, 1 - output.fields.bias))
        joined = _then_aligned if accumulator.total_fraction is not None else _all_aligned
        total = joined(terms, own, accumulator)
    bits = rounded(total, output, accumulator)
    return 0 if bits == FP32.sign and not accumulator.keeps_minus else bits


def _product(x: Value, y: Value, accumulator: Accumulator) -> int:
    """Pattern of a rounded product; one of 0 is negative if just one factor is below 0."""
    x, y = (_counted(each, accumulator) for each in (x, y))
    product = multiply(x, y)
    bits = _kept(rounded(product, accumulator.output, accumulator), accumulator)
    if product == 0 and isinstance(x, Fraction) and isinstance(y, Fraction):
        return FP32.sign if (x < 0) != (y < 0) else 0
    return bits


def _counted(x: Value, accumulator: Accumulator) -> Value:
    """A factor, or 0 where it is below the smallest normal one."""
    if accumulator.normal is None or not isinstance(x, Fraction):
        return x
    return x if abs(x) >= power(accumulator.normal) else ZERO


def _sum(a: int, b: int, accumulator: Accumulator) -> int:
    return _kept(sum_bits(a, b, accumulator.output, accumulator), accumulator)


def _kept(bits: int, accumulator: Accumulator) -> int:
    """A pattern, or the zero of its sign in place of a subnormal number."""
    value = number(bits)
    least = power(1 - accumulator.output.fields.bias)
    small = isinstance(value, Fraction) and abs(value) < least
    return bits & FP32.sign if small and accumulator.normal is not None else bits


def _all_aligned(terms: list[Term], own: Term, accumulator: Accumulator) -> Fraction:
    """The sum of terms and accumulator in one alignment."""
    return aligned([*terms, own], accumulator)


def _then_aligned(terms: list[Term], own: Term, accumulator: Accumulator) -> Fraction:
    """The sum of terms, group by group, and then with the accumulator."""
    assert accumulator.fraction is not None
    assert accumulator.total_fraction is not None
    groups = [terms[i :: accumulator.groups] for i in range(accumulator.groups)]
    tops = [_largest(group, accumulator) for group in groups]
    found = [top for top in tops if top is not None]
    total, largest = ZERO, own.exponent
    if found:
        total = sum(
            (
                _multiple(aligned(group, accumulator), max(found) - accumulator.fraction)
                for group in groups
            ),
            ZERO,
        )
        largest = max(*found, largest)
    reached = accumulator.reach is None or largest - own.exponent <= accumulator.reach
    before = _multiple(own.value, largest - accumulator.fraction) if reached else ZERO
    total = before + _multiple(total, largest - accumulator.total_fraction - 1)
    if total == 0:
        return total
    leading = max(floor_log2(abs(total)), 1 - accumulator.output.fields.bias)
    return _multiple(total, leading - accumulator.total_fraction)


def _multiple(x: Fraction, exponent: int) -> Fraction:
    """The largest multiple of 2^exponent that is no more than x."""
    return floor(x / power(exponent)) * power(exponent)


def _largest(terms: list[Term], accumulator: Accumulator) -> int | None:
    """The largest exponent among terms; None where none counts."""
    zeros = not accumulator.toward_zero
    return max((x.exponent for x in terms if x.value or x.counts or zeros), default=None)


def aligned(terms: list[Term], accumulator: Accumulator) -> Fraction:
    """The sum of terms, each with its bits far below the largest exponent dropped."""
    if accumulator.fraction is None:
        return sum((term.value for term in terms), ZERO)
    top = _largest(terms, accumulator)
    counted = [x for x in (top, accumulator.least) if x is not None]
    unit = power(max(counted, default=0) - accumulator.fraction)
    drop = trunc if accumulator.toward_zero else floor
    return sum((drop(term.value / unit) for term in terms), 0) * unit
