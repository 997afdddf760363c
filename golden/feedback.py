"""Encoding with error feedback: the rounding error of a value is added to the next one."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axs6.golden.arguments import check_unmasked
from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.encode import encode


def encode_with_feedback(
    x: ArrayLike, error: ArrayLike, block: int | None = None, **options: Any
) -> tuple[Blocks, NDArray[np.float32]]:
    """Encode values to which the error of the last encoding is added.

    c = fp32(x + error) is encoded, and fp32(c - decode(c)) is the new error; each is one IEEE
    operation, rounded to nearest even, subnormals kept.

    Args:
        x: float32 values of shape (..., K).
        error: the error from the last call, or zeros; of the dtype and shape of `x`.
        block, options: as in `axs6.encode`. If `nonfinite` allows it, a nonfinite c gives the error
            +0, as does a c whose code or scale is NaN or infinite.

    Returns:
        The blocks, and the new error: float32 of the shape of `x`.

    Raises:
        TypeError: `x` or `error` is not float32.
        ValueError: the shapes differ, c is not finite, or as `axs6.encode`.

    Source: AXS-6 specification, section 8; docs/format.md.
    """
    check_unmasked("values", x)
    check_unmasked("error", error)
    values, last = np.asarray(x), np.asarray(error)
    for name, array in (("x", values), ("error", last)):
        if array.dtype != np.float32:
            raise TypeError(f"{name} must be float32, not {array.dtype}")
    if values.shape != last.shape:
        raise ValueError(f"error must have the shape of x {values.shape}, not {last.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        corrected = values + last
        blocks = encode(corrected, block=block, **options)
        values = decode(blocks)
        left = corrected - values
    return blocks, np.where(np.isfinite(corrected) & np.isfinite(values), left, np.float32(0))
