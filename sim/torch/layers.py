"""Linear layers, convolutions and `MatMul` with the products of the hardware."""

from torch import Tensor, nn
from torch.nn import functional

from axs6.sim.torch.functional import MatMul as PlainMatMul
from axs6.sim.torch.functional import multiply
from axs6.sim.torch.ops import weight_product
from axs6.sim.torch.site import Site


class Linear(nn.Linear):
    """`nn.Linear` in AXS-6: weight and input in blocks along the input features."""

    axs6_site: Site

    def forward(self, input: Tensor) -> Tensor:
        """(..., K) to (..., N)."""
        return linear(input, self.weight, self.bias, self.axs6_site.handle)


class Conv1d(nn.Conv1d):
    """`nn.Conv1d` in AXS-6: blocks run along input channel and tap of a group, in this order."""

    axs6_site: Site

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) to as many axes."""
        # A row of pixels: one row of taps, no padding above or below.
        padded = _padded(self, input).unsqueeze(-2)
        return _convolve(self, padded, self.axs6_site).squeeze(-2)


class Conv2d(nn.Conv2d):
    """`nn.Conv2d` in AXS-6: blocks run along input channel, row and column of taps of a group."""

    axs6_site: Site

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) to as many axes."""
        return _convolve(self, _padded(self, input), self.axs6_site)


class MatMul(PlainMatMul):
    """`MatMul` in AXS-6: both operands in blocks along K."""

    axs6_site: Site

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """(..., M, K) by (..., K, N) to (..., M, N)."""
        return multiply(a, b, self.axs6_site.handle)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, handle: int) -> Tensor:
    """What `functional.linear` is to (..., K), with the products of a place."""
    y = weight_product(x.reshape(1, x.shape[:-1].numel(), x.shape[-1]), weight, bias, handle)
    return y.view(*x.shape[:-1], y.shape[-1])


def _padded(layer: nn.Conv1d | nn.Conv2d, x: Tensor) -> Tensor:
    """The input with the layer's padding around it."""
    axes = len(layer.kernel_size)
    if x.ndim not in (axes + 1, axes + 2) or x.shape[-axes - 1] != layer.in_channels:
        raise ValueError(
            f"{layer.axs6_site.name}: input must have {axes + 1} or {axes + 2} axes and "  # type: ignore[union-attr]
            f"{layer.in_channels} channels, not shape {tuple(x.shape)}"
        )
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    return functional.pad(x, layer._reversed_padding_repeated_twice, mode=mode)


def _convolve(layer: nn.Conv1d | nn.Conv2d, x: Tensor, site: Site) -> Tensor:
    """A convolution of padded pixels (N, C, H, W) or (C, H, W) as a matrix product a group."""
    images = x if x.ndim == 4 else x.unsqueeze(0)
    taps, dilation, stride = (
        (1,) * (2 - len(sizes)) + tuple(sizes)
        for sizes in (layer.kernel_size, layer.dilation, layer.stride)
    )
    height, width = (
        (size - step * (count - 1) - 1) // jump + 1
        for size, step, count, jump in zip(images.shape[2:], dilation, taps, stride, strict=True)
    )
    if min(height, width) < 1:
        raise ValueError(
            f"{site.name}: padded input must be at least as large as the kernel, "
            f"not {tuple(images.shape[2:])} for taps {taps} and dilation {dilation}"
        )
    count, groups = images.shape[0], layer.groups
    depth = images.shape[1] // groups * taps[0] * taps[1]
    columns = functional.unfold(images, taps, dilation, 0, stride)
    rows = columns.view(count, groups, depth, height * width).permute(1, 0, 3, 2)
    rows = rows.reshape(groups, count * height * width, depth)
    y = weight_product(rows, layer.weight, layer.bias, site.handle)
    y = y.view(groups, count, height * width, y.shape[-1]).permute(1, 0, 3, 2)
    y = y.reshape(count, layer.out_channels, height, width)
    return y if x.ndim == 4 else y.squeeze(0)
