"""`axs6 encode`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import (
    KINDS,
    RESULTS,
    Group,
    LayoutOption,
    OneFormat,
    ScaleOption,
    check_stochastic,
    given,
    with_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from axs6.commands.results import ResultFiles
    from axs6.files.checkpoints import Row
    from axs6.files.encode import TensorRow
    from axs6.tables import Table

EXTRA = "files"

Patterns = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Tensor names, with * and ?; can be repeated."),
]

ENCODING: Group = {
    "format": OneFormat,
    "block": Annotated[
        int | None,
        typer.Option(
            help="Values per block.", metavar="B", show_default="the format's: 32 of axs6"
        ),
    ],
    "mode": Annotated[
        str | None, typer.Option(help="Mode of axs6 blocks: dense, sparse, high_precision or auto.")
    ],
    "rounding": Annotated[str | None, typer.Option(help="nearest, toward_zero or stochastic.")],
    "random_bits": Annotated[
        int | None,
        typer.Option(help="Bits of the random words of stochastic rounding, 1 to 32.", metavar="R"),
    ],
    "seed": Annotated[int | None, typer.Option(help="Seed of stochastic rounding.")],
    "profile": Annotated[
        str | None,
        typer.Option(help="Encode by the steps of a library; `axs6 info FORMAT --profile NAME`."),
    ],
    "nonfinite": Annotated[
        str | None,
        typer.Option(
            help="NaN and infinities: error (refuse), saturate, or propagate in formats with NaN.",
            show_default="error",
        ),
    ],
    "axis": Annotated[
        int | None,
        typer.Option(
            help="Axis of the blocks.", metavar="N", show_default="the reduced axes of weights"
        ),
    ],
    "flatten": Annotated[
        int | None,
        typer.Option(help="Flatten the axes from N on; blocks lie along the result.", metavar="N"),
    ],
    "align": Annotated[
        int | None, typer.Option(help="Pad blocks to a multiple of BYTES.", metavar="BYTES")
    ],
    "include": Patterns,
    "exclude": Patterns,
}
"""The options of `axs6.files.Options`."""


@with_options(options=ENCODING, results=RESULTS)
def run(
    source: Annotated[
        Path,
        typer.Argument(help="A .safetensors, .npy or .npz file; with --as a model's folder too."),
    ],
    target: Annotated[
        Path,
        typer.Argument(help="The .safetensors container to write; with --as a file or folder."),
    ],
    *,
    options: dict[str, Any],
    rule: Annotated[
        str | None,
        typer.Option(
            help="Rule of the exponent scale: floor, ceil, even or rceil.",
            show_default="the format's: floor",
        ),
    ] = None,
    scale: Annotated[str | None, ScaleOption] = None,
    kind: Annotated[
        str | None,
        typer.Option("--as", metavar="KIND", help=f"Write a checkpoint of another tool: {KINDS}."),
    ] = None,
    layout: Annotated[str | None, LayoutOption] = None,
    results: dict[str, Any],
) -> None:
    """Encode the floating-point tensors of a file into packed blocks.

    Tensors are encoded in pieces, so files may be larger than memory. Tensors of other types, and
    tensors that are not included, are copied unchanged. Blocks lie along the axes that the hardware
    reduces: the last axis of vectors and matrices, and all axes but the first, flattened, of
    tensors with more axes, such as weights of convolutions.

    With --as the file or folder is a checkpoint that another tool loads; matrices alone are
    encoded then, along their last axis.

    Example: axs6 encode weights.safetensors packed.safetensors --format mxfp4 --exclude "*.bias"
    """
    from rich.text import Text

    from axs6.commands.output import print_table
    from axs6.commands.results import ResultFiles
    from axs6.files import Options, encode_file
    from axs6.golden.formats import AXS6, block_format
    from axs6.replacing import check_apart

    check_stochastic(options)
    if kind and (rule or scale) and "format" not in options:
        raise ValueError(f"{'--rule' if rule else '--scale'} with --as needs --format")
    if rule:
        options["format"] = block_format(options.get("format", AXS6)).with_rule(rule)
    if scale:
        options["format"] = block_format(options.get("format", AXS6)).with_choice(scale)
    files = ResultFiles(**results)
    if kind:
        _checkpoint(source, target, kind, given(**options, layout=layout), files)
        return
    if layout:
        raise ValueError("--layout needs --as")
    chosen = Options(**options)
    check_apart([target, *files.paths], [source])
    files.check()
    out = files.console()
    with out.status(Text(f"encoding {source}")) as status:
        rows = encode_file(
            source, target, chosen, lambda name: status.update(Text(f"encoding {name}"))
        )
    table = _table(rows)
    print_table(out, table)
    before, after = (sum(getattr(row, name) for row in rows) for name in SIZES)
    out.print(f"{before:,} bytes became {after:,}: wrote {target}")
    files.write([_figures(row) for row in rows], table)


CHECKPOINT = ("format", "layout", "include", "exclude", "nonfinite", "profile")
"""Options that go with --as."""


def _checkpoint(
    source: Path, target: Path, name: str, options: dict[str, Any], files: "ResultFiles"
) -> None:
    from axs6.commands.convert_command import written
    from axs6.files.checkpoints import Chosen, encode_checkpoint, kind_of

    if others := [each for each in options if each not in CHECKPOINT]:
        raise ValueError(f"--as does not go with --{others[0].replace('_', '-')}")
    kind = kind_of(name)

    def encode(progress: "Callable[[str], object]") -> "list[Row]":
        return encode_checkpoint(source, target, kind, Chosen(**options), progress)

    def summary(rows: "list[Row]") -> str:
        return f"{sum(row.errors is not None for row in rows)} tensors encoded"

    written(source, target, files, encode, f"encoding {source}", summary)


SIZES = ("bytes_before", "bytes_after")


def _table(rows: "list[TensorRow]") -> "Table":
    from axs6.commands.output import one_line, shape_text
    from axs6.tables import Column, Written, table_of, words

    columns = [
        words("tensor", form=one_line),
        words("dtype"),
        words("shape", form=shape_text),
        Column("bytes_before", "bytes", ","),
        Column("bytes_after", "packed", ","),
        Column("bits", "bits a value", ".3f"),
        Column("qsnr_db", "QSNR dB", ".2f", none=""),
        Column("largest_error", "largest error", ".3g", none=""),
    ]
    found = []
    for row in rows:
        figures = _figures(row)
        if row.errors is None:
            figures["bytes_after"] = Written(row.bytes_after, "as it is")
        elif figures["qsnr_db"] is None:
            figures["qsnr_db"] = Written(None, f"{row.errors.qsnr:.2f}")
        found.append(figures)
    return table_of(columns, found)


def _figures(row: "TensorRow") -> dict[str, Any]:
    errors = row.errors
    return {
        "tensor": row.name,
        "dtype": row.dtype,
        "shape": row.shape,
        **{name: getattr(row, name) for name in SIZES},
        "bits": row.bits,
        "qsnr_db": errors.qsnr if errors and errors.squared_errors else None,
        "largest_error": errors.largest if errors else None,
    }
