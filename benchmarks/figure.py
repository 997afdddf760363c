"""A figure in the docs: how it is measured, what it is measured on, and the file that keeps it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from digests import ROOT, of_files, of_package
from machine import processor

from axs6.sim.designs import design_digest

DATA = ROOT / "docs" / "figures"
LIBRARY = "FILE"
"""Stands for a Liberty file in commands."""


@dataclass(frozen=True)
class CommandRun:
    """Output of a command, and its file of --json if the figure needs one."""

    command: str
    lines: list[str]
    json: Any


@dataclass(frozen=True)
class Figure:
    """Something in the docs that commands make.

    Args:
        name: of its file and in the pages' marks.
        commands: as users type them in the repository's root.
        read: makes of the commands' runs what is kept: `output`, `table` or `values`.
        designs: units with the parameters that were measured.
        sources: patterns of the files whose code decides the figure.
        packages: distributions whose versions decide it.
        varies: regular expression of what the machine decides in the output, if anything.
        as_json: whether the commands write JSON for `read`.
        statuses: exit statuses with which the commands have measured.
        pictures: in the docs, by the paths under which the commands write them.
        prepare: Python that makes the commands' inputs.
    """

    name: str
    commands: tuple[str, ...]
    read: Callable[[Sequence[CommandRun]], dict[str, Any]]
    designs: Sequence[tuple[str, Mapping[str, Any]]] = ()
    sources: Sequence[str] = ()
    packages: Sequence[str] = ()
    varies: str | None = None
    as_json: bool = False
    statuses: tuple[int, ...] = (0,)
    pictures: Mapping[str, str] | None = None
    prepare: str = ""

    @property
    def path(self) -> Path:
        """The file that keeps the figure."""
        return DATA / f"{self.name}.json"

    @property
    def library(self) -> bool:
        """Whether a Liberty file is needed."""
        return any(LIBRARY in command.split() for command in self.commands)

    def stored(self) -> dict[str, Any]:
        """Contents of the file; empty if there is none."""
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    @property
    def designs_by_name(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """The designs, by what the file calls them."""
        return {
            " ".join([unit, *(f"{name}={value}" for name, value in parameters.items())]): (
                unit,
                parameters,
            )
            for unit, parameters in self.designs
        }

    def measured_on(self) -> dict[str, str]:
        """Digests and versions of all that decides the figure, by what it is."""
        found = {name: design_digest(*design) for name, design in self.designs_by_name.items()}
        found |= {pattern: of_files(pattern) for pattern in self.sources}
        return found | {package: of_package(package) for package in self.packages}

    def out_of_date(self) -> list[str]:
        """Changes since the figure was measured; empty if there are none, or it never was."""
        stored = self.stored()
        if not stored:
            return []
        if stored["commands"] != list(self.commands):
            return ["its commands"]
        old, new = stored["measured_on"], self.measured_on()
        return [what for what in {**old, **new} if old.get(what) != new.get(what)]

    def changed_sources(self) -> list[str]:
        """What is out of date beside designs, which take long to make."""
        found = replace(self, designs=()).out_of_date()
        return [what for what in found if what not in self.designs_by_name]

    def masked(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        """The kept contents, without the parts that depend on the machine."""
        content = {name: kept[name] for name in ("output", "table", "values") if name in kept}
        if self.varies is None:
            return content
        text = re.sub(self.varies, "#", json.dumps(content))
        return json.loads(re.sub(r" +", " ", text))

    def measure(self, library: Path | None = None, pictures: bool = False) -> dict[str, Any]:
        """Run the commands and return what their file is to keep.

        Args:
            library: stands in for FILE in the commands.
            pictures: whether those in the docs are replaced.

        Raises:
            RuntimeError: a command failed.
            OSError: a command did not write one of the pictures.
        """
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="axs6-figure-") as name:
            folder = Path(name)
            for each in ("benchmarks", "examples", "vectors"):
                (folder / each).symlink_to(ROOT / each)
            (folder / "docs").mkdir()
            (folder / "docs" / "data").symlink_to(ROOT / "docs" / "data")
            if self.prepare:
                subprocess.run([sys.executable, "-c", self.prepare], cwd=folder, check=True)
            content = self.read([self._run(each, folder, library) for each in self.commands])
            if pictures:
                for source, target in (self.pictures or {}).items():
                    shutil.copyfile(folder / source, ROOT / "docs" / target)
        return {
            "commands": list(self.commands),
            "machine": f"{processor()}, {os.cpu_count()} cores",
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "seconds": round(time.perf_counter() - start),
            "measured_on": self.measured_on(),
            **content,
        }

    def _run(self, command: str, folder: Path, library: Path | None) -> CommandRun:
        program, *arguments = shlex.split(command)
        started = [sys.executable, *(["-m", "axs6"] if program == "axs6" else [])]
        if program not in ("axs6", "python"):
            started = [program]
        report = folder / "figures.json"
        given = [str(library) if each == LIBRARY and library else each for each in arguments]
        given += ["--json", str(report)] if self.as_json else []
        done = subprocess.run(
            [*started, *given], cwd=folder, check=False, capture_output=True, text=True
        )
        if done.returncode not in self.statuses:
            raise RuntimeError(f"{command}: {(done.stderr or done.stdout).strip()}")
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        return CommandRun(command, lines, json.loads(report.read_text()) if self.as_json else None)
