"""Files that are not as they were written, or change while they are read."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from axs6.files import Options, coding, decode_file, describe_file, encode_file

X = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A container of encoded tensors, one with outer scales, and one that is kept."""
    tensors = {"a": X, "b": X[0], "c": X[0, :2], "k": np.arange(9)}
    save_file(tensors, tmp_path / "in.safetensors", {"made": "here"})
    encode_file(tmp_path / "in.safetensors", tmp_path / "one.safetensors", Options(include=["a"]))
    options = Options(format="nvfp4", include=["b"])
    encode_file(tmp_path / "one.safetensors", tmp_path / "x.safetensors", options)
    return tmp_path / "x.safetensors"


def test_no_flipped_bit_of_the_tensors_is_decoded(packed: Path, tmp_path: Path) -> None:
    data = packed.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    assert len(data) - start == 8 * 26 + 4 + 4 * 9 + 2 * 4 + 9 * 8
    for place in range(start, len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        packed.write_bytes(changed)
        with pytest.raises(ValueError, match=r"x\.safetensors: tensor '[abck]' has changed since"):
            decode_file(packed, tmp_path / "out.safetensors")
    with pytest.raises(ValueError, match=r"tensor '[abck]' has changed since it was written"):
        describe_file(packed)
    with pytest.raises(ValueError, match=r"tensor '[abck]' has changed since it was written"):
        encode_file(packed, tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


def test_a_flipped_bit_of_the_header_changes_nothing_silently(packed: Path, tmp_path: Path) -> None:
    """It is said, or it is in what other programs wrote."""
    decode_file(packed, tmp_path / "right.safetensors")
    right = load_file(tmp_path / "right.safetensors")
    data = packed.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    said = 0
    places = [*range(8), *range(8, start, 3)]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << place % 7
        packed.write_bytes(changed)
        try:
            decode_file(packed, tmp_path / "out.safetensors")
        except ValueError as error:
            assert str(packed) in str(error)  # noqa: PT017
            said += 1
            continue
        out = load_file(tmp_path / "out.safetensors")
        assert all(np.array_equal(out[name], right[name]) for name in right)
    assert len(places) - 6 < said < len(places)


def test_other_programs_may_change_their_metadata(packed: Path) -> None:
    data = packed.read_bytes()
    packed.write_bytes(data.replace(b'"made": "here"', b'"made": "away"'))
    assert len(describe_file(packed)) == 4


@pytest.mark.parametrize("name", ["in.npy", "in.npz", "in.safetensors"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_source_that_becomes_shorter(
    tmp_path: Path, name: str, axis: int, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mapped memory of it would end the process by SIGBUS."""
    monkeypatch.setattr(coding, "CHUNK", 1 << 14)
    x = np.zeros((256, 1024), np.float32, order=order)
    write: dict[str, Callable[[], object]] = {
        "in.npy": lambda: np.save(tmp_path / name, x),
        "in.npz": lambda: np.savez(tmp_path / name, x=x),
        "in.safetensors": lambda: save_file({"x": np.ascontiguousarray(x)}, tmp_path / name),
    }
    write[name]()
    read = tmp_path / name
    if name == "in.npz":
        # What is read is the member, unpacked.
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def cut(_: str) -> None:
        where = next(tmp_path.glob("axs6-npz-*/0.npy")) if name == "in.npz" else read
        os.truncate(where, 4096)

    with pytest.raises(OSError, match=r"^cannot read .*: it became shorter while it was read$"):
        encode_file(read, tmp_path / "x.safetensors", Options(axis=axis), progress=cut)
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_container_that_becomes_shorter(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^cannot read .*x\.safetensors: it became shorter"):
        decode_file(packed, tmp_path / "out.safetensors", lambda _: os.truncate(packed, 200))
    assert not (tmp_path / "out.safetensors").exists()


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_no_room_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mapped memory of a temporary file without room would end the process by SIGBUS."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    np.save(tmp_path / "x.npy", X)
    encode_file(tmp_path / "x.npy", tmp_path / "x.safetensors", Options(axis=0))
    message = rf"^cannot write temporary files to {tmp_path} \(TMPDIR sets it\): No space left"
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", no_room)
        with pytest.raises(OSError, match=message):
            decode_file(tmp_path / "x.safetensors", tmp_path / "y.npy")
    np.savez(tmp_path / "x.npz", x=X)
    monkeypatch.setattr("shutil.copyfileobj", no_room)
    with pytest.raises(OSError, match=r"^cannot write temporary files to .*: No space left"):
        encode_file(tmp_path / "x.npz", tmp_path / "y.safetensors")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.npy", "x.npz", "x.safetensors"]
