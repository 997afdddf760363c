"""Transposed convolutions: the products of the hardware, whose overlapping taps are added.

The product of an input pixel's channels and a tap's weights is an output of the hardware, with
blocks along the input channels of a group. The products of one output pixel are added in FP32, in
the order of the taps: the backward product of a convolution, and its fold.
"""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from axs6.torch.functional import check_tensors
from axs6.torch.layers import Converted, check_pixels, seen_by_tap
from axs6.torch.ops import weight_product
from axs6.torch.site import site_of


class _Transposed(Converted):
    """Base of the layers of one, two and three axes."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Arguments and result are those of torch's layer."""
        layer: Any = self
        sizes = (layer.stride, layer.padding, layer.kernel_size)
        axes, dilation, groups = layer.weight.ndim - 2, layer.dilation, layer.groups
        extra = layer._output_padding(input, output_size, *sizes, axes, dilation)
        options = (layer.stride, layer.padding, extra, groups, dilation)
        handle = self.axs6_site.handle
        return convolve_transposed(input, layer.weight, layer.bias, *options, handle)


class ConvTranspose1d(_Transposed, nn.ConvTranspose1d):
    """`nn.ConvTranspose1d` in block formats, along the input channels of a group."""


class ConvTranspose2d(_Transposed, nn.ConvTranspose2d):
    """`nn.ConvTranspose2d` in block formats, along the input channels of a group."""


class ConvTranspose3d(_Transposed, nn.ConvTranspose3d):
    """`nn.ConvTranspose3d` in block formats, along the input channels of a group."""


def convolve_transposed(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
    handle: int,
) -> Tensor:
    """A transposed convolution as a matrix product for each group, and sums of its taps.

    Args:
        x: (N, C, ...) or (C, ...) with one, two or three axes of pixels.
        weight: (C, O / groups, ...) with as many axes of taps.
        bias: (O,) or None; added in FP32, before the result is rounded to the dtype of `x`.
        stride, padding, output_padding, dilation: of each axis, as torch's function has them.
        groups: number of groups of channels.
        handle: place of the products.

    Raises:
        ValueError: the input does not fit the weight, or the result has no pixels.
    """
    check_tensors(handle, x)
    taps, axes, dtype = weight.shape[2:], weight.ndim - 2, x.dtype
    check_pixels(x, axes, weight.shape[0], handle)
    if any(p >= max(s, d) for p, s, d in zip(output_padding, stride, dilation, strict=True)):
        raise ValueError(
            f"{site_of(handle).name}: output_padding must be smaller than stride or dilation, "
            f"not {tuple(output_padding)}"
        )
    images = x if x.ndim == axes + 2 else x.unsqueeze(0)
    if dtype == weight.dtype and dtype.itemsize < torch.float32.itemsize:
        # Values with the same codes, whose products are not rounded to fewer bits.
        images, weight = images.float(), weight.float()
    count, places, pixels = images.shape[0], prod(images.shape[2:]), images.shape[2:]
    inside = weight.shape[0] // groups
    rows = images.reshape(count, groups, inside, places).permute(1, 0, 3, 2)
    rows = rows.reshape(groups, count * places, inside)
    # Of one group, a view, whose encoding the place keeps.
    matrices = weight.reshape(groups, inside, weight.shape[1:].numel()).mT.flatten(0, 1)
    parts = weight_product(rows, matrices, None, handle).float()
    parts = parts.view(groups, count, places, weight.shape[1], prod(taps)).permute(4, 1, 0, 3, 2)
    parts = parts.reshape(prod(taps), count, groups * weight.shape[1], *pixels)
    sizes = [
        (size - 1) * jump + step * (tap - 1) + 1 + extra
        for size, jump, step, tap, extra in zip(
            pixels, stride, dilation, taps, output_padding, strict=True
        )
    ]
    y = parts.new_zeros(*parts.shape[1:3], *sizes)
    for place, part in zip(product(*map(range, taps)), parts, strict=True):
        seen_by_tap(y, place, dilation, stride, pixels).add_(part)
    for axis, (size, before) in enumerate(zip(sizes, padding, strict=True), 2):
        if size <= 2 * before:
            raise ValueError(
                f"{site_of(handle).name}: the result must have a positive size, "
                f"not {size - 2 * before}"
            )
        y = y.narrow(axis, before, size - 2 * before)
    if bias is not None:
        y = y + bias.float().view(-1, *[1] * axes)
    y = y.masked_fill(y.isnan(), torch.nan).to(dtype)
    return y if x.ndim == axes + 2 else y.squeeze(0)
