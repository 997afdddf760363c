"""The energy baseline: a dot product of INT8 vectors, and its golden model in NumPy."""

from typing import Any

import numpy as np
from amaranth.hdl import Module, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from axs6.hw.core.trees import balanced

BITS = 8
LARGEST = (1 << BITS - 1) - 1
"""Largest magnitude that symmetric quantisation gives."""


def sum_bits(lanes: int) -> int:
    """Return the width of the sum of `lanes` products, of any operands."""
    return 2 * BITS + (lanes - 1).bit_length()


class Int8Dot(wiring.Component):
    """A combinational stream unit: the sum of `lanes` products of signed 8-bit integers.

    Plain multiplications and a balanced tree of additions, exact, with latency 0 and interval 1.

    Args:
        lanes: number of products, a power of two.
    """

    latency = 0

    def __init__(self, lanes: int) -> None:
        operand = data.ArrayLayout(signed(BITS), lanes)
        pairs = data.StructLayout({"a": operand, "b": operand})
        total = data.StructLayout({"sum": signed(sum_bits(lanes))})
        super().__init__({"i": In(stream.Signature(pairs)), "o": Out(stream.Signature(total))})

    def elaborate(self, platform: Any) -> Module:
        """Build the multipliers and the adders."""
        m = Module()
        a, b = self.i.payload.a, self.i.payload.b
        products: list[Value] = [x * y for x, y in zip(a, b, strict=True)]
        m.d.comb += [
            self.o.payload.sum.eq(balanced(products, lambda x, y: x + y)),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
        ]
        return m


def int8_dot(items: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the outputs of `Int8Dot` for items of shape (N, lanes)."""
    a, b = (items[name].astype(np.int64) for name in ("a", "b"))
    return {"sum": (a * b).sum(axis=1)}


def quantise(x: NDArray[np.floating[Any]]) -> NDArray[np.int8]:
    """Return a tensor in INT8: its largest magnitude becomes 127, the rest rounds to nearest even.

    The scale is one for the tensor and zero has no offset. A tensor of zeros gives zeros.
    """
    largest = float(np.abs(x).max(initial=0))
    scale = LARGEST / largest if largest else 0.0
    return np.rint(x.astype(np.float64) * scale).astype(np.int8)
