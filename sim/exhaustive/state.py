"""The state of an enumeration on disk, from which an interrupted run resumes."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from axs6.sim.cache import cache_folder, check_cache, sources
from axs6.sim.exhaustive.space import Space
from axs6.sim.sealed import SealedFile

KIND = "axs6 enumeration 2"


def default_state() -> Path:
    """Default path of the state.

    Raises:
        CacheError: the cache is another user's, or others may write to it.
    """
    check_cache()
    return cache_folder() / "enumerations.json"


PROGRAM = ("axs6.golden", "axs6.hw", "axs6.sim.batch", "axs6.sim.exhaustive")
"""Packages whose sources decide the comparisons."""


def space_key(space: Space) -> str:
    """Digest of the design of a space, what it is compared with, and the items."""
    program = sources(*PROGRAM)
    parts = (space.name, space.formula, str(space.chunks), space.design.source.text, program)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@dataclass
class _Progress:
    """Chunks of a space that agreed, as the bits of a number, and the key of that space."""

    key: str
    done: int


class State:
    """Which chunks of which spaces agreed, in a file.

    Args:
        path: the file; it need not exist.

    Raises:
        ValueError: the file holds something else, or was changed after it was written.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._file = SealedFile(path.resolve(), KIND, "axs6 validate --exhaustive", "spaces")
        entries = self._file.read()
        try:
            self._spaces = {
                name: _Progress(str(entry["key"]), int(entry["done"], 16))
                for name, entry in entries.items()
            }
        except (ValueError, KeyError, TypeError):
            raise self._file.unlike() from None
        if any(each.done < 0 for each in self._spaces.values()):
            raise self._file.unlike()

    def enter(self, space: Space) -> bool:
        """Enter a space; False if the file's entry belongs to another design or model."""
        key = space_key(space)
        known = self._spaces.get(space.name)
        if known is not None and known.key == key:
            return True
        self._spaces[space.name] = _Progress(key, 0)
        return known is None

    def is_done(self, space: Space, chunk: int) -> bool:
        """Whether a chunk of a space that was entered agreed before."""
        return bool(self._spaces[space.name].done >> chunk & 1)

    def record(self, space: Space, chunk: int) -> None:
        """Note that a chunk agreed, and replace the file.

        Raises:
            OSError: the file or its folder cannot be written; the message names it.
        """
        self._spaces[space.name].done |= 1 << chunk
        spaces = {
            name: {"key": each.key, "done": f"{each.done:x}"} for name, each in self._spaces.items()
        }
        self._file.write(spaces)
