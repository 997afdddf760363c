"""The numbers of an encoder's lanes: from a significand and its place to a code."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from axs6.golden.formats import BlockFormat, Element, Float
from axs6.golden.rounding import Rounding


@dataclass(frozen=True)
class LaneNumbers(ABC):
    """Numbers of the lanes of an encoder; a class for each kind of scales derives from it.

    Args:
        fmt: the block format.
        dtype: of the values.
        rounding: how they are rounded.
        random_bits: bits of a random word, 0 unless rounding is stochastic.
    """

    fmt: BlockFormat
    dtype: Float
    rounding: Rounding
    random_bits: int

    @property
    def lanes(self) -> int:
        """Values of a block."""
        return self.fmt.block

    @property
    def element(self) -> Element:
        """The element."""
        return self.fmt.element

    @property
    def propagates(self) -> bool:
        """Whether NaN and infinities keep their meaning."""
        return self.fmt.has_nan

    @property
    @abstractmethod
    def top(self) -> int:
        """Exponent, over its scale, of a value at the distance 0."""

    @property
    def significand_bits(self) -> int:
        """Bits of the significands that are rounded."""
        return self.dtype.fraction_bits + 1

    @property
    @abstractmethod
    def exceeds(self) -> bool:
        """Whether values may have a higher place than the distance 0 has."""

    @property
    @abstractmethod
    def clamps(self) -> bool:
        """Whether a finite value may come above the largest element."""

    @property
    def normal(self) -> int:
        """How far below the place of its block a value's quantum stops to shrink."""
        return self.top - self.element.emin

    @property
    def factor_bits(self) -> int:
        """Bits of the element's divisor, by which significands are multiplied; 0 where it is 1."""
        return self.element.divisor.bit_length() if self.element.divisor > 1 else 0

    @property
    def sticky(self) -> bool:
        """Whether rounding looks at all bits below the half."""
        if self.rounding is not Rounding.NEAREST or self.element.ties_away:
            return False
        return self.element.listed or not self.factor_bits

    @property
    def below(self) -> int:
        """Bits below a code's last that rounding looks at, without the sticky one."""
        return {Rounding.NEAREST: 1, Rounding.TOWARD_ZERO: 0}.get(self.rounding, self.random_bits)

    @property
    def kept_bits(self) -> int:
        """Bits of a significand, times the divisor, that a lane keeps, without the sticky one."""
        whole = self.element.fraction_bits + 1
        return whole + self.factor_bits + self.below

    @property
    def cuts(self) -> bool:
        """Whether that leaves bits out."""
        return self.significand_bits + self.factor_bits > self.kept_bits

    @property
    def farthest(self) -> int:
        """The largest shift to the right that leaves one of those bits."""
        return self.kept_bits - 1


def floor_log2(x: Fraction) -> int:
    """floor(log2 x) of a positive number, exactly."""
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if Fraction(2) ** n <= x else n - 1
