"""Files that are written whole or not at all."""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from axs6.commands.output import write_files
from axs6.replacing import make_folder, replacing


def test_a_file_takes_its_place_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    with replacing(tmp_path / "replaced"):
        pass
    assert (tmp_path / "replaced").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.write("no bytes")  # type: ignore[call-overload]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "no/file", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (Path("/dev/full"), "No space left on device"),
    ):
        message = f"^cannot write to {path}: {reason}$"
        with pytest.raises(OSError, match=message), replacing(path) as file:
            file.write(b"new")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=f"^cannot write to {tmp_path}/file: File exists$"):
        make_folder(tmp_path / "file")


def test_of_several_files_all_are_written_or_none(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError, match=f"^cannot write to {tmp_path}/b: Is a directory$"):
        write_files(tmp_path, {"a": "new", "b": "new"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert write_files(tmp_path / "c/d", {"a": "new"}) == [tmp_path / "c/d/a"]
    assert (tmp_path / "c/d/a").read_text() == "new"


def killed(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"half")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    others = tmp_path / ".axs6-mine"
    others.write_bytes(b"of the user")
    child = multiprocessing.get_context("spawn").Process(target=killed, args=(tmp_path / "a",))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    with replacing(tmp_path / "one") as one, replacing(tmp_path / "two"):
        one.write(b"written after another one began")
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    one_text = b"written after another one began"
    assert written == {others.name: b"of the user", "one": one_text, "two": b""}
