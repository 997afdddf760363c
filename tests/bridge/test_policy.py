"""Policies: which format each layer has, as data, in files and by functions."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.golden.formats import block_format
from axs6.torch import Policy, convert, profile

Same = Callable[[Tensor, Tensor], bool]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 2, batch_first=True)
        self.norm = nn.LayerNorm(32)
        self.mlp = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 32))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.mlp(self.attention(y, y, y, need_weights=False)[0])


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 32)
        self.entry = nn.Linear(32, 32)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(32, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.blocks(self.entry(self.embed(tokens))))


TOKENS = torch.arange(10).view(2, 5)

TEXT = """format = "mx9"
gradients = "mx9"

[[layers]]
position = "first"
format = "fp32"

[[layers]]
name = "head"
format = "fp32"

[[layers]]
name = "blocks.1.mlp"
weights = "mx6"

[[layers]]
type = "MultiheadAttention"
format = "mxfp8_e4m3"
gradients = "mxfp8_e5m2"
accumulator = "paper"
nonfinite = "propagate"
"""


def formats(model: nn.Module) -> dict[str, tuple[str, str]]:
    """Formats of the weight and of the activations of each place that a run comes to, FP32 left
    out."""
    shown = {}
    for name, module in model.named_modules():
        if hasattr(module, "axs6_site"):
            options = module.axs6_site.options
            shown[name] = tuple(str(x) for x in (options.weights, options.activations))
    return shown


def named(*names: str) -> tuple[str, ...]:
    return tuple(str(block_format(name)) for name in names)


def test_rules_hold_for_what_they_name_and_what_it_contains(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(TEXT)
    converted = convert(Model(), policy=Policy.read(file))
    fp8 = named("mxfp8_e4m3", "mxfp8_e4m3")
    assert formats(converted) == {
        "blocks.0.attention": fp8,
        "blocks.0.attention.out_proj": fp8,
        "blocks.0.mlp.0": named("mx9", "mx9"),
        "blocks.0.mlp.2": named("mx9", "mx9"),
        "blocks.1.attention": fp8,
        "blocks.1.attention.out_proj": fp8,
        "blocks.1.mlp.0": named("mx6", "mx9"),
        "blocks.1.mlp.2": named("mx6", "mx9"),
    }
    options = converted.blocks[0].attention.axs6_site.options
    assert (str(options.accumulator), options.nonfinite) == ("paper", "propagate")
    assert options.gradients == block_format("mxfp8_e5m2")


def test_what_is_left_in_fp32_is_listed_with_its_macs() -> None:
    converted = convert(Model(), policy=tomllib.loads(TEXT))
    with profile() as report:
        converted(TOKENS)
    left = {row.name: row.macs for row in report.unconverted}
    assert left == {"entry.addmm": 10 * 32 * 32, "head.addmm": 10 * 32 * 10}
    assert "head.addmm" in str(report)


def test_a_layer_of_a_policy_has_the_bits_of_one_alone(same: Same) -> None:
    model, x = nn.Sequential(nn.Linear(40, 20), nn.Linear(20, 9)), torch.randn(3, 40)
    policy = {"layers": [{"position": "last", "weights": "mxfp4", "activations": "mxfp8_e4m3"}]}
    y = convert(model, format="mx6", policy=policy)(x)
    first = convert(model[0], format="mx6")(x)
    assert same(y, convert(model[1], weights="mxfp4", activations="mxfp8_e4m3")(first))


def test_a_policy_is_written_as_it_is_read(tmp_path: Path) -> None:
    policy = Policy.from_dict(tomllib.loads(TEXT))
    assert policy.to_toml() == TEXT
    assert Policy.from_dict(policy.to_dict()) == policy
    objects = Policy.from_dict(
        {"format": block_format("mx9"), "layers": [{"type": nn.Linear, "format": "fp32"}]}
    )
    assert objects.to_dict() == {"format": "mx9", "layers": [{"type": "Linear", "format": "fp32"}]}
    quoted = Policy.from_dict({"layers": [{"name": 'a"b\\c\u00e9', "block": 16}]})
    assert Policy.from_dict(tomllib.loads(quoted.to_toml())) == quoted


def test_functions_are_policies() -> None:
    def choose(name: str, module: nn.Module) -> Any:
        if isinstance(module, nn.MultiheadAttention):
            return {"format": "mx6", "block": 32}
        return {"head": "fp32", "blocks.0": block_format("mx9")}.get(name)

    found = formats(convert(Model(), policy=choose, exclude=["entry"]))
    assert found["blocks.0.attention"] == named("mx6_t32", "mx6_t32")
    assert found["blocks.0.mlp.0"] == named("mx9", "mx9")
    assert found["blocks.1.mlp.0"] == named("axs6", "axs6")
    assert not {"head", "entry"} & set(found)


def test_a_format_leaves_those_of_operands_behind() -> None:
    policy = {"layers": [{"name": "0", "format": "mx6"}, {"name": "1", "accumulator": "exact"}]}
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    found = formats(convert(model, format="mxfp8_e4m3", weights="mxfp4", policy=policy))
    assert found == {"0": named("mx6", "mx6"), "1": named("mxfp4", "mxfp8_e4m3")}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_models_in_half_precision(dtype: torch.dtype, same: Same) -> None:
    model = nn.Sequential(nn.Linear(40, 20), nn.Linear(20, 9)).to(dtype)
    policy = {"format": "mx9", "layers": [{"position": "last", "format": "fp32"}]}
    x = torch.randn(3, 40, dtype=dtype)
    y = convert(model, policy=policy)(x)
    first = convert(model[0].float(), "golden", format="mx9")(x.float()).to(dtype)
    assert same(y, nn.functional.linear(first, model[1].weight, model[1].bias))


def test_shapes_of_zero() -> None:
    policy = {"format": "mx9", "layers": [{"type": "Conv2d", "format": "int8"}]}
    model = convert(
        nn.Sequential(nn.Conv2d(2, 3, 1), nn.Flatten(), nn.Linear(12, 5)), policy=policy
    )
    y = model(torch.zeros(0, 2, 2, 2, requires_grad=True))
    y.sum().backward()
    assert y.shape == (0, 5)
    assert not model[2].weight.grad.any()


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"format": "mx8"}, "the model: 'mx8' is no block format: .*"),
        ({"layers": [{"name": "head", "weights": "mx8"}]}, "head: 'mx8' is no block format: .*"),
        (
            {"layers": [{"name": "haed", "format": "mx9"}]},
            "the model has no module with name = 'haed'",
        ),
        ({"layers": [{"type": "Conv2d"}]}, "the model has no module with type = 'Conv2d'"),
        ({"layers": [{"position": "third"}]}, "position must be first or last, not 'third'"),
        ({"layers": [{"name": 3}]}, "name must be a string, not 3"),
        ({"layers": [{"type": nn.Linear(1, 1)}]}, "type must be a class or its name, not Linear.*"),
        ({"layers": [{"format": "mx9"}]}, "a rule must have one of name, type and position, .*"),
        ({"layers": [{"name": "a", "type": "b"}]}, "a rule must have one of name, type .*"),
        ({"layers": {"head": "mx9"}}, "layers of a policy must be a list of tables, not .*"),
        ({"fromat": "mx9"}, "a policy must have keys of .*, not 'fromat'"),
        (
            {"layers": [{"name": "*", "backend": "rtl"}]},
            "the rule name = '.' must .*, not 'backend'",
        ),
        (
            {"layers": [{"name": "head", "nonfinite": "propagate"}]},
            "head: nonfinite=.propagate. .*",
        ),
        (lambda name, module: 6, "policy of '' must be a format or a mapping, not int"),
        ("mx9", "policy must be a Policy, a mapping or a function, not str"),
    ],
)
def test_policies_that_do_not_fit_are_refused(policy: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        convert(Model(), policy=policy)


@pytest.mark.parametrize("text", ["format = ", "fromat = 'mx9'", "layers = 3"])
def test_files_that_are_no_policy_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"^{file}: [^\n]+$"):
        Policy.read(file)


@pytest.mark.parametrize("layers", ["", "0", ["0"], {"0": "fp32"}, 0, [[]]])
def test_layers_that_are_no_list_of_tables_are_refused(layers: Any) -> None:
    with pytest.raises(TypeError, match="layers of a policy must be a list of tables, not"):
        convert(nn.Linear(4, 4), policy={"layers": layers})
    with pytest.raises(
        TypeError, match=r"rules of a policy must be LayerRule objects, not .*: see"
    ):
        Policy({}, ({"name": "0", "format": "fp32"},))  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [[], (), 0, False, ["mx9"]])
def test_answers_of_a_function_that_are_no_settings_are_refused(answer: Any) -> None:
    with pytest.raises(TypeError, match="policy of '' must be a format or a mapping, not"):
        convert(nn.Linear(4, 4), policy=lambda name, module: answer)


@pytest.mark.parametrize(
    ("options", "idle"),
    [
        ({"exclude": [nn.LayerNorm]}, "type = 'LayerNorm'"),
        ({"exclude": ["embed"]}, "name = 'embed'"),
        ({"exclude": ["head", "he*"]}, "name = 'he*'"),
        (
            {"policy": {"format": "mx9", "layers": [{"name": "head", "format": "mx9"}]}},
            "name = 'head'",
        ),
        ({"policy": {"layers": [{"type": "Block"}]}}, "type = 'Block'"),
    ],
)
def test_a_rule_that_changes_nothing_is_said(options: dict[str, Any], idle: str) -> None:
    with pytest.warns(UserWarning, match="changes nothing") as found:
        convert(Model(), **options)
    assert [str(x.message) for x in found] == [
        f"the rule {idle} changes nothing: no product is computed in another way for it"
    ]


def test_a_rule_that_keeps_another_from_its_layers_is_not_said() -> None:
    rules = [{"name": "head", "format": "mx9"}, {"type": "Linear", "format": "mx6"}]
    converted = convert(Model(), policy={"format": "mx9", "layers": rules})
    assert formats(converted)["head"] == named("mx9", "mx9")
