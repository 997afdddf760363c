"""Tensors to blocks and back, bit for bit as `axs6.golden` does it.

Compiled kernels do it where they take the format, torch's operations for AXS-6, and the golden
model for the rest. The arithmetic of torch's operations is float64 without a rounding but the one
that is meant: 31 * x * 2^(127 - E) has at most 29 significant bits, so it is exact and the rounding
sees the true value; m * 2^(E - 127) / 31 is within 2^-52 of the true quotient, which is never that
near to the middle of two FP32 values. Maxima come from bit patterns. Blocks so small that FP32's
subnormals count take the conversions of `axs6.torch.ieee`, so that no thread's flush-to-zero
mode shows.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axs6 import golden
from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.encode import check_nonfinite_in
from axs6.golden.formats import AXS6, FP32, BlockFormat, block_format
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.nonfinite import NonFinite
from axs6.golden.rounding import RANDOM_BITS, Rounding
from axs6.torch import kernels
from axs6.torch.ieee import SIGN, narrow, widen
from axs6.torch.rounding import NEAREST, Rounder, as_rows, rounder

CHUNK_VALUES = 1 << 17
"""Values worked on at a time: their temporaries stay within a core's cache."""

INPUTS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
OUTPUTS = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float64: "float64"}


class Chunk(NamedTuple):
    """Some blocks of a tensor, rounded.

    Args:
        rows: which blocks these are.
        bits: the values as FP32 patterns, int32 of shape (R, B).
        exponents: shared exponents, int32 of shape (R,).
        largest: pattern of each block's largest magnitude, int32 of shape (R,).
        high: the greatest of these patterns.
        safe: whether no block here comes near FP32's subnormals.
        steps: signed magnitudes, float64 of shape (R, B); overwritten by the next chunk.
    """

    rows: slice
    bits: Tensor
    exponents: Tensor
    largest: Tensor
    high: int
    safe: bool
    steps: Tensor


def encode(
    x: Tensor,
    format: str | BlockFormat = "axs6",
    rounding: str = "nearest",
    *,
    block: int | None = None,
    random: Tensor | None = None,
    random_bits: int = RANDOM_BITS,
    nonfinite: NonFinite = "error",
    scale: float | None = None,
    name: str = "values",
) -> Blocks:
    """Encode a tensor into dense blocks along its last axis.

    Args:
        x: float32, bfloat16, float16 or float64 of shape (..., K), on any device; each value is
            taken exactly. K is padded with zeros to whole blocks.
        format: a name of the catalog, a string such as "e4m3fn_e8m0_t32", or a BlockFormat.
        rounding: "nearest", "toward_zero" or "stochastic".
        block: values of the largest group of a fixed size, in place of the format's.
        random: with rounding "stochastic" a random integer for each value, 0 <= u < 2^random_bits,
            such as `Lfsr` gives: integers of the shape and on the device of `x`.
        random_bits: width of the random integers, 1 to 32.
        nonfinite: "error" refuses NaN and infinities; "saturate" encodes NaN as +0 and an
            infinity as the largest code; "propagate" keeps them, in formats with NaN. float64
            values of 2^128 or more count as infinite.
        scale: the outermost real scale, instead of the one that follows from the values.
        name: what an error calls the tensor.

    Returns:
        What `axs6.encode` gives for the same values, words and scale.

    Raises:
        TypeError: another dtype, or `random` does not hold integers.
        ValueError: a parameter is unknown, `x` has no axis, `random` is missing, not asked for, of
            another shape, on another device or out of range, or a value is not finite.

    Source: docs/format.md, "Encoding".
    """
    check_input(x, name)
    fmt = _checked(format, block, nonfinite)
    size = fmt.block
    how = rounder(x, size, rounding, random, random_bits)
    if x.dtype == torch.float64 or not in_torch(fmt) or scale is not None:
        return _encode_by_golden(x, fmt, how, random, nonfinite, scale, name)
    n = -(-x.shape[-1] // size)
    count = x.shape[:-1].numel() * n
    exponents = torch.empty(count, dtype=torch.uint8, device="cpu")
    codes = torch.empty(count, size, dtype=torch.uint8, device="cpu")
    for chunk in round_blocks(x, size, nonfinite, name, how):
        exponents[chunk.rows] = chunk.exponents.to("cpu", torch.uint8)
        # x & (x - 1) has the sign bit of x, save for -0.0, which has code 0.
        negative = (chunk.bits & (chunk.bits - 1)) < 0
        magnitude = chunk.steps.abs().to(torch.uint8)
        codes[chunk.rows] = (
            magnitude | negative.to(torch.uint8) << AXS6_ELEMENT.magnitude_bits
        ).cpu()
    leading = (*x.shape[:-1], n)
    scales = (exponents.reshape(leading).numpy(),)
    return Blocks(fmt, scales, codes.reshape(*leading, size).numpy(), tuple(x.shape))


def decode(
    blocks: Blocks,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Decode blocks to a tensor, as `axs6.decode` does.

    Args:
        blocks: what `encode`, `axs6.encode` or `axs6.unpack` gave.
        dtype: torch.float32, torch.bfloat16 or torch.float64.
        device: where the tensor is wanted.

    Returns:
        Values of shape `blocks.shape`; special values as in `axs6.decode`.

    Raises:
        TypeError: another dtype, or `blocks` is not Blocks.
    """
    check_blocks("blocks", blocks)
    if dtype not in OUTPUTS:
        raise TypeError(f"dtype must be float32, bfloat16 or float64, not {dtype}")
    values = np.ascontiguousarray(golden.decode(blocks, OUTPUTS[dtype]))
    return torch.from_numpy(values).view(dtype).to(device)


def fake_quantise(
    x: Tensor,
    format: str | BlockFormat = "axs6",
    rounding: str = "nearest",
    *,
    block: int | None = None,
    random: Tensor | None = None,
    random_bits: int = RANDOM_BITS,
    nonfinite: NonFinite = "error",
    scale: float | None = None,
    name: str = "values",
) -> Tensor:
    """Encode and decode: the float32 values that stand for `x` in a format.

    Args and raises as `encode`.

    Returns:
        float32 of the shape of `x`, equal to `axs6.decode(axs6.encode(x))` in every bit.
    """
    check_input(x, name)
    fmt = _checked(format, block, nonfinite)
    how = rounder(x, fmt.block, rounding, random, random_bits)
    nearest = how.rounding is Rounding.NEAREST and x.dtype != torch.float64
    if nearest and has_kernels(x.device) and kernels.encodes(fmt, scale):
        kept: NonFinite = "saturate" if nonfinite == "saturate" else "error"
        found = kernels.fake_quantise(as_array(x), fmt, kept, torch.get_num_threads(), scale)
        if found is not None:
            return torch.from_numpy(found)
        if nonfinite == "error":
            refuse(x, name)
    if x.dtype == torch.float64 or not in_torch(fmt) or scale is not None:
        blocks = _encode_by_golden(x, fmt, how, random, nonfinite, scale, name)
        return decode(blocks, device=x.device)
    size = fmt.block
    scales = power_table(x.device, -AXS6_SCALE.bias) / AXS6_ELEMENT.largest_code
    rows = as_rows(x, size)
    out = torch.empty(rows.shape, dtype=torch.float32, device=x.device)
    for chunk in round_blocks(x, size, nonfinite, name, how):
        part = out[chunk.rows]
        values = chunk.steps.mul_(scales.index_select(0, chunk.exponents).unsqueeze(-1))
        if chunk.high >> FP32.fraction_bits == AXS6_SCALE.largest_code - 1:
            values.clamp_(-torch.finfo(torch.float32).max, torch.finfo(torch.float32).max)
        part.copy_(values if chunk.safe else narrow(values))
        if int(chunk.bits.min()) == SIGN:
            part.masked_fill_(chunk.bits == SIGN, 0.0)
    padded = out.reshape(*x.shape[:-1], -(-x.shape[-1] // size) * size)
    return padded[..., : x.shape[-1]]


def _checked(format: str | BlockFormat, block: int | None, nonfinite: NonFinite) -> BlockFormat:
    """The format with this size of blocks, in which `nonfinite` is possible."""
    fmt = block_format(format)
    if block is not None:
        fmt = fmt.with_block(block)
    check_nonfinite_in(fmt, nonfinite)
    return fmt


def round_blocks(
    x: Tensor, size: int, nonfinite: NonFinite, name: str, how: Rounder = NEAREST
) -> Iterator[Chunk]:
    """The blocks of a float32, bfloat16 or float16 tensor, a chunk at a time.

    Raises:
        ValueError: a value is not finite and `nonfinite` is "error".
    """
    rows = as_rows(x, size)
    to_steps = AXS6_ELEMENT.largest_code / power_table(x.device, -AXS6_SCALE.bias)
    step = CHUNK_VALUES // size
    shape = (min(step, len(rows)), size)
    magnitudes = torch.empty(shape, dtype=torch.float32, device=x.device)
    doubles = torch.empty(magnitudes.shape, dtype=torch.float64, device=x.device)
    for start in range(0, len(rows), step):
        part = rows[start : start + step].float()
        bits = part.view(torch.int32)
        largest = torch.abs(part, out=magnitudes[: len(part)]).view(torch.int32).amax(-1)
        low, high = (int(x) for x in largest.aminmax())
        infinite = None
        if high >= FP32.infinity:
            if nonfinite == "error":
                refuse(x, name)
            infinite = (bits & ~SIGN) == FP32.infinity
            bits = _saturated(bits)
            part = bits.view(torch.float32)
            largest = (bits & ~SIGN).amax(-1)
            low, high = (int(x) for x in largest.aminmax())
        exponents = (largest >> FP32.fraction_bits) + 1
        safe = low >= how.safe_largest
        if not safe:
            # A block of subnormals has exponent 1 where its top fraction bit is set, else 0.
            subnormal = largest >> FP32.fraction_bits - 1
            exponents = torch.where(subnormal > 1, exponents, subnormal)
            safe = bool(((largest == 0) | (largest >= how.safe_largest)).all())
        steps = doubles[: len(part)]
        steps.copy_(part if safe else widen(part))
        steps.mul_(to_steps.index_select(0, exponents).unsqueeze(-1))
        chosen = slice(start, start + len(part))
        how.round_(steps, chosen)
        if infinite is not None:
            steps.copy_(torch.where(infinite, steps.sign() * AXS6_ELEMENT.largest_code, steps))
        yield Chunk(chosen, bits, exponents, largest, high, safe, steps)


def has_kernels(device: torch.device) -> bool:
    """Whether compiled kernels compute for tensors on a device."""
    return device.type == "cpu" and kernels.chosen() is not None


def as_array(x: Tensor) -> NDArray[np.float32]:
    """The values of a float32, bfloat16 or float16 tensor on the CPU."""
    return x.detach().resolve_neg().float().contiguous().numpy()


@cache
def in_torch(fmt: BlockFormat) -> bool:
    """Whether torch's operations here encode a format: AXS-6 in blocks of some size."""
    return fmt.has_modes and fmt == AXS6.with_block(fmt.block)


@cache
def axs6_of(block: int) -> BlockFormat:
    """AXS-6 in blocks of a size."""
    return AXS6.with_block(block)


@cache
def power_table(device: torch.device, offset: int) -> Tensor:
    """2^(E + offset) for every shared exponent E, float64."""
    powers = [2.0 ** (exponent + offset) for exponent in range(AXS6_SCALE.largest_code + 1)]
    return torch.tensor(powers, dtype=torch.float64, device=device)


def check_input(x: Any, name: str) -> None:
    """Raise TypeError or ValueError unless `x` is a tensor that can be encoded."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, not {type(x).__name__}")
    if x.dtype not in INPUTS:
        raise TypeError(f"{name} must be float32, bfloat16, float16 or float64, not {x.dtype}")
    if x.ndim == 0:
        raise ValueError(f"{name} must have at least one axis, not shape ()")


def _encode_by_golden(
    x: Tensor,
    fmt: BlockFormat,
    how: Rounder,
    random: Tensor | None,
    nonfinite: NonFinite,
    scale: float | None,
    name: str,
) -> Blocks:
    """What the golden model gives: it takes all formats, and reads float64 without rounding."""
    options: dict[str, Any] = {"scale": scale}
    if random is not None:
        options |= {"random": random.cpu().numpy(), "random_bits": how.bits}
    held = x.detach().resolve_neg().cpu()
    values = (held.float() if x.dtype == torch.bfloat16 else held).numpy()
    try:
        return golden.encode(values, fmt, how.rounding, nonfinite=nonfinite, **options)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _saturated(bits: Tensor) -> Tensor:
    """NaN as +0 and infinities as the largest finite values, whose block has their exponent."""
    magnitude = bits & ~SIGN
    largest = bits & SIGN | FP32.max_finite
    return torch.where(
        magnitude > FP32.infinity, 0, torch.where(magnitude == FP32.infinity, largest, bits)
    )


def refuse(x: Tensor, name: str) -> NoReturn:
    """Raise the error that names the first value without a code."""
    first = int((~torch.isfinite(x.detach())).flatten().int().argmax())
    index = tuple(int(i) for i in np.unravel_index(first, tuple(x.shape)))
    raise ValueError(
        f"{name} must be finite: element {index} is {x[index].item()} "
        '(nonfinite="saturate" encodes it as the hardware does)'
    )
