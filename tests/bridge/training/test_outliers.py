import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from axs6.torch import convert
from axs6.torch.training import OutlierLinear, keep_outliers, split_outliers


def test_a_tensor_is_split_without_loss() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 30)
    rest, outliers = split_outliers(x, 0.04)
    assert torch.equal(rest + outliers, x)
    assert int((outliers != 0).sum()) == 9
    assert outliers[outliers != 0].abs().min() > rest.abs().max()
    none, every = split_outliers(x, 0.0)[1], split_outliers(x, 1.0)[0]
    assert not none.any()
    assert not every.any()


def test_the_products_and_gradients_are_those_of_the_layer() -> None:
    torch.manual_seed(0)
    plain = nn.Linear(40, 5).double()
    layer = copy.deepcopy(plain)
    keep_outliers(layer, 0.1)
    assert type(layer) is OutlierLinear
    assert layer.weight is not plain.weight
    x = torch.randn(2, 3, 40, dtype=torch.float64, requires_grad=True)
    z = x.detach().clone().requires_grad_()
    y = layer(x)
    assert torch.allclose(y, plain(z), rtol=1e-12)
    y.square().sum().backward()
    plain(z).square().sum().backward()
    pairs = (
        (x.grad, z.grad),
        (layer.weight.grad, plain.weight.grad),
        (layer.bias.grad, plain.bias.grad),
    )
    for ours, theirs in pairs:
        assert torch.allclose(ours, theirs, rtol=1e-10)


def test_outliers_no_longer_spoil_their_blocks() -> None:
    torch.manual_seed(0)
    plain = nn.Linear(256, 64)
    x = torch.randn(32, 256)
    x[:, 17] *= 1000
    exact = functional.linear(x.double(), plain.weight.double(), plain.bias.double())

    def error(model: nn.Module) -> float:
        return float((model(x) - exact).square().mean().detach())

    kept = keep_outliers(copy.deepcopy(plain), 0.005)
    assert error(convert(kept)) < error(convert(plain)) / 10


def test_only_plain_linear_layers_are_turned_and_parameters_stay() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.MultiheadAttention(4, 2))
    before = dict(model.named_parameters())
    keep_outliers(model, 0.1)
    assert [type(x).__name__ for x in model] == ["OutlierLinear", "ReLU", "MultiheadAttention"]
    assert all(x is before[name] for name, x in model.named_parameters())
    again = OutlierLinear(4, 3, 0.1)
    assert again(torch.ones(4)).shape == (3,)


def test_bad_arguments_are_refused() -> None:
    for share in (-0.1, 1.1):
        with pytest.raises(ValueError, match=r"^share must be from 0 to 1, not "):
            split_outliers(torch.ones(3), share)
        with pytest.raises(ValueError, match=r"^share must be from 0 to 1, not "):
            keep_outliers(nn.Linear(4, 3), share)
    with pytest.raises(ValueError, match=r"^the model has no layer of class Linear$"):
        keep_outliers(nn.ReLU(), 0.1)
