"""Elements whose values are listed, one for each code."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final

from axs6.golden.arguments import check_integer
from axs6.golden.formats.codes import Codes

TABLE_MAX: Final = 16
"""Maximum number of codes of a table."""

COUNT_BITS: Final = 31
"""Maximum bits of a value in units, so that scales over the largest one round once."""


@dataclass(frozen=True)
class ValueTable(Codes):
    """A value for each code: an integer times a unit.

    A value is encoded as the nearest of its sign or 0, a tie as the even code; if neither code or
    both are even, as the smaller magnitude.

    Args:
        counts: the value of each code in units, 4, 8 or 16 of them, all different and one of them
            0; None for a code that is never written, and is read as 0.
        unit_exponent: the unit is 2^unit_exponent, or that over the divisor.
        over: the divisor, 1 or 2^n - 1 of up to 7 bits; the largest magnitude is a multiple of it.

    Raises:
        ValueError: there are not 4, 8 or 16, two are equal, none is 0 or above, one is too large,
            or the divisor does not fit.
    """

    counts: tuple[int | None, ...]
    unit_exponent: int = 0
    over: int = 1
    listed: ClassVar[bool] = True
    signed_zero: ClassVar[bool] = False
    has_negative_zero: ClassVar[bool] = False
    sign_bit: ClassVar[int] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple(self.counts))
        check_integer("unit_exponent", self.unit_exponent, -64, 64)
        check_integer("over", self.over, 1, 127)
        sizes = tuple(1 << bits for bits in range(2, TABLE_MAX.bit_length()))
        if len(self.counts) not in sizes:
            known = ", ".join(map(str, sizes))
            raise ValueError(f"a table must have {known} values, not {len(self.counts)}")
        most = (1 << COUNT_BITS) - 1
        counts = [check_integer("a value", x, -most, most) for x in self.counts if x is not None]
        for value in counts:
            if counts.count(value) > 1:
                raise ValueError(f"values of a table must differ, and {value} is there twice")
        if 0 not in counts:
            raise ValueError("a table must have the value 0, which stands for zeros and padding")
        if max(counts) <= 0:
            raise ValueError("a table must have a value above 0")
        if self.over & self.over + 1:
            raise ValueError(f"the divisor of a table must be 2^n - 1, not {self.over}")
        if self.largest_integer % self.over:
            raise ValueError(
                f"the largest magnitude of a table must be a multiple of its divisor {self.over}, "
                f"not {self.largest_integer}"
            )

    @property
    def width(self) -> int:
        """Bits of a code."""
        return len(self.counts).bit_length() - 1

    @property
    def divisor(self) -> int:
        """Divisor of the power of two of a quantum."""
        return self.over

    @cached_property
    def largest_integer(self) -> int:
        """The largest magnitude, in units."""
        return max(abs(x) for x in self.counts if x is not None)

    @cached_property
    def largest_code(self) -> int:
        """Code of the largest magnitude, of the positive value if there are two."""
        top = self.largest_integer
        return self.counts.index(top if top in self.counts else -top)

    @property
    def emin(self) -> int:
        """Exponent of the largest power of two in units that is not above the largest value."""
        return self.unit_exponent + self.fraction_bits

    @property
    def fraction_bits(self) -> int:
        """Bits of a quantum below 2^emin."""
        return self.integer_bits - 1

    @property
    def fixed(self) -> bool:
        """Whether all values have one quantum."""
        return True

    @cached_property
    def smallest(self) -> Fraction:
        """The smallest magnitude above 0."""
        return min(abs(x) for x in self.counts if x) * self.unit

    @cached_property
    def zero_code(self) -> int:
        """The code of 0."""
        return self.counts.index(0)

    def side(self, negative: bool) -> list[tuple[int, int]]:
        """Magnitudes of one sign in units, from 0 up, each with its code."""
        sign = -1 if negative else 1
        given = [(sign * x, code) for code, x in enumerate(self.counts) if x is not None]
        return sorted(pair for pair in given if pair[0] >= 0)

    def integer(self, code: int) -> int:
        """The signed value of a code, counted in `unit`."""
        return self.counts[code] or 0


NF4: Final = ValueTable(
    (
        *(-134217728, -93441416, -70474112, -53004928, -38177076, -24799870, -12220529, 0),
        *(10681087, 21599686, 33032634, 45354216, 59151072, 75513176, 97033624, 134217728),
    ),
    -27,
)
"""The 16 FP32 numbers of NormalFloat4 in bitsandbytes (QLoRA, arXiv 2305.14314)."""

NF4_Q6: Final = ValueTable(
    (-64, -45, -34, -25, -18, -12, -6, 0, 5, 10, 16, 22, 28, 36, 46, 64),
    -6,
)
"""NF4 to the nearest multiples of 2^-6, which integers of 8 bits hold."""

NAMED: Final = {"nf4": NF4, "nf4q6": NF4_Q6}
"""Tables that strings have names for."""
