import os
from pathlib import Path

import pytest

from axs6.sim.cache import cached


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
    assert list(cache.iterdir()) == []
    assert cached("kind", ["key"], lambda folder: None).is_dir()


def test_the_first_of_two_builds_at_once_wins(cache: Path) -> None:
    def slow(folder: Path) -> None:
        (folder / "file").write_text("slow")
        cached("kind", ["key"], lambda other: (other / "file").write_text("fast") and None)

    assert (cached("kind", ["key"], slow) / "file").read_text() == "fast"
    assert len(list(cache.iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AXS6_CACHE", os.fspath(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match=r"cannot write to the cache .*file/cache: Not a directory"):
        cached("kind", ["key"], lambda folder: None)
