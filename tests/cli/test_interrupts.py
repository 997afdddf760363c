"""Ctrl-C at chosen moments, which ends the command line with status 130 and without a word."""

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ENTRIES = {
    "module": [sys.executable, "-m", "axs6"],
    "script": [f"{sysconfig.get_path('scripts')}/axs6"],
}

RAISING = """
import os, signal, sys

# A shell that runs the suite in its background has it ignore interrupts, children included.
signal.signal(signal.SIGINT, signal.{handler})
signal.signal(signal.SIGHUP, signal.{handler})

class Ignored:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        str(self)

class Raising:
    def find_spec(self, name, path, target=None):
        if name != {name!r}:
            return None
        sys.meta_path.remove(self)
        {action}

sys.meta_path.insert(0, Raising())
"""
INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"
CONVERTED = f"""try:
            {INTERRUPT}
            str(self)
        except BaseException:
            raise ImportError("initialization failed")"""
"""What modules in C++ make of an exception."""


def interrupted(
    entry: list[str],
    name: str,
    action: str,
    folder: Path,
    *arguments: str,
    handler: str = "default_int_handler",
) -> subprocess.CompletedProcess[bytes]:
    """A command, with an empty cache, that is interrupted where it imports a module."""
    hook = RAISING.format(name=name, action=action, handler=handler)
    (folder / "sitecustomize.py").write_text(hook)
    return subprocess.run(
        [*entry, *arguments],
        env={**os.environ, "PYTHONPATH": str(folder), "AXS6_CACHE": str(folder)},
        cwd=folder,
        check=False,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("typer", ["--help"]),
        ("axs6.commands.study_command", ["--help"]),
        ("numpy", ["list"]),
        ("amaranth", ["list"]),
        ("torch", ["study", "accuracy", "mlp"]),
    ],
)
def test_an_interrupt_during_imports(
    entry: list[str], name: str, arguments: list[str], tmp_path: Path
) -> None:
    done = interrupted(entry, name, INTERRUPT, tmp_path, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize(
    "action", [CONVERTED, "Ignored()", "Ignored(); raise KeyError(1)"], ids=["c++", "del", "both"]
)
def test_an_interrupt_that_others_make_something_of(action: str, tmp_path: Path) -> None:
    done = interrupted(ENTRIES["module"], "amaranth", action, tmp_path, "list")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_is_ignored_stays_so(number: signal.Signals, tmp_path: Path) -> None:
    action = f"os.kill(os.getpid(), {number:d})"
    done = interrupted(ENTRIES["module"], "amaranth", action, tmp_path, "list", handler="SIG_IGN")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"block_dot" in done.stdout


@pytest.mark.slow
def test_an_interrupt_of_the_terminal_while_processes_of_a_sweep_start(tmp_path: Path) -> None:
    inner = "if '--multiprocessing-fork' in sys.orig_argv: os.killpg(0, signal.SIGINT); str(self)"
    arguments = ["area", "lfsr", "--sweep", "stages=0,1", "--jobs", "2"]
    command = ["setsid", "--wait", *ENTRIES["module"]]
    done = interrupted(command, "axs6.synth.sweep.processes", inner, tmp_path, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
