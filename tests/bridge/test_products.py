"""Products that modules compute themselves: other names of one product, and graphs."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from axs6.torch import convert, matmul, profile

Same = Callable[[Tensor, Tensor], bool]
aten = torch.ops.aten


class Calls(nn.Module):
    """Calls a function in its `forward`."""

    def forward(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


_generator = torch.Generator().manual_seed(0)
A, B, C = (
    torch.randn(shape, generator=_generator) / 8
    for shape in ((3, 24, 40), (3, 40, 24), (3, 24, 24))
)
M, N, V = A[0], B[0], B[1, :, 2]

SAME: dict[str, tuple[Callable[[], Tensor], Callable[[], Tensor]]] = {
    "linalg.matmul": (lambda: torch.linalg.matmul(A, B), lambda: matmul(A, B)),
    "aten.mm": (lambda: aten.mm(M, mat2=N), lambda: matmul(M, N)),
    "aten.mm.default": (lambda: aten.mm.default(M, N), lambda: matmul(M, N)),
    "aten.mm, named": (lambda: aten.mm(self=M, mat2=N), lambda: matmul(M, N)),
    "aten.bmm": (lambda: aten.bmm.default(A, B), lambda: matmul(A, B)),
    "aten.matmul": (lambda: aten.matmul(A, N), lambda: matmul(A, N)),
    "aten.linear": (lambda: aten.linear(A, M, V[:24]), lambda: matmul(A, M.mT) + V[:24]),
    "mv": (lambda: torch.mv(M, V), lambda: matmul(M, V)),
    "Tensor.mv": (lambda: M.mv(vec=V), lambda: matmul(M, V)),
    "dot": (lambda: torch.dot(M[0], V), lambda: matmul(M[0], V)),
    "vdot": (lambda: M[0].vdot(V), lambda: matmul(M[0], V)),
    "vecdot": (
        lambda: torch.linalg.vecdot(A, A, dim=1),
        lambda: torch.stack(
            [matmul(A[i, :, j], A[i, :, j]) for i in range(3) for j in range(40)]
        ).view(3, 40),
    ),
    "inner": (lambda: torch.inner(A, M), lambda: matmul(A, M.mT)),
    "inner of vectors": (lambda: V.inner(M[0]), lambda: matmul(V, M[0])),
    "addmm": (lambda: torch.addmm(V[:24], M, N), lambda: matmul(M, N) + V[:24]),
    "addmm, scaled": (
        lambda: C[0].addmm(M, N, beta=0.5, alpha=2),
        lambda: 2 * matmul(M, N) + 0.5 * C[0],
    ),
    "addmm, not added": (
        lambda: torch.addmm(C[0] * torch.nan, M, N, beta=0),
        lambda: matmul(M, N),
    ),
    "addmm_": (lambda: C[0].clone().addmm_(M, N), lambda: matmul(M, N) + C[0]),
    "aten.addmm": (lambda: aten.addmm.default(C[0], M, N), lambda: matmul(M, N) + C[0]),
    "addmv": (lambda: torch.addmv(V[:24], M, V), lambda: matmul(M, V) + V[:24]),
    "baddbmm": (lambda: torch.baddbmm(C, A, batch2=B), lambda: matmul(A, B) + C),
    "tensordot, one axis": (lambda: torch.tensordot(A, N, 1), lambda: matmul(A, N)),
    "tensordot, two axes": (
        lambda: torch.tensordot(A, B, ([2, 0], [-2, 0])),
        lambda: matmul(A.permute(1, 2, 0).flatten(1), B.permute(1, 0, 2).flatten(0, 1)),
    ),
    "einsum": (lambda: torch.einsum("gmk,gkn->gmn", A, B), lambda: matmul(A, B)),
    "einsum, implicit": (lambda: torch.einsum("mk,kn", M, N), lambda: matmul(M, N)),
    "einsum, transposed": (
        lambda: torch.einsum("gmk, gkn -> ngm", [A, B]),
        lambda: matmul(A, B).permute(2, 0, 1),
    ),
    "einsum, ellipses": (
        lambda: torch.einsum("...k,...kn->...n", A[:, 0], B),
        lambda: matmul(A[:, :1], B)[:, 0],
    ),
    "einsum, weight": (lambda: torch.einsum("...k,nk->...n", A, M), lambda: matmul(A, M.mT)),
    "einsum, two axes": (
        lambda: torch.einsum("gmk,gkn->mn", A, B),
        lambda: matmul(A.transpose(0, 1).flatten(1), B.flatten(0, 1)),
    ),
    "einsum, lists": (lambda: torch.einsum(M, [0, 1], N, [1, 2], [0, 2]), lambda: matmul(M, N)),
}


@pytest.mark.parametrize("name", SAME)
def test_a_product_under_another_name_has_its_bits(name: str, same: Same) -> None:
    function, expected = SAME[name]
    with profile() as report:
        y = convert(Calls())(function)
    assert same(y, expected())
    assert [row.calls for row in report.rows] == [1]
    assert not report.unconverted
    assert (y - function()).abs().max() < 0.2


OFFS = torch.tensor([4, 4, 20], dtype=torch.int32)
G = torch.randn(3, 24, 40, generator=_generator).mT.contiguous() / 8

GROUPED: dict[str, tuple[Callable[[], Tensor], Callable[[], Tensor]]] = {
    "rows": (
        lambda: functional.grouped_mm(M, G, offs=OFFS),
        lambda: torch.cat([matmul(M[:4], G[0]), matmul(M[4:20], G[2]), torch.zeros(4, 24)]),
    ),
    "columns": (
        lambda: torch._grouped_mm(A, N, OFFS),
        lambda: torch.cat(
            [matmul(A[0], N[:, :4]), matmul(A[2], N[:, 4:20]), torch.zeros(24, 4)], 1
        ),
    ),
    "depth": (
        lambda: aten._grouped_mm(M, N, offs=2 * OFFS),
        lambda: torch.stack(
            [matmul(M[:, :8], N[:8]), torch.zeros(24, 24), matmul(M[:, 8:40], N[8:40])]
        ),
    ),
    "matrices": (lambda: aten._grouped_mm.default(A, mat2=B), lambda: matmul(A, B)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", GROUPED)
def test_grouped_products(name: str, dtype: torch.dtype, same: Same) -> None:
    function, expected = GROUPED[name]
    with TorchDtypes(dtype):
        assert same(convert(Calls(), unconverted="error")(function), expected())


class TorchDtypes(torch.overrides.TorchFunctionMode):
    """Gives products operands of a dtype."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        change = [
            x.to(self.dtype) if isinstance(x, Tensor) and x.is_floating_point() else x for x in args
        ]
        return func(*change, **(kwargs or {}))


def test_experts_have_the_format_of_weights_and_learn(same: Same) -> None:
    x, weights = M.clone().requires_grad_(), G.clone().requires_grad_()
    run = lambda: functional.grouped_mm(x, weights, offs=OFFS)  # noqa: E731
    model = convert(Calls(), format="mxfp8_e4m3", weights="mxfp4")
    y = model(run)
    linear = convert(nn.Linear(40, 24, bias=False), format="mxfp8_e4m3", weights="mxfp4")
    with torch.no_grad():
        linear.weight.copy_(G[2].mT)
    z = linear(M[4:20])
    assert same(y[4:20], z)
    y.square().sum().backward()
    z.square().sum().backward()
    assert weights.grad is not None
    assert x.grad is not None
    assert same(weights.grad[2], linear.weight.grad.mT)
    assert not weights.grad[1].any()
    assert not x.grad[20:].any()


@pytest.mark.parametrize("format", ["int8", "mxint8"])
def test_a_scale_of_the_tensor_is_that_of_all_groups(format: str, same: Same) -> None:
    ends = torch.tensor([8, 16, 24], dtype=torch.int32)
    x = M * torch.arange(24)[:, None]
    converted = convert(Calls(), format=format)
    got = converted(lambda: functional.grouped_mm(x, G, offs=ends))
    assert same(got, converted(torch.bmm, x.view(3, 8, 40), G).view(24, 24))


@pytest.mark.parametrize("ends", [[4, 20], [4, 3, 20], [4, 4, 25]])
def test_groups_that_do_not_fit_are_refused(ends: list[int]) -> None:
    offs = torch.tensor(ends, dtype=torch.int32)
    with pytest.raises(ValueError, match="offs must be 3 rising ends of at most 24, not"):
        convert(Calls())(lambda: functional.grouped_mm(M, G, offs=offs))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_compiled_grouped_products(same: Same) -> None:
    torch.compiler.reset()
    x, weights = M.bfloat16(), G.bfloat16().mT.contiguous().mT
    run = lambda: functional.grouped_mm(x, weights, offs=OFFS)  # noqa: E731
    model = convert(Calls())
    assert same(torch.compile(model, backend="eager")(run), model(run))
    torch.compiler.reset()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_sums_are_rounded_once(dtype: torch.dtype, same: Same) -> None:
    x, weight, bias = (y.to(dtype) for y in (M, A[1], V[:24]))
    added = convert(Calls())(torch.addmm, bias, x, weight.mT)
    assert same(added, convert(Calls())(functional.linear, x, weight, bias))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"padding": "same", "dilation": 2},
        {"padding": "valid", "groups": 2},
        {"stride": (2, 1), "padding": (0, 3), "dilation": [1, 2], "groups": 2},
    ],
)
@pytest.mark.parametrize("axes", [1, 2])
def test_convolutions_called_as_functions_are_the_layers(
    axes: int, options: dict[str, Any], same: Same
) -> None:
    options = {
        name: value[:axes] if isinstance(value, tuple | list) else value
        for name, value in options.items()
    }
    layer = (nn.Conv1d, nn.Conv2d)[axes - 1](4, 6, 3, **options)
    function = (functional.conv1d, functional.conv2d)[axes - 1]
    for x in (torch.randn(2, 4, *(9, 8)[:axes]), torch.randn(4, *(9, 8)[:axes])):
        expected = convert(layer)(x)
        got = convert(Calls())(lambda x=x: function(x, layer.weight, layer.bias, **options))
        assert same(got, expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_compiled_products(same: Same) -> None:
    def function(x: Tensor, weight: Tensor) -> list[Tensor]:
        return [
            aten.mm.default(x, weight),
            torch.addmm(weight, x, weight),
            torch.tensordot(x, weight, 1),
            torch.einsum("...k,kn->n...", x, weight),
            functional.conv1d(x, weight[:, :, None], padding="same"),
            torch.mm(x, weight, out=torch.empty(24, 24)),
        ]

    torch.compiler.reset()
    model = convert(Calls())
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for y, z in zip(compiled(function, C[0], C[1]), model(function, C[0], C[1]), strict=True):
        assert same(y, z)
    torch.compiler.reset()


def test_results_are_written_where_out_says(same: Same) -> None:
    converted = convert(Calls())
    for out in (torch.empty(24, 24), torch.empty(0), torch.empty(24, 48)[:, ::2]):
        assert converted(lambda out=out: torch.mm(M, N, out=out)) is out
        assert same(out, matmul(M, N))
    out = torch.empty(24, 24)
    assert converted(lambda: aten.mm.out(M, N, out=out)) is out
    assert same(out, matmul(M, N))


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            lambda: torch.mm(M, N, out=torch.empty(24, 24, dtype=torch.float64)),
            ValueError,
            r"out must be torch\.float32 on cpu, as the result, not torch\.float64 on cpu",
        ),
        (
            lambda: torch.mm(M, N, out=torch.empty(3, 4)),
            ValueError,
            r"out must be empty or have shape \(24, 24\), not \(3, 4\)",
        ),
        (
            lambda: torch.mm(M.clone().requires_grad_(), N, out=torch.empty(24, 24)),
            RuntimeError,
            "out must not be given if gradients are needed",
        ),
        (lambda: torch.mm(A, B), ValueError, "operands must have 2 and 2 axes"),
        (lambda: torch.bmm(A[:1], B), ValueError, "axes and as many matrices, not shapes"),
        (lambda: M.mv(N), ValueError, "operands must have 2 and 1 axes"),
        (lambda: functional.conv2d(A, B[None]), ValueError, "conv0: padded input must be at least"),
    ],
)
def test_what_torch_refuses_is_refused(
    function: Callable[[], Tensor], error: type[Exception], message: str
) -> None:
    with pytest.raises((RuntimeError, UserWarning)):
        function()
    with pytest.raises(error, match=message):
        convert(Calls())(function)


class Traced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(24, 24)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) @ x.mT


@pytest.mark.parametrize("inside", [False, True])
def test_graphs(inside: bool, same: Same) -> None:
    def names(model: nn.Module) -> list[str]:
        with profile() as report:
            model(C)
        return [row.name.removeprefix("0.") for row in report.rows]

    model = Traced()
    graph = fx.symbolic_trace(model)
    converted = convert(nn.Sequential(graph) if inside else graph)
    module: Any = converted[0] if inside else converted
    assert isinstance(module, fx.GraphModule)
    expected = convert(model)(C)
    for other in (
        converted,
        copy.deepcopy(converted),
        pickle.loads(pickle.dumps(converted)),
        convert(converted),
    ):
        assert names(other) == ["layer", "matmul0"]
        assert same(other(C), expected)
    (last,) = (node for node in module.graph.nodes if node.op == "output")
    with module.graph.inserting_before(last):
        last.args = (module.graph.call_function(torch.neg, last.args),)
    module.recompile()
    assert names(converted) == ["layer", "matmul0"]
    assert same(converted(C), -expected)
    assert names(convert(converted, exclude=["*"])) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning:copyreg")
def test_exported_programs(same: Same) -> None:
    model = Traced()
    exported = torch.export.export(model, (C,)).module()
    assert same(convert(exported)(C), convert(model)(C))
