"""Products of a block dot product and the first levels of its tree, with many places for registers.

The steps are those of `PartialProducts` and `Products`, cut at every few levels. For pipelines that
have more ranks than those have room for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data

from axs6.hw.core.compressor import Bit, value_of
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.beside import add_beside, join_specials
from axs6.hw.dot.heap import Heap
from axs6.hw.dot.lanes import LanePlan, added_shifts, negated, shift_coarse, shift_fine
from axs6.hw.dot.shape import passed

LEVELS_A_STEP = 3
"""Levels of the multipliers between two places for registers."""

Nodes = dict[int, Value]
"""Bits by their numbers."""


@dataclass(frozen=True)
class RegisterPlace:
    """A place for registers: what there is of products and of the first sums at a level.

    Bits of products become those of the lane's addend, inverted where the product is negative, at
    the levels that the plan says, and are then in the sums.

    Args:
        heap: of the first sums.
        plan: of the lanes.
        level: of the heap's plan and the multipliers'.
        negated: whether products are numbers, the wide ones negated by their signs.
        moved: whether products have been shifted by the low bits of their shifts.
        specials: whether each few lanes have a field of their own for what is no number.
    """

    heap: Heap
    plan: LanePlan
    level: int
    negated: bool = False
    moved: bool = False
    specials: bool = False

    @cached_property
    def pending(self) -> list[tuple[int, Bit]]:
        """Bits of a product that are not in a sum, with their numbers in the addend."""
        pairs = zip(self.plan.multiplier.bits, self.plan.addend.bits, strict=False)
        return [
            (number, bit)
            for number, ((_, bit), (_, level)) in enumerate(pairs)
            if level > self.level
        ]

    @cached_property
    def partial(self) -> list[int]:
        """Nodes of a multiplier."""
        kept = [[bit for _, bit in self.pending]]
        return self.plan.multiplier.tree.alive(self.level, kept)

    @property
    def product(self) -> data.StructLayout:
        """The fields of a product; none if it is in a sum."""
        if not self.pending:
            return StructLayout({})
        plan, bits, shift = self.plan, len(self.partial), self.plan.shift_bits
        if self.negated:
            bits = plan.product_bits
        if self.moved:
            used = min(plan.fine, shift)
            bits, shift = bits + (1 << used) - 1, shift - used
        signed = plan.sign and not self.negated
        widths = {"bits": bits, "sign": int(signed), "shift": shift}
        return StructLayout({name: width for name, width in widths.items() if width})

    @cached_property
    def tree(self) -> list[int]:
        """Nodes of a sum, but signs that the products have."""
        held = self.signs if "sign" in self.product.members else ()
        return [node for node in self.heap.plan.alive(self.level) if node not in held]

    @property
    def size(self) -> int:
        """Input nodes of the tree for each product."""
        return len(self.plan.addend.bits) + bool(self.plan.addend.sign)

    @property
    def signs(self) -> range:
        """The bits that are signs."""
        if not self.plan.addend.sign:
            return range(0)
        return range(self.size - 1, self.heap.group * self.size, self.size)

    @property
    def layout(self) -> data.StructLayout:
        """Products, sums, and what goes along."""
        sums = dict(self.heap.layout(self.level).members)
        if self.specials:
            sums = self.heap.shape.with_specials(sums)
        products = {}
        if self.product.size:
            products["products"] = ArrayLayout(self.product, self.heap.shape.block)
        bits = ArrayLayout(len(self.tree), self.heap.groups)
        return StructLayout({**products, **sums, "bits": bits})


class ProductStep(Step):
    """A step between two places.

    Args:
        at, to: the places.
        i: layout of the input, if it is not that of the first place.
    """

    def __init__(
        self,
        at: RegisterPlace,
        to: RegisterPlace,
        *,
        levels: int,
        i: data.StructLayout | None = None,
    ) -> None:
        self._at, self._to = at, to
        super().__init__(i or at.layout, to.layout, levels=levels)

    def pass_on(self, m: Module) -> None:
        """Connect what goes along."""
        m.d.comb += passed(self.i, self.o)
        if self._at.specials:
            join_specials(m, self.i, self.o)

    def sums(self, signs: Iterable[Value]) -> list[dict[int, Value]]:
        """The nodes of each sum that there are at the first place, with the signs of products."""
        at = self._at
        found: list[dict[int, Value]] = [{} for _ in range(at.heap.groups)]
        if at.level:
            found = [dict(zip(at.tree, bits, strict=True)) for bits in self.i.bits]
        if at.signs:
            for index, sign in enumerate(signs):
                group, lane = divmod(index, at.heap.group)
                found[group][at.signs[lane]] = sign
        return found

    def multiply(self, m: Module, index: int, nodes: Mapping[int, Value], sign: Value) -> Nodes:
        """Build adders of a multiplier; return the bits that enter the sum, inverted by the sign.

        Args:
            m: module that they go into.
            index: of the product.
            nodes: of the multiplier at the first place.
            sign: of the product; unused where the plan has none.
        """
        at, to, plan = self._at, self._to, self._to.plan
        values = plan.multiplier.tree.build(m, nodes, at.level, to.level)
        if to.product.size:
            o = self.o.products[index]
            m.d.comb += o.bits.eq(Cat(values[node] for node in to.partial))
            if plan.sign:
                m.d.comb += o.sign.eq(sign)
        entering = dict(at.pending).keys() - dict(to.pending).keys()
        bits = {number: value_of(bit, values) for number, bit in at.pending if number in entering}
        return {number: bit ^ sign if plan.sign else bit for number, bit in bits.items()}

    def finish(self, m: Module, sums: Sequence[Nodes], entering: Sequence[Nodes]) -> None:
        """Build the adders of the sums and drive what there is of them at the second place.

        Args:
            m: module that they go into.
            sums: nodes at the first place.
            entering: bits of each product that enter the sum, by their numbers.
        """
        at, to = self._at, self._to
        for index, bits in enumerate(entering):
            group, lane = divmod(index, to.heap.group)
            sums[group].update({lane * to.size + number: bit for number, bit in bits.items()})
        for nodes, o in zip(sums, self.o.bits, strict=True):
            values = to.heap.plan.tree.build(m, nodes, at.level, to.level)
            m.d.comb += o.eq(Cat(values[node] for node in to.tree))


class First(ProductStep):
    """Partial products of codes, and the first levels of the trees."""

    def __init__(self, to: RegisterPlace) -> None:
        at = RegisterPlace(to.heap, to.plan, 0)
        super().__init__(at, to, levels=1 + 2 * to.level, i=to.heap.shape.pair)

    def elaborate(self, platform: Any) -> Module:
        """Build the lanes."""
        m = Module()
        plan, shape = self._to.plan, self._to.heap.shape
        add_beside(m, shape, self.i, self.o)
        signs, entering = Signal(shape.block), []
        pairs = zip(*shape.lane_codes(self.i), strict=True)
        for index, pair in enumerate(pairs):
            (a, sign_a, shift_a), (b, sign_b, shift_b) = (
                code.split(m, value) for code, value in zip((plan.a, plan.b), pair, strict=True)
            )
            m.d.comb += signs[index].eq(sign_a ^ sign_b)
            nodes = dict(enumerate(x & y for x in a for y in b))
            entering.append(self.multiply(m, index, nodes, signs[index]))
            if plan.shift:
                total = added_shifts(plan.a, plan.b, shift_a, shift_b)
                m.d.comb += self.o.products[index].shift.eq(total)
        self.finish(m, self.sums(signs), entering)
        return m


class Next(ProductStep):
    """Some levels of the multipliers and of the sums."""

    def __init__(self, at: RegisterPlace, to: RegisterPlace) -> None:
        super().__init__(at, to, levels=2 * (to.level - at.level))

    def elaborate(self, platform: Any) -> Module:
        """Build the lanes."""
        m = Module()
        self.pass_on(m)
        signs, entering = signs_of(self.i.products), []
        for index, product in enumerate(self.i.products):
            nodes = dict(zip(self._at.partial, product.bits, strict=True))
            entering.append(self.multiply(m, index, nodes, signs[index]))
            if self._to.plan.shift:
                m.d.comb += self.o.products[index].shift.eq(product.shift)
        self.finish(m, self.sums(signs), entering)
        return m


class Negate(ProductStep):
    """Products as numbers, negated where their signs are set."""

    def __init__(self, at: RegisterPlace, to: RegisterPlace) -> None:
        super().__init__(at, to, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the negations."""
        m = Module()
        plan, signs = self._to.plan, signs_of(self.i.products)
        self.pass_on(m)
        for product, sign, o in zip(self.i.products, signs, self.o.products, strict=True):
            nodes = dict(zip(self._at.partial, product.bits, strict=True))
            bits = [value_of(bit, nodes) for _, bit in self._at.pending]
            bits = negated(bits, sign, plan.negative)
            m.d.comb += [o.bits.eq(Cat(bits)), o.shift.eq(product.shift)]
        self.finish(m, self.sums(signs), [])
        return m


class ShiftFine(ProductStep):
    """Products shifted by the low bits of their shifts."""

    def __init__(self, at: RegisterPlace, to: RegisterPlace) -> None:
        super().__init__(at, to, levels=2 * to.plan.fine + 1)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts."""
        m = Module()
        plan = self._to.plan
        self.pass_on(m)
        for product, o in zip(self.i.products, self.o.products, strict=True):
            m.d.comb += o.bits.eq(Cat(shift_fine(m, plan, product.bits, product.shift)))
            if plan.shift_bits > plan.fine:
                m.d.comb += o.shift.eq(product.shift[plan.fine :])
        self.finish(m, self.sums(signs_of(self.i.products)), [])
        return m


class ShiftCoarse(ProductStep):
    """Products shifted by the high bits of their shifts, in the sums."""

    def __init__(self, at: RegisterPlace, to: RegisterPlace) -> None:
        super().__init__(at, to, levels=2 + 2 * max(0, to.plan.shift_bits - to.plan.fine))

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts."""
        m = Module()
        plan, signs = self._to.plan, signs_of(self.i.products)
        self.pass_on(m)
        entering: list[Nodes] = []
        for product in self.i.products:
            shift = product.shift if plan.shift_bits > plan.fine else Cat()
            bits = shift_coarse(m, plan, list(product.bits), shift)
            entering.append(dict(enumerate(bits)))
        self.finish(m, self.sums(signs), entering)
        return m


def signs_of(products: Any) -> list[Value]:
    """The signs of products, 0 where they have none."""
    signed = "sign" in products[0].shape().members
    return [product.sign if signed else Const(0, 1) for product in products]


def product_steps(heap: Heap, plan: LanePlan) -> list[Step]:
    """The steps from a pair of blocks to the level of the heap's plan at which products end."""
    end = heap.plan.level
    last = plan.multiplier.level if plan.shift else end
    places = [
        RegisterPlace(heap, plan, level) for level in range(LEVELS_A_STEP, last, LEVELS_A_STEP)
    ]
    places.append(RegisterPlace(heap, plan, last))
    if heap.shape.many_special and (plan.shift or len(places) > 1):
        places[0] = replace(places[0], specials=True)
    steps: list[Step] = [First(places[0]), *(Next(at, to) for at, to in pairwise(places))]
    if plan.shift:
        before = RegisterPlace(heap, plan, last, negated=True)
        moved = RegisterPlace(heap, plan, last, negated=True, moved=True)
        steps += [Negate(places[-1], before), ShiftFine(before, moved)]
        steps.append(ShiftCoarse(moved, RegisterPlace(heap, plan, end)))
    return steps
