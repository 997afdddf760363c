"""Arguments of the command line, of the commands that take files of tensors."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from blocks import check_line
from tensors import arrays

# Those that a command loads when it runs are to be followed as well.
import axs6.commands.decode_command
import axs6.commands.encode_command
import axs6.commands.info_command
import axs6.commands.output  # noqa: F401
from axs6 import cli
from axs6.files import encode_file

COMMANDS = ("encode", "decode", "info")
cli.COMMANDS = COMMANDS  # to build the others takes longer than to run these


def command(data: bytes) -> bool:
    """Arguments between zeros: the command succeeds, or says in a line what is wrong.

    They begin with one of `COMMANDS`, and name files beside the process alone.
    """
    name, *others = data.split(b"\0")
    arguments = [os.fsdecode(each).replace("/", "_") for each in others]
    with TemporaryDirectory(prefix="axs6-fuzz-") as folder:
        work = Path(folder, "inner", "work")
        work.mkdir(parents=True)
        for file, content in FILES.items():
            (work / file).write_bytes(content)
        os.chdir(work)
        try:
            return run([COMMANDS[sum(name) % len(COMMANDS)], *arguments])
        finally:
            os.chdir("/")


def run(arguments: list[str]) -> bool:
    """Whether the command line takes arguments."""
    output = io.TextIOWrapper(io.BytesIO(), "utf-8")
    errors = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    sys.argv = ["axs6", *arguments]
    status: object = None
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            cli.main()
        except SystemExit as end:
            status = end.code
        errors.flush()
    said = errors.buffer.getvalue().decode()
    if status in (0, None):
        return True
    assert status == 2, f"status {status}: {said}"
    assert said.startswith("axs6: ")
    check_line(ValueError(said))
    return False


def files() -> dict[str, bytes]:
    """Files that the arguments may name."""
    with TemporaryDirectory() as folder:
        x, packed = Path(folder, "x.npy"), Path(folder, "p.safetensors")
        np.save(x, arrays()["f"])
        np.savez(Path(folder, "two.npz"), **arrays())
        encode_file(x, packed)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


FILES = files()


def seeds() -> list[bytes]:
    """Every command with most of its options."""
    lines = (
        "encode --help",
        "encode x.npy y.safetensors",
        "encode x.npy y.safetensors --block 16 --mode auto --rounding toward_zero --align 32",
        "encode x.npy y.safetensors --rounding stochastic --random-bits 8 --seed 7 --axis 0",
        "encode two.npz y.safetensors --include [fh]* --exclude h --json -",
        "decode p.safetensors y.npy",
        "decode p.safetensors y.safetensors",
        "info p.safetensors",
        "info p.safetensors --json i.json",
    )
    found = []
    for line in lines:
        name, *others = line.split()
        found.append("\0".join([chr(COMMANDS.index(name)), *others]).encode())
    return found
