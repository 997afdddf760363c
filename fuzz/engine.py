"""Runs inputs through a target, in a process that `fuzz/run.py` starts and watches.

atheris, where it is installed, chooses inputs by the code that they reach; random changes of seeds
do otherwise. A target that raises, takes too long or too much memory ends the process.
"""

import faulthandler
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from mutations import NUMBERS, mutations

try:
    import atheris
except ModuleNotFoundError:
    atheris = None

SECONDS = 3
"""An input that takes more of the processor's time is a hang."""

MEMORY = 1 << 30
"""Bytes of address space that inputs may take beside what the program has."""

LONGEST = 1 << 12
"""Bytes of an input."""

STATE = struct.Struct("<QQdQI")
"""In the file that the parent reads: inputs so far, how many of them were accepted, the seconds of
the slowest one, the most KiB of memory, and the length of the last one, whose bytes follow."""


class Watched:
    """A target whose inputs are counted and kept, and must come to an end."""

    def __init__(self, function: Any, state: Path) -> None:
        self._function = function
        self._inputs = self._accepted = 0
        self._slowest = 0.0
        with state.open("w+b") as file:
            file.truncate(STATE.size + LONGEST)
            self._state = mmap.mmap(file.fileno(), 0)

    def __call__(self, data: bytes) -> None:
        """Run one input; the process ends where it is not treated as it should be."""
        data = data[:LONGEST]
        self._note(len(data))
        self._state[STATE.size : STATE.size + len(data)] = data
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            self._accepted += self._function(data)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        self._inputs += 1
        self._slowest = max(self._slowest, time.monotonic() - start)
        self._note(len(data))

    def _note(self, length: int) -> None:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        STATE.pack_into(self._state, 0, self._inputs, self._accepted, self._slowest, memory, length)


def limit_memory() -> None:
    """Limit the memory of this process to `MEMORY` more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(name: str, inputs: int, seed: int, state: Path) -> None:
    """Run a number of inputs through the target with this name."""
    with atheris.instrument_imports(include=["axs6"]) if atheris else nullcontext():
        from targets import TARGETS

    target = TARGETS[name]
    watched = Watched(target.function, state)
    faulthandler.register(signal.SIGPROF, chain=True)  # says where it was, and ends the process
    seeds = target.seeds()
    limit_memory()
    if not atheris:
        for data in mutations(seeds, inputs, seed):
            watched(data)
        return
    folder = state.parent
    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir()
    for number, data in enumerate(seeds):
        (corpus / str(number)).write_bytes(data)
    words.write_bytes(b"".join(b'"%s"\n' % each for each in NUMBERS))
    options = [f"-runs={inputs}", f"-seed={seed + 1}", f"-max_len={LONGEST}", "-rss_limit_mb=0"]
    options += [f"-dict={words}", f"-artifact_prefix={folder}/", str(corpus)]
    atheris.Setup([sys.argv[0], *options], watched)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
