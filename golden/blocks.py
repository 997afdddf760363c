"""`Blocks`: an array of AXS-6 blocks, unpacked."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axs6.golden.spec import CODE_BITS, Mode, check_block_size


def check_blocks(name: str, value: object) -> None:
    """Raise TypeError unless `value` is Blocks; `name` is the argument's."""
    if not isinstance(value, Blocks):
        raise TypeError(
            f"{name} must be Blocks, as axs6.encode gives them, not {type(value).__name__}"
        )


@dataclass(frozen=True, eq=False)
class Blocks:
    """Values in AXS-6, blocked along the last axis.

    Args:
        exponents: shared exponents, uint8 of shape (..., n).
        modes: payload layouts (`Mode`), uint8 of shape (..., n).
        codes: `sign << 5 | magnitude`, uint8 of shape (..., n, B).
        shape: shape of the values that were encoded, (..., K) with K <= n * B.

    Raises:
        TypeError: an array is not uint8.
        ValueError: the shapes do not fit together, or a code or mode is out of range.
    """

    exponents: NDArray[np.uint8]
    modes: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("exponents", "modes", "codes"):
            dtype = getattr(self, name).dtype
            if dtype != np.uint8:
                raise TypeError(f"{name} must be uint8, not {dtype}")
        if self.codes.ndim < 2 or self.codes.shape[:-1] != self.exponents.shape:
            raise ValueError(
                f"codes must have the shape of exponents plus one axis, {self.exponents.shape} + "
                f"(B,), not {self.codes.shape}"
            )
        if self.modes.shape != self.exponents.shape:
            raise ValueError(
                f"modes must have the shape of exponents {self.exponents.shape}, "
                f"not {self.modes.shape}"
            )
        check_block_size(self.block_size)
        expected = (*self.shape[:-1], -(-self.shape[-1] // self.block_size)) if self.shape else ()
        if self.exponents.shape != expected:
            raise ValueError(
                f"values of shape {self.shape} in blocks of {self.block_size} need exponents of "
                f"shape {expected}, not {self.exponents.shape}"
            )
        if self.codes.size and int(self.codes.max()) >> CODE_BITS:
            raise ValueError(f"codes must be below {1 << CODE_BITS}, not {int(self.codes.max())}")
        if self.modes.any():
            first = int(np.flatnonzero(self.modes)[0])
            raise ValueError(
                f"block {first} has mode {int(self.modes.flat[first])}; "
                f"only mode {int(Mode.DENSE)} (dense) is supported"
            )

    @property
    def block_size(self) -> int:
        """Values in a block, B."""
        return int(self.codes.shape[-1])

    def __repr__(self) -> str:
        return f"Blocks(shape={self.shape}, block_size={self.block_size})"
