import ctypes
import fcntl
import logging
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from axs6.sim.cache import DIGESTS, CacheError, cached, entry, kept, recalled, sources
from axs6.sim.compiler import SOURCE, compiled
from axs6.torch.kernels import library


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_build_happens_once_for_each_key(cache: Path) -> None:
    built: list[str] = []

    def build(folder: Path) -> None:
        (folder / "file").write_text("text")
        built.append(folder.name)

    first = cached("kind", ["a", "b"], build)
    assert cached("kind", ["a", "b"], build) == first
    assert (first / "file").read_text() == "text"
    assert len(built) == 1
    assert cached("kind", ["ab", ""], build) != first
    assert len(built) == 2


def test_an_interrupted_build_leaves_nothing(cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("kind", ["key"], fail)
    assert list(cache.glob("kind-*")) == []
    assert cached("kind", ["key"], lambda folder: None).is_dir()


def test_the_first_of_two_builds_at_once_wins(cache: Path) -> None:
    def slow(folder: Path) -> None:
        (folder / "file").write_text("slow")
        cached("kind", ["key"], lambda other: (other / "file").write_text("fast") and None)

    assert (cached("kind", ["key"], slow) / "file").read_text() == "fast"
    assert len(list(cache.glob("kind-*"))) == 1


def test_what_another_builds_is_waited_for(cache: Path) -> None:
    built: list[str] = []
    begun = threading.Event()

    def build(folder: Path) -> None:
        begun.set()
        time.sleep(0.3)
        (folder / "file").write_text("text")
        built.append(folder.name)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cached, "kind", ["key"], build)
        assert begun.wait(60)
        second = pool.submit(cached, "kind", ["key"], build)
        assert first.result() == second.result()
    assert len(built) == 1
    assert not list(cache.glob("lock-*"))


def test_a_build_that_fails_is_left_to_who_waits(cache: Path) -> None:
    begun = threading.Event()

    def fail(folder: Path) -> None:
        begun.set()
        time.sleep(0.3)
        raise ValueError("no room")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cached, "kind", ["key"], fail)
        assert begun.wait(60)
        second = pool.submit(cached, "kind", ["key"], lambda folder: None)
        with pytest.raises(ValueError, match="no room"):
            first.result()
        assert second.result().is_dir()


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AXS6_CACHE", os.fspath(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match=r"cannot write to the cache .*file/cache: Not a directory"):
        cached("kind", ["key"], lambda folder: None)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def change(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, empty, change, Path.unlink])
@pytest.mark.parametrize("name", ["model.so", DIGESTS])
def test_a_damaged_build_is_made_again_before_it_is_loaded(
    damage: Callable[[Path], None], name: str, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def built() -> Path:
        files = {SOURCE: f'extern "C" int answer() {{ return 42; }} // {damage} {name}'}
        return compiled("kind", "this test", files, [])

    library = built()
    assert built() == library
    assert caplog.messages == []
    damage(library.with_name(name))
    assert ctypes.CDLL(str(built())).answer() == 42
    assert caplog.messages == [f"cache entry {library.parent} is damaged: making it again"]
    assert caplog.records[0].levelno == logging.WARNING
    assert built() == library
    assert len(caplog.messages) == 1
    assert list(cache.glob("kind-*")) == [library.parent]


def killed(folder: Path) -> None:
    (folder / "half").write_text("")
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_build_left_is_cleared_by_the_next_that_is_alone(cache: Path) -> None:
    child = multiprocessing.get_context("spawn").Process(
        target=cached, args=("kind", ["key"], killed)
    )
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    (left,) = cache.glob("kind-*")
    assert (left / "half").exists()

    def build(folder: Path) -> None:
        cached("kind", ["other"], lambda other: None)
        assert folder.is_dir(), "a build cleared what another one still works on"
        assert not left.exists()

    cached("kind", ["key"], build)
    assert len(list(cache.glob("kind-*"))) == 2


def test_sources_are_those_of_inner_folders_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "somesources" / "inner" / "rules.hpp"
    inner.parent.mkdir(parents=True)
    (tmp_path / "somesources" / "__init__.py").write_text("")
    inner.write_text("one")
    monkeypatch.syspath_prepend(tmp_path)
    before = sources("somesources")
    sources.cache_clear()
    assert sources("somesources") == before
    inner.write_text("two")
    sources.cache_clear()
    assert sources("somesources") != before
    sources.cache_clear()


def test_an_entry_of_another_key_is_not_taken(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept("kind", ["one"], int, lambda: 1)
    kept("kind", ["two"], int, lambda: 2)
    one, two = entry("kind", ["one"]), entry("kind", ["two"])
    one.rename(cache / "aside")
    two.rename(one)
    (cache / "aside").rename(two)
    assert recalled("kind", ["one"], int) is None
    assert kept("kind", ["one"], int, lambda: 1) == 1
    assert kept("kind", ["two"], int, lambda: 2) == 2
    assert caplog.messages == [f"cache entry {e} is damaged: making it again" for e in (one, two)]
    assert recalled("kind", ["two"], int) == 2
    assert entry("kind", ["a", "b"]) != entry("kind", ["a\0b"])


@dataclass(frozen=True)
class Kept:
    number: float
    texts: tuple[str, ...]
    inner: "Kept | None" = None


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (float, 0.1 + 0.2),
        (float, 5e-324),
        (float, math.inf),
        (str, "a\0\u2028\U0001f600"),
        (tuple[float, float | None], (1.5, None)),
        (list[Kept], [Kept(1 / 3, ("a", ""), Kept(-math.inf, ()))]),
    ],
)
def test_values_are_kept_as_they_are_and_run_nothing(shape: Any, value: Any, cache: Path) -> None:
    for _ in range(2):
        assert kept("kind", ["key"], shape, lambda: value) == value
    assert repr(recalled("kind", ["key"], shape)) == repr(value)
    assert {path.suffix for path in entry("kind", ["key"]).iterdir()} == {".json"}


OPEN_TO_OTHERS = [0o777, 0o775, 0o757, 0o1777, 0o722]


@pytest.mark.parametrize("mode", OPEN_TO_OTHERS)
@pytest.mark.parametrize("part", [".", "kind", "kind/file"])
def test_a_cache_that_others_may_write_is_refused(part: str, mode: int, cache: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "file").write_text("text")

    path = cache / part.replace("kind", cached("kind", ["key"], build).name)
    path.chmod(mode)
    for use in (lambda: cached("kind", ["key"], build), lambda: recalled("kind", ["key"], str)):
        with pytest.raises(CacheError) as refused:
            use()
        assert str(refused.value) == (
            f"only you may have write access to the cache, but others can write to {path}: "
            "remove their access (chmod -R go-w), or name another folder in AXS6_CACHE"
        )
    path.chmod(0o755)
    assert cached("kind", ["key"], build).is_dir()


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_what_is_built_can_be_used_whatever_the_umask(umask: int, cache: Path) -> None:
    before = os.umask(umask)
    try:
        folder = cached("kind", ["key"], lambda folder: (folder / "file").write_text("") and None)
        folder.chmod(0o755)
        assert cached("kind", ["key"], unbuilt) == folder
    finally:
        os.umask(before)


def unbuilt(folder: Path) -> None:
    raise AssertionError(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("part", [".", "kind", "kind/file"])
def test_another_users_cache_is_refused_and_not_called_damaged(
    part: str, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def build(folder: Path) -> None:
        (folder / "file").write_text("text")

    path = cache / part.replace("kind", cached("kind", ["key"], build).name)
    os.chown(path, 4321, 4321)
    path.chmod(0o555)
    for use in (lambda: cached("kind", ["key"], build), lambda: recalled("kind", ["key"], str)):
        with pytest.raises(CacheError) as refused:
            use()
        assert str(refused.value) == (
            f"the cache must be your own, but {path} is another user's: "
            "name another folder in AXS6_CACHE"
        )
    assert caplog.messages == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_cache_that_may_not_be_read_is_refused(cache: Path) -> None:
    cached("kind", ["key"], lambda folder: None)
    cache.parent.chmod(0o700)
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            os.setuid(4321)
            cached("kind", ["key"], unbuilt)
        except OSError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with open(read, encoding="utf-8") as said:
        assert said.read() == f"cannot read the cache {cache}: Permission denied"


def make_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "precious")


def make_dangling(path: Path) -> None:
    path.symlink_to(path.parent.parent / "new")


@pytest.mark.parametrize("obstacle", [make_link, make_dangling, os.mkfifo, Path.mkdir])
@pytest.mark.parametrize("name", ["lock", "lock-kind"])
def test_a_lock_is_a_file(obstacle: Callable[[Path], None], name: str, cache: Path) -> None:
    (cache.parent / "precious").write_text("text")
    cache.mkdir(mode=0o700)
    lock = cache / name.replace("kind", entry("kind", ["key"]).name)
    # The lock of an entry is removed by who has the cache alone: somebody else has it too.
    with (cache / "other").open("w") as other:
        if name != "lock":
            (cache / "other").rename(cache / "lock")
            fcntl.flock(other, fcntl.LOCK_SH)
        obstacle(lock)
        with pytest.raises(CacheError, match=r"^the lock \S+ of the cache must be a plain file: "):
            cached("kind", ["key"], lambda folder: None)
    assert (cache.parent / "precious").read_text() == "text"
    assert not (cache.parent / "new").exists()


def test_a_pipe_in_an_entry_is_not_waited_for(cache: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "file").write_text("text")

    for name in ("file", DIGESTS):
        path = cached("kind", ["key"], build) / name
        path.unlink()
        os.mkfifo(path, 0o600)
        assert (cached("kind", ["key"], build) / "file").read_text() == "text"


@pytest.mark.parametrize("name", ["here", "a b'c\"d#e;`x`$(x)ö\\"])
def test_a_relative_folder_of_any_name_holds_models(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AXS6_CACHE", name)
    files = {SOURCE: '#include <cmath>\nextern "C" int answer() { return 42; }'}
    library = compiled("kind", "this test", files, [], headers_first=True)
    assert library.is_relative_to(tmp_path / name)
    assert ctypes.CDLL(str(library)).answer() == 42


def test_kernels_of_a_cache_that_is_refused_are_not_loaded(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    library._library.cache_clear()
    library.load.cache_clear()
    try:
        assert library._library("plain") is None
    finally:
        library._library.cache_clear()
    assert caplog.messages[0].startswith("no compiled kernels: only you may have write access")
