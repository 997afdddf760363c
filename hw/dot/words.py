"""The block dot product in words: products by `*`, and a balanced tree of `+`."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data

from axs6.golden.spec import EXPONENT_SUM_BITS, PRODUCT_BITS
from axs6.hw.core.layouts import code_layout, pair_layout, sum_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout


def terms_layout(count: int, width: int) -> data.StructLayout:
    """Signed terms that are still to be added, and the exponent of their sum."""
    terms = ArrayLayout(signed(width), count)
    return StructLayout({"terms": terms, "exponent": EXPONENT_SUM_BITS})


class Multiply(Step):
    """The signed product of each pair of codes, and the sum of the exponents."""

    def __init__(self, block: int) -> None:
        super().__init__(pair_layout(block), terms_layout(block, PRODUCT_BITS + 1), levels=22)

    def elaborate(self, platform: Any) -> Module:
        """Build the multipliers and the negations."""
        m = Module()
        m.d.comb += self.o.exponent.eq(self.i.a.exponent + self.i.b.exponent)
        pairs = zip(self.i.a.codes, self.i.b.codes, strict=True)
        for index, (first, second) in enumerate(pairs):
            a, b = code_layout(first), code_layout(second)
            product = Signal(PRODUCT_BITS, name=f"product{index}")
            m.d.comb += [
                product.eq(a.magnitude * b.magnitude),
                self.o.terms[index].eq(Mux(a.sign ^ b.sign, -product, product)),
            ]
        return m


class AddPairs(Step):
    """One level of the tree: half as many terms, one bit wider."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__(terms_layout(count, width), terms_layout(count // 2, width + 1), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        terms = self.i.terms
        m.d.comb += self.o.exponent.eq(self.i.exponent)
        m.d.comb += [
            total.eq(terms[2 * index] + terms[2 * index + 1])
            for index, total in enumerate(self.o.terms)
        ]
        return m


class AddLast(Step):
    """The last two terms become the sum."""

    def __init__(self, width: int) -> None:
        held = EXPONENT_SUM_BITS + width + 1
        super().__init__(terms_layout(2, width), sum_layout, levels=9, held=held)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        m.d.comb += [
            self.o.sum.eq(self.i.terms[0] + self.i.terms[1]),
            self.o.exponent.eq(self.i.exponent),
        ]
        return m


def block_dot_words(block: int) -> list[Step]:
    """The steps of a block dot product, from a pair of blocks to `sum_layout`."""
    steps: list[Step] = [Multiply(block)]
    count, width = block, PRODUCT_BITS + 1
    while count > 2:
        steps.append(AddPairs(count, width))
        count, width = count // 2, width + 1
    return [*steps, AddLast(width)]
