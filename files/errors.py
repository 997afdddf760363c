"""Sums of errors over values that come in pieces."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass
class ErrorSums:
    """Errors of decoded values, in float64.

    `qsnr` is the paper's: 10 log10 of the sum of squared values over that of squared errors, in dB.
    """

    values: int = 0
    squared_values: float = 0.0
    squared_errors: float = 0.0
    largest: float = 0.0

    def add(self, exact: NDArray[np.float64], decoded: NDArray[np.float64]) -> None:
        """Count some values and what became of them."""
        if not exact.size:
            return
        difference = np.abs(exact - decoded).ravel()
        self.values += exact.size
        self.squared_values += float(np.vdot(exact, exact))
        self.squared_errors += float(np.vdot(difference, difference))
        self.largest = max(self.largest, float(difference.max()))

    @property
    def qsnr(self) -> float:
        """Signal to quantisation noise in dB; infinite without errors."""
        if not self.squared_errors:
            return math.inf
        return 10 * math.log10(self.squared_values / self.squared_errors)
