"""The examples and the code in the docs run and print what the docs say."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path: Path) -> None:
    done = subprocess.run([sys.executable, path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_sessions_in_the_docs_are_true(page: Path) -> None:
    # A fence right after a session would be read as its output.
    text = re.sub(r"^```.*$", "", page.read_text(), flags=re.MULTILINE)
    session = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(session).failed == 0


SESSIONS = ("generate", "area", "validate")
"""Commands whose output in the docs is compared with what they print; the others take longer."""


def sessions() -> list[tuple[str, str, str]]:
    """Page, command and output of the sessions in the docs."""
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for fence in re.findall(r"^```\n(\$ axs6 .*?)^```", page.read_text(), re.M | re.S):
            for part in fence.split("$ axs6 ")[1:]:
                command, _, output = part.partition("\n")
                if command.split()[0] in SESSIONS and "--exhaustive" not in command:
                    found.append((page.name, command, output))
    return found


@pytest.mark.parametrize(("page", "command", "output"), sessions())
def test_the_docs_show_what_commands_print(
    page: str, command: str, output: str, tmp_path: Path
) -> None:
    # How much was measured earlier is said too: nothing, with a cache of its own.
    done = subprocess.run(
        [sys.executable, "-m", "axs6", *shlex.split(command)],
        cwd=tmp_path,
        env={**os.environ, "AXS6_CACHE": str(tmp_path / "cache")},
        check=True,
        capture_output=True,
        text=True,
    )
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    for passage in output.split("...\n"):
        lines = [line.rstrip() for line in passage.strip("\n").splitlines()]
        starts = range(len(printed) - len(lines) + 1)
        assert any(printed[i : i + len(lines)] == lines for i in starts), passage


def test_the_docs_are_filled_in() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        assert not re.search(r"@[A-Z]+@", page.read_text()), page
