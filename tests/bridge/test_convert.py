import copy
import functools
import inspect
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from axs6.torch import MatMul, UnconvertedWarning, convert, matmul, profile

Same = Callable[[Tensor, Tensor], bool]


class Attention(nn.Module):
    """Attention written by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(24, 24)
        self.key = nn.Linear(24, 24)
        self.norm = nn.LayerNorm(24)

    def forward(self, x: Tensor) -> Tensor:
        weights = (self.query(x) @ self.key(x).mT).softmax(-1)
        return torch.matmul(weights, self.norm(x))


class Products(nn.Module):
    """Every function that is replaced, and some that are not."""

    def forward(self, a: Tensor, b: Tensor) -> list[Tensor]:
        vector = b.reshape(-1)[:24]
        return [
            a @ b,
            a.matmul(b),
            torch.matmul(a, other=b),
            a.__rmatmul__(b.mT @ b),
            torch.mm(a[0], b[0]),
            a[0].mm(b[0]),
            torch.bmm(a, mat2=b),
            a.bmm(b),
            functional.linear(a, b[0].mT, bias=b[0, 0]),
            functional.scaled_dot_product_attention(a, a, a, is_causal=True),
            functional.scaled_dot_product_attention(a, a, a, attn_mask=a.mean(0) > 0, scale=0.3),
            a.long() @ vector.long(),
            torch.einsum("gmk,gml->gl", a, b),
            a + 1,
        ]


class Doubled(nn.Linear):
    """A layer with a forward of its own."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, 2 * self.weight, self.bias)


class Padded(nn.Conv2d):
    """A layer that asks its base."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(functional.pad(input, (0, 2, 0, 1)))


class Causal(nn.MultiheadAttention):
    """Attention that asks its base."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu(1)
        return super().forward(x, x, x, attn_mask=mask, need_weights=False)[0]


class Renamed(nn.Linear):
    """A layer with the forward of its base."""


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 24)
        self.attention = Attention()
        self.layers = nn.ModuleDict({"doubled": Doubled(24, 24), "renamed": Renamed(24, 24)})
        self.product = MatMul()
        self.head = nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention(self.embed(x))
        for layer in self.layers.values():
            y = layer(y).relu()
        return self.head(self.product(y, torch.eye(24)))


def names(model: nn.Module, *inputs: Any) -> list[str]:
    """Names of the places that a run of a model comes to."""
    with profile() as report:
        model(*inputs)
    return [row.name for row in report.rows]


TOKENS = torch.arange(10).view(2, 5)


def test_every_product_of_a_model_is_replaced_in_a_copy() -> None:
    model = Model()
    before = {name: type(module) for name, module in model.named_modules()}
    expected = model(TOKENS)
    converted = convert(model)
    assert names(converted, TOKENS) == [
        "attention.query",
        "attention.key",
        "attention.matmul0",
        "attention.matmul1",
        "layers.doubled.linear0",
        "layers.renamed",
        "product",
        "head",
    ]
    assert {name: type(module) for name, module in model.named_modules()} == before
    assert torch.equal(model(TOKENS), expected)
    assert not any(p is q for p in converted.parameters() for q in model.parameters())
    assert names(convert(converted), TOKENS) == names(converted, TOKENS)


def test_classes_and_text_stay() -> None:
    model = Model()
    converted = convert(model)
    assert isinstance(converted, Model)
    assert isinstance(converted.layers["renamed"], Renamed)
    assert isinstance(converted.head, nn.Linear)
    added = ", backend=emulated, format=axs6"
    own = repr(converted).replace(added, "").replace(added.removeprefix(", "), "")
    assert own == repr(model)
    layers = ("Linear(", "Doubled(", "Renamed(", "MatMul(")
    for line in repr(converted).splitlines():
        shown = "backend=emulated, format=axs6)" in line
        assert shown == any(layer in line for layer in layers)
    assert "backend=golden, format=axs6_t8" in repr(convert(nn.Conv1d(2, 2, 1), "golden", block=8))
    assert "backend=emulated, format=axs6" in repr(convert(nn.MultiheadAttention(4, 1)))


def test_every_function_gives_what_matmul_gives(same: Same) -> None:
    a, b = torch.randn(3, 24, 24), torch.randn(3, 24, 24)
    with pytest.warns(UnconvertedWarning, match="^einsum is not converted"):
        got = convert(Products())(a, b)
    plain = Products()(a, b)
    product = matmul(a, b)
    for y in (got[0], got[1], got[2], got[6], got[7]):
        assert same(y, product)
    assert same(got[3], matmul(matmul(b.mT, b), a))
    for y in (got[4], got[5]):
        assert same(y, product[0])
    assert same(got[8], matmul(a, b[0]) + b[0, 0])
    scores = matmul(a * 24**-0.5, a.mT)
    causal = torch.full((24, 24), -torch.inf).triu(1)
    assert same(got[9], matmul((scores + causal).softmax(-1), a))
    scores = matmul(a * 0.3, a.mT)
    mask = torch.zeros(24, 24).masked_fill(a.mean(0) <= 0, -torch.inf)
    assert same(got[10], matmul((scores + mask).softmax(-1), a))
    for y, z in zip(got[11:], plain[11:], strict=True):
        assert torch.equal(y, z)
    for y, z in zip(got[:11], plain[:11], strict=True):
        assert (y - z).abs().max() < 0.1 * z.abs().max()


def test_grouped_queries(same: Same) -> None:
    class Grouped(nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)

    q, k = torch.randn(2, 6, 5, 16), torch.randn(2, 3, 7, 16)
    weights = matmul(q / 4, k.repeat_interleave(2, 1).mT).softmax(-1)
    assert same(convert(Grouped())(q, k), matmul(weights, k.repeat_interleave(2, 1)))


def test_masks_that_contradict_are_refused() -> None:
    class Both(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(
                x, x, x, attn_mask=x @ x.mT, is_causal=True
            )

    with pytest.raises(ValueError, match="attn_mask must be None with is_causal"):
        convert(Both())(torch.randn(4, 4))


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (["head"], {"head"}),
        (
            ["attention"],
            {"attention.query", "attention.key", "attention.matmul0", "attention.matmul1"},
        ),
        (["attention.*"], {"attention.query", "attention.key"}),
        (
            [nn.Linear],
            {
                "attention.query",
                "attention.key",
                "layers.doubled.linear0",
                "layers.renamed",
                "head",
            },
        ),
        ([Renamed, "*.doubled"], {"layers.doubled.linear0", "layers.renamed"}),
        (["layers", MatMul], {"layers.doubled.linear0", "layers.renamed", "product"}),
    ],
)
def test_exclude(exclude: list[Any], left: set[str]) -> None:
    converted = convert(Model(), exclude=exclude)
    assert set(names(convert(Model()), TOKENS)) - set(names(converted, TOKENS)) == left
    copied = pickle.loads(pickle.dumps(converted))
    assert names(copied, TOKENS) == names(converted, TOKENS)


class Held(nn.Module):
    """A module with a product of its own, and a method that has one too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(24, 24)
        self.convs = nn.ModuleDict({"one": nn.Conv1d(5, 5, 1)})

    def scores(self, x: Tensor) -> Tensor:
        return self.layer(x) @ x.mT

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x) @ x


class Iterating(nn.Module):
    """Calls what is under containers, methods of its modules, and modules of these."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(24, 24), Held()])
        self.held = Held()
        self.rnn = nn.ModuleList([nn.GRU(24, 24)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        x = self.held.scores(x) @ x
        x = self.held.convs["one"](self.held.layer(x))
        return self.rnn[0](x)[0]


LAYERS = {"layers.0", "layers.1.layer", "layers.1.matmul0", "layers.1.matmul1"}
HELD = {"held.layer", "held.matmul0", "held.convs.one"}
RNN = {"rnn.0.weight_ih_l0", "rnn.0.weight_hh_l0"}


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (["layers"], LAYERS),
        ([nn.ModuleList], LAYERS | RNN),
        (["held"], HELD),
        (["held.convs"], {"held.convs.one"}),
        ([nn.ModuleDict, "rnn"], {"held.convs.one"} | RNN),
        (["layers.1", Held], {"layers.1.layer", "layers.1.matmul0", "layers.1.matmul1"} | HELD),
    ],
)
@pytest.mark.filterwarnings("ignore:the rule .* changes nothing")
def test_exclude_selects_what_lies_under_it(exclude: list[Any], left: set[str], same: Same) -> None:
    x = torch.randn(2, 5, 24)
    every = names(convert(Iterating()), x)
    assert set(every) == LAYERS | HELD | RNN | {"matmul0"}
    policy = {
        "layers": [
            {"type" if isinstance(y, type) else "name": y, "format": "fp32"} for y in exclude
        ]
    }
    for options in ({"exclude": exclude}, {"policy": policy}):
        converted = convert(Iterating(), **options)
        for model in (
            converted,
            pickle.loads(pickle.dumps(converted)),
            convert(converted, **options),
        ):
            assert set(every) - set(names(model, x)) == left


def test_what_is_left_alone_has_the_bits_of_torch() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(24, 24), Held()])

        def forward(self, x: Tensor) -> Tensor:
            x = self.layers[0](x)
            return self.layers[1].scores(x) + self.layers[:1][0](x).sum()

    model, x = Outer(), torch.randn(2, 5, 24)
    assert torch.equal(convert(model, exclude=["layers"])(x), model(x))


def hooked(module: nn.Module) -> None:
    """A `forward` of the object, as hooks of device placement assign it."""
    old = module.forward
    module._old_forward = old

    def new_forward(module: Any, *args: Any, **kwargs: Any) -> Any:
        return module._old_forward(*args, **kwargs) + 1

    module.forward = functools.update_wrapper(functools.partial(new_forward, module), old)


def test_modules_with_a_forward_of_the_object(same: Same) -> None:
    model, plain = Iterating(), Iterating()
    plain.load_state_dict(model.state_dict())
    for module in (model.layers[0], model.held.layer, model.held):
        hooked(module)
    for module in (plain.layers[0], plain.held.layer):
        module.register_forward_hook(lambda module, inputs, output: output + 1)
    x = torch.randn(2, 5, 24)
    assert same(convert(model)(x), convert(plain)(x))
    assert same(convert(convert(model))(x), convert(plain)(x))
    assert names(convert(model), x) == names(convert(plain), x)
    for exclude in (["layers"], ["held", "layers"], [nn.Linear]):
        left = convert(model, exclude=exclude)
        assert same(left(x), convert(plain, exclude=exclude)(x))
    layer = nn.Linear(24, 24)
    expected = convert(layer)(x) + 1
    hooked(layer)
    assert same(convert(nn.Sequential(layer), unconverted="error")(x), expected)


def test_signatures_stay() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(
            self, input_ids: Tensor, labels: Tensor | None = None, *, scale: int = 1
        ) -> Tensor:
            """What it does."""
            return self.layer(input_ids) @ input_ids.mT * scale

    models: list[nn.Module] = [Named(), *Model().modules(), Held(), Causal(4, 1)]
    for model in models:
        for exclude in ([], [type(model)]):
            outer = nn.ModuleList([Named(), model])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                converted = convert(outer, exclude=exclude)[1]
            found, expected = (inspect.signature(x.forward) for x in (converted, model))
            assert list(found.parameters) == list(expected.parameters)
    assert convert(Named()).forward.__doc__ == "What it does."
    exported = torch.export.export(convert(Named()), (), {"input_ids": torch.ones(2, 4)})
    assert exported.module()(input_ids=torch.ones(2, 4)).shape == (2, 2)


def test_everything_excluded_is_the_model_itself() -> None:
    model = Model()
    converted = convert(model, exclude=["*"])
    assert names(converted, TOKENS) == []
    assert type(converted.head) is nn.Linear


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "fast"}, "backend must be one of emulated, rtl, golden, not 'fast'"),
        ({"block": 64}, "block must be one of 8, 16, 32, not 64"),
        ({"nonfinite": "zero"}, "nonfinite must be one of error, saturate, propagate, not 'zero'"),
        ({"tile": {"rows": 4}}, "tile is for backend='rtl', not 'emulated'"),
        ({"exclude": ["haed"]}, "the model has no module with name = 'haed'"),
        ({"exclude": [nn.Conv2d]}, "the model has no module with type = 'Conv2d'"),
        ({"exclude": "head"}, "exclude must be a list of names and classes, not 'head'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert(Model(), **options)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_other_models_are_refused() -> None:
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module.* not function"):
        convert(matmul)
    with pytest.raises(TypeError, match=r"not scripted, not RecursiveScriptModule"):
        convert(torch.jit.script(nn.Linear(3, 3)))


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_lazy_layers_are_refused_until_they_have_a_shape(same: Same) -> None:
    model = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(ValueError, match=r"0\.weight has no shape yet: run the model once"):
        convert(model)
    x = torch.randn(2, 5)
    model(x)
    layer = nn.Linear(5, 3)
    layer.load_state_dict(model[0].state_dict())
    assert same(convert(model)(x), convert(layer)(x))


def test_state_dicts_go_both_ways(same: Same) -> None:
    model, other = Model(), Model()
    converted = convert(model)
    assert list(converted.state_dict()) == list(model.state_dict())
    expected = convert(other)(TOKENS)
    assert not same(converted(TOKENS), expected)
    converted.load_state_dict(other.state_dict())
    assert same(converted(TOKENS), expected)
    converted.load_state_dict(model.state_dict(), assign=True)
    assert same(converted(TOKENS), convert(model)(TOKENS))
    model.load_state_dict(convert(other).state_dict())
    assert torch.equal(model(TOKENS), other(TOKENS))


def test_layers_that_ask_their_base(same: Same) -> None:
    conv, plain = Padded(3, 4, 3), nn.Conv2d(3, 4, 3)
    plain.load_state_dict(conv.state_dict())
    x = torch.randn(2, 3, 6, 6)
    for converted in (
        convert(conv),
        convert(convert(conv)),
        pickle.loads(pickle.dumps(convert(conv))),
    ):
        assert same(converted(x), convert(plain)(functional.pad(x, (0, 2, 0, 1))))
    assert names(convert(nn.Sequential(conv)), x) == ["0"]
    attention = Causal(24, 2, batch_first=True).eval()
    parts = ("query", "key", "value", "scores", "values", "out_proj")
    with torch.inference_mode():
        found = names(convert(nn.Sequential(attention)), torch.randn(2, 5, 24))
    assert found == [f"0.{part}" for part in parts]


def test_hooks_stay(same: Same) -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    model[0].register_forward_hook(lambda module, inputs, output: output + 1)
    plain = nn.Sequential(nn.Linear(4, 4))
    plain.load_state_dict(model.state_dict())
    x = torch.randn(2, 4)
    assert same(convert(model)(x), convert(plain)(x) + 1)


def test_copies_and_files_are_places_of_their_own(same: Same) -> None:
    converted = convert(Model(), exclude=["attention.key"])
    expected = converted(TOKENS)
    file = io.BytesIO()
    torch.save(converted, file)
    file.seek(0)
    for other in (
        copy.deepcopy(converted),
        pickle.loads(pickle.dumps(converted)),
        torch.load(file, weights_only=False),
    ):
        assert same(other(TOKENS), expected)
        assert other.head.axs6_site.handle != converted.head.axs6_site.handle
        with torch.no_grad():
            other.head.weight.zero_()
        assert not same(other(TOKENS), expected)
        assert same(converted(TOKENS), expected)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_fast_path_of_transformers_is_not_taken() -> None:
    layer = nn.TransformerEncoderLayer(24, 2, 48, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    converted = convert(model)
    x = torch.randn(2, 5, 24)
    padding = torch.arange(5).expand(2, 5) > torch.tensor([[4], [2]])
    parts = ("query", "key", "value", "scores", "values", "out_proj")
    expected = [
        f"layers.{i}.{name}"
        for i in range(2)
        for name in (*(f"self_attn.{part}" for part in parts), "linear1", "linear2")
    ]
    with torch.inference_mode():
        assert names(converted, x) == expected
        with profile() as report:
            y = converted(x, src_key_padding_mask=padding)
        assert [row.name for row in report.rows] == expected
        error = (y - model(x, src_key_padding_mask=padding))[~padding]
    assert error.abs().max() < 0.3


@pytest.mark.usefixtures("threads")
def test_the_golden_backend_gives_the_same_bits(same: Same) -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5)
    )
    x = torch.randn(2, 3, 8, 8)
    for size in (8, 16, 32):
        emulated = convert(model, block=size)
        assert same(emulated(x), convert(model, "golden", block=size)(x))
