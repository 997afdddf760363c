"""Operands that are part of a tensor and share its scale.

A scale of the tensor depends on its smallest and largest values. If a product reads only a part,
like a convolution with strides, rows with these two values are encoded with it.
"""

import torch
from torch import Tensor

from axs6.golden.blocks import Blocks
from axs6.golden.encode import SATURATED
from axs6.golden.formats import TENSOR, BlockFormat
from axs6.golden.nonfinite import NonFinite
from axs6.torch.matrices import changed
from axs6.torch.quantise import encode


def scales_tensor(fmt: BlockFormat) -> bool:
    """Whether a format has a scale of the tensor."""
    return any(level.group == TENSOR for level in fmt.levels)


def encode_part(
    x: Tensor,
    whole: Tensor | None,
    fmt: BlockFormat,
    nonfinite: NonFinite,
    scale: float | None,
    name: str,
) -> Blocks | None:
    """Blocks of matrices (G, R, K) with the scale of the whole tensor.

    None if the matrices have their own scale, or if it is given. Arguments and errors as in
    `encode`; nonfinite values outside `x` are not refused.
    """
    if whole is None or not scales_tensor(fmt):
        return None
    if scale is not None and fmt.element.signed:
        return None
    ends, own = (_ends(each, fmt.element.signed, nonfinite) for each in (whole, x))
    if torch.equal(ends, own):
        return None
    more = ends.view(1, 2, 1).expand(x.shape[0], 2, x.shape[2])
    between = x.new_zeros(x.shape[0], -x.shape[1] % fmt.rows, x.shape[2])  # to whole tiles
    filled = torch.cat([x, between, more], 1)
    blocks = encode(filled, fmt, nonfinite=nonfinite, scale=scale, name=name).untiled
    return changed(blocks, lambda each: each[:, : x.shape[1]], tuple(x.shape))


def _ends(x: Tensor, signed: bool, nonfinite: NonFinite) -> Tensor:
    """The smallest and the largest value that determine a scale, (2,); both signs of one if
    `signed`."""
    x = x.detach()
    if nonfinite == "saturate":
        counted = x.masked_fill(x.isnan(), 0)
    else:
        counted = torch.where(x.abs() < SATURATED, x, 0)
    low, high = counted.aminmax()
    if signed:
        high = torch.maximum(-low, high)
        low = -high
    return torch.stack([low, high])
