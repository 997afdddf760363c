"""What is printed into closed pipes, in locales without many characters, and of hostile names."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.table import Table
from rich.text import Text

from axs6.commands.output import console, verdict
from axs6.golden.formats import CATALOG
from axs6.terminal import shown

Cli = Callable[..., Any]

HOSTILE = "\x1b[31m\x1b]0;title\x07w\x9b2J\u202e\b\x7f"
HARMLESS = r"\x1b[31m\x1b]0;title\x07w\x9b2J\u202e\x08\x7f"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["info", "mx9"],
        ["list"],
        ["list", "--json", "-"],
        ["encode", "x.npy", "x.safetensors"],
    ],
)
def test_a_closed_pipe_ends_quietly(tmp_path: Path, arguments: list[str]) -> None:
    np.save(tmp_path / "x.npy", np.ones(8))
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "axs6", *arguments],
        cwd=tmp_path,
        check=False,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writer)
    said = b"".join(line for line in done.stderr.splitlines() if b"axs6: " in line)
    assert (done.returncode, said) == (128 + signal.SIGPIPE, b"")
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_other_ends_keep_their_status(cli: Cli) -> None:
    assert "is no block format" in cli("info", "mx99").refused()
    cli("info", "mx9").succeeded()


def test_a_locale_without_the_characters(cli: Cli, tmp_path: Path) -> None:
    wide = cli("info", "mx9", PYTHONIOENCODING="utf-8").succeeded()
    for encoding in ("latin-1", "ascii"):
        plain = cli("info", "mx9", PYTHONIOENCODING=encoding).succeeded()
        assert plain.isascii()
        assert [len(line) for line in plain.splitlines()] == [
            len(line) for line in wide.splitlines()
        ]
    assert "| E | t[0] |" in plain
    np.savez(tmp_path / "x.npz", größe=np.ones(8))
    done = cli("encode", "x.npz", "y.safetensors", PYTHONIOENCODING="ascii")
    assert r"gr\xf6\xdfe" in done.succeeded()


@pytest.mark.slow
def test_every_format_is_explained_in_ascii(cli: Cli) -> None:
    for name in CATALOG:
        assert cli("info", name, PYTHONIOENCODING="ascii").succeeded()


def test_names_of_tensors_are_no_commands_of_the_terminal(main: Cli, tmp_path: Path) -> None:
    names = {f"{HOSTILE}\n": np.ones((2, 8)), "plain\nforged": np.ones(8)}
    np.savez(tmp_path / "x.npz", **names)  # type: ignore[arg-type]
    target = f"{HOSTILE}.safetensors"
    for arguments in (
        ("encode", "x.npz", target),
        ("info", target),
        ("decode", target, f"y{HOSTILE}.safetensors"),
        ("info", f"{HOSTILE}.none"),
        ("decode", f"{HOSTILE}.npy", "y.npy"),
        ("encode", "x.npz", f"{HOSTILE}.npy"),
    ):
        done = main(*arguments)
        printed = done.stdout + done.stderr
        assert shown(printed) == printed
        assert HARMLESS in printed
        if arguments[:2] in {("encode", "x.npz"), ("info", target)} and not done.returncode:
            assert HARMLESS + r"\n " in printed
            assert r"plain\nforged " in printed


def test_tables_and_texts_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("a", "b", box=None)
    table.add_row(HOSTILE, "next")
    table.add_row(Text(HOSTILE, style="red"), "next")
    out = console()
    for each in (table, Text(HOSTILE), verdict(False, HOSTILE), HOSTILE, f"{HOSTILE}\nüber µm²"):
        out.print(each)
    printed = capsys.readouterr().out
    assert shown(printed) == printed
    # Of texts rich itself takes some of the characters away.
    assert printed.count(r"\x1b[31m\x1b]0;title") == 6
    assert printed.count(HARMLESS) == 4
    assert "über µm²" in printed
    with out.capture() as captured, out.status(Text(HOSTILE)):
        pass
    assert "\x1b]0" not in captured.get()
