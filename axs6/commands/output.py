"""Writing files and figures so that nothing is left half-written."""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from axs6.hw.verilog import Generated


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write all of `files` (name to text) into a folder, which is made if need be, or none.

    Raises:
        OSError: the folder cannot be written; the message names it.
    """
    pending: list[tuple[str, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            descriptor, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
            pending.append((temporary, folder / name))
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
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


def write_file(path: Path, text: str) -> None:
    """Write one file, whole or not at all. Raises OSError as `write_files` does."""
    write_files(path.parent, {path.name: text})


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
