import pytest
import torch
from torch import Tensor, nn

from axs6.torch import convert
from axs6.torch.training import Elementwise


def narrow(x: Tensor) -> Tensor:
    return x.bfloat16().float()


def test_results_and_gradients_are_rounded() -> None:
    torch.manual_seed(0)
    norm = nn.LayerNorm(40)
    x = torch.randn(3, 40, requires_grad=True)
    plain = norm(x)
    with Elementwise():
        y = norm(x)
        z = y + y
    assert y.dtype == torch.float32
    assert torch.equal(y, narrow(plain))
    assert not torch.equal(y, plain)
    assert torch.equal(z, narrow(z))
    y.backward(torch.randn(3, 40))
    assert norm.bias.grad is not None
    assert x.grad is not None
    # The gradient of the rounded result is rounded on its way to the norm.
    gradient = torch.randn(3, 40)
    norm.zero_grad()
    with Elementwise():
        norm(x).backward(gradient)
    assert torch.equal(norm.bias.grad, narrow(gradient).sum(0))


def test_products_keep_the_bits_of_the_hardware_before_they_are_rounded() -> None:
    torch.manual_seed(0)
    model = convert(nn.Sequential(nn.Linear(40, 8, bias=False)))
    x = torch.randn(3, 40)
    with Elementwise():
        y = model(x)
    assert torch.equal(y, narrow(model(x)))


def test_what_is_changed_in_place_and_integers_stay() -> None:
    x, numbers = torch.ones(3) / 3, torch.arange(3)
    with Elementwise():
        x.add_(1e-6)
        assert torch.equal(numbers + 1, torch.arange(1, 4))
        assert (x.double() + 1e-9).dtype == torch.float64
    assert not torch.equal(x, narrow(x))


def test_training_goes_on_in_it() -> None:
    torch.manual_seed(0)
    model = convert(nn.Sequential(nn.Linear(40, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)))
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    x = torch.randn(64, 40)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        with Elementwise():
            loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert all(not torch.equal(p, narrow(p)) for p in model.parameters())


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^dtype must be torch.bfloat16 or torch.float16, not "):
        Elementwise(torch.float32)
