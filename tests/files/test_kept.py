"""What goes through files as it is: metadata, tensors that are not encoded, and their names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from raw_safetensors import content, header_of, write
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import axs6
from axs6.files import Options, decode_file, encode_file, writer
from axs6.files.checkpoints import KINDS, encode_checkpoint

X = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)

OTHERS = {
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "C64": 64,
}
"""Bits of the dtypes that are kept and that NumPy, but for one, does not have."""


def as_pairs(source: Path, target: Path) -> None:
    """Encode all matrices as pairs of tensors in MXFP4."""
    encode_checkpoint(source, target, KINDS["gpt-oss"])


@pytest.mark.parametrize("encode", [encode_file, as_pairs])
@pytest.mark.parametrize("metadata", [None, {"format": "pt", "made": "here"}])
def test_metadata_of_the_source_stay(
    tmp_path: Path, encode: Callable[[Path, Path], object], metadata: dict[str, str] | None
) -> None:
    save_file({"x": X}, tmp_path / "in.safetensors", metadata)
    encode(tmp_path / "in.safetensors", tmp_path / "x.safetensors")
    decode_file(tmp_path / "x.safetensors", tmp_path / "out.safetensors")
    with safe_open(tmp_path / "out.safetensors", "np") as file:
        assert file.metadata() == metadata
    assert header_of(tmp_path / "out.safetensors").get("__metadata__") == metadata


def test_tensors_of_every_dtype_go_through(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    others = {
        f"k.{dtype}": (dtype, [4, 8, 1], rng.bytes(4 * bits)) for dtype, bits in OTHERS.items()
    }
    write(tmp_path / "in.safetensors", {"w": ("F32", [4, 64], X.tobytes()), **others})
    rows = encode_file(tmp_path / "in.safetensors", tmp_path / "x.safetensors")
    assert [row.shape for row in rows] == [(4, 64), *[(4, 8, 1)] * len(OTHERS)]
    decode_file(tmp_path / "x.safetensors", tmp_path / "out.safetensors")
    for name in ("x.safetensors", "out.safetensors"):
        with safe_open(tmp_path / name, "np"):
            kept = content(tmp_path / name)
            kept.pop("w")
            assert kept == others


def test_complex_arrays_go_through(tmp_path: Path) -> None:
    z = (X + 1j * X[::-1]).astype(np.complex64)
    np.savez(tmp_path / "in.npz", x=X, z=z, big=z.T.astype(">c8"))
    encode_file(tmp_path / "in.npz", tmp_path / "x.safetensors")
    kept = load_file(tmp_path / "x.safetensors")
    assert np.array_equal(kept["z"], z)
    assert np.array_equal(kept["big"], z.T)


@pytest.mark.parametrize(
    "values",
    [X.astype(complex), np.array(["text"]), np.array(["2026-01-01"], "M8[D]")],
    ids=["complex128", "text", "date"],
)
def test_what_safetensors_do_not_have_is_named(tmp_path: Path, values: Any) -> None:
    np.savez(tmp_path / "in.npz", x=X, other=values)
    with pytest.raises(ValueError, match=r"which safetensors files do not have$") as error:
        encode_file(tmp_path / "in.npz", tmp_path / "x.safetensors", Options(exclude=["other"]))
    message = f"{tmp_path}/in.npz: 'other' has dtype {values.dtype}, which"
    assert str(error.value).startswith(message)


def test_a_header_is_no_longer_than_programs_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.safetensors"
    np.savez(tmp_path / "in.npz", **{f"x{i}": X[0] for i in range(20)})  # type: ignore[arg-type]
    encode_file(tmp_path / "in.npz", target)
    length = int.from_bytes(target.read_bytes()[:8], "little")
    monkeypatch.setattr(writer, "HEADER_BYTES", length)
    encode_file(tmp_path / "in.npz", target)
    before = target.read_bytes()
    monkeypatch.setattr(writer, "HEADER_BYTES", length - 1)
    message = f"must have at most {length - 1:,} bytes; that of these 20 tensors has {length:,}$"
    with pytest.raises(ValueError, match=message):
        encode_file(tmp_path / "in.npz", target)
    assert target.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.npz", "x.safetensors"]


@pytest.mark.slow
def test_the_longest_header_is_read(tmp_path: Path) -> None:
    source, target = tmp_path / "in.safetensors", tmp_path / "x.safetensors"
    save_file({"x": X[0]}, source, {"long": "x" * (writer.HEADER_BYTES - 10_000)})
    encode_file(source, target)
    with safe_open(target, "np") as file:
        assert list(file.keys()) == ["x"]
    save_file({"x": X[0]}, source, {"long": "x" * (writer.HEADER_BYTES - 200)})
    with pytest.raises(ValueError, match="must have at most 100,000,000 bytes"):
        encode_file(source, target)


def test_names_that_no_tensor_can_have(tmp_path: Path) -> None:
    target = tmp_path / "x.safetensors"
    np.savez(tmp_path / "encoded.npz", __metadata__=X)
    np.savez(tmp_path / "kept.npz", x=X, __metadata__=np.arange(3))
    for name in ("encoded", "kept"):
        with pytest.raises(ValueError, match="cannot hold a tensor of the name '__metadata__'"):
            encode_file(tmp_path / f"{name}.npz", target)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.npy").rename(tmp_path / "\udcff.npy")
    with pytest.raises(ValueError, match=r"must be Unicode text, not '\\udcff'"):
        encode_file(tmp_path / "\udcff.npy", target)
    assert not target.exists()


def test_a_pair_of_the_name_of_the_metadata(tmp_path: Path) -> None:
    save_file({"x": X}, tmp_path / "in.safetensors")
    as_pairs(tmp_path / "in.safetensors", tmp_path / "x.safetensors")
    renamed = {
        name.replace("x_", "__metadata___"): each
        for name, each in content(tmp_path / "x.safetensors").items()
    }
    write(tmp_path / "x.safetensors", renamed)
    with pytest.raises(ValueError, match="cannot hold a tensor of the name '__metadata__'"):
        decode_file(tmp_path / "x.safetensors", tmp_path / "out.safetensors")


@pytest.mark.parametrize(
    "names",
    [
        ["w", "w_blocks"],
        ["w_blocks", "w"],
        ["w", "w_scales", "w_blocks_blocks"],
        ["w_blocks", "w_scales"],
        ["w", "w_blocks", "w_blocks_blocks", "w_blocks_scales", "w_scales"],
        ["_blocks", "_scales", ""],
    ],
)
def test_pairs_whose_names_are_parts_of_others(tmp_path: Path, names: list[str]) -> None:
    tensors = {name: X + 8 * i for i, name in enumerate(names)}
    write(
        tmp_path / "in.safetensors",
        {name: ("F32", [4, 64], x.tobytes()) for name, x in tensors.items()},
    )
    try:
        as_pairs(tmp_path / "in.safetensors", tmp_path / "x.safetensors")
    except ValueError as error:
        assert "two tensors would have the name" in str(error)  # noqa: PT017
        assert {"w_blocks", "w_blocks_scales"} <= set(names)
        return
    decode_file(tmp_path / "x.safetensors", tmp_path / "out.safetensors")
    out = content(tmp_path / "out.safetensors")
    assert set(out) == set(names)
    for name, x in tensors.items():
        expected = axs6.decode(axs6.encode(x, "mxfp4")).astype(ml_dtypes.bfloat16)
        assert out[name] == ("BF16", [4, 64], expected.tobytes())


def test_a_tensor_of_a_pairs_name_is_an_error(tmp_path: Path) -> None:
    """A pair and a tensor of its name cannot both be in the decoded file."""
    codes, scales = np.zeros((4, 2, 16), np.uint8), np.zeros((4, 2), np.uint8)
    save_file({"w": X, "w_blocks": codes, "w_scales": scales}, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="the weight 'w' has the name of another tensor"):
        decode_file(tmp_path / "x.safetensors", tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


def test_a_container_is_encoded_further(tmp_path: Path) -> None:
    """Tensors that were encoded stay so, beside those in another format."""
    save_file({"a": X, "b": X[:2], "c": X[0]}, tmp_path / "in.safetensors")
    one, two, out = (tmp_path / f"{name}.safetensors" for name in ("one", "two", "out"))
    encode_file(tmp_path / "in.safetensors", one, Options(format="nvfp4", include=["a"]))
    encode_file(one, two, Options(format="mx9", include=["b"]))
    with pytest.raises(ValueError, match=r"one\.safetensors is a container of blocks"):
        as_pairs(one, tmp_path / "z.safetensors")
    decode_file(two, out)
    found = load_file(out)
    for name, values, fmt in (("a", X, "nvfp4"), ("b", X[:2], "mx9")):
        assert np.array_equal(found[name], axs6.decode(axs6.encode(values, fmt)))
    assert np.array_equal(found["c"], X[0])
