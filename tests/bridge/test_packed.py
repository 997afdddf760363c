"""Converted models through files: the blocks of the file are those of the products."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import axs6
from axs6.files import Options, decode_file, describe_file, encode_file
from axs6.torch import convert, load_packed, packed_policy, profile, save_packed
from axs6.torch.convert import policy_of


class Model(nn.Module):
    """Every layer that has a weight, a table of embeddings, and one that shares it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 16)
        self.tied = nn.Linear(16, 10, bias=False)
        self.tied.weight = self.table.weight
        self.row = nn.Conv1d(4, 6, 3, groups=2)
        self.grid = nn.Conv2d(1, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.other = nn.MultiheadAttention(16, 2, kdim=8, vdim=8, batch_first=True)
        self.last = nn.Linear(70, 5).to(torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.row(x.view(-1, 4, 12)).flatten(1)[:, :16].unsqueeze(0)
        y = self.attention(y, y, y)[0] + self.other(y, y[..., :8], y[..., 8:])[0]
        z = self.norm(self.grid(x.view(-1, 1, 6, 8))).flatten(1)[:, :70]
        return torch.cat([self.tied(y[0]), self.last(z.to(torch.bfloat16)).float()], 1)


PACKED = {
    "row.weight",
    "grid.weight",
    "attention.in_proj_weight",
    "attention.out_proj.weight",
    *(f"other.{part}_proj_weight" for part in "qkv"),
    "other.out_proj.weight",
    "last.weight",
}


def made(seed: int) -> Model:
    torch.manual_seed(seed)
    return Model().eval()


X = torch.randn(3, 48, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("block", [8, 32])
def test_a_loaded_model_gives_the_same_bits(tmp_path: Path, block: int) -> None:
    hardware = convert(made(0), block=block)
    save_packed(hardware, tmp_path / "x.safetensors")
    again = convert(made(1), block=block)
    assert not torch.equal(again(X), hardware(X))
    load_packed(again, tmp_path / "x.safetensors")
    assert torch.equal(again(X), hardware(X))
    # So do copies of it, on another backend too, and what is saved once more is the same file.
    assert torch.equal(copy.deepcopy(again)(X), hardware(X))
    assert torch.equal(convert(again, "golden", block=block)(X), hardware(X))
    save_packed(again, tmp_path / "y.safetensors")
    first, second = (load_file(tmp_path / f"{name}.safetensors") for name in "xy")
    assert all(torch.equal(first[name], second[name]) for name in {*first, *second})


def test_the_blocks_of_the_file_are_those_of_the_layers(tmp_path: Path) -> None:
    """And those that `axs6 encode` writes, and those of the golden model."""
    model = made(0)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    save_file(state, tmp_path / "plain.safetensors")
    save_packed(convert(model), tmp_path / "x.safetensors")
    encode_file(
        tmp_path / "plain.safetensors",
        tmp_path / "y.safetensors",
        Options(include=sorted(PACKED)),
    )
    ours, theirs = (load_file(tmp_path / f"{name}.safetensors") for name in "xy")
    assert all(torch.equal(ours[name], theirs[name]) for name in state)
    described = {each.name: each for each in describe_file(tmp_path / "x.safetensors")}
    assert {name for name, each in described.items() if each.encoded} == PACKED
    for name in PACKED:
        blocks = axs6.encode(state[name].double().flatten(1).numpy())
        assert ours[name].numpy().tobytes() == axs6.pack(blocks)
    hardware = convert(made(1))
    load_packed(hardware, tmp_path / "y.safetensors")
    assert torch.equal(hardware(X), convert(model)(X))
    # The parameters are what `axs6 decode` gives.
    decode_file(tmp_path / "y.safetensors", tmp_path / "z.safetensors")
    decoded = load_file(tmp_path / "z.safetensors")
    assert all(torch.equal(decoded[name], own) for name, own in hardware.state_dict().items())


def test_a_layer_computes_with_the_blocks_themselves(tmp_path: Path) -> None:
    """0.99 has magnitude 31, which decodes to 1, which would be encoded with magnitude 16."""
    layer = nn.Linear(8, 1, bias=False)
    nn.init.constant_(layer.weight, 0.99)
    x = torch.full((1, 8), 0.3)
    hardware = convert(nn.Sequential(layer), block=8)
    save_packed(hardware, tmp_path / "x.safetensors")
    load_packed(hardware, tmp_path / "x.safetensors")
    assert torch.equal(hardware[0].weight, torch.ones(1, 8))
    right = axs6.matmul(
        axs6.encode(x.numpy(), block=8), axs6.encode(np.full((1, 8), 0.99), block=8)
    )
    assert hardware(x).item() == right.item()
    once_more = axs6.matmul(axs6.encode(x.numpy(), block=8), axs6.encode(np.ones((1, 8)), block=8))
    assert right.item() != once_more.item()
    inputs = x.clone().requires_grad_()
    hardware(inputs).sum().backward()
    assert torch.equal(inputs.grad, torch.ones(1, 8))
    with profile(compare="golden") as report:
        hardware(x)
    assert report.total.bits_different == 0
    # A weight that changes is encoded anew.
    with torch.no_grad():
        hardware[0].weight.mul_(1.5)
    assert hardware(x).item() == convert(nn.Sequential(hardware[0]), block=8)(x).item()
    with torch.no_grad():
        hardware[0].weight.fill_(0.99)
    assert hardware(x).item() == right.item()


def encoded(path: Path, **options: Any) -> Path:
    model = nn.Sequential(nn.Linear(40, 3))
    save_file(model.state_dict(), path / "plain.safetensors")
    options = {"include": ["0.weight"], **options}
    encode_file(path / "plain.safetensors", path / "x.safetensors", Options(**options))
    return path / "x.safetensors"


def test_other_tensors_may_be_in_any_format(tmp_path: Path) -> None:
    hardware = convert(nn.Sequential(nn.Linear(40, 3)))
    path = encoded(tmp_path, include=["0.bias"], format="int8")
    load_packed(hardware, path)
    bias = load_file(tmp_path / "plain.safetensors")["0.bias"].numpy()
    assert (
        hardware[0].bias.detach().numpy().tobytes()
        == axs6.decode(axs6.encode(bias, "int8")).tobytes()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block": 16}, "blocks as axs6, .* axis -1, not as axs6_t16, .* axis -1"),
        ({"format": "mxfp4"}, "blocks as axs6, .* axis -1, not as mxfp4, .* axis -1"),
        ({"axis": 0}, "blocks as .* axis -1, not as .* axis 0"),
        ({"flatten": 0}, "blocks as .* axis -1, not as .* axes from 0 on"),
        ({"mode": "high_precision"}, "has high-precision blocks, which cannot be multiplied"),
    ],
)
def test_other_blocks_are_refused(tmp_path: Path, options: Any, message: str) -> None:
    hardware = convert(nn.Sequential(nn.Linear(40, 3)))
    before = copy.deepcopy(hardware.state_dict())
    path = encoded(tmp_path, **options)
    with pytest.raises(ValueError, match=rf"x\.safetensors: tensor '0\.weight' .*{message}$"):
        load_packed(hardware, path)
    assert all(torch.equal(before[name], own) for name, own in hardware.state_dict().items())


@pytest.mark.parametrize("options", [{"mode": "sparse"}, {"align": 32}, {"flatten": 1}])
def test_blocks_in_other_forms_are_taken(tmp_path: Path, options: Any) -> None:
    hardware = convert(nn.Sequential(nn.Linear(40, 3)))
    load_packed(hardware, encoded(tmp_path, **options))
    state = load_file(tmp_path / "plain.safetensors")
    plain = nn.Sequential(nn.Linear(40, 3))
    plain.load_state_dict(state)
    x = torch.randn(4, 40)
    assert torch.equal(hardware(x), convert(plain)(x))


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = encoded(tmp_path)
    with pytest.raises(ValueError, match="no product with a weight: convert it first"):
        save_packed(nn.Linear(40, 3), path)
    state = load_file(tmp_path / "plain.safetensors")
    save_file({"0.weight": state["0.weight"]}, tmp_path / "one.safetensors")
    encode_file(tmp_path / "one.safetensors", tmp_path / "y.safetensors")
    with pytest.raises(ValueError, match=r"tensor '0\.bias' of the model is missing"):
        load_packed(convert(nn.Sequential(nn.Linear(40, 3))), tmp_path / "y.safetensors")
    with pytest.raises(ValueError, match=r"the model has no tensor '0\.bias'"):
        load_packed(convert(nn.Sequential(nn.Linear(40, 3, bias=False))), path)
    with pytest.raises(ValueError, match=r"'0\.bias' must have shape \(2,\), not \(3,\)"):
        load_packed(convert(nn.Sequential(nn.Linear(40, 2))), path)
    with pytest.raises(ValueError, match=r"x\.pt must end in \.safetensors"):
        save_packed(convert(nn.Linear(40, 3)), tmp_path / "x.pt")
    layer = convert(nn.Linear(40, 3))
    layer.bias = nn.Parameter(torch.zeros(3, dtype=torch.complex128))
    with pytest.raises(TypeError, match=r"bias has dtype torch\.complex128, which the file cannot"):
        save_packed(layer, tmp_path / "x.safetensors")


POLICIES: dict[str, Any] = {
    "shifts": {"format": "mx9"},
    "zero points": {"format": "uint8"},
    "integer scales": {"format": "vsq4"},
    "several": {
        "format": "mxfp8_e4m3",
        "gradients": "mxfp8_e5m2",
        "layers": [
            {"name": "0.self_attn", "format": "int8", "gradients": "fp8_e5m2"},
            {"name": "0.linear1", "weights": "mxfp4", "accumulator": "hopper_fp8"},
            {"position": "last", "format": "fp32"},
        ],
    },
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
def test_models_of_every_policy_are_loaded_with_their_bits(
    policy: dict[str, Any], tmp_path: Path, same: Callable[[Tensor, Tensor], bool]
) -> None:
    def made(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        layer = nn.TransformerEncoderLayer(24, 2, 40, dropout=0, batch_first=True)
        return nn.Sequential(layer, nn.Linear(24, 5))

    x = torch.randn(2, 3, 24)
    hardware = convert(made(0), policy=policy)
    file = tmp_path / "model.safetensors"
    save_packed(hardware, file)
    again = convert(made(1), policy=packed_policy(file))
    load_packed(again, file)
    assert same(again(x), hardware(x))
    assert packed_policy(file) == policy_of(hardware) == policy_of(again)
    other = convert(made(1), **({"nonfinite": "saturate"} | {"policy": policy}))
    with pytest.raises(
        ValueError, match=r"^\S+ is of a model that was converted with another policy"
    ):
        load_packed(other, file)


def test_files_without_a_policy_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    save_file({"x": torch.zeros(3)}, file)
    with pytest.raises(
        ValueError, match=r"has no policy in its metadata, as save_packed writes it$"
    ):
        packed_policy(file)
