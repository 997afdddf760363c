"""Modes of AXS-6's blocks: their layouts, sizes and elements."""

from enum import IntEnum
from numbers import Integral
from typing import Any, Final

from axs6.golden.formats.element import SignMagnitude


class Mode(IntEnum):
    """Layout of a block's payload: the two configuration bits of its header."""

    DENSE = 0
    SPARSE = 1
    HIGH_PRECISION = 2
    RESERVED = 3

    @property
    def label(self) -> str:
        """Its name in parameters and on the command line."""
        return self.name.lower()


def check_mode_block(block: Any) -> None:
    """Raise ValueError unless blocks with modes have this size."""
    if not isinstance(block, Integral) or block not in MODE_BLOCKS:
        known = ", ".join(map(str, MODE_BLOCKS))
        raise ValueError(f"block must be one of {known}, not {block!r}")


HEADER_BITS: Final = 16
"""Header of a block in a format with modes: its scale, its mode, and zeros."""

MODE_BLOCKS: Final = (8, 16, 32)
"""Sizes of blocks with modes."""

ALL_MODES: Final = (Mode.DENSE, Mode.SPARSE, Mode.HIGH_PRECISION)
"""The modes of a format that has more than one."""

DENSE_CODE: Final = SignMagnitude(5, 0, full_scale=True, signed_zero=False)
"""Element of a block with modes, unless it is high-precision."""

HIGH_CODE: Final = SignMagnitude(6, 0, full_scale=True, signed_zero=False)
LOW_CODE: Final = SignMagnitude(4, 0, full_scale=True, signed_zero=False)
"""Elements of a high-precision block at even indices, and at odd ones."""
