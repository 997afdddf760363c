"""Statistics of a weight: what its codes and values are, in one pass."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.numbers import element_table
from axs6.files.checkpoints.weight import Weight


@dataclass(frozen=True)
class Statistics:
    """Statistics of a weight.

    Args:
        spread: root mean square of the values that are finite.
        codes: how often each code occurs.
        largest: the largest magnitude of the elements of each block, in the grid of the finest
            scales; of each row's values under a scale of several rows.
        saturated: share of blocks with half of their elements at the largest code.
    """

    spread: float
    codes: NDArray[np.int64]
    largest: NDArray[np.float32]
    saturated: float

    @classmethod
    def of(cls, weight: Weight) -> "Statistics":
        """The statistics of a weight.

        Raises:
            ValueError: a scale cannot be read.
        """
        table = np.abs(element_table(weight.layout.element))
        table = np.where(np.isfinite(table), table, np.float32(0))
        top = table.max()
        codes = np.zeros(len(table), np.int64)
        largest, full, squares, count = [], 0, 0.0, 0
        for first, rows in weight.bands():
            held = weight.read(first, rows)
            codes += np.bincount(held.reshape(-1), minlength=len(table))
            size = weight.scales[0].values or max(1, weight.length)
            starts = np.arange(0, max(1, weight.length), size)
            magnitudes = table[held]
            if weight.length:
                largest.append(np.maximum.reduceat(magnitudes, starts, axis=1))
                tops = np.add.reduceat(magnitudes == top, starts, axis=1, dtype=np.int64)
                sizes = np.diff(np.append(starts, weight.length))
                full += int((2 * tops >= sizes).sum())
            with np.errstate(all="ignore"):
                values = weight.values(first, rows)
            finite = values[np.isfinite(values)].astype(np.float64)
            squares += float(finite @ finite)
            count += finite.size
        blocks = np.concatenate(largest) if largest else np.zeros((0, 1), np.float32)
        shaped = blocks.reshape(-1, weight.height, blocks.shape[1]) if blocks.size else blocks
        spread = (squares / count) ** 0.5 if count else 0.0
        return cls(spread, codes, shaped, full / max(1, blocks.size))
