"""`axs6 convert`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import RESULTS, Kind, with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from axs6.commands.results import ResultFiles
    from axs6.files.checkpoints.convert import Row
    from axs6.tables import Table

EXTRA = "files"


@with_options(results=RESULTS)
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
    results: dict[str, Any],
) -> None:
    """Convert the weights of a checkpoint to another tool's layout, bit for bit.

    Codes and scales are moved, and nothing is rounded; then both checkpoints are decoded and
    compared. A weight that the other layout cannot hold with its values is refused, or encoded
    again with --requantise, and the loss is printed. Other tensors are copied unchanged, and so
    are further files of a folder; config.json says how the weights are held.

    Example: axs6 convert model-nvfp4 model-ct --to compressed-tensors
    """
    from axs6.commands.results import ResultFiles
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

    files = ResultFiles(**results)
    written(source, target, files, convert, f"converting {source}", _summary)


def written(
    source: Path,
    target: Path,
    files: "ResultFiles",
    write: "Callable[[Callable[[str], object]], list[Row]]",
    doing: str,
    summary: "Callable[[list[Row]], str]",
) -> None:
    """Write a checkpoint, and print what became of its tensors.

    Args:
        source, target: the paths.
        files: for the figures.
        write: writes it; it gets a function that shows what is done.
        doing: what is shown first.
        summary: gives the words before "wrote TARGET".
    """
    from rich.text import Text

    from axs6.commands.output import files_of, print_table
    from axs6.replacing import check_apart

    files.check(inputs=files_of(source))
    check_apart([target, *files.paths])
    out = files.console()
    with out.status(Text(doing)) as status:
        rows = write(lambda text: status.update(Text(text)))
    table = _table(rows)
    print_table(out, table)
    out.print(f"{summary(rows)}: wrote {target}")
    files.write([_figures(row) for row in rows], table)


def _table(rows: "list[Row]") -> "Table":
    """A line for each weight, and for each tensor that was copied."""
    from axs6.commands.output import one_line, shape_text
    from axs6.tables import Column, Written, table_of, words

    columns = [
        words("tensor", form=one_line),
        words("shape", form=shape_text),
        words("before"),
        words("after"),
        words("equal_in", "values"),
        Column("bytes_before", "bytes", ","),
        Column("bytes_after", "now", ","),
        Column("qsnr_db", "QSNR dB"),
        Column("largest_error", None),
    ]
    found = []
    for row in rows:
        figures = _figures(row)
        qsnr = f"{row.errors.qsnr:.2f}" if row.errors else ""
        written = {"equal_in": _values(row), "qsnr_db": qsnr}
        found.append({**figures, **{k: Written(figures[k], x) for k, x in written.items()}})
    return table_of(columns, found)


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
