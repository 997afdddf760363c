"""Fuzzes `axs6.unpack`, files of tensors, and the command line: `python fuzz/run.py`.

Exit status: 0 where every input was treated as documented, 1 where one was not. That one is
written to a file, and `--replay` runs it again.
"""

import argparse
import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from engine import STATE, atheris
from targets import TARGETS

SHARED = "/dev/shm"
"""Folder in memory for the files of inputs, if there is one."""


def main() -> int:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one input and no others")
    given = parser.parse_args()
    names = given.targets or [name for name, target in TARGETS.items() if target.share]
    if unknown := set(names) - TARGETS.keys():
        parser.error(f"no target {', '.join(sorted(unknown))}")
    if given.replay:
        for name in names:
            print(f"{name}: accepted: {TARGETS[name].function(given.replay.read_bytes())}")
        return 0
    shares = {name: TARGETS[name].share or 1 for name in names}
    start, total, failed = time.monotonic(), 0, 0
    for name, share in shares.items():
        inputs, found = fuzzed(name, given.inputs * share // sum(shares.values()), given.seed)
        total, failed = total + inputs, failed + found
    print(
        f"{total:,} inputs, {failed} findings, {time.monotonic() - start:.0f} s; {guide()}, "
        f"seed {given.seed}"
    )
    return 1 if failed else 0


def guide() -> str:
    """The guide that chooses the inputs."""
    return f"atheris {version('atheris')}" if atheris else "random changes"


def fuzzed(name: str, inputs: int, seed: int) -> tuple[int, bool]:
    """Run a target in a process of its own: its inputs, and whether one of them is a finding."""
    start = time.monotonic()
    with TemporaryDirectory(prefix="axs6-fuzz-") as folder:
        state = Path(folder, "state")
        program = Path(__file__).with_name("engine.py")
        environment = {**os.environ, "TMPDIR": SHARED} if Path(SHARED).is_dir() else None
        done = subprocess.run(
            [sys.executable, program, name, str(inputs), str(seed), state],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
        kept = state.read_bytes() if state.exists() else bytes(STATE.size)
    count, accepted, slowest, memory, length = STATE.unpack_from(kept)
    took = time.monotonic() - start
    failed = done.returncode != 0 or count < inputs
    print(
        f"{'FAIL' if failed else 'pass'} {name}: {count:,} inputs, {accepted:,} of them accepted, "
        f"the slowest {slowest:.2f} s, {memory >> 10} MiB, {took:.0f} s",
        flush=True,
    )
    if failed:
        path = Path(f"fuzz-{name}-{count}.bin")
        path.write_bytes(kept[STATE.size : STATE.size + length])
        lines = done.stderr.decode(errors="replace").splitlines()
        said = [line for line in lines if not line.startswith(("#", "INFO: ", "WARNING: "))]
        print(*said[-25:], f"status {done.returncode}; the input is in {path}", sep="\n")
    return count, failed


if __name__ == "__main__":
    sys.exit(main())
