"""Transposed convolutions and bilinear layers: golden products, added as the layers say."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import axs6
from axs6.torch import convert, load_packed, profile, save_packed

Same = Callable[[Tensor, Tensor], bool]
Product = Callable[..., Tensor]


def scattered(layer: Any, x: Tensor, product: Product, extra: tuple[int, int]) -> Tensor:
    """A transposed convolution of (N, C, H, W), one tap of one input pixel at a time."""
    inside, outside = (n // layer.groups for n in (layer.in_channels, layer.out_channels))
    taps = layer.kernel_size
    sizes = [
        (size - 1) * jump + step * (tap - 1) + 1 + more
        for size, jump, step, tap, more in zip(
            x.shape[2:], layer.stride, layer.dilation, taps, extra, strict=True
        )
    ]
    y = torch.zeros(len(x), layer.out_channels, *sizes)
    for place in itertools.product(*map(range, taps)):
        for pixel in itertools.product(*map(range, x.shape[2:])):
            row, column = (
                p * jump + t * step
                for p, t, jump, step in zip(pixel, place, layer.stride, layer.dilation, strict=True)
            )
            for g in range(layer.groups):
                channels = slice(g * inside, (g + 1) * inside)
                outputs = slice(g * outside, (g + 1) * outside)
                weight = layer.weight[(channels, slice(None), *place)].mT
                y[:, outputs, row, column] += product(x[(slice(None), channels, *pixel)], weight)
    (top, left), (height, width) = layer.padding, sizes
    y = y[:, :, top : height - top, left : width - left]
    return y if layer.bias is None else y + layer.bias.float().view(-1, 1, 1)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": 3},
    "strides": {"kernel_size": (3, 2), "stride": 2, "padding": (1, 0), "output_padding": 1},
    "dilation": {"kernel_size": 2, "dilation": (1, 3), "padding": 1, "bias": False},
    "groups": {"kernel_size": 2, "groups": 2, "stride": (1, 2)},
    "bfloat16": {"kernel_size": 2, "dtype": torch.bfloat16},
}


@pytest.mark.parametrize("how", OPTIONS)
def test_conv_transpose2d(how: str, same: Same, golden_product: Product) -> None:
    layer = nn.ConvTranspose2d(40, 6, **OPTIONS[how])
    x = torch.randn(2, 40, 3, 4).to(layer.weight.dtype)
    converted = convert(layer)
    y = converted(x)
    expected = scattered(layer, x, golden_product, layer.output_padding)
    assert same(y, expected.to(x.dtype))
    assert y.shape == layer(x).shape
    assert (y - layer(x)).abs().max() < 0.1 * layer(x).abs().max()
    assert same(converted(x[0]), y[0])
    assert converted(x[:0]).shape == layer(x[:0]).shape


def test_an_output_size_may_be_given(same: Same) -> None:
    layer = nn.ConvTranspose2d(8, 4, 3, stride=3)
    x = torch.randn(2, 8, 3, 4)
    y = convert(layer)(x, output_size=(11, 13))
    assert y.shape == layer(x, output_size=(11, 13)).shape == (2, 4, 11, 13)
    assert same(y[..., :9, :12], convert(layer)(x))


@pytest.mark.parametrize("axes", [1, 3])
def test_other_axes_are_the_same_sums(axes: int, same: Same) -> None:
    kinds: Any = {1: nn.ConvTranspose1d, 3: nn.ConvTranspose3d}
    layer = kinds[axes](8, 4, (3, 1, 1)[:axes], stride=2)
    flat = nn.ConvTranspose2d(8, 4, (3, 1), stride=2)
    flat.load_state_dict({"weight": layer.weight.view(8, 4, 3, 1), "bias": layer.bias})
    x = torch.randn(2, 8, 5)
    y = convert(layer)(x.view(2, 8, *(5, 1, 1)[:axes]))
    assert same(y.flatten(2), convert(flat)(x.unsqueeze(-1)).flatten(2))


def test_a_bilinear_layer_is_linear_in_pairs(same: Same, golden_product: Product) -> None:
    layer, a, b = nn.Bilinear(6, 7, 5), torch.randn(2, 3, 6), torch.randn(2, 3, 7)
    pairs = torch.einsum("...i,...j->...ij", a, b).flatten(-2)
    y = convert(layer)(a, b)
    assert same(y, golden_product(pairs, layer.weight.flatten(1)) + layer.bias)
    assert (y - layer(a, b)).abs().max() < 0.1 * layer(a, b).abs().max()


class Calls(nn.Module):
    """Calls both functions with weights of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.pairs = nn.ConvTranspose1d(8, 4, 3), nn.Bilinear(4, 4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.conv_transpose1d(x, self.up.weight, self.up.bias, stride=2).mT
        return functional.bilinear(y, y, self.pairs.weight, self.pairs.bias)


def test_functions_have_the_bits_of_the_layers(same: Same) -> None:
    model, x = Calls(), torch.randn(2, 8, 5)
    with profile() as report:
        y = convert(model, unconverted="error")(x)
    assert [row.name for row in report.rows] == ["conv_transpose0", "bilinear1"]
    up = nn.ConvTranspose1d(8, 4, 3, stride=2)
    up.load_state_dict(model.up.state_dict())
    between = convert(up)(x).mT
    assert same(y, convert(model.pairs)(between, between))


@pytest.mark.parametrize("format", ["axs6", "mx9"])
def test_gradients_are_those_of_the_products(format: str) -> None:
    layer, x = nn.ConvTranspose2d(8, 4, 2, stride=2), torch.randn(2, 8, 3, 3, requires_grad=True)
    converted = convert(layer, format=format, gradients=format)
    grad = torch.randn(2, 4, 6, 6)
    converted(x).backward(grad)
    # The taps do not meet: each gives one output pixel, whose gradient its row has.
    taps = grad.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).reshape(18, 16)
    weight, rows = layer.weight.detach().flatten(1), x.detach().permute(0, 2, 3, 1).reshape(18, 8)

    def product(a: Tensor, b: Tensor) -> Tensor:
        left, right = (axs6.encode(v.contiguous().numpy(), format) for v in (a, b))
        return torch.from_numpy(axs6.matmul(left, right))

    assert torch.equal(x.grad, product(taps, weight).view(2, 3, 3, 8).permute(0, 3, 1, 2))
    assert torch.equal(converted.weight.grad.flatten(1), product(taps.mT, rows.mT).mT)
    assert torch.equal(converted.bias.grad, grad.sum((0, 2, 3)))


class Packed(nn.Module):
    """Layers whose weights are reduced along different axes."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(8, 6, (3, 2), stride=2)
        self.groups = nn.ConvTranspose1d(6, 4, 3, groups=2)
        self.volume = nn.ConvTranspose3d(4, 3, 2)
        self.pairs = nn.Bilinear(4, 3, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.groups(self.up(x).flatten(2))
        z = self.volume(y[:, :, :8].view(-1, 4, 2, 2, 2)).flatten(2)
        return self.pairs(y[:, :, :3].mT, z[:, :, :3].mT)


@pytest.mark.parametrize("format", ["axs6", "mx9", "int8"])
def test_a_loaded_model_gives_the_same_bits(format: str, tmp_path: Path, same: Same) -> None:
    x, path = torch.randn(2, 8, 3, 3), tmp_path / "x.safetensors"
    first, again = (convert(Packed(), format=format) for _ in range(2))
    save_packed(first, path)
    assert not same(again(x), first(x))
    load_packed(again, path)
    assert same(again(x), first(x))
    header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    # Rows of a few values are padded to whole blocks.
    assert path.stat().st_size - header < 4 * sum(p.numel() for p in first.parameters()) * 2
    from axs6.files import describe_file

    packed = {each.name for each in describe_file(path) if each.encoded}
    assert packed == {"up.weight", "volume.weight", "pairs.weight"}


def test_an_encoded_weight_is_kept() -> None:
    layer = convert(nn.ConvTranspose2d(8, 6, 3))
    x = torch.randn(1, 8, 3, 3)
    layer(x)
    kept = layer.axs6_site._held
    layer(x)
    assert layer.axs6_site._held is kept
    with torch.no_grad():
        layer.weight.mul_(2)
    layer(x)
    assert layer.axs6_site._held is not kept


@pytest.mark.parametrize(
    ("layer", "shapes", "message"),
    [
        (nn.ConvTranspose2d(4, 2, 3), [(2, 3, 9, 9)], "0: input must have 3 or 4 axes and 4 "),
        (
            nn.ConvTranspose1d(4, 2, 1, padding=3),
            [(2, 4, 5)],
            "0: the result must have a positive size",
        ),
        (
            nn.ConvTranspose1d(4, 2, 3, output_padding=1),
            [(2, 4, 5)],
            r"0: output_padding must be smaller than stride or dilation, not \(1,\)",
        ),
        (
            nn.Bilinear(4, 3, 2),
            [(5, 4), (5, 4)],
            r"0: inputs must have shapes \(..., 4\) and \(..., 3\), not \(5, 4\) and \(5, 4\)",
        ),
    ],
)
def test_other_shapes_are_refused(
    layer: nn.Module, shapes: list[tuple[int, ...]], message: str
) -> None:
    converted = convert(nn.Sequential(layer))[0]
    with pytest.raises(ValueError, match=f"^{message}"):
        converted(*(torch.zeros(shape) for shape in shapes))


def test_dtypes_must_agree() -> None:
    layer = convert(nn.Sequential(nn.ConvTranspose1d(4, 2, 1)))
    with pytest.raises(TypeError, match=r"^0: input and weight must have one dtype, not torch\.bf"):
        layer(torch.zeros(1, 4, 3, dtype=torch.bfloat16))
