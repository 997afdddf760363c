from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from axs6.torch import convert, fake_quantise, matmul

Same = Callable[[Tensor, Tensor], bool]


def test_gradients_are_there_after_the_model_is_gone() -> None:
    x, kept = torch.randn(3, 40, requires_grad=True), convert(nn.Linear(40, 2))
    convert(kept)(x).sum().backward()
    gone, x.grad = x.grad, None
    kept(x).sum().backward()
    assert torch.equal(gone, x.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_has_the_gradients_of_the_decoded_operands(dtype: torch.dtype) -> None:
    layer = nn.Linear(40, 6, dtype=dtype)
    converted = convert(layer)
    x = torch.randn(2, 3, 40).to(dtype).requires_grad_()
    grad = torch.randn(2, 3, 6).to(dtype)
    converted(x).backward(grad)
    rows, decoded = grad.float().view(6, 6), fake_quantise(x).detach().view(6, 40)
    assert torch.equal(x.grad, (rows @ fake_quantise(layer.weight)).to(dtype).view(2, 3, 40))
    assert torch.equal(converted.weight.grad, (rows.mT @ decoded).to(dtype))
    assert torch.equal(converted.bias.grad, rows.sum(0).to(dtype))
    assert layer.weight.grad is None


def test_a_product_has_the_gradients_of_the_decoded_operands() -> None:
    a = torch.randn(3, 5, 40, requires_grad=True)
    b = torch.randn(3, 40, 4, requires_grad=True)
    grad = torch.randn(3, 5, 4)
    matmul(a, b).backward(grad)
    assert torch.equal(a.grad, grad @ fake_quantise(b.mT))
    assert torch.equal(b.grad, (grad.mT @ fake_quantise(a)).mT)


LAYERS = {
    "conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9, 9)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=2, padding_mode="reflect"), (2, 4, 9)),
    "attention": (
        lambda: nn.TransformerEncoderLayer(24, 2, 48, dropout=0, batch_first=True),
        (2, 5, 24),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_near_those_of_the_layer(name: str) -> None:
    make, shape = LAYERS[name]
    layer = make()
    converted = convert(layer)
    x = torch.randn(shape, requires_grad=True)
    y = torch.randn(shape, requires_grad=True)
    with torch.no_grad():
        y.copy_(x)
    layer(x).square().sum().backward()
    converted(y).square().sum().backward()
    pairs = [(x, y), *zip(layer.parameters(), converted.parameters(), strict=True)]
    for a, b in pairs:
        largest = a.grad.abs().max()
        # Keys do not care for a bias: that gradient is zero but for rounding.
        assert (a.grad - b.grad).abs().max() < 0.2 * largest + 0.5


def test_gradients_that_nobody_wants_are_not_computed() -> None:
    converted = convert(nn.Linear(40, 6))
    converted.weight.requires_grad_(False)
    x = torch.randn(2, 40)
    converted(x).sum().backward()
    assert converted.weight.grad is None
    assert converted.bias.grad is not None


def test_a_converted_model_learns() -> None:
    model = convert(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
    x = torch.randn(128, 8)
    y = (x[:, :1] * x[:, 1:2]).tanh()
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(60):
        loss = (model(x) - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_infinite_activations_have_gradients_where_they_saturate() -> None:
    layer = convert(nn.Linear(4, 2), nonfinite="saturate")
    x = torch.tensor([[1.0, torch.nan, 2.0, 3.0]], requires_grad=True)
    layer(x).sum().backward()
    assert torch.equal(x.grad, fake_quantise(layer.weight).sum(0, keepdim=True))
