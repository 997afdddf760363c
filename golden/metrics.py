"""Errors of decoded values, compared with the original values."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axs6.golden.arguments import check_unmasked
from axs6.golden.decode import decode
from axs6.golden.encode import encode
from axs6.golden.floats import fp32_bits
from axs6.golden.formats import BlockFormat, Exponent, Rule, block_format


@dataclass
class ErrorSums:
    """Sums of squares over values that may come in pieces, in float64.

    Args:
        values: how many there were.
        squared_values: sum of their squares.
        squared_errors: sum of the squares of decoded less exact values.
        largest: the largest magnitude of such a difference.
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
        if not self.squared_values:
            return -math.inf
        return 10 * math.log10(self.squared_values / self.squared_errors)


@dataclass(frozen=True)
class BinadeErrors:
    """Relative errors, abs(Q(x) - x) / abs(x), of the values of one binade.

    Args:
        binade: e, of the values of magnitude 2^e to below 2^(e + 1).
        values: how many.
        mean: their mean error.
        largest: their largest error; 1 for a value that became 0.
    """

    binade: int
    values: int
    mean: float
    largest: float


def qsnr(x: ArrayLike, format: str | BlockFormat = "axs6", **options: Any) -> float:
    """Ratio of signal to quantisation noise of encoding and decoding values, in dB.

    -10 log10(E[||Q(X) - X||^2] / E[||X||^2]): each of the two means is taken over all vectors
    before they are divided, so that a vector counts by its power. It is the ratio of two sums over
    all values, and no mean of the vectors' own ratios.

    Args:
        x: values, as `encode` takes them.
        format: a name of the catalog, a string, or a BlockFormat.
        options: `axis`, `block`, `rounding` and others of `encode`, but not `nonfinite`.

    Returns:
        The ratio in dB, computed in float64; infinite where every value comes back exactly.

    Raises:
        TypeError, ValueError: as `encode`.

    Source: Rouhani et al., With Shared Microexponents, A Little Shifting Goes a Long Way, eq. 3.
    """
    sums = ErrorSums()
    sums.add(*_there_and_back(x, format, options))
    return sums.qsnr


def qsnr_bound(format: str | BlockFormat) -> float | None:
    """The least QSNR that a format can have on any values, in dB.

    With an element of unit u whose values fill the binade 2^emax, no error is more than half a
    unit, and the largest value of a group is 2^emax or more, both over the group's scale. That is
    Theorem 1 of the paper with m = 1 + emax - log2 u mantissa bits.

    Args:
        format: a name of the catalog, a string, or a BlockFormat.

    Returns:
        The bound, for values within the range of the exponent scale; None where the theorem says
        nothing: its formats have signed elements with a fixed point, and one exponent scale of
        blocks by the rule `floor`, with at most one level of shifts below it.

    Raises:
        TypeError, ValueError: the format is none.

    Source: Rouhani et al., With Shared Microexponents, A Little Shifting Goes a Long Way,
    Theorem 1.
    """
    fmt = block_format(format)
    element, *shifts, top = fmt.element, *fmt.levels
    if not (element.fixed and element.signed and isinstance(top.scale, Exponent) and top.blocked):
        return None
    if top.scale.rule is not Rule.FLOOR or len(shifts) > 1:
        return None
    gain, size = (4 ** shifts[0].scale.largest_code, int(shifts[0].group)) if shifts else (1, 1)
    steps = 2 * 2**element.emax / element.unit
    return 10 * math.log10(steps**2 * gain / (fmt.block + (gain - 1) * size))


def errors_by_binade(
    x: ArrayLike, format: str | BlockFormat = "axs6", **options: Any
) -> list[BinadeErrors]:
    """Errors of encoding and decoding values, in units of the value, for each binade of values.

    Args:
        x, format, options: as for `qsnr`.

    Returns:
        A row for each binade that holds values, in rising order. Zeros are in none.

    Raises:
        TypeError, ValueError: as `encode`.
    """
    exact, decoded = _there_and_back(x, format, options)
    return list(_rows(exact[exact != 0], decoded[exact != 0]))


def _rows(exact: NDArray[np.float64], decoded: NDArray[np.float64]) -> Iterator[BinadeErrors]:
    with np.errstate(over="ignore"):  # of subnormal values that stochastic rounding raises
        errors = np.abs((decoded - exact) / exact)
    binades = np.frexp(exact)[1] - 1
    for binade in np.unique(binades):
        here = errors[binades == binade]
        yield BinadeErrors(int(binade), here.size, float(here.mean()), float(here.max()))


def _there_and_back(
    x: ArrayLike, format: str | BlockFormat, options: dict[str, Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values in float64, and what they are after encoding and decoding."""
    if "nonfinite" in options:
        raise TypeError("nonfinite cannot be given here: values must be finite")
    check_unmasked("values", x)
    values = np.asarray(x)
    blocks = encode(values, format, **options)
    bits = fp32_bits(values)
    exact = values if bits is None else bits.view(np.float32)
    return exact.astype(np.float64), decode(blocks, np.float64)
