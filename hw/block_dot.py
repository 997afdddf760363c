"""Block dot product: two dense blocks become one 16-bit sum and the sum of their exponents."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.spec import EXPONENT_SUM_BITS, PRODUCT_BITS, check_block_size
from axs6.hw.layouts import code_layout, pair_layout, sum_layout
from axs6.hw.pipeline import Pipeline, Step


def terms_layout(count: int, width: int) -> data.StructLayout:
    """Signed terms still to be added, and the exponent of their sum."""
    return data.StructLayout(
        {
            "terms": data.ArrayLayout(signed(width), count),
            "exponent": EXPONENT_SUM_BITS,
        }
    )


class ProductLane(wiring.Component):
    """Signed product of two codes: the 10-bit product of magnitudes, negated if signs differ."""

    def __init__(self) -> None:
        product = Out(signed(PRODUCT_BITS + 1))
        super().__init__({"a": In(code_layout), "b": In(code_layout), "product": product})

    def elaborate(self, platform: Any) -> Module:
        """Build the multiplier and the negation."""
        m = Module()
        magnitude = Signal(PRODUCT_BITS)
        m.d.comb += [
            magnitude.eq(self.a.magnitude * self.b.magnitude),
            self.product.eq(Mux(self.a.sign ^ self.b.sign, -magnitude, magnitude)),
        ]
        return m


class Products(Step):
    """`ProductLane` for each pair of codes, and the sum of the exponents."""

    def __init__(self, block: int) -> None:
        super().__init__(pair_layout(block), terms_layout(block, PRODUCT_BITS + 1), levels=22)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += self.o.exponent.eq(self.i.a.exponent + self.i.b.exponent)
        pairs = zip(self.i.a.codes, self.i.b.codes, strict=True)
        for index, (a, b) in enumerate(pairs):
            lane = m.submodules[f"lane{index}"] = ProductLane()
            m.d.comb += [lane.a.eq(a), lane.b.eq(b), self.o.terms[index].eq(lane.product)]
        return m


class AddPairs(Step):
    """One level of the adder tree: half as many terms, one bit wider."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__(terms_layout(count, width), terms_layout(count // 2, width + 1), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        m.d.comb += self.o.exponent.eq(self.i.exponent)
        for index, total in enumerate(self.o.terms):
            m.d.comb += total.eq(self.i.terms[2 * index] + self.i.terms[2 * index + 1])
        return m


class LastPair(Step):
    """The last level of the adder tree, whose result is the sum."""

    def __init__(self, width: int) -> None:
        super().__init__(terms_layout(2, width), sum_layout, levels=9)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        m.d.comb += [
            self.o.sum.eq(self.i.terms[0] + self.i.terms[1]),
            self.o.exponent.eq(self.i.exponent),
        ]
        return m


def block_dot_steps(block: int) -> list[Step]:
    """The steps of a block dot product, from a pair of blocks to `sum_layout`."""
    steps: list[Step] = [Products(block)]
    count, width = block, PRODUCT_BITS + 1
    while count > 2:
        steps.append(AddPairs(count, width))
        count, width = count // 2, width + 1
    return [*steps, LastPair(width)]


class BlockDot(Pipeline):
    """Multiplies a pair of dense blocks in each cycle; the result is exact and cannot overflow.

    Args:
        block: values in a block: 8, 16 or 32.
        stages: ranks of registers, 0 to log2(block) + 2.

    Latency is `stages` cycles, interval 1. Source: docs/format.md, "Block dot product".
    """

    def __init__(self, block: int = 32, stages: int = 0) -> None:
        super().__init__(block_dot_steps(check_block_size(block)), stages)
