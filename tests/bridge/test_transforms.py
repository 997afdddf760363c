"""Derivatives and batches by `torch.func`, and tensors without values, `meta`."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

from axs6.torch import ErrorFeedback, bmm, convert, fake_quantise, matmul

Same = Callable[[Tensor, Tensor], bool]
Function = Callable[[Tensor], Tensor]

pytestmark = [
    # Of torch, on functions that it runs for each of a batch, and on its own ones for forward mode.
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]


class Users(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.conv = nn.Conv1d(8, 8, 3, padding=1, groups=2)
        self.up = nn.ConvTranspose1d(8, 8, 1)
        self.hidden = nn.GRU(8, 8, batch_first=True)
        self.w = nn.Parameter(torch.randn(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention(x, x, x)[0]
        y = self.up(self.conv(y.mT)).mT
        return functional.linear(self.hidden(y)[0], self.w) @ self.w


class Product(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x @ x


MODELS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: convert(Users()),
    "gradients": lambda: convert(Users(), format="mxfp8_e4m3", gradients="mxfp8_e5m2"),
    "linear": lambda: convert(nn.Linear(8, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name: str, same: Same) -> None:
    model, x = MODELS[name](), torch.randn(2, 3, 8, requires_grad=True)
    v = torch.randn(2, 3, 8)
    parameters = dict(model.named_parameters())
    expected = torch.autograd.grad(model(x), [x, *parameters.values()], v)

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return (torch.func.functional_call(model, parameters, (x,)) * v).sum()

    found, of_x = torch.func.grad(loss, (0, 1))(parameters, x)
    assert all(same(a, b) for a, b in zip([of_x, *found.values()], expected, strict=True))
    y, pull = torch.func.vjp(model, x)
    assert same(y, model(x))
    assert same(pull(v)[0], expected[0])


@pytest.mark.parametrize("name", MODELS)
def test_batches_of_gradients(name: str) -> None:
    model, x = MODELS[name](), torch.randn(1, 2, 8)
    # One by one. Torch multiplies batches in FP32, in another order.
    expected = torch.autograd.functional.jacobian(model, x)
    torch.testing.assert_close(torch.func.jacrev(model)(x), expected)
    torch.testing.assert_close(
        torch.autograd.functional.jacobian(model, x, vectorize=True), expected
    )
    inputs = [x.requires_grad_(), *model.parameters()]
    y, v = model(x), torch.randn(3, 1, 2, 8)
    batch = torch.autograd.grad(y, inputs, v, is_grads_batched=True, retain_graph=True)
    for number in range(3):
        one = torch.autograd.grad(y, inputs, v[number], retain_graph=True)
        for a, b in zip(batch, one, strict=True):
            torch.testing.assert_close(a[number], b)


def test_batches_of_inputs_and_weights(same: Same) -> None:
    model, x = convert(Users()).eval(), torch.randn(3, 2, 4, 8)
    y = torch.func.vmap(model)(x)
    assert all(same(a, model(b)) for a, b in zip(y, x, strict=True))
    layers = [convert(nn.Linear(8, 5)) for _ in range(3)]
    parameters, _ = torch.func.stack_module_state(layers)

    def run(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(layers[0], parameters, (x,))

    y = torch.func.vmap(run, in_dims=(0, None))(parameters, x[0])
    assert all(same(a, layer(x[0])) for a, layer in zip(y, layers, strict=True))
    per_sample = torch.func.vmap(torch.func.grad(lambda x: model(x).sum()))(x)
    assert per_sample.shape == x.shape


def test_second_derivatives() -> None:
    model, x = convert(nn.Linear(8, 3)), torch.randn(8)

    def loss(x: Tensor) -> Tensor:
        return model(x).square().sum()

    hessian = torch.func.jacrev(torch.func.jacrev(loss))(x)
    weight = fake_quantise(model.weight)
    torch.testing.assert_close(hessian, 2 * weight.mT @ weight)


@pytest.mark.parametrize("transformed", [True, False])
def test_second_derivatives_with_a_format_of_gradients_are_refused(transformed: bool) -> None:
    model, x = convert(nn.Linear(8, 3), gradients="axs6"), torch.randn(8)

    def loss(x: Tensor) -> Tensor:
        return model(x).square().sum()

    hessian: Any = torch.func.jacrev(torch.func.jacrev(loss))
    if not transformed:
        hessian = functools.partial(torch.autograd.functional.hessian, loss)
    with pytest.raises(NotImplementedError, match="gradients in a block format have no deriv"):
        hessian(x)


def test_functions_have_gradients(same: Same) -> None:
    x, ones = torch.randn(4, 4), torch.ones(4, 4)
    assert same(torch.func.grad(lambda x: fake_quantise(x).sum())(x), ones)
    found = torch.func.grad(lambda a: matmul(a, x.mT).sum())(x)
    assert same(found, ones @ fake_quantise(x))


def jvp(function: Function, x: Tensor) -> Any:
    return torch.func.jvp(function, (x,), (x,))


def jvp_without_gradients(function: Function, x: Tensor) -> Any:
    with torch.no_grad():
        return torch.func.jvp(function, (x,), (x,))


def jacfwd(function: Function, x: Tensor) -> Any:
    return torch.func.jacfwd(function)(x)


def hessian(function: Function, x: Tensor) -> Any:
    return torch.func.hessian(lambda x: function(x).sum())(x)


def dual(function: Function, x: Tensor) -> Any:
    with forward_ad.dual_level(), torch.no_grad():
        return function(forward_ad.make_dual(x, x))


@pytest.mark.parametrize("how", [jvp, jvp_without_gradients, jacfwd, hessian, dual])
@pytest.mark.parametrize(
    "function",
    [
        convert(nn.Linear(4, 3)),
        convert(Product()),
        fake_quantise,
        lambda x: matmul(x, x),
        lambda x: bmm(x.unsqueeze(0), x.unsqueeze(0)),
        ErrorFeedback((4, 4)),
    ],
    ids=["layer", "model", "fake_quantise", "matmul", "bmm", "feedback"],
)
def test_forward_mode_is_refused(
    function: Function, how: Callable[[Function, Tensor], Any]
) -> None:
    with pytest.raises(NotImplementedError, match="have no forward-mode derivatives"):
        how(function, torch.randn(4, 4))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_forward_mode_is_refused(backend: str) -> None:
    torch.compiler.reset()
    model = convert(nn.Linear(4, 3))
    run: Any = torch.compile(lambda x: jvp(model, x), backend=backend)
    with pytest.raises(NotImplementedError, match="have no forward-mode derivatives"):
        run(torch.randn(4, 4))


@pytest.mark.parametrize("grad", [True, False])
def test_tensors_without_values_give_such(grad: bool) -> None:
    with torch.set_grad_enabled(grad):
        model = convert(nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4))).to("meta")
        assert model(torch.ones(3, 8, device="meta")).shape == (3, 4)
        assert model(torch.ones(3, 8, device="meta")).is_meta
        x = torch.ones(3, 8, device="meta")
        assert matmul(x, x.mT).is_meta
        assert fake_quantise(x).is_meta


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"weight": "meta"}, "linear: input and weight must be on one device, not cpu and meta"),
        ({"weight": "meta", "bias": "meta"}, "linear: input and weight must be on one device"),
        ({"bias": "meta"}, "linear: bias must be on cpu, not on meta"),
        ({"x": "meta"}, "linear: input and weight must be on one device, not meta and cpu"),
    ],
)
def test_only_some_without_values_are_refused(
    grad: bool, where: dict[str, str], message: str
) -> None:
    layer, x = convert(nn.Linear(8, 4)), torch.randn(3, 8)
    for name in ("weight", "bias"):
        if name in where:
            setattr(layer, name, nn.Parameter(getattr(layer, name).to("meta")))
    with torch.set_grad_enabled(grad), pytest.raises(ValueError, match=message):
        layer(x.to(where.get("x", "cpu")))


@pytest.mark.parametrize("grad", [True, False])
def test_other_operands_without_values_are_refused(grad: bool) -> None:
    x = torch.randn(4, 4, requires_grad=grad)
    meta = torch.zeros(4, 4, dtype=torch.int64, device="meta")
    with pytest.raises(ValueError, match="random must be on cpu as the values are, not on meta"):
        fake_quantise(x, rounding="stochastic", random=meta)
    with pytest.raises(ValueError, match="left operand and right operand must be on one device"):
        matmul(x, x.to("meta"))
    with pytest.raises(ValueError, match="values must be on meta as the error is, not on cpu"):
        ErrorFeedback((4, 4), device="meta")(x)
    with pytest.raises(ValueError, match="values must be on cpu as the error is, not on meta"):
        ErrorFeedback((4, 4))(x.to("meta"))
