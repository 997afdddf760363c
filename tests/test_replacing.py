"""Files that are written whole or not at all."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from axs6.commands.output import write_files
from axs6.replacing import make_folder, replacing, replacing_folder


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


def test_a_replaced_file_keeps_its_permissions_and_owner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for mode in (0o600, 0o640, 0o444, 0o755, 0o606):
        path.unlink(missing_ok=True)
        path.write_bytes(b"old")
        path.chmod(mode)
        if os.geteuid() == 0:
            os.chown(path, 1234, 2345)
        before = path.stat()
        with replacing(path) as file:
            (partial,) = tmp_path.glob(".axs6-*")
            assert partial.stat().st_mode & 0o777 & ~mode == 0
            file.write(b"new")
        after = path.stat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (
            *(before.st_mode, before.st_uid, before.st_gid),
        )
        assert path.read_bytes() == b"new"


def test_an_owner_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_to_a_private_file_keeps_it_private(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "target").chmod(0o600)
    (tmp_path / "link").symlink_to("target")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "target").read_bytes() == b"new"


def others(folder: Path) -> None:
    """What is no file, or none of this user, under the names of files that are left behind."""
    names = (folder / f".axs6-{number:016x}" for number in range(5))
    os.mkfifo(next(names))
    next(names).symlink_to(folder / "mine")
    next(names).mkdir()
    next(names).symlink_to("/dev/zero")
    foreign = next(names)
    foreign.write_bytes(b"of another")
    if os.geteuid() == 0:
        os.chown(foreign, 1234, 2345)
    else:
        foreign.unlink()


def replace(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"new")


def test_what_is_no_file_that_was_left_stays(tmp_path: Path) -> None:
    others(tmp_path)
    (tmp_path / "mine").write_bytes(b"of the user")
    before = {path.name for path in tmp_path.iterdir()}
    # A process of its own: one that opens the pipe waits for ever.
    child = multiprocessing.get_context("spawn").Process(target=replace, args=(tmp_path / "a",))
    child.start()
    child.join(30)
    child.kill()
    child.join()
    assert child.exitcode == 0
    assert {path.name for path in tmp_path.iterdir()} == {*before, "a"}
    assert (tmp_path / "mine").read_bytes() == b"of the user"


ENDED = """
import contextlib, os, signal, sys
from pathlib import Path
from axs6 import replacing
from axs6.signals import ending

made = 0
def trace(frame, event, argument):
    global made
    if frame.f_code.co_filename in (replacing.__file__, contextlib.__file__):
        made += 1
        if made == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGTERM)
    return trace

with ending():
    sys.settrace(trace)
    for name in "ab":
        with replacing.replacing(Path(sys.argv[1], name)) as file:
            file.write(b"new")
"""


@pytest.mark.parametrize(
    "moments", [range(1, 60, 6), pytest.param(range(1, 60), marks=pytest.mark.slow)]
)
def test_a_signal_at_any_moment_leaves_nothing(tmp_path: Path, moments: range) -> None:
    """Within `replacing` and the context around it, line by line."""
    for moment in moments:
        done = subprocess.run([sys.executable, "-c", ENDED, tmp_path, str(moment)], check=False)
        assert done.returncode == 128 + signal.SIGTERM
        assert not list(tmp_path.glob(".*")), f"left at moment {moment}"
        for path in tmp_path.iterdir():
            assert path.read_bytes() == b"new"
            path.unlink()


def filled_in_part(path: Path) -> None:
    with replacing_folder(path) as folder:
        (folder / "x").touch()
        raise TypeError


def test_a_folder_is_there_when_it_is_complete(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        filled_in_part(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "b").mkdir()
    for name in ("a", "b"):
        with replacing_folder(tmp_path / name) as folder:
            (folder / "x").touch()
        assert [path.name for path in (tmp_path / name).iterdir()] == ["x"]
    with pytest.raises(ValueError, match="must not exist, or be an empty"):
        filled_in_part(tmp_path / "a")


def killed_in_folder(path: Path) -> None:
    with replacing_folder(path) as folder:
        (folder / "x").touch()
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_folder_that_a_killed_process_left_is_cleared(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=killed_in_folder, args=(tmp_path / "a",))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    with replacing_folder(tmp_path / "b"), replacing_folder(tmp_path / "c"):
        assert not left.exists()
        assert len(list(tmp_path.iterdir())) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"b", "c"}
