"""The block dot product in words: products by `*`, shifts by `<<`, and a balanced tree of `+`."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data

from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.beside import add_beside
from axs6.hw.dot.lanes import Code
from axs6.hw.dot.shape import DotShape, GroupScaling, passed, result


class SignedTerms:
    """Signed terms that are still to be added, and what goes along.

    Args:
        shape: the block dot product.
        count: of the terms.
        bound: the largest magnitude of one.
        later: scales that are still to be used.
    """

    def __init__(
        self, shape: DotShape, count: int, bound: int, later: tuple[GroupScaling, ...]
    ) -> None:
        self.shape, self.count, self.bound, self.later = shape, count, bound, later
        self.width = bound.bit_length() + 1
        terms = ArrayLayout(signed(self.width), count)
        self.layout: data.StructLayout = StructLayout({"terms": terms, **shape.beside(later)})


class MultiplyCodes(Step):
    """The signed product of each pair of codes, and what goes along with them."""

    verilog_name = "multiply"

    def __init__(self, shape: DotShape, terms: SignedTerms) -> None:
        self._shape, self.terms = shape, terms
        self._codes = Code.of(shape.a.element), Code.of(shape.b.element)
        levels = 12 + 2 * max(code.bits for code in self._codes)
        super().__init__(shape.pair, terms.layout, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the multipliers, the shifts and the negations."""
        m = Module()
        add_beside(m, self._shape, self.i, self.o)
        pairs = zip(*self._shape.lane_codes(self.i), strict=True)
        for index, pair in enumerate(pairs):
            (a, sign_a, shift_a), (b, sign_b, shift_b) = (
                code.split(m, value) for code, value in zip(self._codes, pair, strict=True)
            )
            a, b = (
                x.as_signed() if code.negative else x
                for code, x in zip(self._codes, (a, b), strict=True)
            )
            product = Signal((a * b).shape(), name=f"product{index}")
            m.d.comb += product.eq(a * b)
            term: Value = product
            if len(shift_a) or len(shift_b):
                term = self._shifted(product, shift_a, shift_b)
            if len(sign_a) or len(sign_b):
                term = Mux(sign_a ^ sign_b, -term, term)
            m.d.comb += self.o.terms[index].eq(term)
        return m

    def _shifted(self, product: Signal, shift_a: Value, shift_b: Value) -> Value:
        """A product shifted to the left by both shifts less their offsets."""
        offset = sum(code.offset for code in self._codes)
        bits = len(product) + sum(code.shift for code in self._codes)
        shifted = (product << (shift_a + shift_b))[offset : offset + bits]
        return shifted.as_signed() if product.shape().signed else shifted


class AddPairs(Step):
    """One level of the tree: half as many terms, one bit wider."""

    def __init__(self, terms: SignedTerms, sums: SignedTerms) -> None:
        super().__init__(terms.layout, sums.layout, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        terms = self.i.terms
        m.d.comb += passed(self.i, self.o)
        m.d.comb += [
            total.eq(terms[2 * index] + terms[2 * index + 1])
            for index, total in enumerate(self.o.terms)
        ]
        return m


class ScaleTerms(Step):
    """Every term times the scales of its group."""

    def __init__(self, terms: SignedTerms, scaling: GroupScaling, products: SignedTerms) -> None:
        self._scaling = scaling
        levels = 4 * scaling.shift.bit_length() + 3 * (scaling.factor - 1).bit_length()
        super().__init__(terms.layout, products.layout, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts and the multipliers."""
        m = Module()
        m.d.comb += passed(self.i, self.o)
        group = self._scaling.group
        for index, product in enumerate(self.o.terms):
            term = self.i.terms[index]
            if self._scaling.shift:
                term = term << self.i[f"shift{group}"][index]
            if self._scaling.factor > 1:
                term = term * self.i[f"factor{group}"][index]
            m.d.comb += product.eq(term)
        return m


class AddLast(Step):
    """The last two terms become the sum, or the last one is it."""

    def __init__(self, terms: SignedTerms) -> None:
        self._count = terms.count
        super().__init__(terms.layout, terms.shape.sum, levels=9)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        terms = self.i.terms
        total = terms[0] + terms[1] if self._count == 2 else terms[0]
        m.d.comb += result(total, self.i, self.o)
        return m


def block_dot_words(shape: DotShape) -> list[Step]:
    """The steps of a block dot product, from a pair of blocks to `DotShape.sum`."""
    bound = shape.bound // shape.block
    for scaling in shape.scalings:
        bound //= scaling.factor << scaling.shift
    terms = SignedTerms(shape, shape.block, bound, shape.scalings)
    steps: list[Step] = [MultiplyCodes(shape, terms)]
    for index, scaling in enumerate(shape.scalings):
        while terms.count * scaling.group > shape.block:
            sums = SignedTerms(shape, terms.count // 2, 2 * terms.bound, terms.later)
            steps.append(AddPairs(terms, sums))
            terms = sums
        bound = terms.bound * scaling.factor << scaling.shift
        products = SignedTerms(shape, terms.count, bound, shape.scalings[index + 1 :])
        steps.append(ScaleTerms(terms, scaling, products))
        terms = products
    while terms.count > 2:
        sums = SignedTerms(shape, terms.count // 2, 2 * terms.bound, terms.later)
        steps.append(AddPairs(terms, sums))
        terms = sums
    return [*steps, AddLast(terms)]
