"""A lane of the block dot product: the product of two codes, as bits of known weights.

A code is a sign, an integer and, for a floating-point element, how far that is shifted to the left:
its exponent field less one, or 0 for a subnormal number. That of a table is an integer in two's
complement, looked up. The integers are multiplied, and the
product is shifted by both.

A negative product is inverted, and the tree counts the signs. One that is shifted is negated
instead, before its shift, where it has fewest bits: only zeros come in below it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Element, Float, SignMagnitude
from axs6.hw.core.codes import Listed, code_bits, table_integer, table_shape
from axs6.hw.core.compressor import ONE, Bit, Tree, value_of
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import any_of, running

SHORT = 2
"""Bits of an exponent field whose shift is found exactly; that of a longer one has an offset of 1.
On sky130 with adder cells this takes 6 % from a block dot product of MXFP4, 2 % from one of MXFP6
E2M3, and would add 4 % to one of E3M2."""


@dataclass(frozen=True)
class Code:
    """The form that codes of an element take in the lanes.

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
            offset = int(shift > 0 and element.exponent_bits > SHORT)
            return cls(element, element.fraction_bits + 1, False, True, shift, offset)
        if isinstance(element, SignMagnitude):
            return cls(element, element.magnitude_bits, sign=True)
        bits = table_shape(element).width if isinstance(element, Listed) else element.width
        return cls(element, bits, negative=True)

    def split(self, m: Module, code: Value) -> tuple[Value, Value, Value]:
        """Integer, sign and shift of a code; the last two may have no bits.

        What a table has is a signal of the module: each bit takes part in many products.
        """
        element = self.element
        if isinstance(element, Listed):
            integer = Signal(self.bits, name="integer")
            m.d.comb += integer.eq(table_integer(element, code))
            return integer, Cat(), Cat()
        if not isinstance(element, Float):
            return code[: self.bits], code[self.bits :], Cat()
        field = code[element.fraction_bits : -1]
        normal = field.any()
        integer = Cat(code[: element.fraction_bits], normal)
        if not self.shift:
            return integer, code[-1], Cat()
        if self.offset:
            return integer, code[-1], Cat(field[0] | ~normal, field[1:])
        return integer, code[-1], Cat(field[1] & ~field[0], field[1] & field[0])


def added_shifts(a: Code, b: Code, shift_a: Value, shift_b: Value) -> Value:
    """The sum of the shifts of two codes.

    Two exact ones are 0, 1 or 2. Their sum is gates, among which synthesis finds no full adder:
    that would keep it from minimising the gates around it.
    """
    if a.offset or b.offset or not (a.shift and b.shift):
        return shift_a + shift_b
    (one_a, two_a), (one_b, two_b) = shift_a, shift_b
    four = two_a & two_b
    return Cat(one_a ^ one_b, ((two_a | two_b) & ~four) | (one_a & one_b), four)


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
    """A number as bits of known weights, with corrections.

    Args:
        bits: weight, as an exponent of 2, and level of each bit.
        constant: added to it. sign: number to subtract if its sign is set; 0 if it has none.
    """

    bits: tuple[tuple[int, int], ...]
    constant: int = 0
    sign: int = 0


NARROW = 8
"""Bits of a product and its shift up to which only the lowest bit of the shift is used by itself,
before the others, which go at once. In a wider one, three are used one after the other. On sky130
with adder cells, a block dot product of MXFP4, with 8 bits, takes 13,477 um2 where three take
14,305. One of MXFP6 E3M2, with 18, takes 32,262 um2 where one takes 33,890, and one of MXFP8 E4M3
58,850 or 71,597."""


class LanePlan:
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
        """Bits of the shifted product; the highest is the complement of its sign.

        It has one, as floating-point elements do, which alone are shifted.
        """
        level = self.multiplier.level + 1
        bits = self.product_bits + self.shift
        return Addend(tuple((weight, level) for weight in range(bits)), -1 << bits - 1)

    @property
    def negative(self) -> bool:
        """Whether the highest bit of the product of the integers has a negative weight."""
        return self.a.negative or self.b.negative

    @property
    def product_bits(self) -> int:
        """Bits of a product that is shifted, before it is and with its sign among them."""
        return len(self.multiplier.bits) + (not self.negative)

    @property
    def fine(self) -> int:
        """Bits of a shift that are used one after the other; the others go at once."""
        return 1 if len(self.multiplier.bits) + self.shift <= NARROW else 3


@cache
def lane_plan(a: Element, b: Element, whole: bool) -> LanePlan:
    """The plan for elements of two operands."""
    return LanePlan(a, b, whole)


class PartialProductLane(Step):
    """Partial products of two codes, and the first half of their compression."""

    verilog_name = "partial_lane"

    def __init__(self, plan: LanePlan) -> None:
        self._plan = plan
        code = {"a": code_bits(plan.a.element), "b": code_bits(plan.b.element)}
        levels = 1 + 2 * plan.multiplier.half
        super().__init__(StructLayout(code), plan.partial, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the partial products and the adders."""
        m = Module()
        plan, o = self._plan, self.o
        (a, sign_a, shift_a), (b, sign_b, shift_b) = (
            code.split(m, value) for code, value in ((plan.a, self.i.a), (plan.b, self.i.b))
        )
        partial = [x & y for x in a for y in b]
        multiplier = plan.multiplier
        nodes = multiplier.tree.build(m, dict(enumerate(partial)), 0, multiplier.half)
        m.d.comb += o.bits.eq(Cat(nodes[node] for node in multiplier.halfway))
        if plan.sign:
            m.d.comb += o.sign.eq(sign_a ^ sign_b)
        if plan.shift:
            m.d.comb += o.shift.eq(added_shifts(plan.a, plan.b, shift_a, shift_b))
        return m


class CompressProductLane(wiring.Component):
    """The second half of a product, as the bits of the plan's addend.

    A negative product that is not shifted comes inverted: the bits are worth the product less the
    sum of all weights.
    """

    verilog_name = "product_lane"

    def __init__(self, plan: LanePlan) -> None:
        self._plan = plan
        super().__init__({"i": In(plan.partial), "bits": Out(len(plan.addend.bits))})

    def elaborate(self, platform: Any) -> Module:
        """Build the adders, the shift, and the inversion or negation."""
        m = Module()
        plan, multiplier = self._plan, self._plan.multiplier
        given = dict(zip(multiplier.halfway, self.i.bits, strict=True))
        nodes = multiplier.tree.build(m, given, multiplier.half, multiplier.level)
        bits = [value_of(bit, nodes) for _, bit in multiplier.bits]
        if plan.shift:
            bits = negated(bits, self.i.sign, plan.negative)
            bits = shift_fine(m, plan, bits, self.i.shift)
            bits = shift_coarse(m, plan, bits, self.i.shift[plan.fine :])
        elif plan.sign:
            bits = [bit ^ self.i.sign for bit in bits]
        m.d.comb += self.bits.eq(Cat(bits))
        return m


def negated(bits: Sequence[Value], sign: Value, negative: bool) -> list[Value]:
    """A number negated where a sign is set, in two's complement.

    Args:
        bits: of the number.
        sign: whether it is negated.
        negative: whether its highest bit has a negative weight; if not, the result has a bit more.
    """
    flips = [below & sign for below in running(bits, lambda x, y: x | y)]
    found = [bit ^ flip for bit, flip in zip(bits[1:], flips, strict=False)]
    return [bits[0], *found] if negative else [bits[0], *found, flips[-1]]


def shift_fine(m: Module, plan: LanePlan, bits: Sequence[Value], shift: Value) -> list[Value]:
    """A number shifted by the low bits of its shift."""
    return shifted(m, bits, shift[: plan.fine])


def shift_coarse(m: Module, plan: LanePlan, bits: Sequence[Value], shift: Value) -> list[Value]:
    """The result of `shift_fine` shifted by the high bits, as the bits of the plan's addend."""
    bits = placed(m, bits, shift, plan.shift + plan.offset >> plan.fine, 1 << plan.fine)
    bits = bits[plan.offset : len(plan.addend.bits) + plan.offset]
    return [*bits[:-1], ~bits[-1]]


def shifted(m: Module, bits: Sequence[Value], amount: Value) -> list[Value]:
    """A number in two's complement shifted to the left by each bit of an amount in turn.

    Args:
        m: module that it goes into.
        bits: of the number. Zeros come in below it, and its highest bit above it.
        amount: unsigned.
    """
    sign = bits[-1]
    for place, by in enumerate(amount):
        wide = Signal(len(bits) + (1 << place), name=f"shifted{place}")
        here = Cat(bits, sign.replicate(1 << place))
        there = Cat(Const(0, 1 << place), bits)
        m.d.comb += wide.eq(Mux(by, there, here))
        bits = list(wide)
    return list(bits)


def placed(m: Module, bits: Sequence[Value], amount: Value, largest: int, unit: int) -> list[Value]:
    """A number in two's complement shifted to the left by an amount of units, all at once.

    Args:
        m: module that it goes into.
        bits: of the number. Zeros come in below it, and its highest bit above it.
        amount: unsigned, at most `largest`.
        largest: the largest amount.
        unit: places of a unit.
    """
    if not largest:
        return list(bits)
    chosen = Signal(largest + 1, name="chosen")
    m.d.comb += [chosen[by].eq(amount == by) for by in range(largest + 1)]
    fills = [bits[-1] & any_of(chosen[: by + 1]) for by in range(largest)]
    found = []
    for place in range(len(bits) + largest * unit):
        sources = [place - by * unit for by in range(largest + 1)]
        within = [(by, x) for by, x in enumerate(sources) if 0 <= x < len(bits)]
        above = sum(x >= len(bits) for x in sources)
        fill = [fills[above - 1]] if above else []
        found.append(any_of([chosen[by] & bits[x] for by, x in within] + fill))
    return found
