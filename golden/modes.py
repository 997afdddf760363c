"""Modes: layouts of a block's payload, which a format with a header chooses for each block."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat, Element, Mode
from axs6.golden.formats.modes import HIGH_CODE, LOW_CODE

AUTO: Final = "auto"
"""In place of a mode: the one that takes the fewest bytes, then the one with the least error."""


def check_mode(mode: str) -> Mode | None:
    """Return the mode of a name, None for "auto", or raise ValueError naming the known ones."""
    if mode == AUTO:
        return None
    known = {each.label: each for each in Mode if each is not Mode.RESERVED}
    if mode not in known:
        raise ValueError(f"mode must be one of {', '.join(known)}, {AUTO}, not {mode!r}")
    return known[mode]


def elements(fmt: BlockFormat, mode: Mode) -> tuple[Element, Element]:
    """Elements at even and at odd indices of a block."""
    return (HIGH_CODE, LOW_CODE) if mode is Mode.HIGH_PRECISION else (fmt.element, fmt.element)


def dropped_values(block: int) -> int:
    """Values of a sparse block that are not stored: the first ones whose magnitude is 0."""
    return block // 4


def payload_bits(fmt: BlockFormat, mode: Mode) -> int:
    """Bits of a block's codes, with the mask of a sparse one."""
    size, (even, odd) = fmt.block, elements(fmt, mode)
    if mode is Mode.SPARSE:
        return size + (size - dropped_values(size)) * even.width
    return size * (even.width + odd.width) // 2


def max_codes(fmt: BlockFormat, mode: Mode) -> NDArray[np.uint8]:
    """Largest codes at even and at odd indices."""
    return np.array([(1 << element.width) - 1 for element in elements(fmt, mode)], np.uint8)


def sparse_values(
    codes: NDArray[np.uint8], fmt: BlockFormat
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which values of dense blocks (n, B) sparse ones do not store, and which blocks may be sparse.

    The first B/4 values of magnitude 0 are not stored; a block with fewer may not be sparse.
    """
    zero = codes & np.uint8(fmt.element.largest_code) == 0
    count = np.cumsum(zero, axis=1, dtype=np.uint8)
    drop = dropped_values(codes.shape[1])
    return zero & (count <= drop), count[:, -1] >= drop


def check_modes(fmt: BlockFormat, modes: NDArray[np.uint8], codes: NDArray[np.uint8]) -> None:
    """Raise ValueError unless the codes (n, B) are ones of blocks of these modes (n,)."""
    if modes.size and int(modes.max()) >= Mode.RESERVED:
        block = int(np.flatnonzero(modes >= Mode.RESERVED)[0])
        raise ValueError(f"block {block}: mode {int(modes[block])} is reserved")
    top = int(codes.max(initial=0))
    for mode in fmt.modes:
        most = max_codes(fmt, mode)
        here = modes == mode
        if top > int(most.min()) and here.any():
            too_large = codes > np.tile(most, codes.shape[1] // 2)
            _refuse(here[:, None] & too_large, codes, f"{{}} is not a {mode.label} code")
    sparse = modes == Mode.SPARSE
    if sparse.any():
        dropped, allowed = sparse_values(codes, fmt)
        _refuse((sparse & ~allowed)[:, None], codes, "a sparse block needs B/4 magnitudes of 0")
        lost = sparse[:, None] & dropped & (codes != 0)
        _refuse(lost, codes, "a sparse block does not store code {}, so it must be 0")


def _refuse(bad: NDArray[Any], codes: NDArray[np.uint8], rule: str) -> None:
    """Raise the error for the first block where `bad` is true."""
    if bad.any():
        block, index = (int(i[0]) for i in np.nonzero(np.broadcast_to(bad, codes.shape)))
        raise ValueError(f"block {block}: " + rule.format(int(codes[block, index])))
