"""Products in threads, checkpoints and backward methods that a method leaves behind."""

import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from axs6.torch import UnconvertedWarning, convert, matmul, profile

Same = Callable[[Tensor, Tensor], bool]


class Calls(nn.Module):
    """Calls a function in its `forward`."""

    def forward(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


class Product(torch.autograd.Function):
    """A product with a backward method of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return grad @ weight.mT, x.mT @ grad


class Doubled(torch.autograd.Function):
    """No product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 2 * grad


_generator = torch.Generator().manual_seed(0)
X, W = (torch.randn(shape, generator=_generator) for shape in ((5, 40), (40, 24)))
POOL = ThreadPoolExecutor(1)


def in_thread(function: Callable[[], Tensor]) -> Tensor:
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("run", [in_thread, lambda f: POOL.submit(f).result()])
def test_threads(run: Callable[..., Tensor], same: Same) -> None:
    model = convert(Calls(), unconverted="error")
    assert same(model(run, lambda: X @ W), matmul(X, W))
    assert torch.equal(run(lambda: X @ W), X @ W)
    with pytest.warns(UnconvertedWarning, match="^cdist is not converted"):
        convert(Calls())(run, lambda: torch.cdist(X, X))
    excluded = convert(nn.Sequential(Calls()), exclude=["0"])
    assert torch.equal(excluded(lambda: run(lambda: X @ W)), X @ W)


def test_threads_of_a_pool_keep_nothing(same: Same) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert same(convert(Calls())(lambda: pool.submit(lambda: X @ W).result()), matmul(X, W))
        assert torch.equal(pool.submit(lambda: X @ W).result(), X @ W)


def gradients(run: Callable[[Tensor, Tensor], Tensor], compiled: str | None) -> list[Tensor]:
    """The result and the gradients of both operands."""
    model: Any = convert(Calls(), unconverted="error")
    if compiled is not None:
        torch.compiler.reset()
        model = torch.compile(model, backend=compiled)
    x, weight = (y.clone().requires_grad_() for y in (X, W))
    y = model(run, x, weight)
    y.square().sum().backward()
    assert x.grad is not None
    assert weight.grad is not None
    return [y.detach(), x.grad, weight.grad]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize(
    ("reentrant", "compiled"),
    [
        *((False, None), (True, None), (True, "eager")),
        *(pytest.param(x, "aot_eager", marks=pytest.mark.slow) for x in (False, True)),
    ],
)
def test_checkpoints(reentrant: bool, compiled: str | None, same: Same) -> None:
    def kept(x: Tensor, weight: Tensor) -> Tensor:
        return (x.sin() @ weight).cos()

    def again(x: Tensor, weight: Tensor) -> Tensor:
        return checkpoint(lambda z: (z.sin() @ weight).cos(), x, use_reentrant=reentrant)

    expected = gradients(kept, None)
    got = gradients(again, compiled)
    assert all(same(y, z) for y, z in zip(got, expected, strict=True))
    torch.compiler.reset()


def test_places_of_a_checkpoint_are_those_of_the_forward() -> None:
    def run(x: Tensor, weight: Tensor) -> Tensor:
        y = x @ weight
        return checkpoint(lambda z: (z @ weight.mT).sin(), y, use_reentrant=False)

    with profile() as report:
        gradients(run, None)
    assert [(row.name, row.calls) for row in report.rows] == [("matmul0", 1), ("matmul1", 2)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize("compiled", [False, True])
def test_backward_methods_are_told(compiled: bool) -> None:
    with pytest.raises(UnconvertedWarning, match=r"^backward of Product: matmul is not converted"):
        gradients(Product.apply, None)
    torch.compiler.reset()
    model: Any = convert(Calls())
    if compiled:
        model = torch.compile(model, backend="eager")
    x, weight = (y.clone().requires_grad_() for y in (X, W))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UnconvertedWarning)
        y = model(Product.apply, x, weight)
        y.sum().backward()
    assert [w.category for w in found] == [UnconvertedWarning]
    torch.compiler.reset()


def test_backward_methods_without_products_and_outside_are_not_told() -> None:
    gradients(lambda x, weight: Doubled.apply(x) @ weight, None)
    x, weight = (y.clone().requires_grad_() for y in (X, W))
    Product.apply(x, weight).sum().backward()
    assert torch.equal(x.grad, torch.ones(5, 24) @ W.mT)


def test_gradients_within_a_forward_are_those_outside(same: Same) -> None:
    def slope(x: Tensor) -> Tensor:
        return torch.autograd.grad((x @ W).square().sum(), x)[0]

    x = X.clone().requires_grad_()
    assert same(
        convert(Calls(), unconverted="error")(slope, x), gradients(lambda a, b: a @ b, None)[1]
    )
