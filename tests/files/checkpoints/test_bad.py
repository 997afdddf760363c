"""Damaged and contradictory checkpoints: one line that says what is wrong, and nothing is left."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published_checkpoints import MADE
from raw_safetensors import content, write
from safetensors.numpy import save_file

from axs6.files.checkpoints import (
    KINDS,
    convert_checkpoint,
    decode_checkpoint,
    open_checkpoint,
)

Tensors = dict[str, tuple[str, list[int], bytes]]


def made(name: str) -> dict[str, Any]:
    return MADE[name](np.random.default_rng(0))[0]


def _without(name: str) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        del tensors[name]

    return change


def _with(name: str, dtype: str, shape: list[int], data: bytes) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[name] = (dtype, shape, data)

    return change


def _f32(value: float) -> bytes:
    return np.float32(value).tobytes()


BAD: list[tuple[str, Callable[[Tensors], None], str]] = [
    ("gpt-oss-mxfp4", _without("w_scales"), "'w_blocks': gpt-oss-mxfp4 needs .*'w_scales', which"),
    (
        "gpt-oss-mxfp4",
        _with("w_scales", "U8", [2, 3, 5], bytes(30)),
        r"'w_scales': gpt-oss-mxfp4 needs scales of shape \(2, 3, 4\) for .*, not \(2, 3, 5\)",
    ),
    ("gpt-oss-mxfp4", _with("w_scales", "F32", [2, 3, 4], bytes(96)), "has no scales of dtype F32"),
    (
        "gpt-oss-mxfp4",
        _with("w_blocks", "U8", [24, 15], bytes(360)),
        r"shape \(24, 15\) is not one",
    ),
    ("gpt-oss-mxfp4", _with("w", "F32", [], _f32(1)), "weight 'w' has the name of another tensor"),
    (
        "compressed-tensors-nvfp4",
        _without("m.weight_global_scale"),
        "'m.weight_packed': compressed-tensors-nvfp4 needs a tensor 'm.weight_global_scale'",
    ),
    (
        "compressed-tensors-nvfp4",
        _with("m.weight_global_scale", "F32", [1], _f32(np.nan)),
        "'m.weight': a scale is nan",
    ),
    (
        "compressed-tensors-nvfp4",
        _with("m.weight_global_scale", "F32", [1], _f32(0)),
        "'m.weight': a scale is 0",
    ),
    ("modelopt-nvfp4", _with("m.weight_scale_2", "F32", [], _f32(np.inf)), "a scale is inf"),
    (
        "modelopt-nvfp4",
        _with("m.weight_scale", "F8_E4M3", [6, 3], bytes(18)),
        r"modelopt-nvfp4 needs scales of shape \(6, 4\) for a weight of shape \(6, 64\), not",
    ),
    (
        "modelopt-nvfp4",
        _without("m.weight_scale_2"),
        "'m.weight': modelopt-nvfp4 needs a tensor 'm.weight_scale_2', which is missing",
    ),
    ("fp8-tensor", _with("m.weight_scale", "F64", [], bytes(8)), "has no scales of dtype F64"),
    (
        "fp8-blocks",
        _with("m.weight_scale_inv", "F32", [2, 2], bytes(16)),
        r"needs scales of shape \(3, 2\) for a weight of shape \(261, 135\), not \(2, 2\)",
    ),
]


@pytest.mark.parametrize(("name", "change", "message"), BAD)
def test_wrong_tensors(
    name: str, change: Callable[[Tensors], None], message: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    save_file(made(name), source)
    tensors = content(source)
    change(tensors)
    write(source, tensors)
    before = source.read_bytes()
    for write_it in (
        lambda: decode_checkpoint(source, target),
        lambda: convert_checkpoint(source, target, KINDS["compressed-tensors"], requantise=True),
    ):
        with pytest.raises(ValueError, match=message) as error:
            write_it()
        assert "\n" not in str(error.value)
        assert str(source) in str(error.value)
        assert source.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_names_that_collide(tmp_path: Path) -> None:
    tensors = made("gpt-oss-mxfp4") | {"w_scale": np.zeros(3, np.float32)}
    save_file(tensors, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="two tensors would have the name 'w_scale'"):
        convert_checkpoint(
            tmp_path / "x.safetensors", tmp_path / "y.safetensors", KINDS["compressed-tensors"]
        )
    assert not (tmp_path / "y.safetensors").exists()


def _folder(tmp_path: Path, weight_map: Any) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    save_file(made("quark-mxfp4"), folder / "a.safetensors")
    save_file({"bias": np.zeros(3, np.float32)}, folder / "b.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(weight_map if isinstance(weight_map, str) else json.dumps(weight_map))
    return folder


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({"weight_map": {"m.weight": "c.safetensors"}}, "names c.safetensors, which is not in the"),
        ({"weight_map": {"m.weight": "../in/a.safetensors"}}, "names ../in/a.safetensors, which"),
        ({"weight_map": ["a.safetensors"]}, "has no weight_map of tensors and files"),
        ({}, "has no weight_map of tensors and files"),
        ("[" * 100_000, "must be JSON"),
        ("[]", "must be an object of JSON, not list"),
        ({"weight_map": {"other": "a.safetensors"}}, "names a tensor 'other', which .* do"),
    ],
)
def test_wrong_indices(weight_map: Any, message: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path, weight_map)
    with pytest.raises(ValueError, match=message):
        decode_checkpoint(folder, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_two_shards_with_one_tensor(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"weight_map": {}})
    (folder / "model.safetensors.index.json").unlink()
    save_file(made("quark-mxfp4"), folder / "b.safetensors")
    with pytest.raises(ValueError, match=r"a.safetensors and b.safetensors both have 'm.weight"):
        decode_checkpoint(folder, tmp_path / "out")


def test_folders_that_are_not_written(tmp_path: Path) -> None:
    save_file(made("quark-mxfp4"), tmp_path / "x.safetensors")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").touch()
    with pytest.raises(ValueError, match="out must not exist, or be an empty folder"):
        decode_checkpoint(tmp_path / "x.safetensors", tmp_path / "out")
    with pytest.raises(ValueError, match="must not be the same file as input"):
        decode_checkpoint(tmp_path / "x.safetensors", tmp_path / "x.safetensors")
    for name in ("y.npy", "y.gguf"):
        with pytest.raises(ValueError, match=r"must be a folder, or end in \.safetensors"):
            decode_checkpoint(tmp_path / "x.safetensors", tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty has no \.safetensors files"):
        decode_checkpoint(tmp_path / "empty", tmp_path / "y.safetensors")


@pytest.mark.parametrize(
    ("name", "document", "message"),
    [
        ("config.json", {"quantization_config": "x"}, "quantization_config must be an object of"),
        ("config.json", {"quantization_config": [1]}, "must be an object of JSON, not list"),
        ("hf_quant_config.json", {"quantization": "x"}, "quantization must be an object of JSON"),
    ],
)
def test_wrong_documents(name: str, document: Any, message: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"weight_map": {"m.weight": "a.safetensors"}})
    (folder / name).write_text(json.dumps(document))
    with pytest.raises(ValueError, match=message) as error:
        decode_checkpoint(folder, tmp_path / "out")
    assert str(error.value).startswith(f"{folder / name}: ")
    (folder / name).write_text(json.dumps(dict.fromkeys(document)))
    decode_checkpoint(folder, tmp_path / "out")


def test_targets_within_the_source(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"weight_map": {"m.weight": "a.safetensors"}})
    (folder / "sub").mkdir()
    before = sorted(folder.rglob("*"))
    for target in (folder / "out", folder / "sub" / "out"):
        with pytest.raises(ValueError, match=r"out must not be within the source .*in$"):
            decode_checkpoint(folder, target)
        assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["link", "sub/link"])
def test_files_that_cannot_be_copied(name: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"weight_map": {"m.weight": "a.safetensors"}})
    (folder / "sub").mkdir()
    (folder / name).symlink_to("nowhere")
    with pytest.raises(OSError, match=rf"cannot copy {folder / name}: .*No such file") as error:
        decode_checkpoint(folder, tmp_path / "out")
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_tensors_that_the_index_leaves_out(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"weight_map": {"m.weight": "a.safetensors"}})
    save_file(made("quark-mxfp4"), folder / "old.safetensors")
    decode_checkpoint(folder, tmp_path / "out")
    with open_checkpoint(tmp_path / "out") as checkpoint:
        assert [tensor.name for tensor in checkpoint.found.plain] == ["m.weight"]
    with pytest.raises(ValueError, match=r"safetensors would be read in place of \.onnx files"):
        convert_checkpoint(folder, tmp_path / "onnx", KINDS["onnx"])


def test_a_model_beside_the_tensors_is_not_written_over(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"weight_map": {"m.weight": "a.safetensors"}})
    (folder / "b.safetensors").unlink()
    (folder / "model.onnx").write_bytes(b"an older one")
    with pytest.raises(ValueError, match=r"two files would have the name 'model\.onnx'"):
        convert_checkpoint(folder, tmp_path / "out", KINDS["onnx"])
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def _gguf(tmp_path: Path) -> Path:
    tensors = made("gpt-oss-mxfp4")
    tensors["w_scales"][tensors["w_scales"] == 255] = 127
    save_file(tensors, tmp_path / "x.safetensors")
    convert_checkpoint(tmp_path / "x.safetensors", tmp_path / "x.gguf", KINDS["gguf"])
    return tmp_path / "x.gguf"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-20], "it ends within w"),
        (lambda data: data[:40], "must be a whole GGUF file"),
        (lambda data: b"", "must be a GGUF file, not an empty one"),
        (lambda data: b"GGML" + data[4:], "it does not begin with GGUF"),
        (lambda data: data[:4] + b"\x04" + data[5:], r"version must be one of \(2, 3\), not 4"),
        (lambda data: data[:-416] + b"\xff" + data[-415:], r"'w': a scale is 2\^128"),
    ],
)
def test_damaged_gguf_files(change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    path = _gguf(tmp_path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        decode_checkpoint(path, tmp_path / "y.safetensors")
    assert not (tmp_path / "y.safetensors").exists()


def test_names_that_gguf_files_do_not_have(tmp_path: Path) -> None:
    _gguf(tmp_path)
    long = {
        name.replace("w", "w" * 64): x for name, x in content(tmp_path / "x.safetensors").items()
    }
    write(tmp_path / "x.safetensors", long)
    (tmp_path / "x.gguf").unlink()
    with pytest.raises(ValueError, match="names in GGUF files have at most 63 bytes"):
        convert_checkpoint(tmp_path / "x.safetensors", tmp_path / "x.gguf", KINDS["gguf"])
    assert not (tmp_path / "x.gguf").exists()
