"""The batch simulator on what the units do not have: words wider than an element, memories."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from axs6.sim.batch.engine import ComponentModel, component_source

LIMBS = 3
WIDTH = 32 * LIMBS
OPERANDS = data.StructLayout({"a": data.ArrayLayout(32, LIMBS), "b": data.ArrayLayout(32, LIMBS)})

OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "add_with_carry": lambda a, b: a + b + (b & 1),
    "signed_add_with_carry": lambda a, b: to_signed(a) + to_signed(b) + (b & 1),
    "sub": lambda a, b: a - b,
    "neg": lambda a, b: -a,
    "mul": lambda a, b: a * b,
    "less": lambda a, b: a < b,
    "at_most": lambda a, b: a <= b,
    "equal": lambda a, b: a == b,
    "signed_less": lambda a, b: to_signed(a) < to_signed(b),
    "signed_add": lambda a, b: to_signed(a) + to_signed(b),
    "left": lambda a, b: a << (b % 128),
    "right": lambda a, b: a >> (b % 128),
    "arithmetic": lambda a, b: to_signed(a) >> (b % 128),
    "narrow_left": lambda a, b: (a % (1 << 40)) << (b % 64),
    "narrow_right": lambda a, b: (a % (1 << 40)) >> (b % 256),
}
PRODUCTS = ("mul",)
"""Operations over which alone g++ takes most of its time."""

AMOUNT_BITS = {"left": 7, "right": 7, "arithmetic": 7, "narrow_left": 6, "narrow_right": 8}


def to_signed(x: Any) -> Any:
    """An operand as signed, in Amaranth or in Python."""
    if isinstance(x, int):
        return x - (x >> (WIDTH - 1) << WIDTH)
    return x.as_signed()


class Wide(wiring.Component):
    """Operations on two numbers of 96 bits, whose results have 128."""

    def __init__(self, operations: tuple[str, ...]) -> None:
        self._operations = operations
        results = data.StructLayout(dict.fromkeys(operations, data.ArrayLayout(32, LIMBS + 1)))
        super().__init__({"i": In(stream.Signature(OPERANDS)), "o": Out(stream.Signature(results))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += [self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready)]
        a, b = (x.as_value() for x in (self.i.payload.a, self.i.payload.b))
        for operation in self._operations:
            result = self._result(operation, a, b)
            m.d.comb += self.o.payload[operation].as_value().eq(result)
        return m

    @staticmethod
    def _result(operation: str, a: Any, b: Any) -> Any:
        if operation not in AMOUNT_BITS:
            return OPERATIONS[operation](a, b)
        amount = b[: AMOUNT_BITS[operation]]
        value = a[:40] if "narrow" in operation else a
        if operation == "arithmetic":
            value = a.as_signed()
        return value << amount if "left" in operation else value >> amount


@cache
def wide_words(operations: tuple[str, ...]) -> tuple[Any, Any]:
    """Operands of shape (2, items, limbs), and what the simulator makes of them."""
    rng = np.random.default_rng(8)
    limbs = rng.integers(0, 1 << 32, (2, 500, LIMBS), dtype=np.uint64)
    limbs[:, ::3] = rng.choice([0, 1, 0xFFFFFFFF, 0x80000000], limbs[:, ::3].shape)
    limbs[1, ::7] = limbs[0, ::7]
    model = ComponentModel(component_source(Wide(operations)), "wide")
    return limbs, model.run({"a": limbs[0], "b": limbs[1]}).outputs


@pytest.mark.parametrize(
    "operation",
    [pytest.param(x, marks=[pytest.mark.slow] * (x in PRODUCTS)) for x in OPERATIONS],
)
def test_words_wider_than_an_element(operation: str) -> None:
    others = tuple(x for x in OPERATIONS if x not in PRODUCTS)
    limbs, outputs = wide_words(PRODUCTS if operation in PRODUCTS else others)
    got = outputs[operation]
    for index in range(limbs.shape[1]):
        a, b = (sum(int(x) << 32 * k for k, x in enumerate(limbs[s, index])) for s in (0, 1))
        expected = int(OPERATIONS[operation](a, b)) % (1 << 128)
        assert sum(int(x) << 32 * k for k, x in enumerate(got[index])) == expected, (a, b)


class Counts(wiring.Component):
    """Counts its items by key in a memory, and at `last` gives the count of the key before it.

    Args:
        domain: of the read port, "comb" or "sync"; a synchronous one reads the item before.
    """

    def __init__(self, domain: str) -> None:
        self._domain = domain
        items = data.StructLayout({"key": 4, "last": 1})
        result = data.StructLayout({"count": 8})
        super().__init__({"i": In(stream.Signature(items)), "o": Out(stream.Signature(result))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.counts = counts = Memory(shape=8, depth=12, init=range(5, 17))
        read, shown = counts.read_port(domain="comb"), counts.read_port(domain=self._domain)
        write = counts.write_port()
        moves = self.i.valid & self.i.ready
        m.d.comb += [
            self.o.valid.eq(self.i.valid & self.i.payload.last),
            self.i.ready.eq(~self.i.payload.last | self.o.ready),
            read.addr.eq(self.i.payload.key),
            shown.addr.eq(self.i.payload.key),
            self.o.payload.count.eq(shown.data),
            write.addr.eq(self.i.payload.key),
            write.data.eq(read.data + 1),
            write.en.eq(moves),
        ]
        if self._domain == "sync":
            m.d.comb += shown.en.eq(moves)
        return m


@pytest.mark.parametrize("domain", ["comb", "sync"])
def test_a_memory(domain: str) -> None:
    keys = np.random.default_rng(1).integers(0, 12, 300)
    model = ComponentModel(component_source(Counts(domain)), "counts")
    for length in (2, 17, 300):
        counts = list(range(5, 17))
        seen = [0]
        for key in keys[:length]:
            seen.append(counts[key])
            counts[key] += 1
        last = np.zeros(length, np.uint8)
        last[-1] = 1
        got = model.run({"key": keys[:length], "last": last}).outputs["count"]
        assert got.tolist() == [seen[-1 if domain == "comb" else -2]]
