"""Tensors through the container and back, bit for bit what the golden model gives."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import axs6
from axs6.files import Options, coding, decode_file, describe_file, encode_file
from axs6.golden.lfsr import Lfsr


@pytest.fixture
def weights(tmp_path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    tensors = {
        "a.weight": rng.standard_normal((5, 70)).astype(np.float32),
        "a.bias": rng.standard_normal(9).astype(np.float16),
        "b.weight": rng.standard_normal((2, 3, 64)),
        "b.steps": np.arange(7),
        "c.scale": np.array(2.5, np.float32),
        "d.empty": np.zeros((3, 0), np.float32),
        "e.half": rng.standard_normal((4, 33)).astype(ml_dtypes.bfloat16),
    }
    save_file(tensors, tmp_path / "in.safetensors", {"made": "here"})
    return tensors


@pytest.mark.parametrize("chunk", [coding.CHUNK, 64])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "sparse", "block": 8},
        {"mode": "high_precision", "align": 32},
        {"mode": "auto", "block": 16, "rounding": "toward_zero"},
    ],
)
def test_decoded_tensors_are_the_golden_models(
    weights: dict[str, Any],
    tmp_path: Path,
    options: dict[str, Any],
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    rows = encode_file(tmp_path / "in.safetensors", tmp_path / "x.safetensors", Options(**options))
    names = decode_file(tmp_path / "x.safetensors", tmp_path / "out.safetensors")
    assert sorted(names) == sorted(weights)
    out = load_file(tmp_path / "out.safetensors")
    align = options.pop("align", 1)
    packed = load_file(tmp_path / "x.safetensors")
    for row in rows:
        values, found = weights[row.name], out[row.name]
        assert row.shape == values.shape
        assert row.bytes_before == values.nbytes
        if row.errors is None:
            assert np.array_equal(found, values)
            assert row.name in ("b.steps", "c.scale")
            continue
        flat = values.reshape(len(values), -1) if values.ndim > 2 else values
        blocks = axs6.encode(flat, **options)
        assert packed[row.name].tobytes() == axs6.pack(blocks, align)
        assert row.bytes_after == len(axs6.pack(blocks, align))
        dtype = np.float32 if values.dtype == np.float16 else values.dtype
        expected = axs6.decode(blocks, dtype).reshape(values.shape)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()
        errors = axs6.decode(blocks, np.float64) - flat.astype(np.float64)
        assert row.errors.values == values.size
        assert row.errors.largest == np.abs(errors).max(initial=0)


@pytest.mark.parametrize("axis", [0, 1, -3])
@pytest.mark.parametrize("chunk", [coding.CHUNK, 32])
def test_blocks_along_any_axis(
    tmp_path: Path, axis: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    x = np.random.default_rng(1).standard_normal((40, 6, 50)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", Options(axis=axis))
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.npy")
    turned = axs6.decode(axs6.encode(np.moveaxis(x, axis, -1)))
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.moveaxis(turned, -1, axis))


KERNELS = np.random.default_rng(4).standard_normal((32, 16, 3, 3)).astype(np.float32)


@pytest.mark.parametrize("chunk", [coding.CHUNK, 100])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("options", "rows", "axes"),
    [
        ({}, 32, "axes from 1 on"),
        ({"flatten": 2}, 32 * 16, "axes from 2 on"),
        ({"flatten": -4}, 1, "axes from -4 on"),
        ({"axis": -1}, 32 * 16 * 3, "axis -1"),
    ],
)
def test_weights_of_convolutions_are_flattened(
    tmp_path: Path,
    options: dict[str, int],
    rows: int,
    axes: str,
    order: Any,
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    np.save(tmp_path / "x.npy", np.asarray(KERNELS, order=order))
    (row,) = encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", Options(**options))
    blocks = axs6.encode(KERNELS.reshape(rows, -1))
    assert load_file(tmp_path / "x.safetensors")["x"].tobytes() == axs6.pack(blocks)
    (described,) = describe_file(tmp_path / "x.safetensors")
    assert described.shape == KERNELS.shape
    assert str(described.encoded) == f"axs6, dense, nearest, {axes}"
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.npy")
    expected = axs6.decode(blocks).reshape(KERNELS.shape)
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected)
    assert row.bytes_after == len(axs6.pack(blocks))
    # 144 values a filter are 4.5 blocks: 5 of 26 bytes.
    assert options or row.bytes_after == 32 * 5 * 26


def test_axes_that_are_not_there(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 8), np.float32))
    with pytest.raises(ValueError, match="axis and flatten cannot be given together"):
        Options(axis=0, flatten=1)
    with pytest.raises(ValueError, match="tensor 'x': flatten must be one of 2 axes, not 2"):
        encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", Options(flatten=2))


@pytest.mark.parametrize("chunk", [coding.CHUNK, 64])
def test_stochastic_rounding_takes_words_in_block_order(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "CHUNK", chunk)
    x = np.random.default_rng(2).standard_normal((6, 50)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    options = Options(rounding="stochastic", random_bits=8, seed=5, block=16)
    encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", options)
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.npy")
    words = Lfsr(16, 5, 8).draw(6 * 4).reshape(6, 64)[:, :50]
    blocks = axs6.encode(x, block=16, rounding="stochastic", random=words, random_bits=8)
    assert np.array_equal(np.load(tmp_path / "y.npy"), axs6.decode(blocks))


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_and_patterns(tmp_path: Path, compressed: bool) -> None:
    save: Any = np.savez_compressed if compressed else np.savez
    column_major = np.asfortranarray(np.arange(80, dtype=np.float32).reshape(8, 10))
    save(tmp_path / "x.npz", **{"one.weight": column_major, "two.weight": np.ones(32), "n": 3})
    rows = encode_file(
        tmp_path / "x.npz",
        tmp_path / "x.safetensors",
        Options(include=["*.weight"], exclude=["two*"]),
    )
    assert {row.name: row.errors is not None for row in rows} == {
        "one.weight": True,
        "two.weight": False,
        "n": False,
    }
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.safetensors")
    back = load_file(tmp_path / "y.safetensors")
    assert np.array_equal(back["one.weight"], axs6.decode(axs6.encode(column_major)))
    assert np.array_equal(back["two.weight"], np.ones(32))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [">i4", ">f8", "<u2", "?"])
def test_tensors_that_are_kept_are_little_endian(tmp_path: Path, dtype: str, order: Any) -> None:
    kept = np.asarray(np.arange(60).reshape(3, 4, 5), dtype, order=order)
    np.savez(tmp_path / "x.npz", kept=kept, encoded=np.ones(8))
    encode_file(tmp_path / "x.npz", tmp_path / "x.safetensors", Options(exclude=["kept"]))
    found = load_file(tmp_path / "x.safetensors")["kept"]
    assert found.dtype == kept.dtype.newbyteorder("=")
    assert np.array_equal(found, kept)


@pytest.mark.parametrize("order", ["C", "F"])
def test_big_endian_tensors_are_encoded(tmp_path: Path, order: Any) -> None:
    x = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
    np.save(tmp_path / "x.npy", np.asarray(x, ">f4", order=order))
    (row,) = encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors")
    assert load_file(tmp_path / "x.safetensors")["x"].tobytes() == axs6.pack(axs6.encode(x))
    assert row.errors
    assert row.errors.squared_values == pytest.approx(np.vdot(x, x))


def test_the_description(weights: dict[str, Any], tmp_path: Path) -> None:
    encode_file(tmp_path / "in.safetensors", tmp_path / "x.safetensors", Options(mode="auto"))
    found = {each.name: each for each in describe_file(tmp_path / "x.safetensors")}
    assert found["a.weight"].shape == (5, 70)
    blocks = axs6.encode(weights["a.weight"], mode="auto")
    counts = np.bincount(blocks.modes.ravel(), minlength=3)
    assert found["a.weight"].modes == {
        name: n for name, n in zip(("dense", "sparse", "high_precision"), counts, strict=True) if n
    }
    assert found["b.steps"].encoded is None
    assert found["b.steps"].bytes == weights["b.steps"].nbytes


@pytest.mark.parametrize("order", [pytest.param("C", marks=pytest.mark.slow), "F"])
def test_memory_is_bounded(tmp_path: Path, order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tensors of 16 MB, one encoded and one kept, go through in a fraction of it."""
    monkeypatch.setattr(coding, "CHUNK", 1 << 16)
    values = np.zeros((1 << 13, 1 << 9), np.float32, order=order)
    np.savez(tmp_path / "x.npz", values=values, kept=values.astype(">i4"))
    tracemalloc.start()
    encode_file(tmp_path / "x.npz", tmp_path / "x.safetensors")
    describe_file(tmp_path / "x.safetensors")
    decode_file(tmp_path / "x.safetensors", tmp_path / "y.safetensors")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)
    np.savez(tmp_path / "two.npz", first=x, second=x)
    encode_file(tmp_path / "two.npz", tmp_path / "x.safetensors")
    return tmp_path / "x.safetensors"


def damaged(path: Path, change: Any) -> Path:
    """A file as a program of version 2 may have written it, without digests."""
    data = bytearray(path.read_bytes())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    metadata(without_digests)(header, body)
    change(header, body)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


def metadata(change: Any) -> Any:
    def changed(header: dict[str, Any], body: bytearray) -> None:
        described = json.loads(header["__metadata__"]["axs6"])
        change(described)
        header["__metadata__"]["axs6"] = json.dumps(described)

    return changed


def without_digests(described: dict[str, Any]) -> None:
    described["version"] = min(described["version"], 2)
    described.pop("sha256", None)


def of_second(**changes: Any) -> Any:
    return metadata(lambda described: described["tensors"]["second"].update(changes))


def version_1(**changes: Any) -> Any:
    """Tensor `second` as version 1 described it."""

    def changed(described: dict[str, Any]) -> None:
        described["version"] = 1
        for entry in described["tensors"].values():
            del entry["format"]
        described["tensors"]["second"].update(changes)

    return metadata(changed)


def poke(place: int, value: int) -> Any:
    """Change a byte of tensor `second`, which follows the 208 bytes of `first`."""
    return lambda header, body: body.__setitem__(208 + place, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (poke(26 * 5, 3), "tensor 'second': block 5: mode 3 is reserved"),
        (poke(26 * 2 + 1, 0x80), "tensor 'second': block 2: header bits 10 to 15 must be zero"),
        (poke(26 * 7, 1), "tensor 'second': block 7: the mask of a sparse block must have 24 ones"),
        (of_second(shape=[4, 65]), "tensor 'second': 12 blocks have 288 to 312 bytes, not 208"),
        (of_second(shape=[4, 32]), "tensor 'second': 4 blocks have 96 to 104 bytes, not 208"),
        (of_second(shape=[1 << 40, 4], axis=0), "tensor 'second': 137438953472 blocks have"),
        (of_second(shape=[0, 1 << 62]), "wrong: shape must have at most 64 axes and 2^60 values"),
        (of_second(shape=[-4, 64]), "tensor 'second': its metadata are wrong: shape must be"),
        (of_second(dtype="F8"), "tensor 'second': its metadata are wrong: dtype must be one of"),
        (of_second(shape=[True, 64]), "tensor 'second': its metadata are wrong: shape must be"),
        (
            of_second(block=12),
            "tensor 'second': its metadata are wrong: the entry block belongs in format",
        ),
        (of_second(format="mxfp5"), "wrong: 'mxfp5' is no block format"),
        (of_second(format=6), "wrong: format must be a string, not 6"),
        (of_second(format="mxfp4"), "tensor 'second': 8 blocks have 136 bytes, not 208"),
        (of_second(format="nvfp4"), "'second': its scales and 16 blocks have 148 bytes, not 208"),
        (of_second(format="mxfp4", mode="auto"), "mxfp4 has no modes, so mode must be dense"),
        (of_second(seed=0), "tensor 'second': its metadata are wrong: seed must be an integer"),
        (of_second(axis=2), "tensor 'second': its metadata are wrong: axis must be one of 2"),
        (of_second(axis=True), "tensor 'second': its metadata are wrong: axis must be one of 2"),
        (of_second(axis=None), "axis must be one of 2 axes, not None"),
        (of_second(flatten=1), "wrong: axis and flatten cannot be given together"),
        (of_second(axis=None, flatten=2), "wrong: flatten must be one of 2 axes, not 2"),
        (of_second(align=0), "tensor 'second': its metadata are wrong: align must be"),
        (of_second(colour=1), "tensor 'second': its metadata are wrong"),
        (metadata(lambda d: d.update(version=4)), "its version must be 1 to 3, not 4"),
        (metadata(lambda d: d.update(version=3)), "its metadata `axs6` cannot be read"),
        (version_1(block=12), "block must be one of 8, 16, 32, not 12"),
        (version_1(block=32.0), "block must be one of 8, 16, 32, not 32.0"),
        (version_1(block_size=None), "block must be one of 8, 16, 32, not None"),
        (metadata(lambda d: d.pop("tensors")), "its metadata `axs6` cannot be read"),
        (lambda h, b: h["__metadata__"].pop("axs6"), "it is not a container of blocks"),
        (
            lambda h, b: h.__setitem__("third", h.pop("second")),
            "tensor 'second' is in its metadata but not in the file",
        ),
        (lambda h, b: b.__delitem__(slice(400, None)), "is damaged or of another kind"),
    ],
)
def test_what_is_damaged_is_named(packed: Path, change: Any, message: str, tmp_path: Path) -> None:
    path = damaged(packed, change)
    for read in (describe_file, lambda path: decode_file(path, tmp_path / "out.safetensors")):
        with pytest.raises(ValueError, match="^" + str(path)) as error:
            read(path)
        assert message in str(error.value)
    assert not (tmp_path / "out.safetensors").exists()
    assert not list(tmp_path.glob(".*"))


def npy(header: bytes) -> bytes:
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header


def test_damaged_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(32, np.float32))
    np.savez(tmp_path / "x.npz", x=np.ones(32, np.float32))
    whole = (tmp_path / "x.npz").read_bytes()
    place = whole.index(b"PK\1\2")
    encrypted = whole[:6] + b"\1" + whole[7 : place + 8] + b"\1" + whole[place + 9 :]
    packed = whole[:8] + b"\x63" + whole[9 : place + 10] + b"\x63" + whole[place + 11 :]
    for name, data in (
        ("unclosed.npy", npy(b"{'descr': '<f4', 'shape': (1,")),
        ("indented.npy", npy(b"{\n  }\n 1")),
        ("keys.npy", npy(b"{b'a': 1, 'b': 2}")),
        ("deep.npy", npy(b"-" * 9000 + b"1")),
        (
            "negative.npy",
            npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1)}") + b"1234",
        ),
        ("huge.npy", npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1 << 60,)}")),
        ("encrypted.npz", encrypted),
        ("packed.npz", packed),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{name} is damaged or of another kind: "):
            encode_file(tmp_path / name, tmp_path / "x.safetensors")
    assert not (tmp_path / "x.safetensors").exists()


def test_data_that_end_in_a_block(tmp_path: Path) -> None:
    """13 dense blocks have more bytes than 14 sparse ones."""
    np.save(tmp_path / "x.npy", np.ones(13 * 32, np.float32))
    encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors")
    longer = metadata(lambda described: described["tensors"]["x"].update(shape=[14 * 32]))
    with pytest.raises(ValueError, match="tensor 'x': block 13: the data end within it"):
        describe_file(damaged(tmp_path / "x.safetensors", longer))


def test_a_file_is_not_written_over_itself(packed: Path) -> None:
    before = packed.read_bytes()
    for convert in (encode_file, decode_file):
        with pytest.raises(ValueError, match="must not be the same file as input"):
            convert(packed, packed)
    assert packed.read_bytes() == before


def test_two_tensors_are_no_npy(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"2 tensors must be written as \.safetensors$"):
        decode_file(packed, tmp_path / "y.npy")
    with pytest.raises(ValueError, match=r"y\.txt must end in \.safetensors or \.npy$"):
        decode_file(packed, tmp_path / "y.txt")


def test_what_cannot_be_encoded(tmp_path: Path) -> None:
    out = tmp_path / "x.safetensors"
    x = np.ones((3, 40), np.float32)
    x[2, 33] = np.nan
    np.save(tmp_path / "nan.npy", x)
    with pytest.raises(ValueError, match=r"^tensor 'nan', rows from 0.*element \(2, 33\) is nan"):
        encode_file(tmp_path / "nan.npy", out)
    np.save(tmp_path / "objects.npy", np.array([None, {}]), allow_pickle=True)
    with pytest.raises(ValueError, match="'objects' holds Python objects, which are not read"):
        encode_file(tmp_path / "objects.npy", out)
    np.save(tmp_path / "n.npy", np.arange(3))
    with pytest.raises(ValueError, match="has no floating-point tensor with an included name"):
        encode_file(tmp_path / "n.npy", out)
    (tmp_path / "short.npy").write_bytes((tmp_path / "nan.npy").read_bytes()[:-1])
    with pytest.raises(ValueError, match="'short' must have 480 bytes, not 479"):
        encode_file(tmp_path / "short.npy", out)
    with pytest.raises(ValueError, match=r"must end in \.safetensors, \.npy, \.npz"):
        encode_file(tmp_path / "x.pt", out)
    with pytest.raises(OSError, match=r"cannot read .*none\.npy: No such file"):
        encode_file(tmp_path / "none.npy", out)
    assert not out.exists()


def test_files_of_version_1_are_read(tmp_path: Path) -> None:
    """The file was written by the code before version 2, in mode auto and blocks of 16."""
    rng = np.random.default_rng(11)
    first = rng.standard_normal((3, 70)).astype(np.float32)
    half = rng.standard_normal((2, 3, 10)).astype(np.float16)
    first[0, :32:2] = 0
    old = Path(__file__).parent / "data" / "version_1.safetensors"
    found = {each.name: each for each in describe_file(old)}
    assert str(found["auto"].encoded) == "axs6_t16, auto, nearest, axis -1"
    assert str(found["half"].encoded) == "axs6_t16, auto, nearest, axes from 1 on"
    assert set(found["auto"].modes) == {"dense", "sparse"}
    data = old.read_bytes()
    (tmp_path / "older.safetensors").write_bytes(data)
    damaged(tmp_path / "older.safetensors", metadata(block_size))
    for path in (old, tmp_path / "older.safetensors"):
        decode_file(path, tmp_path / "out.safetensors")
        out = load_file(tmp_path / "out.safetensors")
        assert sorted(out) == ["auto", "half", "steps"]
        for name, values in (("auto", first), ("half", half.reshape(2, 30))):
            expected = axs6.decode(axs6.encode(values, block=16, mode="auto"))
            assert out[name].tobytes() == expected.tobytes()
        assert np.array_equal(out["steps"], np.arange(5))


def block_size(described: dict[str, Any]) -> None:
    """As the first files of version 1 named it."""
    for entry in described["tensors"].values():
        entry["block_size"] = entry.pop("block")
