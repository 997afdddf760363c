"""Every layout: its values, and the way through other layouts and back."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from published_checkpoints import MADE, bits, weight_name
from raw_safetensors import content
from safetensors.numpy import load_file, save_file

from axs6.files import coding, decode_file
from axs6.files.checkpoints import KINDS, convert_checkpoint, decode_checkpoint, open_checkpoint
from axs6.files.checkpoints.layouts import LAYOUTS

IN_SAFETENSORS = [layout.name for layout in LAYOUTS if not layout.interleaved]


def test_every_layout_is_tested() -> None:
    assert sorted(IN_SAFETENSORS) == sorted(MADE)


@pytest.mark.parametrize("chunk", [coding.CHUNK, 64])
@pytest.mark.parametrize("name", MADE)
def test_values_are_the_published_ones(
    name: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    tensors, values = MADE[name](np.random.default_rng(0))
    bias = np.arange(3, dtype=np.float32)
    source, target = tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    save_file({**tensors, "bias": bias}, source, {"format": "pt"})
    with open_checkpoint(source) as checkpoint:
        (weight,) = checkpoint.found.weights
        assert weight.layout.name == name
        assert set(weight.files) == set(tensors)
    expected = values(tensors)
    decode_checkpoint(source, target, dtype="F32")
    found = load_file(target)
    assert set(found) == {weight_name(tensors), "bias"}
    assert np.array_equal(found["bias"], bias)
    assert np.array_equal(bits(found[weight_name(tensors)]), bits(expected))
    decode_file(source, target)
    with np.errstate(all="ignore"):
        rounded = expected.astype(ml_dtypes.bfloat16)
    assert np.array_equal(bits(load_file(target)[weight_name(tensors)]), bits(rounded))


@pytest.mark.parametrize("name", MADE)
def test_the_same_kind_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    tensors, _ = MADE[name](np.random.default_rng(1))
    source, target = tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    save_file(tensors, source)
    kind = next(
        (kind for kind in KINDS.values() if any(x.name == name for x in kind.layouts)), None
    )
    if kind is None:
        pytest.skip("a layout that is read, and not written")
    (row,) = convert_checkpoint(source, target, kind)
    assert (row.before, row.after, row.same) == (name, name, "float32")
    assert content(target) == content(source)


WAYS = [
    ("gpt-oss-mxfp4", ["compressed-tensors", "quark", "gguf", "gpt-oss"]),
    ("compressed-tensors-mxfp4", ["gguf", "quark", "compressed-tensors"]),
    ("modelopt-nvfp4", ["gguf", "modelopt"]),
    ("modelopt-nvfp4", ["compressed-tensors", "gguf", "compressed-tensors"]),
    ("compressed-tensors-nvfp4", ["modelopt", "gguf", "modelopt"]),
    ("mxfp8", ["quark", "compressed-tensors"]),
    ("fp8-blocks", ["compressed-tensors", "fp8-blocks"]),
    ("fp8-tensor", ["compressed-tensors", "modelopt", "quark"]),
    ("fp8-channel", ["compressed-tensors", "quark"]),
]
"""A layout, and the kinds through which it goes."""


@pytest.mark.parametrize(("name", "kinds"), WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_ways_through_other_kinds_keep_the_values(
    name: str, kinds: list[str], seed: int, tmp_path: Path
) -> None:
    tensors, values = MADE[name](np.random.default_rng(seed))
    _without_nan(tensors)
    path = tmp_path / "0.safetensors"
    save_file(tensors, path)
    same = "float32"
    for number, kind in enumerate(kinds, 1):
        target = tmp_path / f"{number}{KINDS[kind].suffix}"
        (row,) = convert_checkpoint(path, target, KINDS[kind])
        assert row.same
        same = row.same if row.same == "bfloat16" else same
        path = target
    dtype = "F32" if same == "float32" else "BF16"
    decode_checkpoint(path, tmp_path / "out.safetensors", dtype=dtype)
    found = load_file(tmp_path / "out.safetensors")[weight_name(tensors)]
    with np.errstate(all="ignore"):
        expected = values(tensors).astype(found.dtype)
    assert np.array_equal(bits(found), bits(expected))
    if name.endswith("mxfp4") and kinds[-1] == name.removesuffix("-mxfp4"):
        assert content(path) == content(tmp_path / "0.safetensors")


def _without_nan(tensors: dict[str, Any]) -> None:
    """Replace exponents that are NaN, which GGUF files do not have."""
    for name, array in tensors.items():
        if "scale" in name and array.dtype == np.uint8:
            array[array == 255] = 254


def test_a_nan_scale_is_not_moved_to_gguf(tmp_path: Path) -> None:
    tensors, _ = MADE["gpt-oss-mxfp4"](np.random.default_rng(0))
    save_file(tensors, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="gguf-mxfp4 does not have the scale nan; with --req"):
        convert_checkpoint(tmp_path / "x.safetensors", tmp_path / "x.gguf", KINDS["gguf"])
    assert not (tmp_path / "x.gguf").exists()


@pytest.mark.parametrize("outer", [(3,), (2, 3), (1, 3)])
@pytest.mark.parametrize("kind", ["modelopt", "compressed-tensors", "quark"])
def test_a_scale_for_each_matrix(kind: str, outer: tuple[int, ...], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    source, target = tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    codes = rng.integers(0, 0x7F, (*outer, 8, 144), np.uint8).view(ml_dtypes.float8_e4m3fn)
    for axes in range(3):
        scales = rng.random((*outer, *[1] * axes), np.float32)
        save_file({"m.weight": codes, "m.weight_scale": scales}, source)
        (row,) = convert_checkpoint(source, target, KINDS[kind])
        assert (row.after, row.same) == ("fp8-tensor", "float32")
        decode_checkpoint(target, tmp_path / "z.safetensors", dtype="F32")
        expected = codes.astype(np.float32) * scales.reshape(*outer, 1, 1)
        found = load_file(tmp_path / "z.safetensors")["m.weight"]
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))
