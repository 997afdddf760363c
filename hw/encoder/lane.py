"""One lane of the encoder: from a value and the distance to its block's exponent to a code.

Let M_0 M_1 ... M_F be the bits of a significand, from the hidden one, and x its value over the
block's scale, a binary fraction 0.x_1 x_2 ... whose bit j is M_(j - 1 - d) in a lane whose exponent
is d below the block's. For a code of N bits, with n = floor(2^N x), the first N bits, and f the
bits after them,

    (2^N - 1) x = n + f - (n + f) / 2^N,

so the rounded product is n - 1, n or n + 1, and which one it is follows from comparing f with
n / (2^N - 1) (toward zero) or with that moved by one half (nearest). n / (2^N - 1) is the N bits
of n for ever, and that fraction is compared with f bit by bit: x_j with x_(j - N). The pairs are
those of M_i and M_(i - N) whatever d is, so all distances share one chain of comparisons. Nearest
inverts x_1 in the first pair; its only tie is x = 1/2, where up is even.
"""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Float, SignMagnitude
from axs6.golden.rounding import Rounding
from axs6.hw.core.layouts import code_layout_of
from axs6.hw.core.structures import StructLayout
from axs6.hw.encoder.fields import deepest_subnormal, positions


def candidates_layout(dtype: Float, code: SignMagnitude) -> data.StructLayout:
    """Candidates for a lane's code.

    `leading` are the significand's first bits, the hidden one lowest; a bit of `least` for each
    distance says that the fraction behind the code's bits is at least what rounds up. Where a block
    of subnormals may bring the last bit to the top, that bit itself decides there.
    """
    leading = min(code.magnitude_bits + deepest_subnormal(dtype), dtype.fraction_bits + 1)
    least = positions(dtype, code) - last_bit_leads(dtype)
    return StructLayout({"leading": leading, "least": least})


def last_bit_leads(dtype: Float) -> bool:
    """Whether the last bit of a significand can be the first of its block."""
    return deepest_subnormal(dtype) == dtype.fraction_bits


def choice_layout(code: SignMagnitude) -> data.StructLayout:
    """The first bits of a value over the scale, and whether rounding changes them by one."""
    return StructLayout({"bits": code.magnitude_bits, "change": 1})


def majority(a: Value, b: Value, c: Value) -> Value:
    """Whether two of three bits are set."""
    return (a & b) | (c & (a | b))


@dataclass(frozen=True)
class Candidates:
    """A lane that keeps what a code is chosen from; see `axs6.hw.encoder.front.Kept`."""

    dtype: Float
    rounding: Rounding
    code: SignMagnitude

    @property
    def layout(self) -> data.StructLayout:
        """Candidates for all distances."""
        return candidates_layout(self.dtype, self.code)

    def build(self, m: Module, significand: Value) -> Value:
        """Add the comparison within the significand."""
        m.submodules.compare = compare = CompareLane(self.dtype, self.rounding, self.code)
        m.d.comb += compare.significand.eq(significand)
        return Value.cast(compare.o)


class CompareLane(wiring.Component):
    """Compares a significand with itself a code's bits further, for all distances that matter."""

    def __init__(self, dtype: Float, rounding: Rounding, code: SignMagnitude) -> None:
        self._dtype = dtype
        self._rounding = rounding
        self._code = code
        super().__init__(
            {"significand": In(dtype.fraction_bits + 1), "o": Out(candidates_layout(dtype, code))}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the chain and, at each of its ends, the first pair."""
        m = Module()
        last, bits = self._dtype.fraction_bits, self._code.magnitude_bits
        deepest = deepest_subnormal(self._dtype)

        def bit(index: int) -> Value:
            return self.significand[last - index] if 0 <= index <= last else Const(0, 1)

        least: dict[int, Value] = {last + bits + 1: Const(1, 1)}
        for index in range(last + bits, -1, -1):
            least[index] = Signal(name=f"least{index}")
            pair = majority(bit(index), ~bit(index - bits), least[index + 1])
            m.d.comb += least[index].eq(pair)
        nearest = self._rounding is Rounding.NEAREST
        for index, result in enumerate(self.o.least):
            distance = index + last_bit_leads(self._dtype) - deepest
            first = bits - distance
            m.d.comb += result.eq(
                majority(bit(first), bit(-distance), least[first + 1]) if nearest else least[first]
            )
        width = len(self.o.leading)
        m.d.comb += self.o.leading.eq(Cat(bit(index) for index in range(width)))
        return m


class ChooseLane(wiring.Component):
    """The bits at a lane's distance, and whether rounding changes them.

    `chosen` has a bit for each distance; none is set where the value is far below the block's
    exponent.
    """

    def __init__(self, dtype: Float, rounding: Rounding, code: SignMagnitude) -> None:
        self._dtype = dtype
        self._rounding = rounding
        super().__init__(
            {
                "candidates": In(candidates_layout(dtype, code)),
                "chosen": In(positions(dtype, code)),
                "choice": Out(choice_layout(code)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build a selection for each bit."""
        m = Module()
        deepest = deepest_subnormal(self._dtype)
        count = len(self.chosen)
        bits = Signal.like(self.choice.bits)
        m.d.comb += self.choice.bits.eq(bits)
        for place in range(len(bits)):
            terms = [
                self.chosen[position] & self.candidates.leading[place + deepest - position]
                for position in range(min(count, place + deepest + 1))
                if place + deepest - position < len(self.candidates.leading)
            ]
            m.d.comb += bits[-1 - place].eq(Cat(terms).any())
        nearest = self._rounding is Rounding.NEAREST
        decides = self.candidates.least if nearest else ~self.candidates.least
        if last_bit_leads(self._dtype):
            decides = Cat(self.candidates.leading[-1], decides)
        decided = Cat(self.chosen & decides).any()
        m.d.comb += self.choice.change.eq(decided ^ bits[-1] if nearest else decided)
        return m


class RoundChoiceLane(wiring.Component):
    """The code: its bits, plus or minus one where rounding changes them."""

    verilog_name = "round_lane"

    def __init__(self, rounding: Rounding, code: SignMagnitude) -> None:
        self._rounding = rounding
        super().__init__(
            {
                "choice": In(choice_layout(code)),
                "sign": In(1),
                "infinite": In(1),
                "code": Out(code_layout_of(code)),
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
