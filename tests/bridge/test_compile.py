import copy
import gc
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from axs6.torch import ErrorFeedback, Lfsr, convert, fake_quantise, matmul, profile

Same = Callable[[Tensor, Tensor], bool]

BACKENDS = ["eager", "aot_eager"]
if shutil.which("g++"):
    BACKENDS.append("inductor")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.query = nn.Linear(8, 8)
        self.excluded = nn.Linear(8, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x).flatten(2).mT.relu()
        y = y + (self.query(y) @ y.mT).relu() @ y
        y = functional.scaled_dot_product_attention(y, y, self.excluded(y))
        return self.attention(y, y, y, need_weights=False)[0]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inductor")


@pytest.fixture(autouse=True)
def fresh(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Inductor's own cache is found by others too, and may hold another processor's instructions.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(kernels))
    torch.compiler.reset()
    # It would try by compilations of several seconds what it can say of this processor without.
    inductor = import_module("torch._inductor.config")
    with inductor.patch({"cpp.vec_isa_ok": True}):
        yield
    torch.compiler.reset()


@pytest.mark.parametrize(
    "backend",
    # Inductor compiles two dozen kernels of the model; every run has those of smaller ones.
    [pytest.param(each, marks=[pytest.mark.slow] * (each != "eager")) for each in BACKENDS],
)
def test_a_compiled_model_gives_the_same_bits(backend: str, same: Same) -> None:
    model = convert(Model(), exclude=["excluded"])
    # Inductor's own softmax rounds otherwise than torch's, which is no affair of the products.
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    x = torch.randn(2, 3, 4, 4)
    with profile() as expected:
        y = model(x)
    with profile() as report:
        z = compiled(x)
    assert [row.name for row in report.rows] == [row.name for row in expected.rows]
    if backend != "inductor":
        assert same(z, y)
    else:
        assert (z - y).abs().max() < 0.1


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        # Inductor takes its time; every run has functions that it compiles.
        pytest.param(backend, dtype, marks=[pytest.mark.slow] * (backend == "inductor"))
        if dtype == torch.bfloat16 or backend == "inductor"
        else (backend, dtype)
        for dtype in (torch.float32, torch.bfloat16)
        for backend in BACKENDS
    ],
)
def test_a_compiled_model_learns_the_same_bits(
    backend: str, dtype: torch.dtype, same: Same
) -> None:
    layers = nn.Sequential(nn.Linear(40, 16), nn.ReLU(), nn.Linear(16, 3)).to(dtype)
    eager = convert(layers)
    model = copy.deepcopy(eager)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    x = torch.randn(8, 40, dtype=dtype)
    optimisers = [torch.optim.SGD(m.parameters(), 0.1) for m in (eager, model)]
    for _ in range(3):
        a, b = eager(x), compiled(x)
        assert same(a, b)
        for y, optimiser in zip((a, b), optimisers, strict=True):
            optimiser.zero_grad()
            y.backward(torch.ones_like(y))
            optimiser.step()
        if backend == "inductor":
            # Its FP32 products and sums, of which gradients are made, have bits of their own.
            model.load_state_dict(eager.state_dict())
        for p, q in zip(eager.parameters(), model.parameters(), strict=True):
            assert same(p, q)


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_functions(backend: str, same: Same) -> None:
    def function(a: Tensor, b: Tensor) -> Tensor:
        return matmul(fake_quantise(a), b, block=16) * 2

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    a, b = torch.randn(3, 5, 40), torch.randn(40, 6)
    assert same(compiled(a, b), function(a, b))


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_rounding_and_feedback(backend: str, same: Same) -> None:
    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = Lfsr(16)
            self.feedback = ErrorFeedback((3, 40))

        def forward(self, x: Tensor) -> Tensor:
            random = self.words(x)
            y = fake_quantise(x.bfloat16(), "axs6", "stochastic", block=16, random=random)
            return y + self.feedback(x * 2, "axs6", "stochastic", block=16, random=random)

    eager = Step()
    compiled = torch.compile(copy.deepcopy(eager), backend=backend, fullgraph=True)
    for _ in range(3):
        x = torch.randn(3, 40)
        assert same(compiled(x), eager(x))
    assert same(compiled.words.states, eager.words.states)
    assert same(compiled.feedback.error, eager.feedback.error)


def test_sizes_may_change(same: Same) -> None:
    layer = convert(nn.Sequential(nn.Linear(40, 3), nn.ReLU()))
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
    for count in (2, 5, 9):
        x = torch.randn(count, 40)
        assert same(compiled(x), layer(x))


def test_errors_name_the_layer() -> None:
    compiled = torch.compile(convert(nn.Sequential(nn.Linear(4, 3))), backend="aot_eager")
    with pytest.raises(ValueError, match="0: input must be finite"):
        compiled(torch.full((1, 4), torch.nan))


def test_the_operators_keep_the_rules_of_torch() -> None:
    layer = convert(nn.Linear(40, 3))
    x = torch.randn(1, 5, 40, requires_grad=True)
    arguments = (x, layer.weight, layer.bias, layer.axs6_site.handle, None)
    torch.library.opcheck(torch.ops.axs6.weight_product.default, arguments)
    other = torch.randn(1, 6, 40, requires_grad=True)
    site = layer.axs6_site.handle
    torch.library.opcheck(torch.ops.axs6.product.default, (x, other, site))
    torch.library.opcheck(
        torch.ops.axs6.fake_quantise.default, (x, "axs6", "nearest", None, 16, "error", None, "x")
    )
    torch.library.opcheck(torch.ops.axs6.decoded.default, (x, site, False, None))


class _Seen(TorchDispatchMode):
    """Names of the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_modes_and_gradients_see_the_operators(dtype: torch.dtype, same: Same) -> None:
    """Without them the operators' functions are called, which is faster."""
    layer = convert(nn.Linear(40, 3).to(dtype))
    x, other = torch.randn(5, 40, dtype=dtype), torch.randn(40, 6, dtype=dtype)
    with torch.no_grad():
        plain = layer(x), matmul(x, other)
        with _Seen() as seen:
            told = layer(x), matmul(x, other)
    operators = ["axs6.weight_product.default", "axs6.product.default"]
    assert [name for name in seen.names if name.startswith("axs6.")] == operators
    with_gradients = layer(x), matmul(x.requires_grad_(), other)
    for y, expected, again in zip(with_gradients, plain, told, strict=True):
        assert y.requires_grad
        assert same(y.detach(), expected)
        assert same(again, expected)


def test_a_model_that_is_gone_is_an_error() -> None:
    layer = convert(nn.Linear(4, 3))
    handle = layer.axs6_site.handle
    del layer
    gc.collect()
    with pytest.raises(RuntimeError, match="a converted model that no longer exists"):
        torch.ops.axs6.product(torch.ones(1, 2, 3), torch.ones(1, 2, 3), handle)
