"""Options that several commands share."""

from typing import Annotated, Any

import typer

Block = Annotated[
    int | None, typer.Option(help="Values that share an exponent: 8, 16 or 32.", metavar="B")
]
Stages = Annotated[
    int | None, typer.Option(help="Ranks of pipeline registers, from 0.", metavar="N")
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="Floating-point format: fp32, bf16, or fp16 to encode."),
]
Rounding = Annotated[str | None, typer.Option(help="nearest or toward_zero.")]
Rows = Annotated[int | None, typer.Option(help="Rows of a matmul tile.", metavar="R")]
Columns = Annotated[int | None, typer.Option(help="Columns of a matmul tile.", metavar="C")]
Interleave = Annotated[
    int | None, typer.Option(help="Vectors or tiles that take turns, 1 to 4.", metavar="N")
]
Json = Annotated[
    str | None, typer.Option(help="Write the figures as JSON to this file, or - for stdout.")
]


def given(**options: Any) -> dict[str, Any]:
    """The options that were given: unit parameters by name."""
    return {name: value for name, value in options.items() if value is not None}
