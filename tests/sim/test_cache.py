import ctypes
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from axs6.sim.cache import cached, sources
from axs6.sim.compiler import SOURCE, compiled


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
@pytest.mark.parametrize("name", ["model.so", "digests.json"])
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
