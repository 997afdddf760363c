"""Encoding arrays into AXS-6 blocks: parameters, block modes, and what is not finite."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axs6.golden.blocks import Blocks, chunks, sparse_values
from axs6.golden.decode import decode
from axs6.golden.floats import INTEGER, fp32_bits
from axs6.golden.quantise import Quantiser
from axs6.golden.spec import (
    FP32,
    RANDOM_BITS,
    Mode,
    NonFinite,
    Rounding,
    check_block,
    check_mode,
    check_nonfinite,
    check_random_bits,
    check_rounding,
)

CHUNK_VALUES = 1 << 15
"""Values encoded at a time: their temporaries stay within a core's cache."""

SATURATED = 2.0 ** (FP32.bias + 1)
"""Magnitude from which values have no code."""


def encode(
    x: ArrayLike,
    block: int = 32,
    rounding: str = "nearest",
    mode: str = "dense",
    *,
    random: ArrayLike | None = None,
    random_bits: int = RANDOM_BITS,
    nonfinite: NonFinite = "error",
) -> Blocks:
    """Encode values into AXS-6 blocks along their last axis.

    Args:
        x: values of shape (..., K): float32, float16, bfloat16 (an `ml_dtypes` array, or bit
            patterns in uint16), float64, or integers other than uint16. Each is taken at its
            exact value. K is padded with zeros to whole blocks.
        block: values that share an exponent: 8, 16 or 32.
        rounding: "nearest", "toward_zero" or "stochastic".
        mode: "dense"; "sparse", for the blocks in which at least a quarter of the dense magnitudes
            is 0, the others dense; "high_precision"; or "auto": sparse where that is allowed,
            otherwise dense or high-precision, whichever has the smaller sum of squared errors
            (in float64, added in index order), dense if they are equal.
        random: with rounding "stochastic" an integer u for each value, of the shape of `x`,
            0 <= u < 2^random_bits: with n the largest magnitude of a code, that of the value is
            floor((floor(n |x| / scale * 2^random_bits) + u) / 2^random_bits).
        random_bits: width of the random integers, 1 to 32.
        nonfinite: what to do with NaN, infinities, and float64 values of magnitude 2^128 or more:
            "error" raises; "saturate" encodes NaN as +0, without a part in the block's maximum,
            and an infinity as the largest code of a block whose exponent is 255.

    Returns:
        Blocks whose exponent puts the largest magnitude in [1/2, 1) of the scale 2^(E - 127),
        except where E ends at 0. -0.0 becomes code 0; a negative value that rounds to zero keeps
        its sign (code 0x20 in a dense block).

    Raises:
        TypeError: the dtype is not one of the above, or `random` does not hold integers.
        ValueError: a parameter is unknown, `x` has no axis, `random` is missing, not asked for, of
            another shape or out of range, or a value is not finite; the message gives the index
            of the first.

    Source: AXS-6 specification, sections 4, 5 and 7; docs/format.md.
    """
    size, how = check_block(block), check_rounding(rounding)
    wanted = check_mode(mode)
    check_random_bits(random_bits)
    check_nonfinite(nonfinite)
    values = np.asarray(x)
    if values.ndim == 0:
        raise ValueError("values must have at least one axis, not shape ()")
    words = _random_words(random, random_bits, how, values.shape)

    def encoded(mode: Mode) -> Blocks:
        return _encode(values, Quantiser(mode, size, how, random_bits), words, nonfinite)

    if wanted in (Mode.DENSE, Mode.HIGH_PRECISION):
        return encoded(wanted)
    sparse = _sparse(encoded(Mode.DENSE))
    return sparse if wanted else _best(values, sparse, encoded(Mode.HIGH_PRECISION))


def _random_words(
    random: ArrayLike | None, bits: int, rounding: Rounding, shape: tuple[int, ...]
) -> NDArray[np.uint64] | None:
    if rounding is not Rounding.STOCHASTIC:
        if random is not None:
            raise ValueError(f'random is for rounding "stochastic", not {str(rounding)!r}')
        return None
    if random is None:
        raise ValueError('rounding "stochastic" needs random, an integer for each value')
    words = np.asarray(random)
    if words.dtype.kind not in INTEGER:
        raise TypeError(f"random must hold integers, not {words.dtype}")
    if words.shape != shape:
        raise ValueError(f"random must have the shape of the values {shape}, not {words.shape}")
    bad = (words < 0) | (words >= 1 << bits)
    if bad.any():
        index = tuple(int(i[0]) for i in np.nonzero(bad))
        raise ValueError(
            f"random must be from 0 to 2^{bits} - 1: element {index} is {int(words[index])}"
        )
    return words.astype(np.uint64)


def _encode(
    values: NDArray[np.generic],
    how: Quantiser,
    words: NDArray[np.uint64] | None,
    nonfinite: NonFinite,
) -> Blocks:
    """Encode every block in the mode of the quantiser."""
    size = how.block
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    padded = _pad(native, size)
    blocks = padded.reshape(-1, size)
    given = None if words is None else _pad(words, size).reshape(-1, size)
    exponents = np.empty(len(blocks), np.uint8)
    codes = np.empty(blocks.shape, np.uint8)
    for rows in chunks(len(blocks), CHUNK_VALUES // size):  # one that is empty checks the dtype
        random = None if given is None else given[rows]
        infinite, nan = how.encode(blocks[rows], random, exponents[rows], codes[rows])
        if nonfinite == "error" and (infinite is not None or nan is not None):
            _refuse(values, padded.shape, rows.start, infinite, nan)
    leading = (*values.shape[:-1], padded.shape[-1] // size)
    return Blocks(
        exponents=exponents.reshape(leading),
        modes=np.full(leading, how.mode, np.uint8),
        codes=codes.reshape(*leading, size),
        shape=values.shape,
    )


def _sparse(dense: Blocks) -> Blocks:
    """The same values, in sparse blocks where that is allowed."""
    codes = dense.codes.reshape(-1, dense.block)
    dropped, allowed = sparse_values(codes)
    modes = np.where(allowed, Mode.SPARSE, Mode.DENSE).astype(np.uint8)
    kept = np.where(dropped & allowed[:, None], np.uint8(0), codes)
    return Blocks(
        dense.exponents,
        modes.reshape(dense.modes.shape),
        kept.reshape(dense.codes.shape),
        dense.shape,
    )


def _best(values: NDArray[np.generic], sparse: Blocks, precise: Blocks) -> Blocks:
    """`sparse`, with those of `precise` in place of dense blocks that have the larger error."""
    better = (sparse.modes == Mode.DENSE) & (
        _squared_errors(values, precise) < _squared_errors(values, sparse)
    )
    return Blocks(
        sparse.exponents,
        np.where(better, precise.modes, sparse.modes),
        np.where(better[..., None], precise.codes, sparse.codes),
        sparse.shape,
    )


def _squared_errors(values: NDArray[np.generic], blocks: Blocks) -> NDArray[np.float64]:
    """Sums over each block, shape (..., n), NaN where a value saturates."""
    bits = fp32_bits(values)
    with np.errstate(invalid="ignore"):  # of signalling NaN
        exact = (values if bits is None else bits.view(np.float32)).astype(np.float64)
    errors = np.where(np.abs(exact) < SATURATED, exact, np.nan) - decode(blocks, np.float64)
    terms = _pad(errors**2, blocks.block).reshape(blocks.codes.shape)
    # The last of the running sums is added in index order, which np.sum is not.
    return np.cumsum(terms, axis=-1)[..., -1]


def _pad(values: NDArray, size: int) -> NDArray:
    missing = -values.shape[-1] % size
    if not missing:
        return values
    padded = np.zeros((*values.shape[:-1], values.shape[-1] + missing), values.dtype)
    padded[..., : values.shape[-1]] = values
    return padded


def _refuse(
    values: NDArray[np.generic],
    padded_shape: tuple[int, ...],
    first_row: int,
    infinite: NDArray[np.bool_] | None,
    nan: NDArray[np.bool_] | None,
) -> None:
    """Raise the error that names the first value without a code."""
    bad = np.zeros_like(infinite if infinite is not None else nan)
    for mask in (infinite, nan):
        if mask is not None:
            bad |= mask
    position = int(np.flatnonzero(bad)[0]) + first_row * bad.shape[1]
    index = tuple(int(i) for i in np.unravel_index(position, padded_shape))
    value = values[index]
    text = f"bits {int(value):#06x}" if values.dtype.kind == "u" else str(value)
    raise ValueError(
        f"values must be finite and below 2^128: element {index} is {text} "
        '(nonfinite="saturate" encodes it as the hardware does)'
    )
