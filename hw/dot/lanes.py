"""A lane of the block dot product: the product of two codes, as bits of known weights.

A code is a sign, an integer and, for a floating-point element, how far that is shifted to the left:
its exponent field less one, or 0 for a subnormal number. The integers are multiplied, and the
product is shifted by both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Element, Float, SignMagnitude
from axs6.hw.core.compressor import ONE, Bit, Tree, value_of
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import any_of


@dataclass(frozen=True)
class Code:
    """What the lanes make of the codes of an element.

    Args:
        bits: of the integer.
        negative: whether its highest bit has a negative weight.
        sign: whether there is a sign beside it.
        shift: the largest shift to the left.
        offset: what is added to the shifts, which the lanes take out again.
    """

    element: Element
    bits: int
    negative: bool = False
    sign: bool = False
    shift: int = 0
    offset: int = 0

    @classmethod
    def of(cls, element: Element) -> "Code":
        """The parts of an element's codes."""
        if isinstance(element, Float):
            shift = max((element.largest_code >> element.fraction_bits) - 1, 0)
            return cls(element, element.fraction_bits + 1, False, True, shift, int(shift > 0))
        if isinstance(element, SignMagnitude):
            return cls(element, element.magnitude_bits, sign=True)
        return cls(element, element.width, negative=True)

    def split(self, code: Value) -> tuple[Value, Value, Value]:
        """Integer, sign and shift of a code; the last two may have no bits."""
        element = self.element
        if not isinstance(element, Float):
            return code[: self.bits], code[self.bits :], Cat()
        field = code[element.fraction_bits : -1]
        normal = field.any()
        integer = Cat(code[: element.fraction_bits], normal)
        shift = Cat(field[0] | ~normal, field[1:]) if self.shift else Cat()
        return integer, code[-1], shift


class Multiplier:
    """Plan of a multiplier of integers whose product stays one number or two.

    Registers may stand at half its depth, where `halfway` are the nodes alive. Bits of negative
    weight are inverted; what the product is less than the sum of all bits is in `constant`.

    Args:
        a, b: the operands.
        rows: numbers that are left.
        complete: whether the constant is added too, which makes one number of as many bits as both
            operands the product itself, modulo a power of two.
    """

    def __init__(self, a: Code, b: Code, rows: int, complete: bool = False) -> None:
        pairs = [(x, y) for x in range(a.bits) for y in range(b.bits)]
        self.tree = Tree([1] * len(pairs))
        self.constant = 0
        columns: list[list[Bit]] = [[] for _ in range(a.bits + b.bits)]
        for (x, y), bit in zip(pairs, self.tree.inputs, strict=True):
            negative = (a.negative and x == a.bits - 1) ^ (b.negative and y == b.bits - 1)
            columns[x + y].append(bit.complement() if negative else bit)
            self.constant -= negative << x + y
        if complete:
            for weight, column in enumerate(columns):
                column += [ONE] * (self.constant >> weight & 1)
            self.constant = 0
        left = self.tree.compress(columns, rows)
        self.bits = [(weight, bit) for weight, column in enumerate(left) for bit in column]
        self.level = max(bit.level for _, bit in self.bits)
        self.half = (self.level + 1) // 2
        self.halfway = self.tree.alive(self.half, left)


@dataclass(frozen=True)
class Addend:
    """A number as bits of known weights, and what else it is worth.

    Args:
        bits: weight, as an exponent of 2, and level of each bit.
        constant: added to it.
        sign: what is subtracted where its sign is set; 0 if it has none.
    """

    bits: tuple[tuple[int, int], ...]
    constant: int = 0
    sign: int = 0


FINE = 3
"""Bits of a shift that are used one after the other, before the sign; the others go at once."""


class Lane:
    """Plan of a lane: its multiplier, and the bits that come out.

    Args:
        a, b: elements of the operands.
        whole: whether the product must be one number; one that is shifted is.
    """

    def __init__(self, a: Element, b: Element, whole: bool) -> None:
        self.a, self.b = Code.of(a), Code.of(b)
        self.sign = self.a.sign or self.b.sign
        self.shift = self.a.shift + self.b.shift
        self.offset = self.a.offset + self.b.offset
        self.shift_bits = (self.shift + self.offset).bit_length() if self.shift else 0
        rows = 1 if whole or self.shift else 2
        self.multiplier = Multiplier(self.a, self.b, rows, complete=self.shift > 0)
        self.addend = self._shifted() if self.shift else self._product()
        members = {"bits": len(self.multiplier.halfway), "sign": 1, "shift": self.shift_bits}
        kept = {"bits": True, "sign": self.sign, "shift": self.shift > 0}
        self.partial = StructLayout({k: width for k, width in members.items() if kept[k]})

    def _product(self) -> Addend:
        """Bits of the product, inverted where it is negative."""
        plan = self.multiplier
        bits = [(weight, max(bit.level, plan.half) + 1) for weight, bit in plan.bits]
        total = sum(1 << weight for weight, _ in bits)
        sign = total + 2 * plan.constant if self.sign else 0
        return Addend(tuple(bits), plan.constant, sign)

    def _shifted(self) -> Addend:
        """Bits of the shifted product; the highest is the complement of its sign, if it has one."""
        plan = self.multiplier
        bits = len(plan.bits) + self.shift
        constant = -1 << bits - 1 if self.signed else 0
        sign = (-1 if self.signed else (1 << bits) - 1) if self.sign else 0
        return Addend(tuple((weight, plan.level + 1) for weight in range(bits)), constant, sign)

    @property
    def signed(self) -> bool:
        """Whether the product of the integers has a sign of its own."""
        return self.a.negative or self.b.negative


@cache
def lane(a: Element, b: Element, whole: bool) -> Lane:
    """The plan for elements of two operands."""
    return Lane(a, b, whole)


class PartialLane(Step):
    """Partial products of two codes, and the first half of their compression."""

    def __init__(self, plan: Lane) -> None:
        self._plan = plan
        code = {"a": plan.a.element.width, "b": plan.b.element.width}
        levels = 1 + 2 * plan.multiplier.half
        super().__init__(StructLayout(code), plan.partial, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the partial products and the adders."""
        m = Module()
        plan, o = self._plan, self.o
        (a, sign_a, shift_a), (b, sign_b, shift_b) = (
            code.split(value) for code, value in ((plan.a, self.i.a), (plan.b, self.i.b))
        )
        partial = [x & y for x in a for y in b]
        multiplier = plan.multiplier
        nodes = multiplier.tree.build(m, dict(enumerate(partial)), 0, multiplier.half)
        m.d.comb += o.bits.eq(Cat(nodes[node] for node in multiplier.halfway))
        if plan.sign:
            m.d.comb += o.sign.eq(sign_a ^ sign_b)
        if plan.shift:
            m.d.comb += o.shift.eq(shift_a + shift_b)
        return m


class ProductLane(wiring.Component):
    """The second half of a product, as the bits of the plan's addend.

    A negative product comes inverted: the bits are worth the product less the sum of all weights.
    """

    def __init__(self, plan: Lane) -> None:
        self._plan = plan
        super().__init__({"i": In(plan.partial), "bits": Out(len(plan.addend.bits))})

    def elaborate(self, platform: Any) -> Module:
        """Build the adders, the shift and the inversion."""
        m = Module()
        plan, multiplier = self._plan, self._plan.multiplier
        given = dict(zip(multiplier.halfway, self.i.bits, strict=True))
        nodes = multiplier.tree.build(m, given, multiplier.half, multiplier.level)
        bits = [value_of(bit, nodes) for _, bit in multiplier.bits]
        if plan.shift:
            sign = self.i.sign if plan.sign else Const(0, 1)
            bits = shift_fine(m, plan, bits, self.i.shift, sign)
            bits = shift_coarse(m, plan, bits, self.i.shift[FINE:], sign)
        elif plan.sign:
            bits = [bit ^ self.i.sign for bit in bits]
        m.d.comb += self.bits.eq(Cat(bits))
        return m


def shift_fine(
    m: Module, plan: Lane, bits: Sequence[Value], shift: Value, sign: Value
) -> list[Value]:
    """A product shifted by the low bits of its shift, and inverted where it is negative."""
    high = bits[-1] if plan.signed else Const(0, 1)
    bits = shifted(m, bits, shift[:FINE], Const(0, 1), high)
    return [bit ^ sign for bit in bits] if plan.sign else bits


def shift_coarse(
    m: Module, plan: Lane, bits: Sequence[Value], shift: Value, sign: Value
) -> list[Value]:
    """The result of `shift_fine` shifted by the high bits, as the bits of the plan's addend."""
    high = bits[-1] if plan.signed else sign
    most = plan.shift + plan.offset
    bits = placed(m, bits, shift, most >> FINE, sign, high)
    bits = bits[plan.offset : len(plan.addend.bits) + plan.offset]
    return [*bits[:-1], ~bits[-1]] if plan.signed else bits


def shifted(
    m: Module, bits: Sequence[Value], amount: Value, low: Value, high: Value
) -> list[Value]:
    """A number shifted to the left by each bit of an amount in turn.

    Args:
        m: module that it goes into.
        bits: of the number.
        amount: unsigned.
        low, high: what stands below the number and above it.
    """
    for place, by in enumerate(amount):
        wide = Signal(len(bits) + (1 << place), name=f"shifted{place}")
        here = Cat(bits, high.replicate(1 << place))
        there = Cat(low.replicate(1 << place), bits)
        m.d.comb += wide.eq(Mux(by, there, here))
        bits = list(wide)
    return list(bits)


def placed(
    m: Module, bits: Sequence[Value], amount: Value, largest: int, low: Value, high: Value
) -> list[Value]:
    """A number shifted to the left by an amount of `1 << FINE` places, all at once.

    Args:
        m: module that it goes into.
        bits: of the number.
        amount: unsigned, at most `largest`.
        largest: the largest amount.
        low, high: what stands below the number and above it.
    """
    if not largest:
        return list(bits)
    chosen = Signal(largest + 1, name="chosen")
    m.d.comb += [chosen[by].eq(amount == by) for by in range(largest + 1)]
    width = len(bits) + (largest << FINE)
    found = []
    fills: dict[tuple[int, ...], Value] = {}
    for place in range(width):
        from_bits, below, above = [], [], []
        for by in range(largest + 1):
            source = place - (by << FINE)
            if source < 0:
                below.append(by)
            elif source >= len(bits):
                above.append(by)
            else:
                from_bits.append(chosen[by] & bits[source])
        for uses, fill in ((below, low), (above, high)):
            if uses and not (isinstance(fill, Const) and not fill.value):
                key = (id(fill), *uses)
                if key not in fills:
                    fills[key] = any_of([chosen[by] for by in uses]) & fill
                from_bits.append(fills[key])
        found.append(any_of(from_bits))
    return found
