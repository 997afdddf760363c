"""Exponents of blocks, which the corners of sums choose."""

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat, Exponent, Real, Scale
from axs6.hw.core.layouts import scale_names
from axs6.hw.units.unit import Fields, Items


def exponent_level(fmt: BlockFormat) -> tuple[str, Scale] | None:
    """Name and scale of the level of a block whose codes have an exponent."""
    levels = zip(scale_names(fmt), fmt.blocked[::-1], strict=True)
    return next(
        ((name, x.scale) for name, x in levels if isinstance(x.scale, (Exponent, Real))), None
    )


def largest_exponent(fmt: BlockFormat) -> int:
    """The largest exponent of a block's scale; 0 without one.

    The exponent of a real scale is its exponent field less 1. The last field is not used, as some
    of its fractions may be NaN.
    """
    found = exponent_level(fmt)
    if found is None:
        return 0
    _, scale = found
    if isinstance(scale, Real):
        return (scale.largest_code >> scale.dtype.fraction_bits) - 2
    return scale.largest_code


def with_exponents(fmt: BlockFormat, items: Fields, exponents: NDArray[np.int64]) -> Items:
    """Blocks with these exponents, as of `largest_exponent`, in all groups; fractions stay."""
    found = exponent_level(fmt)
    if found is None:
        return dict(items)
    name, scale = found
    codes = items[name]
    each = np.minimum(exponents, largest_exponent(fmt)).reshape(-1, *[1] * (codes.ndim - 1))
    if isinstance(scale, Real):
        bits = scale.dtype.fraction_bits
        mask = (1 << scale.dtype.exponent_bits) - 1 << bits
        each = codes & ~mask | each + 1 << bits
    return {**items, name: np.broadcast_to(each, codes.shape)}
