"""Converted models and checkpoints of other tools: products compute with the file's bits."""

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from raw_safetensors import content, write
from safetensors.torch import save_file
from torch import nn

import axs6
from axs6.files.checkpoints import KINDS, Chosen, convert_checkpoint, encode_checkpoint
from axs6.torch import checkpoint_policy, convert, load_checkpoint, save_checkpoint


class Model(nn.Module):
    """Two layers, one tied to a table of embeddings, and one that stays in FP32."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 64)
        self.up = nn.Linear(64, 128)
        self.down = nn.Linear(128, 64, bias=False)
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 40, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.table(x)
        return self.head(self.norm(y + self.down(torch.relu(self.up(y)))))


X = torch.arange(12).reshape(2, 6)

KINDS_AND_FORMATS = [
    ("gpt-oss", "mxfp4"),
    ("modelopt", "nvfp4"),
    ("modelopt", "fp8_e4m3"),
    ("compressed-tensors", "mxfp8_e4m3"),
    ("compressed-tensors", "e4m3fn_float32_t0"),
    ("compressed-tensors", "int8_float32_t0"),
    ("quark", "mxfp4"),
    ("fp8-blocks", "fp8_block"),
    ("fp8-blocks", "mxfp8_32x32"),
    ("compressed-tensors", "fp8_block"),
    ("gguf", "mxfp4"),
    ("gguf", "nvfp4"),
]


def made(seed: int) -> Model:
    torch.manual_seed(seed)
    return Model().eval()


def encoded(tmp_path: Path, kind: str, fmt: str) -> Path:
    """A checkpoint of a model: its two layers in a format."""
    state = {name: x for name, x in made(0).state_dict().items() if name != "head.weight"}
    save_file(state, tmp_path / "w.safetensors")
    target = tmp_path / f"x{KINDS[kind].suffix}"
    chosen = Chosen(include=["up.weight", "down.weight"], format=fmt)
    encode_checkpoint(tmp_path / "w.safetensors", target, KINDS[kind], chosen)
    return target


@pytest.mark.parametrize(("kind", "fmt"), KINDS_AND_FORMATS)
def test_a_checkpoint_is_loaded_with_its_bits_and_saved_again(
    kind: str, fmt: str, tmp_path: Path
) -> None:
    path = encoded(tmp_path, kind, fmt)
    policy = checkpoint_policy(made(0), path)
    hardware = convert(made(1), policy=policy, unconverted="ignore")
    load_checkpoint(hardware, path)
    # The same blocks as those that the products of the original model encode.
    expected = convert(made(0), policy=policy, unconverted="ignore")
    with torch.no_grad():
        assert torch.equal(hardware(X), expected(X))
        assert torch.equal(copy.deepcopy(hardware)(X), expected(X))
    again = tmp_path / f"y{KINDS[kind].suffix}"
    save_checkpoint(hardware, again, kind)
    third = convert(made(2), policy=policy, unconverted="ignore")
    load_checkpoint(third, again)
    with torch.no_grad():
        assert torch.equal(third(X), expected(X))
    if KINDS[kind].suffix == ".safetensors":
        before, after = content(path), content(again)
        parts = {name for name in before if name.startswith(("up.w", "down.w"))}
        assert parts
        for name in parts:
            assert after[name] == before[name]


def test_through_another_kind(tmp_path: Path) -> None:
    """A model gives the same bits from each kind that holds its weights."""
    path = encoded(tmp_path, "gpt-oss", "mxfp4")
    policy = checkpoint_policy(made(0), path, activations="mxfp8_e4m3")
    outputs = []
    for kind in ("quark", "compressed-tensors", "gguf"):
        target = tmp_path / f"{kind}{KINDS[kind].suffix}"
        convert_checkpoint(path, target, KINDS[kind])
        hardware = convert(made(3), policy=policy, unconverted="ignore")
        load_checkpoint(hardware, target)
        with torch.no_grad():
            outputs.append(hardware(X))
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])


def test_a_folder_gets_the_models_configuration(tmp_path: Path) -> None:
    class Config:
        def to_dict(self) -> dict[str, Any]:
            return {"model_type": "tiny"}

    model = made(0)
    model.config = Config()  # type: ignore[assignment]
    hardware = convert(model, format="mxfp4", exclude=["head"], unconverted="ignore")
    save_checkpoint(hardware, tmp_path / "out", "compressed-tensors")
    text = (tmp_path / "out" / "config.json").read_text()
    assert '"model_type": "tiny"' in text
    assert '"mxfp4-pack-quantized"' in text


def test_weights_that_no_product_takes_are_named(tmp_path: Path) -> None:
    path = encoded(tmp_path, "modelopt", "nvfp4")
    policy = checkpoint_policy(made(0), path)
    hardware = convert(made(1), policy=policy, exclude=["up"], unconverted="ignore")
    with pytest.warns(UserWarning, match=r"no product takes up.weight as blocks: only their val"):
        load_checkpoint(hardware, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "mx9"}, "'down.weight': no checkpoint holds weights in mx9"),
        ({"format": "mxfp8_e5m2"}, "does not have a second level of scales"),
        (
            {"format": "mxfp4"},
            "'down.weight': gpt-oss-mxfp4 does not have a second level of scales",
        ),
    ],
)
def test_other_formats_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = encoded(tmp_path, "modelopt", "nvfp4")
    hardware = convert(made(1), exclude=["head"], unconverted="ignore", **change)
    before = {name: x.clone() for name, x in hardware.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        load_checkpoint(hardware, path)
    for name, x in hardware.state_dict().items():
        assert torch.equal(x, before[name])


def test_other_models_are_refused(tmp_path: Path) -> None:
    path = encoded(tmp_path, "modelopt", "nvfp4")
    policy = checkpoint_policy(made(0), path)
    hardware = convert(nn.Sequential(nn.Linear(64, 64)), format="nvfp4")
    with pytest.raises(ValueError, match=r"tensor '0.\w+' of the model is missing"):
        load_checkpoint(hardware, path)
    wide = Model()
    wide.extra = nn.Linear(8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hardware = convert(wide, policy=policy)
    with pytest.raises(ValueError, match=r"tensor 'extra.\w+' of the model is missing"):
        load_checkpoint(hardware, path)


def test_tensors_that_the_model_does_not_have(tmp_path: Path) -> None:
    """Those that are no weights are named; a weight is an error."""
    path = encoded(tmp_path, "modelopt", "nvfp4")
    hardware = convert(made(1), policy=checkpoint_policy(made(0), path), unconverted="ignore")
    tensors = content(path)
    write(path, {**tensors, "position_ids": ("I64", [1], bytes(8))})
    with pytest.warns(UserWarning, match="the model does not have position_ids"):
        load_checkpoint(hardware, path)
    others = {name.replace("up.", "over."): each for name, each in tensors.items()}
    write(path, {**others, "up.weight": ("F32", [128, 64], bytes(128 * 64 * 4))})
    write(path, {**content(path), "up.bias": tensors["up.bias"]})
    with pytest.raises(ValueError, match=r"the model has no tensor 'over.weight'"):
        load_checkpoint(hardware, path)


def test_tiles_of_odd_sizes_have_no_block_format(tmp_path: Path) -> None:
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [96, 128]}}
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.json").write_text(json.dumps(config))
    tensors = {
        "up.weight": torch.zeros(128, 64, dtype=torch.float8_e4m3fn),
        "up.weight_scale_inv": torch.ones(2, 1),
    }
    save_file(tensors, tmp_path / "x" / "model.safetensors")
    with pytest.raises(ValueError, match="the rows of a tile must be a power of two, not 96"):
        checkpoint_policy(made(0), tmp_path / "x")
    hardware = convert(made(0), format="mxfp4", exclude=["head"], unconverted="ignore")
    with pytest.raises(ValueError, match="fp8-blocks has no layout for mxfp4, but for"):
        save_checkpoint(hardware, tmp_path / "y.safetensors", "fp8-blocks")


def test_values_are_those_of_the_blocks(tmp_path: Path) -> None:
    path = encoded(tmp_path, "modelopt", "nvfp4")
    hardware = convert(made(1), policy=checkpoint_policy(made(0), path), unconverted="ignore")
    load_checkpoint(hardware, path)
    original = made(0).up.weight.detach().numpy()
    found = hardware.up.weight.detach().numpy()  # type: ignore[union-attr]
    assert np.array_equal(found, axs6.decode(axs6.encode(original, "nvfp4")))


@pytest.mark.parametrize("fmt", ["mxfp4", "fp8_e4m3"])
def test_blocks_along_several_axes_are_not_saved(fmt: str, tmp_path: Path) -> None:
    model = convert(nn.Sequential(nn.Conv1d(64, 8, 3)), format=fmt)
    with pytest.raises(ValueError, match=r"'0\.weight' must have blocks along its last axis, of 3"):
        save_checkpoint(model, tmp_path / "x.safetensors", "compressed-tensors")
    assert not list(tmp_path.iterdir())
