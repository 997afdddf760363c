"""Products that stay torch's: they are named, once each, and never silent."""

import copy
import inspect
import pickle
import re
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._ops import _higher_order_ops
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention
from torch.overrides import get_overridable_functions

from axs6.torch import UnconvertedWarning, convert, matmul, profile
from axs6.torch.products import product_name

Same = Callable[[Tensor, Tensor], bool]

A, B = torch.eye(4), torch.ones(2, 4, 4)
F8, ONE = torch.eye(16).to(torch.float8_e4m3fn), torch.ones(())


@torch.library.custom_op("some_library::fused_mlp", mutates_args=())
def _fused_mlp(x: Tensor, weight: Tensor) -> Tensor:
    return x @ weight


@_fused_mlp.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return x @ weight


class Calls(nn.Module):
    """Calls a function in its `forward`."""

    def forward(self, function: Callable[..., Any]) -> Any:
        return function()


class Outer(nn.Module):
    """Has a module whose `forward` runs within its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Calls()

    def forward(self, function: Callable[..., Any]) -> Any:
        return self.inner(function)


def told(run: Callable[[], Any]) -> list[str]:
    """What the warnings about products say are not converted."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UnconvertedWarning)
        run()
    assert {warning.category for warning in found} <= {UnconvertedWarning}
    return [str(warning.message).partition(" is not converted: ")[0] for warning in found]


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "einsum": lambda: torch.einsum("ij,jk,kl->il", A, A, A),
    "multi_dot": lambda: torch.linalg.multi_dot([A, A, A]),
    "chain_matmul": lambda: torch.ops.aten.chain_matmul([A, A]),
    "addbmm": lambda: A.addbmm(B, B),
    "tensordot": lambda: torch.tensordot(A[:1], A, ([0], [0])),
    "cdist": lambda: torch.cdist(A, A),
    "conv_tbc": lambda: torch.conv_tbc(B, B, A[0]),
    "gru_cell": lambda: torch.gru_cell(A, hx=A, w_ih=torch.ones(12, 4), w_hh=torch.ones(12, 4)),
    "matmul": lambda: A.cfloat() @ A.cfloat(),
    "mm": lambda: torch.sparse.mm(A.to_sparse(), A),
    "pinverse": lambda: torch.pinverse(A),
    "matrix_exp": lambda: torch.linalg.matrix_exp(A),
    "affine_grid": lambda: functional.affine_grid(B[:, :2, :3], [2, 1, 4, 4], False),
    "_euclidean_dist": lambda: torch._euclidean_dist(A, A),
    "_scaled_mm": lambda: torch._scaled_mm(F8, F8.T, ONE, ONE, out_dtype=torch.bfloat16),
    "_scaled_mm_v2": lambda: functional.scaled_mm(
        *(F8, F8.T, ONE, functional.ScalingType.TensorWise, ONE, functional.ScalingType.TensorWise)
    ),
    "_scaled_dot_product_flash_attention_for_cpu": lambda: (
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(B[None], B[None], B[None])[0]
    ),
    "some_library.fused_mlp": lambda: _fused_mlp(A, A),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_named_once(name: str) -> None:
    function = FUNCTIONS[name]
    model = convert(Outer())
    with profile() as report:
        assert told(lambda: (model(function), model(function))) == [f"inner.{name}"]
    assert not report.rows
    assert torch.equal(convert(Outer(), unconverted="ignore")(function), function())
    with pytest.raises(UnconvertedWarning, match=f"^inner.{name} is not converted: torch computes"):
        convert(Outer(), unconverted="error")(function)
    torch.compiler.reset()
    compiled = torch.compile(convert(Outer()), backend="eager")
    assert told(lambda: (compiled(function), compiled(function))) == [f"inner.{name}"]
    torch.compiler.reset()


def branches(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda y: y @ y, lambda y: y.cos(), (x,))


FUNCTIONALS: dict[str, Callable[[], Any]] = {
    "matmul in cond": lambda: branches(A),
    "matmul in while_loop": lambda: torch.while_loop(
        lambda i, x: i < 2, lambda i, x: (i + 1, x @ x), (torch.tensor(0), A)
    )[1],
    "flex_attention": lambda: flex_attention(B[None], B[None], B[None]),
}


@pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore::DeprecationWarning:torch")
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_operators_of_functions_are_named(name: str) -> None:
    function = FUNCTIONALS[name]
    with profile():
        assert told(lambda: convert(Outer())(function)) == [f"inner.{name}"]
    with pytest.raises(UnconvertedWarning, match=f"^inner.{name} is not converted"):
        convert(Outer(), unconverted="error")(function)
    torch.compiler.reset()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_operators_of_functions_without_products_are_not_named() -> None:
    layer = convert(nn.Linear(4, 4))
    for function in (torch.cos, layer):
        run = lambda f=function: torch.cond(A.sum() > 0, f, torch.sin, (A,))  # noqa: E731
        y = convert(Calls(), unconverted="error")(run)
        assert torch.equal(y, function(A))
    torch.compiler.reset()
    compiled = torch.compile(convert(Calls()), backend="eager")
    found = told(lambda: compiled(lambda: branches(A)))
    assert found == ["what a compiled operator calls"]
    torch.compiler.reset()


NO_PRODUCT = re.compile(
    # Interpolation, special functions, gates, losses, and what prepares or chooses for products.
    "upsample|bessel|thnn_(fused|differentiable)|ctc_loss|_pack_|prepack$|mm_search|quantize_weight"
    "|reorder|flatten_weight|_sdp_choice|linspace|semi_structured_(apply|tile)"
)
WORDS = re.compile(
    "mm(_|$|d)|matmul|gemm|bmm|linear|conv(?!ert)|attention|attn|einsum|tensordot|cdist|(^|_)v?dot(_|$)"
    "|(^|_)mv(_|$)|addmv|addbmm|baddbmm|inner|multi_dot|(^|_)(gru|lstm|rnn)|_rnn|matrix_(power|exp)"
    "|euclidean|affine_grid_gen|pinv|ormqr|orgqr|householder|chain|encoder_layer|grouped|scaled"
)


def test_every_operator_of_torch_that_multiplies_matrices_is_known() -> None:
    """A new torch that has more of them fails here: convert or name them in products.py."""
    schemas = [s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")]
    names = {name.removeprefix("aten::") for name in schemas}
    found = {name for name in names if WORDS.search(name) and not NO_PRODUCT.search(name)}
    packets = {name: getattr(torch.ops.aten, name) for name in found}
    assert len(found) > 150
    assert {name for name, packet in packets.items() if product_name(packet) is None} == set()
    functionals = {name for name in _higher_order_ops if WORDS.search(name)}
    assert {x for x in functionals if product_name(_higher_order_ops[x]) is None} == set()


def test_every_function_in_python_that_multiplies_matrices_is_known() -> None:
    """They come to the mode whole: what they call is not seen."""
    called = re.compile(
        r"\b(b?mm|matmul|linear|conv\w*|einsum|tensordot|addb?mm|baddbmm|scaled_dot_product_attention"
        r"|affine_grid_generator|cdist|mv|dot|inner)\(| @ "
    )
    # It has no tensor of another class, and is followed.
    followed = {torch.functional.pca_lowrank}
    listed = {f for functions in get_overridable_functions().values() for f in functions}
    found = {f for f in listed - followed if inspect.isfunction(inspect.unwrap(f))}
    texts = {f: inspect.getsource(f).replace(f.__doc__ or "-", "") for f in found}
    multiply = {f for f, text in texts.items() if called.search(text.split(":", 1)[1])}
    assert functional.multi_head_attention_forward in multiply
    assert {f.__name__ for f in multiply if product_name(f) is None} == set()


def test_functions_that_compute_products_in_python_are_named() -> None:
    model = convert(Outer())
    found = told(lambda: model(lambda: functional.linear_cross_entropy(A, A, torch.arange(4))))
    assert found == ["inner.linear_cross_entropy"]


def test_what_is_no_product_or_converted_is_not_named() -> None:
    model = convert(Outer(), unconverted="error")
    for function in (
        lambda: torch.einsum("i,j->ij", A[0], A[1]),
        lambda: torch.einsum("ii->i", A),
        lambda: torch.einsum("ij,jk->ik", A, A),
        lambda: A.long() @ A.long(),
        lambda: torch.linalg.multi_dot([A.long(), A.long()]),
        lambda: torch.tensordot(A, A, 0),
    ):
        model(function)


class Holds(nn.Module):
    """Calls a layer in its `forward`."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *inputs: Tensor) -> Any:
        return self.layer(*inputs)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_scripted_modules_are_named() -> None:
    scripted = torch.jit.script(nn.Linear(4, 4))
    models: list[nn.Module] = []
    expected = ["layer (RecursiveScriptModule)"]
    assert told(lambda: models.append(convert(Holds(scripted)))) == expected
    assert torch.equal(models[0](A), scripted(A))


def test_a_forward_of_the_object_is_named(same: Same) -> None:
    layer = nn.Linear(4, 4)
    layer.forward = types.MethodType(lambda self, x: x @ self.weight, layer)
    model = nn.Sequential(layer)
    assert told(lambda: convert(model)) == ["0.forward, assigned to the object,"]
    with pytest.raises(UnconvertedWarning, match=r"0\.forward, assigned to the object, is not"):
        convert(model, unconverted="error")
    # What runs within a forward that is replaced is replaced.
    held = convert(Holds(layer), unconverted="error")
    assert same(held(A), matmul(A, layer.weight))


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_compiled_modules_within_are_converted() -> None:
    compiled = torch.compile(nn.Linear(4, 4), backend="eager")
    model = convert(nn.Sequential(compiled), unconverted="error")
    with profile() as report:
        model(A)
    assert [row.name for row in report.rows] == ["0._orig_mod"]


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match="unconverted must be one of warn, error, ignore, not 'x'"):
        convert(Calls(), unconverted="x")  # type: ignore[arg-type]


class Methods(nn.Module):
    """Products in methods beside `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def scores(self, x: Tensor, scale: float = 1) -> Tensor:
        return self._product(self.layer(x), x) * scale

    def _product(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y.mT

    def steps(self, x: Tensor) -> Iterator[Tensor]:
        yield x @ x

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x) @ self._product(x, x) + next(self.steps(x))


class Calling(nn.Module):
    """Calls a method of a module, not the module."""

    def __init__(self) -> None:
        super().__init__()
        self.methods = Methods()

    def forward(self, x: Tensor) -> Tensor:
        return self.methods.scores(x) @ x


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_methods_called_outside_forward_are_converted(same: Same) -> None:
    def names(run: Callable[[Tensor], Tensor]) -> list[str]:
        with profile() as report:
            run(A)
        return [row.name for row in report.rows]

    model = convert(Methods())
    assert names(model) == ["layer", *(f"matmul{i}" for i in range(4))]
    for other in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), convert(model)):
        assert names(other.scores) == ["layer", "matmul0"]
        assert same(other.scores(A, scale=2), matmul(other.layer(A), A.mT) * 2)
    assert names(convert(Calling())) == ["methods.layer", "methods.matmul0", "matmul0"]
    torch.compiler.reset()
    compiled = torch.compile(model.scores, backend="eager", fullgraph=True)
    assert names(compiled) == ["layer", "matmul0"]
    assert same(compiled(A), model.scores(A))
    torch.compiler.reset()
