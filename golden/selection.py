"""Elements of which each group has one of two: the one under which its squared error is smaller.

Errors are compared as in `axs6.golden.choice`, by their merits. The upper half of an FP32 pattern
tells the codes of nearly all values in both elements.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.finite import Finite
from axs6.golden.formats import FP64, Selected
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.golden.quantise import Quantiser
from axs6.golden.rounding import Rounding
from axs6.golden.tables import by_upper_half

UNSURE = np.uint16(0xFFFF)
"""In place of a pair of codes, where the upper half of a pattern does not decide it."""

FLOAT64_BITS = FP64.fraction_bits + 1
"""Bits of the integers that float64 holds."""


def selected_codes(
    quantiser: Quantiser, x: Finite, words: NDArray[np.uint64] | None
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Codes of groups in the better of two elements, and which groups have the second one.

    Args:
        quantiser: of the selection.
        x: finite FP32 values over the scales of groups, (groups, values).
        words: random words of their shape, for stochastic rounding.
    """
    element = quantiser.element
    assert isinstance(element, Selected)
    judged = pairs = _pairs(quantiser, x, words)
    if quantiser.rounding is not Rounding.NEAREST:
        judged = _pairs(replace(quantiser, rounding=Rounding.NEAREST), x, None)
    second = selects(element, x, judged)
    drop = np.where(second, 0, element.width).astype(np.uint16)
    codes = pairs >> drop[:, None] & np.uint16((1 << element.width) - 1)
    return codes.astype(np.uint8), second


def _pairs(quantiser: Quantiser, x: Finite, words: NDArray[np.uint64] | None) -> NDArray[np.uint16]:
    """Codes of values in both elements, the first above the second."""
    if words is not None:
        return _both(quantiser, x, words)
    assert x.bits is not None
    pairs = np.take(_lookup(quantiser), x.bits >> np.uint32(16))
    unsure = np.flatnonzero(pairs == UNSURE)
    if unsure.size:
        some = Finite(x.bits.reshape(-1, 1)[unsure], None)
        pairs.reshape(-1, 1)[unsure] = _both(quantiser, some, None)
    return pairs


def _both(quantiser: Quantiser, x: Finite, words: NDArray[np.uint64] | None) -> NDArray[np.uint16]:
    """As `_pairs`, in one element after the other."""
    element = quantiser.element
    assert isinstance(element, Selected)
    exponent, found = np.zeros(x.shape[0], np.int16), []
    for part in element.parts:
        own = replace(quantiser, elements=(part, part))
        found.append(own.codes(x, x.shape[1], exponent, None, words, None).astype(np.uint16))
    return found[0] << np.uint16(element.width) | found[1]


@cache
def _lookup(quantiser: Quantiser) -> NDArray[np.uint16]:
    """`by_upper_half` of pairs of codes."""
    return by_upper_half(lambda x: _both(quantiser, Finite(x[:, None], None), None).ravel())


def selects(element: Selected, x: Finite, pairs: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Which groups have the second element of a selection: those in which its merit is larger.

    The difference of two merits is the sum of (c - d) * (2 * x - (c + d)) over values x and their
    codes c and d. Differences that float64 holds exactly are computed in it, others in Python's
    integers.

    Args:
        element: the selection.
        x: values over the scales of groups, (groups, values).
        pairs: of each value its codes to nearest in both elements, the first above the second.
    """
    most = float((1 << element.integer_bits + 1 + MERIT_FRACTION) - 1)
    assert x.bits is not None  # values over real scales are FP32
    wide = np.abs(x.bits.view(np.float32)).astype(np.float64)
    wide *= element.divisor * 2.0 ** (MERIT_FRACTION - element.unit_exponent)
    np.floor(wide, out=wide)
    np.minimum(wide, most, out=wide)
    exact = selection_bits(element, wide.shape[-1]) <= FLOAT64_BITS
    apart, middle = _merits(element, exact)
    distance = (wide if exact else wide.astype(np.int64).astype(object)) - np.take(middle, pairs)
    counts = np.take(apart, pairs)
    better = np.einsum("ij,ij->i", counts, distance) if exact else (counts * distance).sum(1)
    return np.asarray(better > 0, np.bool_)


@cache
def _merits(element: Selected, exact: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each pair of codes the second's magnitude less the first's, and the middle of both with
    `MERIT_FRACTION` bits after the point; float64 or Python's integers."""
    first, second = np.abs(element.integers).reshape(2, -1)
    apart = (second - first[:, None]).ravel()
    middle = (second + first[:, None]).ravel() << MERIT_FRACTION - 1
    dtype = float if exact else object
    return apart.astype(dtype), middle.astype(dtype)


def selection_bits(element: Selected, values: int) -> int:
    """Bits of the merits by which one of two elements is selected for a group of values."""
    return 2 * element.integer_bits + 2 + MERIT_FRACTION + (values - 1).bit_length()
