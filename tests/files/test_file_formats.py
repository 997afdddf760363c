"""Every block format through the container and back, bit for bit what the golden model gives."""

import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from sampling import few, formats
from tiles import small_tiles

import axs6
from axs6.files import Options, coding, decode_file, describe_file, encode_file
from axs6.golden.formats import CATALOG, block_format, name_of
from axs6.golden.lfsr import Lfsr

COMPOSED = (
    "mxfp8_e4m3-rceil",
    "mx9_t32",
    "e2m1fn_e4m3fn_t16_float32_t0",  # scales of channels
    "e2m1fn_e4m3fn_t0_float32",  # of channels under that of the tensor
    "int8_e8m0_t16s2o1_float32",  # shifts under an exponent under the scale of the tensor
    "uint8_float32_uint8_t0",  # zero points of channels
    "uint8_float32_uint8_t16",  # of blocks
    "int8_float32_t0",
    "e4m3fn_e8m0_t0",  # exponents of channels
    "e4m3fn_e8m0",  # and of the tensor
    "e4m3fn_e8m0_t1",
    "int4_float16_t1",
    "e2m1fn_e4m3fn_t2x8_float32",  # scales of tiles under that of the tensor
    "binary6p3se_binary8p4sf_t16",
)
"""What the catalog does not have."""

EVERY = [*map(small_tiles, CATALOG), *COMPOSED]
FEW = few(EVERY, together=1)


@pytest.fixture
def weights(tmp_path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    tensors = {
        "matrix": rng.standard_normal((7, 150)) * np.exp(rng.standard_normal((7, 1))),
        "kernel": rng.standard_normal((4, 2, 3, 3)).astype(np.float32),
        "vector": (rng.standard_normal(300) + 3).astype(np.float16),
        "one": np.ones((3, 1), np.float32),
        "zeros": np.zeros((2, 40), np.float32),
        "empty": np.zeros((2, 0), np.float32),
        "ids": np.arange(4),
    }
    np.savez(tmp_path / "in.npz", **tensors)
    return tensors


@pytest.mark.parametrize(
    ("name", "chunk"),
    [
        pytest.param(name, chunk, marks=[pytest.mark.slow] * (chunk > 64 and name not in FEW))
        for name in EVERY
        for chunk in (coding.CHUNK, 64)
    ],
)
def test_there_and_back(
    weights: dict[str, Any],
    tmp_path: Path,
    name: str,
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    path = tmp_path / "x.safetensors"
    left = ["vector"] if block_format(name).rows > 1 else []
    options = Options(format=name, exclude=left)
    rows = {row.name: row for row in encode_file(tmp_path / "in.npz", path, options)}
    decode_file(path, tmp_path / "out.safetensors")
    packed, out = load_file(path), load_file(tmp_path / "out.safetensors")
    described = {each.name: each for each in describe_file(path)}
    for key, values in weights.items():
        if key in ("ids", *left):
            assert np.array_equal(out[key], values)
            continue
        flat = values.reshape(len(values), -1) if values.ndim > 2 else values
        blocks = axs6.encode(flat, name)
        assert packed[key].tobytes() == axs6.pack(blocks)
        dtype = np.float64 if key == "matrix" else np.float32
        expected = axs6.decode(blocks, dtype).reshape(values.shape)
        assert out[key].dtype == expected.dtype
        assert out[key].tobytes() == expected.tobytes()
        row, encoded = rows[key], described[key].encoded
        assert row.errors
        assert encoded
        assert row.bytes_after == len(packed[key])
        wrong = np.abs(axs6.decode(blocks, np.float64) - flat.astype(np.float64))
        assert row.errors.largest == wrong.max(initial=0)
        assert encoded.format == block_format(name)
        assert str(encoded).startswith(name_of(block_format(name)))
        assert described[key].blocks == blocks.modes.size


@pytest.mark.parametrize(
    ("name", "axis", "chunk"),
    [
        pytest.param(name, axis, chunk, marks=[pytest.mark.slow] * ((number + place) % 3 != 0))
        for number, name in enumerate(("vsq6", "nvfp4", "mx6", "uint8_float32_uint8_t0"))
        for place, axis in enumerate((0, 1, -1))
        for chunk in (coding.CHUNK, 32)
    ],
)
def test_any_axis(
    tmp_path: Path, name: str, axis: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    x = np.random.default_rng(1).standard_normal((8, 3, 40)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    options = Options(format=name, axis=axis, align=4)
    encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", options)
    blocks = axs6.encode(x, name, axis=axis)
    assert load_file(tmp_path / "x.safetensors")["x"].tobytes() == axs6.pack(blocks, 4)
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.npy")
    assert np.array_equal(np.load(tmp_path / "y.npy"), axs6.decode(blocks))


@pytest.mark.parametrize("policy", ["saturate", "propagate"])
@pytest.mark.parametrize("name", formats(EVERY, together=1))
def test_nan_and_infinities(
    tmp_path: Path, name: str, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if policy == "propagate" and not block_format(name).has_nan:
        with pytest.raises(ValueError, match='nonfinite="propagate" needs a format with NaN'):
            Options(format=name, nonfinite=policy)
        return
    monkeypatch.setattr(coding, "CHUNK", 64)
    x = np.random.default_rng(3).standard_normal((6, 150)).astype(np.float32)
    for value, rows in ((np.nan, [1, 4]), (np.inf, [2, 4]), (-np.inf, [3])):
        x[rows, [x.shape[1] - 20, 7][: len(rows)]] = value
    large = x.astype(np.float64)
    large = np.where(np.isinf(x), np.copysign(1e300, large), large)
    tensors = {"x": x, "large": large, "nan": np.where(np.isinf(x), 0, x), "infinite": x[2:4]}
    tensors |= {"finite": x[:1], "half": x.astype(np.float16)}
    np.savez(tmp_path / "x.npz", **tensors)
    how = Options(format=name, nonfinite=policy)
    rows = encode_file(tmp_path / "x.npz", tmp_path / "x.safetensors", how)
    packed = load_file(tmp_path / "x.safetensors")
    for row in rows:
        blocks = axs6.encode(tensors[row.name], name, nonfinite=policy)
        assert packed[row.name].tobytes() == axs6.pack(blocks)
        exact, decoded = tensors[row.name].astype(np.float64), axs6.decode(blocks, np.float64)
        known = (np.abs(exact) < 2.0**128) & np.isfinite(decoded)
        assert row.errors
        assert row.errors.values == known.sum()
        assert row.errors.largest == np.abs(exact[known] - decoded[known]).max(initial=0)
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.safetensors")
    found = load_file(tmp_path / "y.safetensors")["x"]
    assert np.array_equal(found, axs6.decode(axs6.encode(x, name, nonfinite=policy)), True)


@pytest.mark.parametrize("chunk", [coding.CHUNK, 64])
@pytest.mark.parametrize("name", ["fp8_e4m3", "vsq4", "mxfp4_t16", "uint8"])
def test_stochastic_rounding(
    tmp_path: Path, name: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    x = np.random.default_rng(2).standard_normal((6, 150)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    options = Options(format=name, rounding="stochastic", random_bits=8, seed=5)
    encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", options)
    size = block_format(name).block
    count = -(-150 // size)
    words = Lfsr(size, 5, 8).draw(6 * count).reshape(6, size * count)[:, :150]
    blocks = axs6.encode(x, name, rounding="stochastic", random=words, random_bits=8)
    assert load_file(tmp_path / "x.safetensors")["x"].tobytes() == axs6.pack(blocks)


@pytest.mark.parametrize("chunk", [coding.CHUNK, 64])
@pytest.mark.parametrize("name", ["fp8_e4m3", "vsq4", "nvfp4", "mxfp4", "uint8"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**128])
def test_values_without_a_code_are_named(
    tmp_path: Path, name: str, chunk: int, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    x = np.ones((3, 100))
    x[2, 65] = value
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(ValueError, match=r"^tensor 'x', rows from .* must be finite") as error:
        encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", Options(format=name))
    where = "rows from 0, values from 0: " if chunk != 64 else "rows from 2, values from 64: "
    assert where in str(error.value)
    assert ("element (2, 65)" if chunk != 64 else "element (0, 1)") in str(error.value)


@pytest.mark.parametrize(
    "name",
    [
        "vsq4",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("int8", "e2m1fn_e4m3fn_t0_float32")),
    ],
)
def test_memory_is_bounded(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of 16 MB goes through in a fraction of it, with scales of what it is in."""
    monkeypatch.setattr(coding, "CHUNK", 1 << 16)
    np.save(tmp_path / "x.npy", np.ones((1 << 4, 1 << 18), np.float32))
    tracemalloc.start()
    encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", Options(format=name))
    describe_file(tmp_path / "x.safetensors")
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.npy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_wrong_blocks_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 32), np.float32))
    path = tmp_path / "x.safetensors"
    for name, place, value, message in (
        ("nvfp4", 4 + 9, 0x80, "rows from 0, values from 0: scale 1: 0xfe is not a code of nvfp4"),
        (
            "nvfp4",
            3,
            0x80,
            "rows from 0, values from 0: scale 0: 0xb9c30c31 is not a code of nvfp4",
        ),
        ("vsq4", 16 + 17, 0x80, "rows from 0, values from 0: block 1: padding must be zero, not 8"),
    ):
        encode_file(tmp_path / "x.npy", path, Options(format=name))
        # As a file of version 2, whose digests are not looked at.
        data = bytearray(path.read_bytes().replace(rb"\"version\": 3", rb"\"version\": 2"))
        data[8 + int.from_bytes(data[:8], "little") + place] |= value
        path.write_bytes(data)
        with pytest.raises(ValueError, match="^" + str(path)) as error:
            describe_file(path)
        assert f"tensor 'x': {message}" in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "mxfp5"}, "'mxfp5' is no block format"),
        ({"format": "mxfp4", "block": 33}, "a group must be a power of two, not 33"),
        ({"format": "fp8_e4m3", "block": 16}, "has no blocks, so block=16 cannot be chosen"),
        ({"format": "sm6dz_e8m0f_t32_float32_modes"}, "modes need one exponent scale of blocks"),
        ({"format": "mxfp4", "mode": "sparse"}, "mxfp4 has no modes, so mode must be dense"),
    ],
)
def test_formats_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Options(**options)
