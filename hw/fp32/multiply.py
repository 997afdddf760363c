"""FP32 multiplication as combinational steps, with one rounding to nearest even."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import data

from axs6.golden.formats import FP32
from axs6.hw.core.compressor import Bit, Tree, value_of
from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.fp32.common import FIELD, FRACTION, SIGNIFICAND, field_of, layout, significand_of
from axs6.hw.fp32.convert import rounding_steps
from axs6.hw.fp32.number import MINUS, NAN, PLUS, Number

factors_layout = StructLayout({"value": FP32.width, "outer": FP32.width})
"""The factors."""

exact_product = Number(2 * SIGNIFICAND, FIELD + 1, 2 * (FP32.emin - FRACTION) - 2, special=True)
"""The product of two significands, exactly; exponent fields are at least 1."""


class MultiplySignificands(Step):
    """The product of the significands, the sum of the exponent fields, and what is special.

    Args:
        view: "structure", a compressor tree, or "behaviour", `*`.
    """

    def __init__(self, view: str) -> None:
        self._view = view
        super().__init__(factors_layout, exact_product.given, levels=40)

    def elaborate(self, platform: Any) -> Module:
        """Build the multiplier and the adder."""
        m = Module()
        a, b = data.View(layout, self.i.value), data.View(layout, self.i.outer)
        exponents = [field_of(x) for x in (a, b)]
        special = [x.exponent.all() for x in (a, b)]
        nan = [each & x.fraction.any() for each, x in zip(special, (a, b), strict=True)]
        zero = [~significand_of(x).any() for x in (a, b)]
        invalid = (special[0] & zero[1]) | (special[1] & zero[0])
        sign = a.sign ^ b.sign
        infinite = Mux(sign, MINUS, PLUS)
        x, y = significand_of(a), significand_of(b)
        m.d.comb += [
            self.o.magnitude.eq(product(m, x, y, self._view)),
            self.o.exponent.eq(exponents[0] + exponents[1]),
            self.o.sign.eq(sign),
            self.o.special.eq(
                Mux(nan[0] | nan[1] | invalid, NAN, Mux(special[0] | special[1], infinite, 0))
            ),
        ]
        return m


def product(m: Module, a: Any, b: Any, view: str) -> Any:
    """The product of two unsigned numbers: a compressor tree and one adder, or `*`."""
    if view == BEHAVIOUR:
        return a * b
    first, second = product_rows(m, a, b)
    return first + second


def product_rows(m: Module, a: Any, b: Any) -> list[Value]:
    """Two numbers whose sum is the product of two unsigned numbers, from a compressor tree."""
    partial = [(x + y, bit & other) for x, bit in enumerate(a) for y, other in enumerate(b)]
    tree = Tree([1] * len(partial))
    columns: list[list[Bit]] = [[] for _ in range(len(a) + len(b))]
    for (weight, _), bit in zip(partial, tree.inputs, strict=True):
        columns[weight].append(bit)
    left = tree.compress(columns, rows=2)
    deepest = max(bit.level for column in left for bit in column)
    nodes = tree.build(m, {node: value for node, (_, value) in enumerate(partial)}, 0, deepest)
    return [
        Cat(value_of(column[row], nodes) if row < len(column) else Const(0, 1) for column in left)
        for row in range(2)
    ]


def multiplication_steps(view: str) -> list[Step]:
    """The steps from `factors_layout` to `fp32_layout`."""
    return [MultiplySignificands(view), *rounding_steps(exact_product)]
