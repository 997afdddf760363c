"""MXFP4 checkpoints: pairs of tensors `NAME_blocks` and `NAME_scales`."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import axs6
from axs6.files import Options, coding, decode_file, describe_file, encode_file

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
TABLE = np.array([*E2M1, *(-x for x in E2M1)])


def published(codes: Any, scales: Any) -> Any:
    """Values as the code that comes with published checkpoints computes them, in float64."""
    pairs = np.stack([TABLE[codes & 15], TABLE[codes >> 4]], axis=-1)
    factor = 2.0 ** (scales.astype(np.float64) - 127)
    return (pairs.reshape(*codes.shape[:-1], 32) * factor[..., None]).reshape(
        *codes.shape[:-2], codes.shape[-2] * 32
    )


@pytest.fixture
def checkpoint(tmp_path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    tensors = {
        "experts.up_blocks": rng.integers(0, 256, (2, 3, 4, 16), np.uint8),
        "experts.up_scales": rng.integers(100, 140, (2, 3, 4), np.uint8),
        "row_blocks": rng.integers(0, 256, (5, 16), np.uint8),
        "row_scales": rng.integers(0, 255, 5, np.uint8),
        "alone_blocks": np.zeros((2, 16), np.uint8),
        "short_blocks": np.zeros((2, 15), np.uint8),
        "short_scales": np.zeros(2, np.uint8),
        "wide_blocks": np.zeros((2, 16), np.int8),
        "wide_scales": np.zeros(2, np.uint8),
        "held": np.zeros(3, np.float32),
        "held_blocks": np.zeros((2, 16), np.uint8),
        "held_scales": np.zeros(2, np.uint8),
        "bias": rng.standard_normal(3).astype(ml_dtypes.bfloat16),
    }
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    return tensors


@pytest.mark.parametrize("chunk", [coding.CHUNK, 64])
def test_published_pairs_are_decoded(
    checkpoint: dict[str, Any], tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    names = decode_file(tmp_path / "model.safetensors", tmp_path / "out.safetensors")
    out = load_file(tmp_path / "out.safetensors")
    assert sorted(names) == sorted(out)
    parts = {"experts.up_blocks", "experts.up_scales", "row_blocks", "row_scales"}
    assert set(out) == {"experts.up", "row"} | (set(checkpoint) - parts)
    for name in ("experts.up", "row"):
        values = published(checkpoint[name + "_blocks"], checkpoint[name + "_scales"])
        assert out[name].dtype == ml_dtypes.bfloat16
        over = np.abs(values) > float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
        assert np.array_equal(out[name].astype(np.float64)[~over], values[~over])
        assert np.isfinite(out[name].astype(np.float32)).all()
    for name in set(checkpoint) - parts:
        assert out[name].dtype == checkpoint[name].dtype
        assert out[name].tobytes() == checkpoint[name].tobytes()


def test_the_description(checkpoint: dict[str, Any], tmp_path: Path) -> None:
    found = {each.name: each for each in describe_file(tmp_path / "model.safetensors")}
    up = found["experts.up"]
    assert (up.shape, up.dtype, up.bytes, up.blocks) == ((2, 3, 128), "BF16", 24 * 17, 24)
    assert str(up.encoded) == "mxfp4, nearest, axis -1"
    assert found["short_blocks"].encoded is None


@pytest.mark.parametrize("chunk", [coding.CHUNK, 64])
@pytest.mark.parametrize("name", ["mxfp4", "mxfp4-rceil"])
def test_pairs_are_written(
    tmp_path: Path, name: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    rng = np.random.default_rng(1)
    tensors = {
        "w": rng.standard_normal((2, 3, 128)).astype(np.float32),
        "bias": rng.standard_normal(4).astype(np.float32),
    }
    save_file(tensors, tmp_path / "in.safetensors", {"format": "pt"})
    options = Options(format=name, checkpoint=True, exclude=["bias"])
    rows = encode_file(tmp_path / "in.safetensors", tmp_path / "x.safetensors", options)
    found = load_file(tmp_path / "x.safetensors")
    blocks = axs6.encode(tensors["w"], name)
    codes, scales = axs6.checkpoint_pair(blocks)
    assert set(found) == {"w_blocks", "w_scales", "bias"}
    assert np.array_equal(found["w_blocks"], codes)
    assert np.array_equal(found["w_scales"], scales)
    assert np.array_equal(found["bias"], tensors["bias"])
    row = next(row for row in rows if row.name == "w")
    assert row.bytes_after == codes.nbytes + scales.nbytes
    assert row.bits == 4.25
    assert row.errors
    assert row.errors.largest == np.abs(axs6.decode(blocks) - tensors["w"]).max()
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.safetensors")
    back = load_file(tmp_path / "y.safetensors")
    assert np.array_equal(back["w"].astype(np.float32), axs6.decode(blocks))
    assert np.array_equal(published(codes, scales), axs6.decode(blocks, np.float64))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "axs6"}, "checkpoints have 4-bit codes under one exponent of 8 bits"),
        ({"format": "nvfp4"}, "checkpoints have 4-bit codes under one exponent of 8 bits"),
        ({"align": 32}, "checkpoints have no padding, so align must be 1"),
        ({"axis": 0}, "tensor 'w': checkpoints have blocks along the last axis"),
        ({"flatten": 0}, "tensor 'w': checkpoints have blocks along the last axis"),
        ({}, "tensor 'w': checkpoints have whole blocks of 32 values, not 65 in a row"),
        ({"include": ["v"]}, "two tensors would have the name 'v_scales'"),
    ],
)
def test_what_checkpoints_do_not_have(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    tensors = {name: np.ones(shape, np.float32) for name, shape in (("w", (64, 65)), ("v", 32))}
    np.savez(tmp_path / "x.npz", **tensors, v_scales=np.ones(1, np.uint8))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        encode_file(
            tmp_path / "x.npz",
            tmp_path / "y.safetensors",
            Options(**{"format": "mxfp4", "checkpoint": True, **options}),
        )
    assert not (tmp_path / "y.safetensors").exists()
