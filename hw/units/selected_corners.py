"""Blocks in which both elements of a selection have nearly the same error."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from axs6.golden.encode import encode
from axs6.golden.formats import BlockFormat, Float
from axs6.hw.units.encoder_corners import as_values

PAIRS = 1 << 10
"""Pairs of blocks from which such blocks are looked for."""

BINADES = 4
"""Binades below the largest magnitude in which values lie."""


def nearly_equal_rows(fmt: BlockFormat, dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Blocks, two and two, of which one pattern differs by 1, and the element with it.

    Between a block with the first element and one with the second, lanes change one after the
    other, and then the pattern of the lane that changes the element is halved. The largest
    magnitude is that of both, and scales of tensors are 1.
    """
    rng = np.random.default_rng(17)
    one, width = dtype.bias << dtype.fraction_bits, 1 << dtype.fraction_bits
    top = one + rng.integers(width, size=(PAIRS, 1))
    signs = rng.integers(2, size=(PAIRS, lanes)) << dtype.width - 1
    ends = top - rng.integers(1, BINADES * width, (2, PAIRS, lanes))
    ends[:, :, 0] = top[:, 0]
    blocked = replace(fmt, levels=fmt.blocked)

    def second(magnitudes: NDArray[np.int64], signs: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Which rows have the second element."""
        rows = magnitudes.reshape(-1, lanes) | np.repeat(signs, magnitudes.size // signs.size, 0)
        found = encode(as_values(dtype, rows), blocked).selected
        assert found is not None
        choice: NDArray[np.uint8] = found.reshape(magnitudes.shape[:-1])
        return choice

    first, last = (second(x, signs) for x in ends)
    some = np.flatnonzero(first != last)
    (a, b), signs, first = ends[:, some], signs[some], first[some]
    if not some.size:
        return np.zeros((0, lanes), np.int64)
    steps = np.where(np.arange(lanes) < np.arange(lanes + 1)[:, None], b[:, None], a[:, None])
    turn = np.argmax(second(steps, signs) != first[:, None], axis=1)
    index, lane = np.arange(len(some)), turn - 1
    low, high = a[index, lane], b[index, lane]
    row = steps[index, lane]
    while (abs(high - low) > 1).any():
        middle = (low + high) // 2
        row[index, lane] = middle
        same = second(row, signs) == first
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found = np.repeat(row[:, None], 2, axis=1)
    found[index, :, lane] = np.stack([low, high], axis=1)
    return np.asarray(found.reshape(-1, lanes) | np.repeat(signs, 2, axis=0), np.int64)
