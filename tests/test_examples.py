"""The examples and the code in the docs run and print what the docs say."""

import doctest
import re
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
