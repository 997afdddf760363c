"""`Blocks`: an array of AXS-6 blocks, unpacked."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axs6.golden.spec import (
    DENSE_CODE,
    Mode,
    check_block,
    code_formats,
    dropped_values,
)

MAX_CODES = {
    mode: np.array([(1 << code.width) - 1 for code in code_formats(mode)], np.uint8)
    for mode in Mode
}
"""Largest codes at even and at odd indices."""


def chunks(rows: int, step: int) -> Iterator[slice]:
    """Rows of each chunk of at most `step`; one empty chunk of no rows."""
    for start in range(0, max(rows, 1), step):
        yield slice(start, min(start + step, rows))


def sparse_values(
    codes: NDArray[np.uint8],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which values of dense blocks (n, B) sparse ones do not store, and which blocks may be sparse.

    The first B/4 values of magnitude 0 are not stored; a block with fewer may not be sparse.
    """
    zero = codes & np.uint8(DENSE_CODE.largest) == 0
    count = np.cumsum(zero, axis=1, dtype=np.uint8)
    drop = dropped_values(codes.shape[1])
    return zero & (count <= drop), count[:, -1] >= drop


def _refuse(bad: NDArray[np.bool_], codes: NDArray[np.uint8], rule: str) -> None:
    """Raise the error for the first block where `bad` is true."""
    if bad.any():
        block, index = (int(i[0]) for i in np.nonzero(np.broadcast_to(bad, codes.shape)))
        raise ValueError(f"block {block}: " + rule.format(int(codes[block, index])))


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
        codes: uint8 of shape (..., n, B). `sign << 5 | magnitude` in dense blocks and in sparse
            ones, where each value has a code too and those that are not stored have code 0;
            `sign << 6 | magnitude` at even and `sign << 4 | magnitude` at odd indices of
            high-precision blocks.
        shape: shape of the values that were encoded, (..., K) with K <= n * B.

    Raises:
        TypeError: an array is not uint8.
        ValueError: the shapes do not fit together, or a code or mode is out of range; the message
            names the first such block, counted over all leading axes.
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
        check_block(self.block)
        expected = (*self.shape[:-1], -(-self.shape[-1] // self.block)) if self.shape else ()
        if self.exponents.shape != expected:
            raise ValueError(
                f"values of shape {self.shape} in blocks of {self.block} need exponents of "
                f"shape {expected}, not {self.exponents.shape}"
            )
        self._check_modes()

    def _check_modes(self) -> None:
        codes, modes = self.codes.reshape(-1, self.block), self.modes.ravel()
        if modes.size and int(modes.max()) >= Mode.RESERVED:
            block = int(np.flatnonzero(modes >= Mode.RESERVED)[0])
            raise ValueError(f"block {block}: mode {int(modes[block])} is reserved")
        top = int(codes.max(initial=0))
        for mode in (Mode.DENSE, Mode.SPARSE, Mode.HIGH_PRECISION):
            here = modes == mode
            if top > int(MAX_CODES[mode].min()) and here.any():
                too_large = codes > np.tile(MAX_CODES[mode], self.block // 2)
                _refuse(here[:, None] & too_large, codes, f"{{}} is not a {mode.label} code")
        sparse = modes == Mode.SPARSE
        if sparse.any():
            dropped, allowed = sparse_values(codes)
            _refuse((sparse & ~allowed)[:, None], codes, "a sparse block needs B/4 magnitudes of 0")
            lost = sparse[:, None] & dropped & (codes != 0)
            _refuse(lost, codes, "a sparse block does not store code {}, so it must be 0")

    @property
    def block(self) -> int:
        """Values in a block, B."""
        return int(self.codes.shape[-1])

    def __repr__(self) -> str:
        return f"Blocks(shape={self.shape}, block={self.block})"
