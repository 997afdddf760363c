"""Balanced trees over values."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

T = TypeVar("T")


def balanced(values: Sequence[T], combine: Callable[[T, T], T]) -> T:
    """Combine values pairwise, level by level; the depth is the logarithm of their number."""
    level = list(values)
    while len(level) > 1:
        pairs = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def running(values: Sequence[T], combine: Callable[[T, T], T]) -> list[T]:
    """The results of `balanced` for the first value, the first two, and so on to all of them."""
    if len(values) < 2:
        return list(values)
    half = len(values) // 2
    low, high = running(values[:half], combine), running(values[half:], combine)
    return low + [combine(low[-1], each) for each in high]


def any_of(values: Sequence[Value]) -> Value:
    """Bitwise or of values."""
    return balanced(values, lambda a, b: a | b)


def chosen(uses: Sequence[Value], values: Iterable[Value]) -> Value:
    """The value whose `use` is set, 0 if none is."""
    return any_of(
        [value & use.replicate(len(value)) for use, value in zip(uses, values, strict=True)]
    )


def largest_of(m: Module, values: Sequence[Value]) -> Value:
    """The largest of values of one shape, each comparison built once."""
    return balanced(values, lambda a, b: _either(m, a > b, a, b, "larger"))


def least_of(m: Module, values: Sequence[Value]) -> Value:
    """The least of values of one shape, each comparison built once."""
    return balanced(values, lambda a, b: _either(m, a < b, a, b, "lesser"))


def least_in_groups(m: Module, values: Sequence[Value], sizes: Sequence[int]) -> list[list[Value]]:
    """The least value of each group, for group sizes from coarse to fine.

    A size is a multiple of the next one, and the least values of fine groups serve coarse ones.
    """
    found: list[list[Value]] = []
    level, size = list(values), 1
    for coarser in reversed(sizes):
        each = coarser // size
        level = [least_of(m, level[k : k + each]) for k in range(0, len(level), each)]
        size = coarser
        found.append(level)
    return found[::-1]


def _either(m: Module, first: Value, a: Value, b: Value, name: str) -> Value:
    """One of two values as a signal: an expression would be written out at each of its uses."""
    either = Signal(a.shape(), name=name)
    m.d.comb += either.eq(Mux(first, a, b))
    return either


Group = tuple[Value, Value]
"""Bits as the number of zeros above their highest set bit, and whether one is set."""


def zero_groups(m: Module, value: Value, size: int) -> list[Group]:
    """The groups of `size` bits, a power of two, of a value, from the top.

    Zeros below the value make it a power of two wide.
    """
    padded = Cat(Const(0, (1 << (len(value) - 1).bit_length()) - len(value)), value)
    bits: list[Group] = [(Cat(), bit) for bit in reversed(padded)]
    return [
        balanced(bits[start : start + size], partial(_joined, m))
        for start in range(0, len(bits), size)
    ]


def leading_zeros(m: Module, value: Value) -> Value:
    """Number of zeros above the highest set bit of a value that is not 0."""
    return leading_zeros_of(m, zero_groups(m, value, 1))


def leading_zeros_of(m: Module, groups: Sequence[Group]) -> Value:
    """The same of the groups of a value."""
    return balanced(groups, partial(_joined, m))[0]


def _joined(m: Module, high: Group, low: Group) -> Group:
    count, some = Signal(len(high[0]) + 1, name="count"), Signal(name="some")
    m.d.comb += [
        some.eq(high[1] | low[1]),
        count[-1].eq(~high[1]),
    ]
    if len(count) > 1:
        m.d.comb += count[:-1].eq(Mux(high[1], high[0], low[0]))
    return count, some
