"""Numbers that are rounded to FP32, and layouts of them as their leading zeros are counted."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Value, signed
from amaranth.lib import data

from axs6.golden.formats import FP32
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.fp32.common import BYTE, FRACTION, SIGNIFICAND, pass_on

LEAST_EXPONENT = FP32.bias - 1 + FRACTION
"""The least FP32 subnormal is 2 to minus this."""

NAN, PLUS, MINUS = 1, 2, 3
"""Values of `special`: NaN, and infinities of either sign."""

REST = BYTE.bit_length() - 1
"""Low bits of the leading zeros by which a wide magnitude moves up in a step of their own."""


@dataclass(frozen=True)
class Number:
    """The input of a conversion: a sign and a magnitude, times 2^(exponent + offset).

    Args:
        width: bits of the magnitude.
        exponent_bits: of the exponent; 0 where it is 0.
        offset: added to the exponent.
        special: whether there may be NaN or an infinity in its place.
        most_zeros: leading zeros that a magnitude other than 0 has at most; any number by default.
    """

    width: int
    exponent_bits: int
    offset: int
    special: bool
    most_zeros: int | None = None

    @property
    def leading(self) -> int:
        """Bits at the top of a magnitude, one of which is set unless it is 0."""
        return self.width if self.most_zeros is None else self.most_zeros + 1

    @property
    def top(self) -> int:
        """The exponent field less one of a magnitude without leading zeros, under exponent 0."""
        return self.offset + LEAST_EXPONENT + self.width - SIGNIFICAND

    @property
    def field(self) -> int:
        """Bits of that field with its sign, whatever the exponent and the leading zeros."""
        low, high = self.top - self.leading, self.top + (1 << self.exponent_bits) - 1
        return max((~low).bit_length() if low < 0 else 0, high.bit_length(), 1) + 1

    @property
    def zeros(self) -> int:
        """Bits of a number of leading zeros."""
        return (self.leading - 1).bit_length()

    def layout(self, **fields: Any) -> data.StructLayout:
        """A layout with the sign and what stands in the place of a number."""
        special = {"special": 2} if self.special else {}
        return StructLayout({"sign": 1, **fields, **special})

    @property
    def given(self) -> data.StructLayout:
        """Sign, magnitude and exponent."""
        exponent = {"exponent": self.exponent_bits} if self.exponent_bits else {}
        return self.layout(magnitude=self.width, **exponent)

    @property
    def named(self) -> data.StructLayout:
        """Sign and magnitude, and the exponent of its top bit's place."""
        return self.layout(magnitude=self.width, top=signed(self.field))

    @property
    def counted(self) -> data.StructLayout:
        """The same with the leading zeros of the magnitude."""
        return StructLayout({"zeros": self.zeros, **self.named.members})

    @property
    def grouped(self) -> data.StructLayout:
        """The same with the leading zeros of each byte, and whether a bit of it is set."""
        above, last = divmod(self.width - 1, BYTE)
        groups = {"zeros": ArrayLayout(REST, above), "some": above, "last": last.bit_length()}
        return StructLayout({**groups, **self.named.members})

    @property
    def placed(self) -> data.StructLayout:
        """A magnitude, its exponent field less one, and how far that is below 0."""
        bits = self.field
        return self.layout(magnitude=self.width, base=signed(bits), below=bits - 1)

    def top_of(self, i: data.View) -> Value:
        """The exponent of the top bit's place of what is given."""
        exponent = i.exponent if self.exponent_bits else Const(0, 1)
        return exponent - -self.top if self.top < 0 else exponent + self.top

    def pass_on(self, m: Module, step: Step, *names: str) -> None:
        """Connect members that a step leaves as they are, what stands in the place among them."""
        pass_on(m, step, "sign", *names, *["special"] * self.special)
