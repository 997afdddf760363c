"""What the checks of `axs6.proof.campaign` found, kept as long as what they look at stays.

A run that was stopped goes on, and so does one on another machine with the same state file.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from axs6.hw.registry import ALL_UNITS, UNITS
from axs6.proof.buses import BEHIND
from axs6.proof.campaign import Check, Kind
from axs6.proof.components import COMPONENTS
from axs6.proof.prove import Outcome
from axs6.proof.specifications import SPECIFICATIONS, specification_of
from axs6.proof.vector_buses import proof_of_bus
from axs6.proof.verdicts import Verdict
from axs6.sim.cache import cache_folder, check_cache, sources
from axs6.sim.designs import design_digest
from axs6.sim.imports import code_digest
from axs6.sim.process import child_process, temporary_folder, wait
from axs6.sim.sealed import SealedFile

ALL = ("axs6.golden", "axs6.hw", "axs6.proof", "axs6.sim", "axs6.synth")

_START: Mapping[Kind, str] = {Kind.PROVE: "axs6.proof.prove", Kind.MUTATE: "axs6.proof.score"}
"""The module that makes a check of a design."""

_COMPONENTS = "axs6.proof.components"
"""That which makes a proof of a part of units."""

_PACKAGES: Mapping[Kind, tuple[str, ...]] = {
    Kind.PROVE: ("axs6.proof", "axs6.synth"),
    Kind.MUTATE: ("axs6.proof", "axs6.sim", "axs6.hw.units"),
}
"""Packages that decide what the checks find. What a format defines does not change, and what is
proved is proved, however a simulator looks for an input that refutes a claim."""

_TABLES = ("axs6.proof.specifications", _COMPONENTS)
"""Modules that know the proofs of all units; a check needs that of its own."""

_PROOFS_OF_PARTS = tuple(sorted({make.__module__ for make in COMPONENTS.values()}))
"""Modules with the proofs of parts, of which a check needs one."""


@dataclass(frozen=True)
class Result:
    """What a check found.

    Args:
        command: that repeats it. kind, unit, format: of the check. passed: exit status 0.
        seconds: of the command. said: its last line where it did not pass, unless counts say why.
        counts: how many claims are proved; mutants killed, equal, different and open; or cases
        equal.
    """

    command: str
    kind: str
    unit: str
    format: str
    passed: bool
    seconds: float
    said: str
    counts: Mapping[str, int]

    def __str__(self) -> str:
        found = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        return f"{self.command}: {self.said or found} ({self.seconds:.1f} s)"

    @property
    def final(self) -> bool:
        """Whether it would be no other in another run: it passed, or its limits left mutants
        open."""
        return self.passed or (bool(self.counts.get("open")) and not self.counts["different"])


class Kept:
    """The results that are final, in a file.

    Args:
        path: of the file; None for the one in the cache.

    Raises:
        ValueError: the file is no such file, or was changed.
        CacheError: the cache is another user's, or others may write to it.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path | None) -> None:
        if path is None:
            check_cache()
            path = cache_folder() / "verification.json"
        self._file = SealedFile(path.resolve(), "axs6 verification 1", "axs6 verify", "checks")
        self._results = self._file.read()
        self._writing = threading.Lock()

    def get(self, check: Check) -> Result | None:
        """What was found before, if nothing has changed since."""
        entry = self._results.get(check.command)
        if entry is None or entry["key"] != key_of(check):
            return None
        return Result(**entry["result"])

    def put(self, check: Check, result: Result) -> None:
        """Keep the result of a check, if it is final.

        Raises:
            OSError: the file cannot be written.
        """
        if result.final:
            entry = {"key": key_of(check), "result": asdict(result)}
            with self._writing:
                self._results[check.command] = entry
                self._file.write(self._results)


def key_of(check: Check) -> str:
    """Digest of what decides the outcome: the design, and the code that looks at it.

    Of parts of units, which are no designs of their own, it is the code that makes them.
    """
    parts = [_code_of(check)]
    if check.unit in ALL_UNITS:
        entry = ALL_UNITS[check.unit]
        given = {name: x for name, x in check.options.items() if name in entry.defaults}
        parts.append(design_digest(check.unit, given))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:32]


def _code_of(check: Check) -> str:
    """Digest of the modules that a check runs; an enumeration of all spaces runs all."""
    if check.kind is Kind.ENUMERATE:
        return sources(*ALL)
    if check.unit in COMPONENTS:
        packages = _PACKAGES[check.kind]
        common = code_digest((_COMPONENTS,), packages, (*_TABLES, *_PROOFS_OF_PARTS))
        own = COMPONENTS[check.unit].__module__
        return common + code_digest((own,), (*packages, "axs6.hw"), _TABLES)
    modules = [_START[check.kind]]
    if check.unit in BEHIND:
        modules.append(proof_of_bus(check.unit).__module__)
    elif check.unit in SPECIFICATIONS:
        # A mutant for which the proof of the unit holds is equal, where a solver takes too long;
        # one of sums over vectors is held to the unit alone, whatever adds them.
        chosen = check.options if check.kind is Kind.PROVE else {}
        modules.append(specification_of(check.unit, chosen).__module__)
    if check.kind is Kind.MUTATE:
        entry = UNITS[check.unit]
        modules += [entry.corners.__module__, entry.random.__module__]
    return code_digest(tuple(modules), _PACKAGES[check.kind], _TABLES)


def run_check(check: Check, seconds: float) -> Result:
    """Run the command of a check in a process of its own.

    Args:
        check: one of `checks`. seconds: limit, after which it has failed.

    Raises:
        StoppedError: the work of this thread was stopped.
    """
    start = time.perf_counter()
    with temporary_folder("axs6-verify-") as folder:
        json_file, log = folder / "figures.json", folder / "log"
        command = [sys.executable, "-P", "-m", "axs6", *check.arguments, "--json", str(json_file)]
        environment: Mapping[str, str] = {**os.environ, "COLUMNS": "1000", "NO_COLOR": "1"}
        with child_process(command, log, environment) as child:
            try:
                status, said = wait(child, seconds), ""
            except subprocess.TimeoutExpired:
                status, said = 1, f"not finished within {seconds:g} s"
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        figures = json.loads(json_file.read_text()) if json_file.exists() else None
    if status and not said and not (figures and check.kind is Kind.MUTATE):
        said = (lines[-1:] or [f"exit status {status}"])[0]
    counts = _counts(check.kind, figures) if figures else {}
    took = round(time.perf_counter() - start, 1)
    return Result(
        check.command, check.kind, check.unit, check.format, not status, took, said, counts
    )


def _counts(kind: Kind, figures: Any) -> dict[str, int]:
    """What the JSON of a check's command counts."""
    if kind is Kind.PROVE:
        outcomes = [claim["outcome"] for claim in figures["claims"]]
        return {"claims proved": outcomes.count(Outcome.PROVED)}
    if kind is Kind.MUTATE:
        verdicts = [each["verdict"] for each in figures["survivors"]]
        return {"killed": figures["killed"], **{x: verdicts.count(x) for x in map(str, Verdict)}}
    return {"cases equal": sum(space["compared"] + space["earlier"] for space in figures)}
