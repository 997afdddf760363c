"""Parts of a dot product: steps in front of a loop, the loop, and steps behind it."""

from abc import ABC, abstractmethod

from amaranth.lib import data

from axs6.golden.accumulator import Accumulator
from axs6.golden.formats import BlockFormat
from axs6.hw.core.layouts import outer_layout
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import NOTHING, Step, past
from axs6.hw.dot.block_dot import block_dot_steps
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.accumulator import Fp32Accumulator as Fp32Accumulator
from axs6.hw.fp32.accumulator import Loop
from axs6.hw.fp32.convert import conversion_steps
from axs6.hw.fp32.divide import division_steps
from axs6.hw.fp32.multiply import multiplication_steps


class Parts(ABC):
    """The steps of a dot product and the loop between them.

    Args:
        formats: of the operands.
        lanes: values of a block.
        pair: layout of what both have in an item, `a` and `b`.
        accumulator: what adds the products.
    """

    def __init__(
        self,
        formats: tuple[BlockFormat, BlockFormat],
        lanes: int,
        pair: data.StructLayout,
        accumulator: Accumulator,
    ) -> None:
        self.formats, self.lanes, self.pair, self.accumulator = formats, lanes, pair, accumulator

    @property
    def scaled(self) -> bool:
        """Whether channels or tensors have scales."""
        return any(fmt.outer for fmt in self.formats)

    @property
    def outer(self) -> data.StructLayout:
        """The product of those scales, a field beside the totals, if there are any."""
        return outer_layout if self.scaled else NOTHING

    @abstractmethod
    def front(self, view: str) -> list[Step]:
        """From a pair to a term of the loop."""

    def fine_front(self) -> list[Step]:
        """The steps of the structure from a pair to a term, with places for the most registers."""
        return self.front(STRUCTURE)

    @abstractmethod
    def loop(self, interleave: int, view: str, carry: data.StructLayout) -> Loop:
        """The loop that holds the totals; `carry` is as of `Loop`."""

    @abstractmethod
    def back(self, view: str) -> list[Step]:
        """From a total, and `outer` beside it, to the result in FP32."""


class BlockParts(Parts):
    """Dot products whose block sums become FP32 values, which are added in order.

    Args:
        shape: the block dot product.
    """

    def __init__(self, shape: DotShape) -> None:
        super().__init__(shape.formats, shape.block, shape.pair, Accumulator())
        self._shape = shape

    def front(self, view: str) -> list[Step]:
        """The block dot product and its conversion."""
        convert = conversion_steps(self._shape.sum, self._shape.offset)
        return [*block_dot_steps(self._shape, view), *convert]

    def fine_front(self) -> list[Step]:
        """The same, with products and rounding in short steps."""
        convert = conversion_steps(self._shape.sum, self._shape.offset, fine=True)
        return [*block_dot_steps(self._shape, fine=True), *convert]

    def loop(self, interleave: int, view: str, carry: data.StructLayout) -> Loop:
        """The FP32 adder."""
        return Fp32Accumulator(interleave, carry=carry)

    def back(self, view: str) -> list[Step]:
        """The division and the multiplication."""
        return finishing_steps(self._shape.divisor, self.outer, view)


def finishing_steps(divisor: int, outer: data.StructLayout, view: str) -> list[Step]:
    """The division of an FP32 total, and its multiplication by `outer`, if there is one."""
    steps = past(division_steps(divisor), outer)
    return [*steps, *multiplication_steps(view)] if outer.size else steps
