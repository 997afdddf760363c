"""Models in folders: shards, an index, documents, and encoding with each kind."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from published_checkpoints import bits
from raw_safetensors import content, write
from safetensors.numpy import load_file, save_file

import axs6
from axs6.files.checkpoints import (
    KINDS,
    Chosen,
    convert_checkpoint,
    decode_checkpoint,
    encode_checkpoint,
    open_checkpoint,
)
from axs6.golden.formats import CHANNEL, BlockFormat, block_format

INDEX = "model.safetensors.index.json"
CONFIG = {"model_type": "llama", "hidden_size": 128}


def weights(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "layers.0.q.weight": rng.standard_normal((96, 128)).astype(ml_dtypes.bfloat16),
        "layers.0.experts": rng.standard_normal((3, 64, 128)).astype(np.float32),
        "layers.0.norm.weight": np.ones(128, np.float32),
        "head.weight": rng.standard_normal((200, 256)).astype(np.float16),
    }


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of two shards, an index, and further files."""
    folder = tmp_path / "model"
    folder.mkdir()
    tensors = list(weights().items())
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    for name, some in zip(names, (tensors[:2], tensors[2:]), strict=True):
        save_file(dict(some), folder / name, {"format": "pt"})
    index = {name: names[i >= 2] for i, (name, _) in enumerate(tensors)}
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "pooling").mkdir()
    (folder / "pooling" / "config.json").write_text("{}")
    return folder


def document(folder: Path, name: str = "config.json") -> Any:
    return json.loads((folder / name).read_text())


LAYOUTS = [
    (kind, layout)
    for kind in KINDS.values()
    for layout in kind.layouts
    if kind.suffix == ".safetensors"
]


@pytest.mark.parametrize(("kind", "layout"), LAYOUTS, ids=lambda each: each.name)
def test_matrices_are_encoded_as_the_format_says(kind: Any, layout: Any, model: Path) -> None:
    target = model.parent / "out"
    encode_checkpoint(model, target, kind, Chosen(exclude=["head*"], layout=layout.name))
    with open_checkpoint(target) as checkpoint:
        found = {weight.name: weight for weight in checkpoint.found.weights}
        assert {tensor.name for tensor in checkpoint.found.plain} == {
            "layers.0.norm.weight",
            "head.weight",
        }
        assert set(found) == {"layers.0.q.weight", "layers.0.experts"}
        for name, weight in found.items():
            values = weight.values(0, weight.rows).reshape(weight.shape)
            expected = _encoded(weights()[name], layout)
            assert weight.layout.name == layout.name
            assert np.array_equal(bits(values), bits(expected))
    assert document(target)["model_type"] == "llama"
    assert "quantization_config" in document(target)


def _encoded(values: Any, layout: Any) -> Any:
    """Values in a format and back by the golden model; tiles of several rows one by one."""
    part = layout.scales[0]
    if part.rows < 2:
        blocks = axs6.encode(values, layout.format)
        return _loaded(blocks, layout) if len(layout.scales) > 1 else axs6.decode(blocks)
    (level,) = layout.format.levels
    channel = BlockFormat(layout.element, (replace(level, group=CHANNEL, rows=1),))
    out = np.zeros(values.shape, np.float32)
    for where in np.ndindex(values.shape[:-2]):
        for r in range(0, values.shape[-2], part.rows):
            for c in range(0, values.shape[-1], part.values):
                tile = (*where, slice(r, r + part.rows), slice(c, c + part.values))
                row = np.asarray(values[tile]).reshape(1, -1)
                out[tile] = axs6.decode(axs6.encode(row, channel)).reshape(out[tile].shape)
    return out


def _loaded(blocks: Any, layout: Any) -> Any:
    """Values under two scales as loaders compute them: the scales in float32 first."""
    one = np.float32(1)
    tensor, fine = blocks.scales[0].view(np.float32), blocks.scales[1]
    fine = fine.view(ml_dtypes.float8_e4m3fn)
    scales = (np.array(one), np.ones_like(fine))
    planar = axs6.planar(blocks)._replace(scales=scales)
    elements = axs6.decode(axs6.from_planar(planar, blocks.format))
    factors = fine.astype(np.float32)
    inverse = layout.scales[-1].inverse
    factors = factors / (one / tensor) if inverse else factors * tensor
    return elements * np.repeat(factors, layout.scales[0].values, axis=-1)


def test_a_folder_keeps_its_files(model: Path) -> None:
    first, second, third = (model.parent / name for name in ("a", "b", "c"))
    chosen = Chosen(exclude=["head*"], format="nvfp4")
    encode_checkpoint(model, first, KINDS["modelopt"], chosen)
    assert {path.name for path in first.iterdir()} == {
        *(path.name for path in model.iterdir()),
        "hf_quant_config.json",
    }
    found = document(first, "hf_quant_config.json")["quantization"]
    assert (found["quant_algo"], found["group_size"]) == ("NVFP4", 16)
    assert found["exclude_modules"] == ["head"]
    rows = convert_checkpoint(first, second, KINDS["compressed-tensors"], requantise=True)
    assert sorted(row.name for row in rows if row.same or row.errors) == [
        "layers.0.experts",
        "layers.0.q.weight",
    ]
    assert {path.name for path in second.iterdir()} == {path.name for path in model.iterdir()}
    config = document(second)["quantization_config"]
    assert config["format"] == "nvfp4-pack-quantized"
    assert config["ignore"] == ["head"]
    index = document(second, INDEX)["weight_map"]
    for name, shard in index.items():
        assert name in content(second / shard)
    decode_checkpoint(second, third)
    assert document(third) == CONFIG
    assert document(third / "pooling") == {}
    assert {path.name for path in third.iterdir()} == {path.name for path in model.iterdir()}
    for path in model.glob("*.safetensors"):
        assert set(content(third / path.name)) == set(content(path))


def test_a_folder_becomes_a_file(model: Path) -> None:
    source, target = model.parent / "a", model.parent / "a.gguf"
    chosen = Chosen(exclude=["head*"], format="mxfp4")
    encode_checkpoint(model, source, KINDS["gpt-oss"], chosen)
    convert_checkpoint(source, target, KINDS["gguf"])
    with open_checkpoint(target) as checkpoint:
        assert checkpoint.shards[0].metadata["general.architecture"] == "llama"
    out = model.parent / "b.safetensors"
    decode_checkpoint(target, out)
    decode_checkpoint(source, model.parent / "c.safetensors")
    assert content(out) == content(model.parent / "c.safetensors")


def test_two_layouts_in_one_checkpoint(model: Path) -> None:
    """Weights of several layouts go to one kind, and its configuration has a group for each."""
    one, two, both = (model.parent / name for name in ("one", "two", "both.safetensors"))
    ct = KINDS["compressed-tensors"]
    encode_checkpoint(model, one, ct, Chosen(include=["*experts"], format="mxfp4"))
    encode_checkpoint(model, two, ct, Chosen(include=["*q.weight"], format="fp8_e4m3"))
    first, second = (sorted(folder.glob("*.safetensors"))[0] for folder in (one, two))
    mixed = {
        **{name: each for name, each in content(first).items() if "experts" in name},
        **{name: each for name, each in content(second).items() if "q.weight" in name},
    }
    write(both, mixed)
    convert_checkpoint(both, model.parent / "mixed", ct)
    config = document(model.parent / "mixed")["quantization_config"]
    assert config["format"] == "mixed-precision"
    groups = {each["format"]: each["targets"] for each in config["config_groups"].values()}
    assert groups == {
        "float-quantized": ["layers.0.q"],
        "mxfp4-pack-quantized": ["layers.0.experts"],
    }


def test_what_cannot_be_held_is_encoded_again_only_if_asked(model: Path) -> None:
    source = model.parent / "a"
    encode_checkpoint(model, source, KINDS["modelopt"], Chosen(format="nvfp4"))
    with pytest.raises(ValueError, match="does not have a second level of scales, such as"):
        convert_checkpoint(source, model.parent / "b", KINDS["gpt-oss"])
    assert not (model.parent / "b").exists()
    rows = convert_checkpoint(source, model.parent / "b", KINDS["gpt-oss"], requantise=True)
    errors = [row.errors.qsnr for row in rows if row.errors]
    assert len(errors) == 3
    decode_checkpoint(source, model.parent / "c", dtype="F32")
    decode_checkpoint(model.parent / "b", model.parent / "d", dtype="F32")
    for shard in (model.parent / "c").glob("*.safetensors"):
        before, after = load_file(shard), load_file(model.parent / "d" / shard.name)
        for name, values in before.items():
            if values.ndim > 1:
                expected = axs6.decode(axs6.encode(values, "mxfp4"))
                assert np.array_equal(after[name], expected)


def test_rules_of_scales(model: Path) -> None:
    target = model.parent / "a"
    fmt = block_format("mxfp4").with_rule("rceil")
    encode_checkpoint(model, target, KINDS["quark"], Chosen(include=["*q.weight"], format=fmt))
    decode_checkpoint(target, model.parent / "b")
    values = weights()["layers.0.q.weight"]
    (shard,) = (p for p in (model.parent / "b").glob("*1-of*"))
    found = load_file(shard)["layers.0.q.weight"].astype(np.float32)
    assert np.array_equal(found, axs6.decode(axs6.encode(values, fmt)))


@pytest.mark.parametrize(
    ("kind", "profile", "fmt"),
    [
        ("compressed-tensors", "compressed-tensors", "nvfp4"),
        ("modelopt", "transformer-engine", "nvfp4"),
        ("compressed-tensors", "compressed-tensors", "mxfp4"),
        ("gguf", "llama.cpp", "mxfp4"),
        ("gguf", "llama.cpp", "int8_float16_t32"),
    ],
)
def test_profiles_of_libraries(kind: str, profile: str, fmt: str, model: Path) -> None:
    """Codes are those of the library's steps, and the file has its scale of the tensor exactly."""
    name, target = "layers.0.q.weight", model.parent / f"out{KINDS[kind].suffix}"
    chosen = Chosen(include=[name], format=fmt, profile=profile)
    encode_checkpoint(model, target, KINDS[kind], chosen)
    expected = axs6.encode_as(weights()[name], fmt, profile)
    with open_checkpoint(target) as checkpoint:
        (weight,) = checkpoint.found.weights
        assert np.array_equal(weight.read(0, 96), expected.blocks.codes.reshape(96, -1))
        fine = weight.scales[0].codes.reshape(expected.blocks.scales[-1].shape)
        assert np.array_equal(fine, expected.blocks.scales[-1])
        if weight.scales[-1].inverse:
            assert weight.scales[-1].factors.item() == expected.outer
