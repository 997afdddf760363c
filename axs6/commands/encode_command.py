"""`axs6 encode`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import (
    Group,
    Json,
    OneFormat,
    ScaleOption,
    check_stochastic,
    with_options,
)

if TYPE_CHECKING:
    from axs6.files.encode import TensorRow

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
    "checkpoint": (
        Annotated[
            bool,
            typer.Option(
                "--checkpoint",
                help="Write pairs NAME_blocks and NAME_scales, as in MXFP4 checkpoints.",
            ),
        ],
        False,
    ),
    "include": Patterns,
    "exclude": Patterns,
}
"""The options of `axs6.files.Options`."""


@with_options(options=ENCODING)
def run(
    source: Annotated[Path, typer.Argument(help="A .safetensors, .npy or .npz file.")],
    target: Annotated[Path, typer.Argument(help="The .safetensors container to write.")],
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
    json: Json = None,
) -> None:
    """Encode the floating-point tensors of a file into packed blocks.

    Tensors are encoded in pieces, so files may be larger than memory. Tensors of other types, and
    tensors that are not included, are copied unchanged. Blocks lie along the axes that the hardware
    reduces: the last axis of vectors and matrices, and all axes but the first, flattened, of
    tensors with more axes, such as weights of convolutions.

    Example: axs6 encode weights.safetensors packed.safetensors --format mxfp4 --exclude "*.bias"
    """
    from rich.text import Text

    from axs6.commands.output import console, json_path, print_table, write_json
    from axs6.files import Options, encode_file
    from axs6.golden.formats import AXS6, block_format
    from axs6.replacing import check_apart

    check_stochastic(options)
    if rule:
        options["format"] = block_format(options.get("format", AXS6)).with_rule(rule)
    if scale:
        options["format"] = block_format(options.get("format", AXS6)).with_choice(scale)
    chosen = Options(**options)
    figures_file = json_path(json)
    check_apart([target, *([figures_file] if figures_file else [])], [source])
    out = console(json)
    with out.status(Text(f"encoding {source}")) as status:
        rows = encode_file(
            source, target, chosen, lambda name: status.update(Text(f"encoding {name}"))
        )
    print_table(out, _table(rows))
    before, after = (sum(getattr(row, name) for row in rows) for name in SIZES)
    out.print(f"{before:,} bytes became {after:,}: wrote {target}")
    write_json(json, [_figures(row) for row in rows])


SIZES = ("bytes_before", "bytes_after")


def _table(rows: "list[TensorRow]") -> Any:
    from rich.table import Table

    from axs6.commands.output import shape_text
    from axs6.terminal import shown

    table = Table("tensor", "dtype", "shape", box=None, pad_edge=False)
    for name in ("bytes", "packed", "bits a value", "QSNR dB", "largest error"):
        table.add_column(name, justify="right")
    for row in rows:
        errors = row.errors
        table.add_row(
            shown(row.name, keep=""),
            row.dtype,
            shape_text(row.shape),
            f"{row.bytes_before:,}",
            f"{row.bytes_after:,}" if errors else "as it is",
            f"{row.bits:.3f}",
            f"{errors.qsnr:.2f}" if errors else "",
            f"{errors.largest:.3g}" if errors else "",
        )
    return table


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
