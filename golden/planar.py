"""Scales and codes as arrays of their own, in the dtypes that NumPy, ml_dtypes and torch have.

The blocked axis is the last one of all arrays. `ml_dtypes` has a code in each byte;
`torch.float4_e2m1fn_x2` and the pairs of MXFP4 checkpoints have two, the first in the low bits.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_shape
from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.formats import (
    BF16,
    FP16,
    FP32,
    BlockFormat,
    Element,
    Exponent,
    Float,
    Integer,
    Real,
    Scale,
    Selected,
    Shift,
    Specials,
    TwosComplement,
    Unsigned,
    ValueTable,
    block_format,
    name_of,
)
from axs6.golden.formats.spelling import specials_of
from axs6.golden.scaling import code_dtype

PACKED = "_x2"
"""End of the names of torch's dtypes with two codes in a byte."""

NAMES_ALONE = re.compile(r"u?int[1-7]")
"""Dtypes that torch has no tensors of."""

PATTERNS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


class Planar(NamedTuple):
    """Blocks as arrays.

    Args:
        scales: an array for each level, coarse to fine, of the shapes that `Blocks.scales` has.
        codes: elements of shape (..., n * B), or (..., n * B / 2) with two in a byte.
        zero_points: codes of the value 0, uint8, where the format has them.
    """

    scales: tuple[Any, ...]
    codes: Any
    zero_points: Any = None


def planar(blocks: Blocks, dtype: Any = None) -> Planar:
    """Scales and codes as arrays of dtypes that say what they mean.

    Args:
        blocks: what `encode`, `unpack` or `from_planar` gave.
        dtype: of the codes: one of NumPy or ml_dtypes, for arrays, or one of torch, for tensors;
            by default the one that NumPy or ml_dtypes has. Elements E4M3, E5M2, E3M2, E2M3 and
            E2M1 are float8_e4m3fn, float8_e5m2, float6_e3m2fn, float6_e2m3fn, float4_e2m1fn (in
            torch float4_e2m1fn_x2), those with one zero float8_e4m3fnuz and float8_e5m2fnuz; two's
            complement codes are int8 or int4, in units of the element; codes of tables, which are
            places in them, uint4 or uint2; exponents with NaN float8_e8m0fnu, real scales the dtype
            that they have.

    Raises:
        ImportError: the dtypes are of ml_dtypes, which is not installed.
        TypeError: `dtype` is not that of the codes, or there is none for the codes or a scale.
    """
    check_blocks("blocks", blocks)
    dtypes = _Dtypes(blocks.format, _is_torch(dtype))
    if dtype is not None and not dtypes.same(dtype, dtypes.codes):
        raise TypeError(f"codes of {name_of(blocks.format)} are {dtypes.codes}, not {dtype}")
    codes = blocks.codes.reshape(*blocks.leading, -1)
    scales = zip(blocks.scales, dtypes.scales, strict=True)
    zero = blocks.zero_points
    return Planar(
        tuple(dtypes.array(x, each) for x, each in scales),
        dtypes.array(codes, dtypes.codes),
        None if zero is None else dtypes.array(zero, dtypes.of("uint8", "zero points")),
    )


def from_planar(
    arrays: Planar,
    format: str | BlockFormat,
    shape: Sequence[int] | None = None,
    axis: int = -1,
) -> Blocks:
    """Blocks from what `planar` gave, or others made.

    Args:
        arrays: arrays or tensors of the dtypes of `planar`.
        format: the block format.
        shape: shape of the values; by default that of the codes, with the axis where it was.
        axis: the axis along which they are blocked.

    Raises:
        ImportError: as `planar`.
        TypeError: an array has another dtype than `planar` gives.
        ValueError: a shape or a code is wrong.
    """
    fmt = block_format(format)
    dtypes = _Dtypes(fmt, _is_torch(getattr(arrays.codes, "dtype", None)))
    codes = dtypes.patterns("codes", arrays.codes, dtypes.codes)
    if shape is None:
        shape = list(codes.shape[:-1])
        shape.insert(axis % codes.ndim, codes.shape[-1])
    shape = check_shape(shape)
    if len(arrays.scales) != len(dtypes.scales):
        raise ValueError(
            f"{name_of(fmt)} has {len(dtypes.scales)} arrays of scales, not {len(arrays.scales)}"
        )
    scales = [
        dtypes.patterns("scales", x, each).astype(code_dtype(level.scale.bits), copy=False)
        for x, each, level in zip(arrays.scales, dtypes.scales, fmt.levels[::-1], strict=True)
    ]
    leading = tuple(np.delete(shape, axis).tolist())
    count = -(-shape[axis] // fmt.block)
    if codes.shape != (*leading, count * fmt.block):
        raise ValueError(
            f"values of shape {shape} need codes of shape {(*leading, count * fmt.block)}, not "
            f"{codes.shape}"
        )
    zero = arrays.zero_points
    if zero is not None:
        zero = dtypes.patterns("zero_points", zero, dtypes.of("uint8", "zero points"))
    return Blocks(
        fmt,
        tuple(scales),
        codes.reshape(*leading, count, fmt.block),
        shape,
        axis,
        zero_points=zero,
    )


def dtype_name(of: Element | Scale) -> str | None:
    """The name that an element or a scale has as a dtype of NumPy or ml_dtypes."""
    if isinstance(of, Real):
        of = of.dtype
    if isinstance(of, Exponent):
        return "float8_e8m0fnu" if of.bits == 8 and of.nan else None
    if isinstance(of, TwosComplement):
        return f"int{of.width}"
    if isinstance(of, Unsigned | ValueTable | Selected):
        return f"uint{of.width}"
    if isinstance(of, Integer | Shift):
        return f"uint{of.bits}"
    if not isinstance(of, Float) or not of.signed:
        return None
    named = {FP32: "float32", FP16: "float16", BF16: "bfloat16"}
    if of in named:
        return named[of]
    suffixes = {Specials.IEEE: "", Specials.NAN: "fn", Specials.NONE: "fn", Specials.FNUZ: "fnuz"}
    suffix = suffixes.get(of.specials)
    if suffix is None or specials_of(of.width, suffix or None) is not of.specials:
        return None
    bias = "" if of.exponent_bias is None else f"b{of.exponent_bias}"
    return f"float{of.width}_e{of.exponent_bits}m{of.fraction_bits}{bias}{suffix}"


class _Dtypes:
    """The dtypes of a format's arrays, in torch or in NumPy and ml_dtypes."""

    def __init__(self, fmt: BlockFormat, torch: bool) -> None:
        self.format, self.torch = fmt, torch
        self.codes = self.of(dtype_name(fmt.element), "codes")
        self.scales = [self.of(dtype_name(x.scale), "scales") for x in fmt.levels[::-1]]

    def of(self, name: str | None, what: str) -> Any:
        found = None if name is None else self._find(name)
        if found is None:
            where = "torch" if self.torch else "NumPy and ml_dtypes"
            raise TypeError(f"{what} of {name_of(self.format)} have no dtype in {where}")
        return found

    def _find(self, name: str) -> Any:
        if self.torch:
            torch = sys.modules["torch"]
            if NAMES_ALONE.fullmatch(name):
                return None
            return getattr(torch, name, None) or getattr(torch, name + PACKED, None)
        if hasattr(np, name):
            return np.dtype(name)
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError(f"{name} is a dtype of ml_dtypes: pip install ml_dtypes") from None
        return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else None

    def same(self, given: Any, needed: Any) -> bool:
        """Whether a dtype is the one needed."""
        if self.torch or _is_torch(given):
            return given is needed
        return np.dtype(given) == needed

    def array(self, codes: NDArray[Any], dtype: Any) -> Any:
        """Codes as an array of a dtype, or as a tensor."""
        if not self.torch:
            return np.array(codes).view(dtype)
        if str(dtype).endswith(PACKED):
            codes = pairs_of(codes)
        signed = np.array(codes).view(f"i{codes.dtype.itemsize}")
        return sys.modules["torch"].from_numpy(signed).view(dtype)

    def patterns(self, name: str, array: Any, dtype: Any) -> NDArray[Any]:
        """The codes in an array of a dtype."""
        if not self.same(getattr(array, "dtype", None), dtype):
            came = getattr(array, "dtype", type(array).__name__)
            raise TypeError(f"{name} of {name_of(self.format)} must be {dtype}, not {came}")
        if self.torch:
            torch = sys.modules["torch"]
            kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[array.element_size()]
            array = array.detach().cpu().contiguous().view(kind).numpy()
            if str(dtype).endswith(PACKED):
                return codes_of(array)
        return np.array(array).view(PATTERNS[array.dtype.itemsize])


def _is_torch(dtype: Any) -> bool:
    return type(dtype).__module__ == "torch"


def pairs_of(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes of 4 bits (..., n), n even, as bytes (..., n / 2), the first in the low bits."""
    return joined(codes[..., ::2], codes[..., 1::2])


def joined(low: NDArray[np.uint8], high: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bytes of codes of 4 bits in their low and in their high bits."""
    return np.bitwise_or(low, np.left_shift(high, 4, dtype=np.uint8), dtype=np.uint8)


_CODES = np.array([byte & 15 | byte >> 4 << 8 for byte in range(256)], "<u2")
"""The two codes of each byte as two bytes."""


def codes_of(pairs: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes (..., 2 * n) of 4 bits in bytes (..., n)."""
    return np.take(_CODES, pairs).view(np.uint8)


def checkpoint_pair(blocks: Blocks) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Blocks as the pair of arrays that MXFP4 checkpoints have: `NAME_blocks` and `NAME_scales`.

    Args:
        blocks: in a format of 4-bit codes whose blocks have one exponent of 8 bits, such as MXFP4.

    Returns:
        Codes, uint8 of shape (..., n, B / 2), two in a byte, the first in the low bits; exponents,
        uint8 of shape (..., n).

    Raises:
        TypeError: `blocks` is not Blocks.
        ValueError: the format is another.
    """
    check_blocks("blocks", blocks)
    check_checkpoint(blocks.format)
    return pairs_of(blocks.codes), blocks.exponents


def from_checkpoint(
    codes: NDArray[np.uint8], scales: NDArray[np.uint8], format: str | BlockFormat = "mxfp4"
) -> Blocks:
    """Blocks of the pair of arrays that MXFP4 checkpoints have.

    Args:
        codes: `NAME_blocks`, uint8 of shape (..., n, B / 2).
        scales: `NAME_scales`, uint8 of shape (..., n).
        format: the block format.

    Returns:
        Blocks of shape (..., n * B), along the last axis.

    Raises:
        TypeError: the arrays are not uint8.
        ValueError: the shapes do not fit together, or the format is another than `checkpoint_pair`
            takes.
    """
    fmt = block_format(format)
    check_checkpoint(fmt)
    pairs, exponents = np.asarray(codes), np.asarray(scales)
    if pairs.dtype != np.uint8 or exponents.dtype != np.uint8:
        raise TypeError(f"codes and scales must be uint8, not {pairs.dtype} and {exponents.dtype}")
    if pairs.shape != (*exponents.shape, fmt.block // 2) or not exponents.ndim:
        raise ValueError(
            f"codes must have the shape of the scales, {exponents.shape}, and {fmt.block // 2} "
            f"bytes for each, not {pairs.shape}"
        )
    shape = (*exponents.shape[:-1], exponents.shape[-1] * fmt.block)
    return Blocks(fmt, (exponents,), codes_of(pairs), shape)


def check_checkpoint(fmt: BlockFormat) -> None:
    """Raise ValueError unless checkpoints have blocks of a format as a pair of arrays."""
    one = len(fmt.levels) == 1 and fmt.blocked and fmt.exponent and fmt.exponent.bits == 8
    if fmt.element.width != 4 or not one or fmt.block % 2:
        raise ValueError(
            "checkpoints have 4-bit codes under one exponent of 8 bits for each block, as mxfp4, "
            f"not {name_of(fmt)}"
        )
