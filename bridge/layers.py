"""Linear and bilinear layers, convolutions and `MatMul` with the products of the hardware."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from axs6.torch.freeze import set_frozen
from axs6.torch.functional import MatMul as PlainMatMul
from axs6.torch.functional import check_tensors, multiply
from axs6.torch.ops import weight_product
from axs6.torch.site import Site, site_of


class Converted(nn.Module):
    """Mixin before torch's layer; its `repr` shows how the products are computed."""

    axs6_site: Site

    def train(self, mode: bool = True) -> Self:
        """As torch's layer; training mode unfreezes all weights."""
        if mode:
            set_frozen(self, False)
        return super().train(mode)

    def extra_repr(self) -> str:
        """The text of torch's layer, with the options of the products."""
        shown = str(self.axs6_site.options)
        return ", ".join(part for part in (super().extra_repr(), shown) if part)


class Linear(Converted, nn.Linear):
    """`nn.Linear` in block formats: weight and input in blocks along the input features."""

    def forward(self, input: Tensor) -> Tensor:
        """(..., K) to (..., N)."""
        return linear(input, self.weight, self.bias, self.axs6_site.handle)


class Bilinear(Converted, nn.Bilinear):
    """`nn.Bilinear` in block formats, along the pairs of both inputs' features."""

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """(..., I) and (..., J) to (..., N)."""
        return bilinear(input1, input2, self.weight, self.bias, self.axs6_site.handle)


class Conv1d(Converted, nn.Conv1d):
    """`nn.Conv1d` in block formats, along input channel and tap of a group."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) to as many axes."""
        return _convolve(self, input)


class Conv2d(Converted, nn.Conv2d):
    """`nn.Conv2d` in block formats, along input channel, row and column of taps."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) to as many axes."""
        return _convolve(self, input)


class Conv3d(Converted, nn.Conv3d):
    """`nn.Conv3d` in block formats, along input channel, plane, row and column of taps."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, D, H, W) or (C, D, H, W) to as many axes."""
        return _convolve(self, input)


class MatMul(Converted, PlainMatMul):
    """`MatMul` in a block format: both operands in blocks along K."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """(..., M, K) by (..., K, N) to (..., M, N)."""
        return multiply(a, b, self.axs6_site.handle)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, handle: int) -> Tensor:
    """`functional.linear` for (..., K), with the products of a place."""
    check_tensors(handle, x)
    if not x.ndim:
        raise ValueError(f"{site_of(handle).name}: input must have at least one axis, not shape ()")
    # `torch.Size.numel` would fix sizes that torch.export leaves open.
    y = weight_product(x.reshape(1, prod(x.shape[:-1]), x.shape[-1]), weight, bias, handle)
    return y.view(*x.shape[:-1], y.shape[-1])


def bilinear(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor | None, handle: int) -> Tensor:
    """`functional.bilinear`, as a linear layer on all products of two features.

    Those products, a[i] * b[j], are rounded to the dtype of the inputs before they are encoded.

    Raises:
        ValueError: an input has other features than the weight (N, I, J), or other axes.
    """
    check_tensors(handle, a, b)
    needed, given = (*weight.shape[1:],), (a.shape[-1:] + b.shape[-1:])
    if given != needed or a.shape[:-1] != b.shape[:-1]:
        raise ValueError(
            f"{site_of(handle).name}: inputs must have shapes (..., {needed[0]}) and "
            f"(..., {needed[1]}), not {tuple(a.shape)} and {tuple(b.shape)}"
        )
    return linear((a.unsqueeze(-1) * b.unsqueeze(-2)).flatten(-2), weight, bias, handle)


def _convolve(layer: Conv1d | Conv2d | Conv3d, x: Tensor) -> Tensor:
    """The convolution of a layer, by its own padding."""
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    padding = layer._reversed_padding_repeated_twice
    options = (layer.stride, layer.dilation, layer.groups, layer.axs6_site.handle)
    return convolve(x, layer.weight, layer.bias, *options, padding=padding, mode=mode)


def check_pixels(x: Tensor, axes: int, channels: int, handle: int) -> None:
    """Raise ValueError unless an input has these numbers of pixel axes and channels."""
    if x.ndim not in (axes + 1, axes + 2) or x.shape[-axes - 1] != channels:
        raise ValueError(
            f"{site_of(handle).name}: input must have {axes + 1} or {axes + 2} axes and "
            f"{channels} channels, not shape {tuple(x.shape)}"
        )


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    handle: int,
    *,
    padding: Sequence[int],
    mode: str = "constant",
) -> Tensor:
    """A convolution as a matrix product for each group.

    Args:
        x: (N, C, ...) or (C, ...) with one, two or three axes of pixels.
        weight: (O, C / groups, ...) with as many axes of taps.
        bias: (O,) or None.
        stride, dilation: of each axis of the kernel.
        groups: number of groups of channels. handle: place of the products. padding, mode: of the
        pixels, as `functional.pad` takes them.

    Raises:
        ValueError: the input does not fit the weight, or is, padded, smaller than the kernel.
    """
    axes = weight.ndim - 2
    check_tensors(handle, x)
    check_pixels(x, axes, weight.shape[1] * groups, handle)
    images = functional.pad(x if x.ndim == axes + 2 else x.unsqueeze(0), padding, mode=mode)
    if axes == 1:
        # A row of pixels, and one row of taps.
        images = images.unsqueeze(-2)
    taps, dilation, stride = (
        (1,) * (2 - axes) + tuple(sizes) for sizes in (weight.shape[2:], dilation, stride)
    )
    sizes = [
        (size - step * (count - 1) - 1) // jump + 1
        for size, step, count, jump in zip(images.shape[2:], dilation, taps, stride, strict=True)
    ]
    if min(sizes) < 1:
        raise ValueError(
            f"{site_of(handle).name}: padded input must be at least as large as the kernel, "
            f"not {tuple(images.shape[2:])} for taps {taps} and dilation {dilation}"
        )
    count = images.shape[0]
    depth, places = images.shape[1] // groups * prod(taps), prod(sizes)
    if axes == 3:
        columns = _unfold(images, taps, dilation, stride, sizes)
    else:
        columns = functional.unfold(images, taps, dilation, 0, stride)
    rows = columns.view(count, groups, depth, places).permute(1, 0, 3, 2)
    rows = rows.reshape(groups, count * places, depth)
    reads_all = {*stride, *dilation} == {1} and min(padding, default=0) >= 0
    y = weight_product(rows, weight, bias, handle, None if reads_all else x)
    y = y.view(groups, count, places, y.shape[-1]).permute(1, 0, 3, 2)
    y = y.reshape(count, weight.shape[0], *sizes)
    y = y.squeeze(-2) if axes == 1 else y
    return y if x.ndim == axes + 2 else y.squeeze(0)


def _unfold(
    images: Tensor,
    taps: Sequence[int],
    dilation: Sequence[int],
    stride: Sequence[int],
    sizes: Sequence[int],
) -> Tensor:
    """`functional.unfold` of images (N, C, ...) with any number of axes of pixels."""
    seen = [
        seen_by_tap(images, place, dilation, stride, sizes) for place in product(*map(range, taps))
    ]
    return torch.stack(seen, 2).flatten(1, 2).flatten(2)


def seen_by_tap(
    images: Tensor,
    place: Sequence[int],
    dilation: Sequence[int],
    stride: Sequence[int],
    sizes: Sequence[int],
) -> Tensor:
    """The pixels of images (N, C, ...) under one tap of a kernel: a view (N, C, *sizes)."""
    for axis, (tap, step, jump, size) in enumerate(
        zip(place, dilation, stride, sizes, strict=True), 2
    ):
        images = images.narrow(axis, tap * step, max(jump * (size - 1) + 1, 0))
        images = images[(slice(None),) * axis + (slice(None, None, jump),)]
    return images
