"""Statistics of a weight: what its codes and values are, in one pass."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.numbers import element_table
from axs6.files.checkpoints.weight import ScaleLevel, Weight

FEWEST = 16
"""Values of a block, from which two thirds of them at the largest code are too many."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of a weight.

    Args:
        spread: root mean square of the values that are finite.
        codes: how often each code occurs.
        largest: the largest magnitude of the elements of each block, in the grid of the finest
            scales; of each row's values under a scale of several rows.
        saturated: share of blocks with two thirds of their elements at the largest code, of both
            signs; blocks of a few values, and constant ones, have such without saturation.
        below: how many elements are neither 0 nor of the largest magnitude of their block.
    """

    spread: float
    codes: NDArray[np.int64]
    largest: NDArray[np.float32]
    saturated: float
    below: int

    def under(self, level: ScaleLevel) -> NDArray[np.float32]:
        """The largest magnitudes of elements under each scale of a level, in its grid."""
        matrices, tall, wide = level.factors.shape
        found = self.largest if wide > 1 else self.largest.max(axis=2, keepdims=True)
        starts = np.arange(tall) * level.rows
        found = np.maximum.reduceat(found, starts, axis=1)
        return found if matrices > 1 else found.max(axis=0, keepdims=True)

    @classmethod
    def of(cls, weight: Weight) -> "Statistics":
        """The statistics of a weight.

        Raises:
            ValueError: a scale cannot be read.
        """
        signed = element_table(weight.layout.element)
        signed = np.where(np.isfinite(signed), signed, np.float32(0))
        # The lowest integer has no magnitude that encoders take.
        table, top = np.abs(signed), signed.max()
        codes = np.zeros(len(table), np.int64)
        largest, full, below, squares, count = [], 0, 0, 0.0, 0
        for first, rows in weight.bands():
            held = weight.read(first, rows)
            codes += np.bincount(held.reshape(-1), minlength=len(table))
            size = weight.scales[0].values or max(1, weight.length)
            starts = np.arange(0, max(1, weight.length), size)
            magnitudes = table[held]
            if weight.length:
                largest.append(np.maximum.reduceat(magnitudes, starts, axis=1))
                sizes = np.diff(np.append(starts, weight.length))
                lesser = magnitudes < np.repeat(largest[-1], sizes, axis=1)
                below += int((lesser & (magnitudes > 0)).sum())
                high, low = (
                    np.add.reduceat(x[held], starts, axis=1, dtype=np.int64)
                    for x in (signed >= top, signed <= -top)
                )
                most = (3 * (high + low) >= 2 * sizes) & (sizes >= FEWEST)
                full += int((most & (high > 0) & (low > 0)).sum())
            with np.errstate(all="ignore"):
                values = weight.values(first, rows)
            finite = values[np.isfinite(values)].astype(np.float64)
            squares += float(finite @ finite)
            count += finite.size
        blocks = np.concatenate(largest) if largest else np.zeros((0, 1), np.float32)
        shaped = blocks.reshape(-1, weight.height, blocks.shape[1]) if blocks.size else blocks
        spread = (squares / count) ** 0.5 if count else 0.0
        return cls(spread, codes, shaped, full / max(1, blocks.size), below)
