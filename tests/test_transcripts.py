"""Every command in README and docs can be typed as it stands, and prints what stands below it.

Transcripts between marks of figures are held against their files by test_figures.py, which also
runs their commands; the others are run here, and the C program's by test_examples.py.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pages
import pytest
import typer
from catalogue import FIGURES

from axs6.cli import command_line
from axs6.cli import commands as known_commands

LONG = (
    "--fmax",
    "axs6 area",
    "axs6 compare axs6 mx6 mxfp4 --columns cost",
    "axs6 generate dot --block 32",
    "axs6 demo",
    "axs6 verify --only",
    "axs6 mutate",
    "python llama.py",
    "examples/axis_",
)
"""What commands have that take most of a minute or more, or that other tests run in each run."""

STARTS = tuple(page for page in pages.PAGES if page.parent.name == "start")
"""Pages for newcomers, whose files are written and whose commands run in order, in one folder."""

SLOW_STARTS = ("rtl-engineer", "architect")
"""Those of them whose commands, which tests of the command line have, take 10 s together."""

ELSEWHERE = ("cc", "./check_vectors", "./check_formats")
"""Programs of transcripts that test_examples.py runs."""


def transcripts(text: str) -> list[tuple[str, str]]:
    """Commands of a page's transcripts, with what is printed below each."""
    found = []
    for fence in re.findall(r"^```\n(\$ .*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", fence, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def commands(text: str) -> dict[str, bool]:
    """All commands `axs6 ...` of a page, and whether they are whole: in fences, not sentences.

    In tables more than one space follows the format `axs6`.
    """
    mentioned = dict.fromkeys(re.findall(r"`(axs6 [^`]*)`", text), False)
    return mentioned | dict.fromkeys(re.findall(r"^(?:\$ )?(axs6 \S.*)$", text, re.M), True)


def run_here() -> list[Any]:
    """Transcripts that no figure has, of pages whose commands do not follow each other."""
    found: dict[str, list[str]] = {}
    for page in (page for page in pages.PAGES if page not in STARTS):
        for command, output in transcripts(pages.MARK.sub("", page.read_text())):
            if command.split()[0] not in ELSEWHERE and output:
                found.setdefault(command, []).append(output)
    return [
        pytest.param(command, outputs, id=command, marks=[pytest.mark.slow] * slow)
        for command, outputs in found.items()
        for slow in [any(part in command for part in LONG)]
    ]


def missing(printed: str, passages: str) -> list[str]:
    """Passages of a transcript, with "..." between them, that a command has not printed."""

    def plain(text: str) -> list[str]:
        return [line.rstrip() for line in text.strip("\n").splitlines()]

    all_lines = plain(printed)
    found = []
    for passage in passages.split("...\n"):
        lines = plain(passage)
        starts = range(len(all_lines) - len(lines) + 1)
        if not any(all_lines[start : start + len(lines)] == lines for start in starts):
            found.append(passage)
    return found


def prepare(folder: Path) -> None:
    """Make what commands find in the root of the repository."""
    for name in ("examples", "vectors"):
        (folder / name).symlink_to(pages.ROOT / name)
    (folder / "docs").mkdir()
    (folder / "docs" / "data").symlink_to(pages.ROOT / "docs" / "data")


def follow(text: str, folder: Path, main: Callable[..., Any], long: bool) -> list[str]:
    """Write the files of a page and run its commands; what they have not printed.

    Args:
        text: of the page.
        folder: where its reader works.
        main: the fixture.
        long: whether commands run that take most of a minute.
    """
    wrong = []
    for name, content in re.findall(r'^```\w*(?: title="([^"]+)")?\n(.*?)^```', text, re.M | re.S):
        if name:
            (folder / name).write_text(content)
            continue
        for command, output in transcripts(f"```\n{content}```\n"):
            if long or not any(part in command for part in LONG):
                program, *arguments = shlex.split(command)
                if program == "axs6":
                    printed = main(*arguments).succeeded()
                else:
                    started = sys.executable if program == "python" else program
                    printed = subprocess.check_output([started, *arguments], cwd=folder, text=True)
                wrong += [f"{command}: {part}" for part in missing(printed, output) if part]
    return wrong


@pytest.mark.parametrize(
    ("page", "long"),
    [
        pytest.param(
            *(page, long),
            id=f"{page.stem}-{long}",
            marks=[pytest.mark.slow] * (long or page.stem in SLOW_STARTS),
        )
        for page in STARTS
        for long in (False, True)
    ],
)
def test_a_newcomer_gets_what_the_page_shows(
    page: Path, long: bool, tmp_path: Path, main: Callable[..., Any]
) -> None:
    text = page.read_text()
    if "$ iverilog" in text and not shutil.which("iverilog"):
        pytest.skip("iverilog is not installed (apt install iverilog): the page is not followed")
    prepare(tmp_path)
    assert not follow(text, tmp_path, main, long)


def test_a_wrong_step_of_a_page_is_found(tmp_path: Path, main: Callable[..., Any]) -> None:
    page = '```python title="four.py"\nprint(2 + 2)\n```\n\n```\n$ python four.py\n4\n```\n'
    assert not follow(page, tmp_path, main, long=False)
    wrong = page.replace("2 + 2", "2 + 3")
    assert follow(wrong, tmp_path, main, long=False) == ["python four.py: 4\n"]
    with pytest.raises(subprocess.CalledProcessError, match=r"four\.py"):
        follow(page.replace("print(", "print("[:-1]), tmp_path, main, long=False)


@pytest.mark.parametrize(("command", "outputs"), run_here())
def test_transcripts_show_what_commands_print(
    command: str, outputs: list[str], tmp_path: Path, main: Callable[..., Any]
) -> None:
    program, *arguments = shlex.split(command)
    assert program in ("axs6", "python")
    prepare(tmp_path)
    if program == "axs6":
        printed = main(*arguments).succeeded()
    else:
        printed = subprocess.check_output([sys.executable, *arguments], cwd=tmp_path, text=True)
    for output in outputs:
        assert not missing(printed, output)


def test_a_wrong_number_in_a_transcript_is_found() -> None:
    printed = "unit  LUTs\ndot   12\nends\n"
    assert not missing(printed, "unit  LUTs\n...\nends\n")
    assert missing(printed, "unit  LUTs\ndot   13\n") == ["unit  LUTs\ndot   13\n"]


@pytest.fixture(scope="module")
def refused() -> Callable[[str], str | None]:
    """Parses a command line as `axs6` does and runs nothing; the name of the error, if any."""
    usage_error: Any = typer.BadParameter.__bases__[0]
    whole: Any = command_line(known_commands())

    def parse(command: str) -> str | None:
        tool = whole
        try:
            context = tool.make_context("axs6", shlex.split(command)[1:])
            while hasattr(tool, "resolve_command"):
                given = [*context._protected_args, *context.args]
                name, tool, rest = tool.resolve_command(context, given)
                context = tool.make_context(name, rest, parent=context)
        except usage_error as error:
            return type(error).__name__
        return None

    return parse


def test_every_command_can_be_typed(refused: Callable[[str], str | None]) -> None:
    found: dict[str, bool] = {}
    for page in pages.PAGES:
        found |= commands(page.read_text())
    for figure in FIGURES.values():
        found |= {each: True for each in figure.commands if each.startswith("axs6 ")}
    assert len(found) > 50
    for command, whole in found.items():
        wrong = refused(command)
        # A sentence may leave out what a command needs, such as its files.
        left_out = not whole and wrong in ("MissingParameter", "NoArgsIsHelpError")
        assert wrong is None or left_out, command


@pytest.mark.parametrize(
    "command", ["axs6 area dot --bits 8", "axs6 areas dot", "axs6 simulate dot", "axs6 study mean"]
)
def test_a_command_that_cannot_be_typed_is_found(
    refused: Callable[[str], str | None], command: str
) -> None:
    assert commands(f"```\n{command}\n```\n") == {command: True}
    assert refused(command)
