"""One lane of the encoder: from a value and the distance to its block's exponent to a code.

Let M_0 M_1 ... M_F be the bits of a significand, from the hidden one, and x its value over the
block's scale, a binary fraction 0.x_1 x_2 ... whose bit j is M_(j - 1 - d) in a lane whose exponent
is d below the block's. With n = floor(32 x), the first five bits, and f the bits after them,

    31 x = n + f - (n + f) / 32,

so a rounded 31 x is n - 1, n or n + 1, and which one it is follows from comparing f with n / 31
(toward zero) or with n / 31 moved by one half (nearest). n / 31 is the five bits of n for ever,
and that fraction is compared with f bit by bit: x_j with x_(j - 5). The pairs are those of
M_i and M_(i - 5) whatever d is, so all distances share one chain of comparisons. Nearest inverts
x_1 in the first pair; its only tie is x = 1/2, where up is even.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.spec import MAGNITUDE_BITS, FloatFormat, Rounding
from axs6.hw.encoder_fields import deepest_subnormal, positions
from axs6.hw.layouts import code_layout


def candidates_layout(fmt: FloatFormat) -> data.StructLayout:
    """What a lane's code is chosen from.

    `leading` are the significand's first bits, the hidden one lowest; a bit of `least` for each
    distance says that the fraction behind its five bits is at least what rounds up. Where a block
    of subnormals may bring the last bit to the top, that bit itself decides there.
    """
    leading = min(MAGNITUDE_BITS + deepest_subnormal(fmt), fmt.fraction_bits + 1)
    return data.StructLayout({"leading": leading, "least": positions(fmt) - last_bit_leads(fmt)})


def last_bit_leads(fmt: FloatFormat) -> bool:
    """Whether the last bit of a significand can be the first of its block."""
    return deepest_subnormal(fmt) == fmt.fraction_bits


choice_layout = data.StructLayout({"bits": MAGNITUDE_BITS, "change": 1})
"""The first five bits of a value over the scale, and whether rounding changes them by one."""


def majority(a: Value, b: Value, c: Value) -> Value:
    """Whether two of three bits are set."""
    return (a & b) | (c & (a | b))


class CompareLane(wiring.Component):
    """Compares a significand with itself five bits further, for all distances that matter."""

    def __init__(self, fmt: FloatFormat, rounding: Rounding) -> None:
        self._fmt = fmt
        self._rounding = rounding
        super().__init__(
            {"significand": In(fmt.fraction_bits + 1), "o": Out(candidates_layout(fmt))}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the chain and, at each of its ends, the first pair."""
        m = Module()
        last = self._fmt.fraction_bits
        deepest = deepest_subnormal(self._fmt)

        def bit(index: int) -> Value:
            return self.significand[last - index] if 0 <= index <= last else Const(0, 1)

        least: dict[int, Value] = {last + MAGNITUDE_BITS + 1: Const(1, 1)}
        for index in range(last + MAGNITUDE_BITS, -1, -1):
            least[index] = Signal(name=f"least{index}")
            pair = majority(bit(index), ~bit(index - MAGNITUDE_BITS), least[index + 1])
            m.d.comb += least[index].eq(pair)
        nearest = self._rounding is Rounding.NEAREST
        for index, result in enumerate(self.o.least):
            distance = index + last_bit_leads(self._fmt) - deepest
            first = MAGNITUDE_BITS - distance
            m.d.comb += result.eq(
                majority(bit(first), bit(-distance), least[first + 1]) if nearest else least[first]
            )
        width = len(self.o.leading)
        m.d.comb += self.o.leading.eq(Cat(bit(index) for index in range(width)))
        return m


class ChooseLane(wiring.Component):
    """The five bits at a lane's distance, and whether rounding changes them.

    `chosen` has a bit for each distance; none is set where the value is far below the block's
    exponent.
    """

    def __init__(self, fmt: FloatFormat, rounding: Rounding) -> None:
        self._fmt = fmt
        self._rounding = rounding
        super().__init__(
            {
                "candidates": In(candidates_layout(fmt)),
                "chosen": In(positions(fmt)),
                "choice": Out(choice_layout),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build a selection for each bit."""
        m = Module()
        deepest = deepest_subnormal(self._fmt)
        count = positions(self._fmt)
        bits = Signal(MAGNITUDE_BITS)
        m.d.comb += self.choice.bits.eq(bits)
        for place in range(MAGNITUDE_BITS):
            terms = [
                self.chosen[position] & self.candidates.leading[place + deepest - position]
                for position in range(min(count, place + deepest + 1))
                if place + deepest - position < len(self.candidates.leading)
            ]
            m.d.comb += bits[MAGNITUDE_BITS - 1 - place].eq(Cat(terms).any())
        nearest = self._rounding is Rounding.NEAREST
        decides = self.candidates.least if nearest else ~self.candidates.least
        if last_bit_leads(self._fmt):
            decides = Cat(self.candidates.leading[-1], decides)
        decided = Cat(self.chosen & decides).any()
        m.d.comb += self.choice.change.eq(decided ^ bits[-1] if nearest else decided)
        return m


class RoundLane(wiring.Component):
    """The code: five bits, plus or minus one where rounding changes them."""

    def __init__(self, rounding: Rounding) -> None:
        self._rounding = rounding
        super().__init__(
            {
                "choice": In(choice_layout),
                "sign": In(1),
                "infinite": In(1),
                "code": Out(code_layout),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the half adders, which subtract in the upper half or toward zero."""
        m = Module()
        bits = self.choice.bits
        down = bits[-1] if self._rounding is Rounding.NEAREST else Const(1, 1)
        carry: Value = self.choice.change
        for index, bit in enumerate(bits):
            m.d.comb += self.code.magnitude[index].eq(bit ^ carry | self.infinite)
            carry = carry & (bit ^ down)
        m.d.comb += self.code.sign.eq(self.sign)
        return m
