"""Tensors to blocks and back, bit for bit as `axs6.golden` does it.

Compiled kernels or torch's operations do it if they support the format, else the golden model.
"""

from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axs6 import golden
from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.encode import check_nonfinite_in
from axs6.golden.formats import BlockFormat, block_format
from axs6.golden.nonfinite import NonFinite
from axs6.golden.rounding import RANDOM_BITS, Rounding
from axs6.torch import kernels
from axs6.torch.lanes import values
from axs6.torch.rounding import Rounder, rounder

INPUTS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
OUTPUTS = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float64: "float64"}


def encode(
    x: Tensor,
    format: str | BlockFormat = "axs6",
    rounding: str = "nearest",
    *,
    block: int | None = None,
    choice: str | None = None,
    random: Tensor | None = None,
    random_bits: int = RANDOM_BITS,
    nonfinite: NonFinite = "error",
    scale: float | None = None,
    name: str = "values",
) -> Blocks:
    """Encode a tensor into dense blocks along its last axis.

    Args:
        x: float32, bfloat16, float16 or float64 of shape (..., K), on any device, read without
            rounding. K is padded with zeros to whole blocks.
        format: a name of the catalog, a string such as "e4m3fn_e8m0_t32", or a BlockFormat.
        rounding: "nearest", "toward_zero" or "stochastic".
        block: values of the largest group of a fixed size, in place of the format's.
        choice: of the finest scales, in place of the format's: "max", "four-over-six" or "mse".
        random: with rounding "stochastic" a random integer for each value, 0 <= u < 2^random_bits,
            such as `Lfsr` gives: integers of the shape and on the device of `x`.
        random_bits: width of the random integers, 1 to 32.
        nonfinite: "error" refuses NaN and infinities; "saturate" encodes NaN as +0 and an infinity
            as the largest code; "propagate" keeps them, in formats with NaN. float64 values of
            2^128 or more count as infinite.
        scale: the outermost real scale, instead of the one computed from the values.
        name: name of the tensor in errors.

    Returns:
        The blocks of `axs6.encode` for the same values, words and scale.

    Raises:
        TypeError: another dtype, or `random` does not hold integers.
        ValueError: a parameter is unknown, `x` has no axis, `random` is missing, not asked for, of
            another shape, on another device or out of range, or a value is not finite.

    Source: docs/format.md, "Encoding".
    """
    check_input(x, name)
    fmt = _checked(format, block, choice, nonfinite)
    chosen = rounder(x, fmt.block, rounding, random, random_bits)
    return _encode_by_golden(x, fmt, chosen, random, nonfinite, scale, name)


def decode(
    blocks: Blocks,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Decode blocks to a tensor, as `axs6.decode` does.

    Args:
        blocks: from `encode`, `axs6.encode` or `axs6.unpack`.
        dtype: torch.float32, torch.bfloat16 or torch.float64.
        device: device of the result.

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
    choice: str | None = None,
    random: Tensor | None = None,
    random_bits: int = RANDOM_BITS,
    nonfinite: NonFinite = "error",
    scale: float | None = None,
    name: str = "values",
) -> Tensor:
    """Encode and decode: the float32 values of `x` in a format.

    Args and raises as `encode`.

    Returns:
        float32 of the shape of `x`, equal to `axs6.decode(axs6.encode(x))` in every bit.
    """
    check_input(x, name)
    fmt = _checked(format, block, choice, nonfinite)
    chosen = rounder(x, fmt.block, rounding, random, random_bits)
    if x.dtype != torch.float64 and kernels.encodes(fmt, scale):
        if chosen.rounding is Rounding.NEAREST and has_kernels(x.device):
            kept: NonFinite = "saturate" if nonfinite == "saturate" else "error"
            found = kernels.fake_quantise(as_array(x), fmt, kept, torch.get_num_threads(), scale)
            if found is not None:
                return torch.from_numpy(found)
        elif nonfinite == "saturate" or bool(x.isfinite().all()):
            return values(x, fmt, scale, chosen)
        if nonfinite == "error":
            refuse(x, name)
    return decode(
        _encode_by_golden(x, fmt, chosen, random, nonfinite, scale, name), device=x.device
    )


def _checked(
    format: str | BlockFormat, block: int | None, choice: str | None, nonfinite: NonFinite
) -> BlockFormat:
    """The format with this size of blocks and choice of scales, in which `nonfinite` is possible.

    None leaves the format's own.
    """
    fmt = block_format(format)
    if block is not None:
        fmt = fmt.with_block(block)
    if choice is not None:
        fmt = fmt.with_choice(choice)
    check_nonfinite_in(fmt, nonfinite)
    return fmt


def has_kernels(device: torch.device) -> bool:
    """Whether compiled kernels compute for tensors on a device."""
    return device.type == "cpu" and kernels.chosen() is not None


def as_array(x: Tensor) -> NDArray[np.float32]:
    """The values of a float32, bfloat16 or float16 tensor on the CPU."""
    return x.detach().resolve_neg().float().contiguous().numpy()


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
    chosen: Rounder,
    random: Tensor | None,
    nonfinite: NonFinite,
    scale: float | None,
    name: str,
) -> Blocks:
    """The golden model's blocks: it takes all formats, and reads float64 without rounding."""
    options: dict[str, Any] = {"scale": scale}
    if random is not None:
        options |= {"random": random.cpu().numpy(), "random_bits": chosen.bits}
    held = x.detach().resolve_neg().cpu()
    values = (held.float() if x.dtype == torch.bfloat16 else held).numpy()
    try:
        return golden.encode(values, fmt, chosen.rounding, nonfinite=nonfinite, **options)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def refuse(x: Tensor, name: str) -> NoReturn:
    """Raise the error that names the first value without a code."""
    first = int((~torch.isfinite(x.detach())).flatten().int().argmax())
    index = tuple(int(i) for i in np.unravel_index(first, tuple(x.shape)))
    raise ValueError(
        f"{name} must be finite: element {index} is {x[index].item()} "
        '(nonfinite="saturate" encodes it as the hardware does)'
    )
