"""Whether the tests of the project's own Python sources find small faults in them.

`python benchmarks/mutants.py` makes mutants of each source in `benchmarks/mutated.py`, each with
one fault, and runs the tests that belong to the source on each, in a copy of the project.
`benchmarks/mutations.py` says which faults there are; it leaves out docstrings and other strings,
messages of errors, annotations and `__all__`. A mutant is killed if a test fails, if Python ends,
or if the tests take several times as long as on the source itself. The others are equal, with a
reason in `benchmarks/equal_mutants.py`, or alive: no test finds the fault.

Which faults are taken depends on the source's name and its code alone; a larger `--count` adds to
them. Outcomes are kept in docs/data/mutants.json and stay as long as the code of a source and of
its tests does. The exit status is 1 if a mutant is alive.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from digests import ROOT
from equal_mutants import EQUAL
from forks import Answer, Request, Server
from mutated import TESTS
from mutations import Mutation, mutations

from axs6.replacing import replacing
from axs6.sim.designs import digest
from axs6.sim.imports import code

STATE = ROOT / "docs" / "data" / "mutants.json"
KIND = "axs6 mutants of Python sources 1"
KILLED, TIME, ALIVE, EQUAL_TO = "killed", "time", "alive", "equal"

OPTIONS = (
    *("-x", "-q", "--no-header", "-p", "no:randomly", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is imported before
)
LONGEST = 300
"""Seconds that the tests of a source may take."""
SPARE = 10
"""Seconds of the processor beside four times those of the source itself."""


@dataclass
class Outcomes:
    """What became of the mutants of a source, by their keys."""

    source: str = ""
    """Digest of the source's code."""
    tests: str = ""
    """Digest of the code of its tests."""
    found: dict[str, str] = field(default_factory=dict)


class OutcomeFile:
    """Outcomes of all sources, in a file that is written after each mutant."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._all: dict[str, Outcomes] = {}
        if path.exists():
            data = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(data, dict) or data.get("kind") != KIND:
                raise ValueError(f"{path} must be a file of this program, {KIND!r}")
            self._all = {name: Outcomes(**entry) for name, entry in data["sources"].items()}

    def of(self, name: str, added: bool) -> Outcomes:
        """Outcomes that still hold; those of killed mutants too if tests were `added` only."""
        source = digest(code(ROOT / name))
        tests = digest("\0".join(code(ROOT / path.split("::")[0]) for path in TESTS[name]))
        known = self._all.get(name, Outcomes())
        found: dict[str, str] = {}
        if known.source == source and known.tests == tests:
            found = known.found
        elif known.source == source and added:
            found = {key: outcome for key, outcome in known.found.items() if outcome != ALIVE}
        return Outcomes(source, tests, dict(found))

    def keep(self, name: str, outcomes: Outcomes) -> None:
        """Write the file with the outcomes of a source."""
        with self._lock:
            self._all[name] = outcomes
            entries = [
                f"{json.dumps(each)}: {json.dumps(vars(self._all[each]), indent=0)}"
                for each in sorted(self._all)
            ]
            text = f'{{"kind": {json.dumps(KIND)}, "sources": {{\n' + ",\n".join(entries) + "\n}}\n"
            with replacing(self._path) as file:
                file.write(text.encode())


class Copy:
    """A copy of the project in which one source at a time is wrong."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
        self._server = Server(folder)
        self._changes = 0

    def close(self) -> None:
        """End the process that runs tests."""
        self._server.close()

    def run(self, name: str, text: str, processor: int = LONGEST) -> Answer:
        """Run the tests of a source with a text in its place, until the first one fails."""
        path = self._folder / name
        path.write_text(text, encoding="utf-8")
        # Bytecode is taken anew where the time of the source is another one, in whole seconds.
        self._changes += 1
        os.utime(path, (self._changes, self._changes))
        request = Request((*OPTIONS, *TESTS[name]), processor, 3 * processor + 60)
        answer = self._server.run(request)
        shutil.copy2(ROOT / name, path)
        return answer


def chosen(name: str, source: str, count: int) -> list[Mutation]:
    """Some mutants of a source, at most `count`; the first of them are the same for any count."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    found = mutations(source)
    random.Random(seed).shuffle(found)
    return found[:count]


def equal(name: str, source: str, mutation: Mutation) -> bool:
    """Whether the mutant has an entry in the table of equal ones."""
    line = source.splitlines()[mutation.line - 1].strip()
    return (mutation.key, line) in EQUAL.get(name, {})


def outcome_of(answer: Answer) -> str:
    """What a run of the tests says of a mutant."""
    return {"0": ALIVE, "time": TIME}.get(answer.status, KILLED)


def waiting(name: str, state: OutcomeFile, options: argparse.Namespace) -> list[Mutation]:
    """Mutants of a source whose outcomes are not known."""
    source = (ROOT / name).read_text(encoding="utf-8")
    found = state.of(name, options.added).found
    return [
        each
        for each in chosen(name, source, options.count)
        if each.key not in found and not equal(name, source, each)
    ]


def run_source(name: str, copy: Copy, state: OutcomeFile, options: argparse.Namespace) -> None:
    """Run the mutants of a source whose outcomes are not known.

    Raises:
        ValueError: its tests fail without a fault, or do not import it.
    """
    source = (ROOT / name).read_text(encoding="utf-8")
    outcomes, left = state.of(name, options.added), waiting(name, state, options)
    plain = copy.run(name, source)
    if plain.status != "0":
        raise ValueError(f"tests of {name} must pass on it; they gave {plain.printed}")
    if copy.run(name, "raise ImportError\n").status == "0":
        raise ValueError(f"tests of {name} must import it; they pass without it")
    limit = 4 * int(plain.processor_seconds) + SPARE
    print(f"{name}: {len(left)} mutants, {plain.processor_seconds:.1f} s of tests", flush=True)
    for mutation in left:
        answer = copy.run(name, mutation.applied(source), limit)
        outcomes.found[mutation.key] = outcome_of(answer)
        state.keep(name, outcomes)
        seconds = f"{answer.processor_seconds:.1f} s"
        print(f"  {outcome_of(answer)} {seconds} {mutation.line} {mutation.key}", flush=True)


def run_all(names: Sequence[str], state: OutcomeFile, options: argparse.Namespace) -> None:
    """Run the mutants of some sources in a copy for each job."""
    with tempfile.TemporaryDirectory(prefix="axs6-mutants-") as folder:
        free: list[Copy] = []
        for job in range(options.jobs):
            (Path(folder) / str(job)).mkdir()
            free.append(Copy(Path(folder) / str(job)))
        copies = [*free]

        def run(name: str) -> None:
            copy = free.pop()
            try:
                run_source(name, copy, state, options)
            finally:
                free.append(copy)

        try:
            with ThreadPoolExecutor(options.jobs) as pool:
                list(pool.map(run, names))
        finally:
            for copy in copies:
                copy.close()


@dataclass(frozen=True)
class SourceRow:
    """Numbers of a source's mutants, and the lines of those that are alive."""

    name: str
    numbers: Mapping[str, int]
    alive: Sequence[str]


def row(name: str, state: OutcomeFile, options: argparse.Namespace) -> SourceRow:
    """What is known of a source's mutants."""
    source = (ROOT / name).read_text(encoding="utf-8")
    found = state.of(name, options.added).found
    numbers = dict.fromkeys((KILLED, TIME, ALIVE, EQUAL_TO), 0)
    lines: list[str] = []
    for mutation in sorted(chosen(name, source, options.count), key=lambda x: x.start):
        same = equal(name, source, mutation)
        outcome = EQUAL_TO if same else found.get(mutation.key)
        if outcome is not None:
            numbers[outcome] += 1
        if outcome == ALIVE:
            wrong = mutation.applied(source).splitlines()[mutation.line - 1].strip()
            right = source.splitlines()[mutation.line - 1].strip()
            lines.append(f"{name}:{mutation.line}: {mutation.key}\n  - {right}\n  + {wrong}")
    return SourceRow(name, numbers, lines)


def report(rows: Sequence[SourceRow]) -> None:
    """Print the table and the mutants that are alive."""
    total = dict.fromkeys((KILLED, TIME, ALIVE, EQUAL_TO), 0)
    for each in rows:
        for kind, number in each.numbers.items():
            total[kind] += number
    print("| source | mutants | killed | of them by time | equal | alive | score |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, numbers in [*((each.name, each.numbers) for each in rows), ("all", total)]:
        killed = numbers[KILLED] + numbers[TIME]
        asked = killed + numbers[ALIVE]
        score = f"{killed / asked:.1%}" if asked else "-"
        cells = (asked + numbers[EQUAL_TO], killed, numbers[TIME], numbers[EQUAL_TO])
        print(f"| {name} | {' | '.join(f'{x:,}' for x in (*cells, numbers[ALIVE]))} | {score} |")
    for each in rows:
        print("\n".join(each.alive), end="\n" if each.alive else "")


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--count", type=int, default=20, help="mutants of each source, at most")
    parser.add_argument("--jobs", type=int, default=1, help="runs of tests beside each other")
    parser.add_argument("--state", type=Path, default=STATE, help="the file of outcomes")
    parser.add_argument(
        "--report", action="store_true", help="print what is known, and run nothing"
    )
    parser.add_argument(
        "--added", action="store_true", help="tests were added only: what was killed stays so"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run mutants and print the table."""
    options = options_of(arguments)
    names = [name for name in TESTS if not options.only or any(x in name for x in options.only)]
    try:
        if not names:
            raise ValueError(f"--only must be part of a source's name, not {options.only}")
        state = OutcomeFile(options.state)
        if not options.report:
            left = [name for name in names if waiting(name, state, options)]
            for name in set(names).difference(left):
                state.keep(name, state.of(name, options.added))
            if left:
                run_all(left, state, options)
    except (OSError, ValueError) as error:
        print(f"axs6: {error}", file=sys.stderr)
        return 2
    rows = [row(name, state, options) for name in names]
    report(rows)
    return int(any(each.alive for each in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
