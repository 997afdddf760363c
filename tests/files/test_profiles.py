"""Files encoded by the steps of libraries: what the golden model gives for whole tensors."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import axs6
from axs6.files import Options, coding, decode_file, describe_file, encode_file

FORMATS = {
    "compressed-tensors": ("nvfp4", "mxfp4", "int8"),
    "transformer-engine": ("nvfp4", "mxfp8_e4m3", "fp8_e4m3"),
    "llama.cpp": ("mxfp4", "e2m1fn_e4m3fn_t16"),
    "quark": ("mx6",),
    "torchao": ("nvfp4", "fp8_e5m2"),
}


@pytest.fixture
def weights(tmp_path: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    tensors = {
        "matrix": (rng.standard_normal((9, 150)) * 40).astype(np.float32),
        "zeros": np.zeros((2, 40), np.float32),
        "empty": np.zeros((2, 0), np.float32),
    }
    save_file(tensors, tmp_path / "in.safetensors")
    return tensors


@pytest.mark.parametrize("chunk", [coding.CHUNK, 64])
@pytest.mark.parametrize(("profile", "name"), [(p, n) for p, each in FORMATS.items() for n in each])
def test_there_and_back(
    weights: dict[str, np.ndarray],
    tmp_path: Path,
    profile: str,
    name: str,
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    source, packed, back = (tmp_path / f"{x}.safetensors" for x in ("in", "packed", "back"))
    encode_file(source, packed, Options(format=name, profile=profile))
    decode_file(packed, back)
    with safe_open(packed, "np") as held, safe_open(back, "np") as decoded:
        for tensor, x in weights.items():
            blocks = axs6.encode(x, name, profile=profile)
            assert held.get_tensor(tensor).tobytes() == axs6.pack(blocks)
            assert (decoded.get_tensor(tensor) == axs6.decode(blocks)).all()
        entry = json.loads(held.metadata()["axs6"])["tensors"]["matrix"]
    assert entry["profile"] == profile
    (first, *_) = describe_file(packed)
    assert str(first.encoded).endswith(f", as {profile}, axis -1")


def test_scales_are_rounded_to_the_dtype_of_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((8, 64)) * 3).astype(ml_dtypes.bfloat16)
    save_file({"x": x}, tmp_path / "in.safetensors")
    options = Options(format="nvfp4", profile="compressed-tensors")
    encode_file(tmp_path / "in.safetensors", tmp_path / "out.safetensors", options)
    with safe_open(tmp_path / "out.safetensors", "np") as held:
        found = held.get_tensor("x").tobytes()
    expected = axs6.encode(x, "nvfp4", profile="compressed-tensors")
    assert found == axs6.pack(expected)
    wide = axs6.encode(x.astype(np.float32), "nvfp4", profile="compressed-tensors")
    assert found != axs6.pack(wide)


def test_files_without_a_profile_do_not_mention_it(
    weights: dict[str, np.ndarray], tmp_path: Path
) -> None:
    encode_file(tmp_path / "in.safetensors", tmp_path / "out.safetensors", Options(format="nvfp4"))
    with safe_open(tmp_path / "out.safetensors", "np") as held:
        assert "profile" not in held.metadata()["axs6"]


def test_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 32)))
    for message, options in (
        ("profile must be one of .*, not 'x'", {"profile": "x"}),
        ("profile quark has the formats mx9, mx6, not nvfp4", {"profile": "quark"}),
        ("rounds to nearest, so no rounding 'toward_zero'", {"rounding": "toward_zero"}),
        ("finite values only, so no nonfinite 'saturate'", {"nonfinite": "saturate"}),
    ):
        with pytest.raises(ValueError, match=message):
            Options(**{"format": "nvfp4", "profile": "torchao", **options})  # type: ignore[arg-type]
    given = Options(format="nvfp4", profile="torchao")
    with pytest.raises(ValueError, match=r"tensor 'x': profile torchao takes .*, not fp64"):
        encode_file(tmp_path / "x.npy", tmp_path / "out.safetensors", given)
    np.save(tmp_path / "x.npy", np.float32([[1, np.nan]]))
    with pytest.raises(ValueError, match=r"tensor 'x', .*must be finite: element \(0, 1\) is nan"):
        encode_file(tmp_path / "x.npy", tmp_path / "out.safetensors", given)
    assert not (tmp_path / "out.safetensors").exists()
