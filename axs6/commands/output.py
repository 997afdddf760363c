"""Writing files and figures so that nothing is left half-written."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from axs6.replacing import check_apart, make_folder, replacing
from axs6.tables import Table, rich_table
from axs6.terminal import shown

if TYPE_CHECKING:
    from axs6.hw.verilog import Generated


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    """Write all of `files` (name to content) into a folder, or none. Creates the folder if needed.

    Raises:
        OSError: the folder or a file cannot be written; the message names it.
    """
    make_folder(folder)
    paths = [folder / name for name in files]
    with ExitStack() as stack:
        for path, content in zip(paths, files.values(), strict=True):
            file = stack.enter_context(replacing(path))
            file.write(_encoded(content))
            file.flush()
    return paths


def write_generated(folder: Path, made: "Generated", period: float | None = None) -> list[Path]:
    """Write a unit's Verilog and the files beside it.

    Args:
        folder: where.
        made: the unit.
        period: of its clock in picoseconds, for constraints and layout flows; None for none.

    Raises:
        ValueError: the folder has another design, or no design, under that name.
        OSError: as `write_files`.
    """
    from axs6.hw.assertions import assertions
    from axs6.hw.constraints import constraints
    from axs6.hw.flows import librelane, openroad, vivado
    from axs6.hw.integration import fusesoc_core, template
    from axs6.hw.systemverilog import interfaces, package
    from axs6.hw.vhdl import component

    _check_same_design(folder, made)

    files = {
        f"{made.module}.v": made.verilog,
        f"{made.module}.json": json.dumps(made.manifest, indent=2) + "\n",
        f"{made.module}.vh": template(made),
        f"{made.module}_pkg.sv": package(made),
        f"{made.module}_if.sv": interfaces(made),
        f"{made.module}_sva.sv": assertions(made),
        f"{made.module}.vhd": component(made),
        f"{made.module}.core": fusesoc_core(made, constrained=period is not None),
    }
    if period is not None:
        files |= {
            f"{made.module}.sdc": constraints(made, period),
            f"{made.module}.librelane.json": librelane(made, period),
            f"{made.module}.mk": openroad(made),
            f"{made.module}.tcl": vivado(made, period),
        }
    return write_files(folder, files)


def _check_same_design(folder: Path, made: "Generated") -> None:
    """Raise ValueError if another design has Verilog of that name in the folder."""
    verilog, manifest = (folder / f"{made.module}.{end}" for end in ("v", "json"))
    if not verilog.exists():
        return
    try:
        there = _design(json.loads(manifest.read_text()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(
            f"{verilog} exists without a manifest of its design: give --name, or another folder"
        ) from None
    here = _design(made.manifest)
    if there != here:
        others = ", ".join(
            f"{name}={there.get(name)}"
            for name in {**here, **there}
            if there.get(name) != here.get(name)
        )
        raise ValueError(
            f"{verilog} exists and is another design, with {others}: give --name, or another folder"
        )


def _design(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The identity of a design: its unit, its parameters and the kind of its ports."""
    fields = any("ports" in stream for stream in manifest["streams"])
    ports = "fields" if fields else "packed"
    return {"unit": manifest["unit"], "ports": ports, **manifest["parameters"]}


def write_file(path: Path, content: str | bytes) -> None:
    """Write one file, in a folder that is made if need be, as `replacing` does."""
    make_folder(path.resolve().parent)
    with replacing(path) as file:
        file.write(_encoded(content))


def check_writable(*outputs: Path | None, inputs: Iterable[Path] = ()) -> None:
    """Raise an error for a file that is not to be written; None stands for no file.

    Raises:
        OSError: its folder cannot be written.
        ValueError: it is an input, or another output, `axs6.replacing.check_apart`.
    """
    paths = [path for path in outputs if path is not None]
    check_apart(paths, inputs)
    for path in paths:
        folder = path.resolve().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"cannot write to {path}: {error.strerror}") from error
        if path.is_dir() or not os.access(folder, os.W_OK):
            raise OSError(f"cannot write to {path}: it is a directory or in a protected directory")


def files_of(*sources: Path | None) -> list[Path]:
    """Files that are read: each source, or the files in it if it is a folder; None is none."""
    return [
        each
        for source in sources
        if source is not None
        for each in ([*source.iterdir()] if source.is_dir() else [source])
    ]


def write_json(target: str | None, figures: Any) -> None:
    """Write figures as JSON to a file, to stdout for "-", or nowhere for None."""
    if target is not None:
        write_text(target, json.dumps(figures, indent=2) + "\n")


def write_text(target: str, text: str) -> None:
    """Write a text to a file, or to stdout for "-"."""
    if target == "-":
        sys.stdout.write(text)
    else:
        write_file(Path(target), text)


class _Console(Console):
    """Shows what does not print as escapes, in cells of tables too."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(shown(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, Text) and (plain := shown(renderable.plain)) != renderable.plain:
            renderable = Text(plain, renderable.style)
        return super().render(renderable, options)


def console(taken: bool = False) -> Console:
    """The console for tables and messages: stdout, unless figures have taken that."""
    return _Console(stderr=taken, soft_wrap=True, highlight=False, markup=False)


WIDEST = 10_000
"""Columns that a table may take, whatever the terminal's width: more than any has."""


def print_table(out: Console, table: Table | RenderableType) -> None:
    """Print a table whose values are not cut: its lines are longer than a narrow terminal's.

    A `Table` has no lines; `axs6.tables.rich_table` gives one with them.
    """
    width = out.width
    out.width = max(width, WIDEST)
    out.print(rich_table(table, ruled=False) if isinstance(table, Table) else table)
    out.width = width


def verdict(passed: bool, text: str) -> Text:
    """A line that begins with its outcome."""
    return Text.assemble(("pass", "green") if passed else ("FAIL", "red"), shown(f" {text}"))


def one_line(text: str) -> str:
    """A name from a file in a table, in which line breaks are shown as escapes too."""
    return shown(text, keep="")


def shape_text(shape: Sequence[int]) -> str:
    """A shape in a table."""
    return " x ".join(map(str, shape)) or "one value"


def _encoded(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
