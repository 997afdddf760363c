"""`axs6 convert`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import Json, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from axs6.files.checkpoints.convert import Row

EXTRA = "files"


def run(
    source: Annotated[
        Path,
        typer.Argument(
            help="A folder of .safetensors files, with an index or without, or with an .onnx "
            "model; or a .safetensors, .gguf or .onnx file."
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(help="The folder to write, which must not exist or be empty, or a file."),
    ],
    *,
    to: Annotated[str, Kind],
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="LAYOUT",
            help="Layout of all weights, one of the kind's.",
            show_default="for each weight the nearest",
        ),
    ] = None,
    requantise: Annotated[
        bool,
        typer.Option(
            "--requantise",
            help="Encode weights again that the kind cannot hold with their values.",
        ),
    ] = False,
    swizzle_scales: Annotated[
        bool,
        typer.Option(
            "--swizzle-scales",
            help="Write scales of blocks in the order of cuBLAS, in tiles of 128 rows x 4 scales.",
        ),
    ] = False,
    unswizzle_scales: Annotated[
        bool,
        typer.Option(
            "--unswizzle-scales", help="Read scales of blocks in that order from the source."
        ),
    ] = False,
    json: Json = None,
) -> None:
    """Convert the weights of a checkpoint to another tool's layout, bit for bit.

    Codes and scales are moved, and nothing is rounded; then both checkpoints are decoded and
    compared. A weight that the other layout cannot hold with its values is refused, or encoded
    again with --requantise, and the loss is printed. Other tensors are copied unchanged, and so
    are further files of a folder; config.json says how the weights are held.

    Example: axs6 convert model-nvfp4 model-ct --to compressed-tensors
    """
    from axs6.files.checkpoints import convert_checkpoint, kind_of

    kind = kind_of(to)

    def convert(progress: "Callable[[str], object]") -> "list[Row]":
        return convert_checkpoint(
            source,
            target,
            kind,
            layout=kind.named(layout) if layout else None,
            requantise=requantise,
            swizzle=swizzle_scales,
            unswizzle=unswizzle_scales,
            progress=progress,
        )

    written(source, target, json, convert, f"converting {source}", _summary)


def written(
    source: Path,
    target: Path,
    json: str | None,
    write: "Callable[[Callable[[str], object]], list[Row]]",
    doing: str,
    summary: "Callable[[list[Row]], str]",
) -> None:
    """Write a checkpoint, and print what became of its tensors.

    Args:
        source, target: the paths.
        json: what --json says.
        write: writes it; it gets a function that shows what is done.
        doing: what is shown first.
        summary: gives the words before "wrote TARGET".
    """
    from rich.text import Text

    from axs6.commands.output import (
        check_writable,
        console,
        files_of,
        json_path,
        print_table,
        write_json,
    )
    from axs6.replacing import check_apart

    figures = json_path(json)
    check_writable(figures, inputs=files_of(source))
    check_apart([target, *([figures] if figures else [])])
    out = console(json)
    with out.status(Text(doing)) as status:
        rows = write(lambda text: status.update(Text(text)))
    print_table(out, _table(rows))
    out.print(f"{summary(rows)}: wrote {target}")
    write_json(json, [_figures(row) for row in rows])


def _table(rows: "list[Row]") -> Any:
    """A line for each weight, and for each tensor that was copied."""
    from rich.table import Table

    from axs6.commands.output import shape_text
    from axs6.terminal import shown

    found = Table("tensor", "shape", "before", "after", "values", box=None, pad_edge=False)
    for name in ("bytes", "now", "QSNR dB"):
        found.add_column(name, justify="right")
    for row in rows:
        errors = row.errors
        found.add_row(
            shown(row.name, keep=""),
            shape_text(row.shape),
            row.before,
            row.after,
            _values(row),
            f"{row.bytes_before:,}",
            f"{row.bytes_after:,}",
            f"{errors.qsnr:.2f}" if errors else "",
        )
    return found


def _values(row: "Row") -> str:
    if row.errors:
        return "encoded"
    return f"equal in {row.same}" if row.same else "as they are"


def _summary(rows: "list[Row]") -> str:
    """What became of the weights."""
    equal = sum(bool(row.same) for row in rows)
    again = sum(row.errors is not None for row in rows)
    said = f"{equal} weights with the same values"
    return f"{said}, {again} encoded again" if again else said


def _figures(row: "Row") -> dict[str, Any]:
    """A row as JSON."""
    errors = row.errors
    return {
        "tensor": row.name,
        "shape": row.shape,
        "before": row.before,
        "after": row.after,
        "equal_in": row.same or None,
        "bytes_before": row.bytes_before,
        "bytes_after": row.bytes_after,
        "qsnr_db": errors.qsnr if errors and errors.squared_errors else None,
        "largest_error": errors.largest if errors else None,
    }
