"""Writing files and figures so that nothing is left half-written."""

import errno
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from axs6.hw.verilog import Generated


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    """Write all of `files` (name to content) into a folder, which is made if need be, or none.

    Raises:
        OSError: the folder cannot be written; the message names it.
    """
    pending: list[tuple[str, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in files:
            if (folder / name).is_dir():
                raise OSError(errno.EISDIR, f"{name} is a directory")
        for name, content in files.items():
            descriptor, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
            pending.append((temporary, folder / name))
            with os.fdopen(descriptor, "wb") as file:
                file.write(_encoded(content))
            os.chmod(temporary, 0o666 & ~_umask())
        for temporary, path in pending:
            os.replace(temporary, path)
    except OSError as error:
        raise OSError(f"cannot write to {folder}: {error.strerror}") from error
    finally:
        for temporary, _ in pending:
            Path(temporary).unlink(missing_ok=True)
    return [path for _, path in pending]


def write_generated(folder: Path, made: "Generated") -> list[Path]:
    """Write a unit's Verilog and its manifest. Raises OSError as `write_files` does."""
    manifest = json.dumps(made.manifest, indent=2) + "\n"
    return write_files(folder, {f"{made.module}.v": made.verilog, f"{made.module}.json": manifest})


def write_file(path: Path, content: str | bytes) -> None:
    """Write one file, whole or not at all. Raises OSError as `write_files` does.

    A link is followed; a device or a pipe is written to, never replaced.
    """
    target = path.resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        try:
            target.write_bytes(_encoded(content))
        except OSError as error:
            raise OSError(f"cannot write to {path}: {error.strerror}") from error
    else:
        write_files(target.parent, {target.name: content})


def check_writable(*paths: Path | None) -> None:
    """Raise OSError for the first path whose folder cannot be written; None stands for no file."""
    for path in paths:
        if path is None:
            continue
        folder = path.resolve().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"cannot write to {path}: {error.strerror}") from error
        if path.is_dir() or not os.access(folder, os.W_OK):
            raise OSError(f"cannot write to {path}: it is a directory or in a protected one")


def json_path(target: str | None) -> Path | None:
    """The file that --json names, if it names one."""
    return None if target in (None, "-") else Path(str(target))


def write_json(target: str | None, figures: Any) -> None:
    """Write figures as JSON to a file, to stdout for "-", or nowhere for None."""
    if target is None:
        return
    text = json.dumps(figures, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        write_file(Path(target), text)


def console(json_target: str | None = None) -> Console:
    """Where tables and messages go: stdout, unless JSON goes there."""
    return Console(stderr=json_target == "-", soft_wrap=True, highlight=False)


def shape_text(shape: Sequence[int]) -> str:
    """A shape in a table."""
    return " x ".join(map(str, shape)) or "one value"


def _encoded(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
