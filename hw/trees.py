"""Balanced trees over values."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from amaranth.hdl import Module, Mux, Signal, Value

T = TypeVar("T")


def balanced(values: Sequence[T], combine: Callable[[T, T], T]) -> T:
    """Combine values pairwise, level by level; the depth is the logarithm of their number."""
    level = list(values)
    while len(level) > 1:
        pairs = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def any_of(values: Sequence[Value]) -> Value:
    """Bitwise or of values."""
    return balanced(values, lambda a, b: a | b)


def maximum(m: Module, values: Sequence[Value]) -> Value:
    """Largest of unsigned values of one width."""

    def larger(a: Value, b: Value) -> Value:
        result = Signal(len(a), name="larger")
        m.d.comb += result.eq(Mux(a > b, a, b))
        return result

    return balanced(values, larger)


def leading_zeros(m: Module, value: Value) -> Value:
    """Number of zeros above the highest set bit; the width of `value` where it is 0."""
    width = len(value)
    count = Signal(range(width + 1), name="leading_zeros", init=width)
    for i in range(width):
        with m.If(value[i]):
            m.d.comb += count.eq(width - 1 - i)
    return count
