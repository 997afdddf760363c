"""Options that several commands share."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.completion import accumulator_names, format_names, target_names, units
from axs6.golden.formats import format_list
from axs6.golden.rounding import Rounding


def _known(context: typer.Context, unit: str) -> str:
    if context.resilient_parsing:
        return unit
    from axs6.hw.registry import find

    return find(unit).name


Unit = Annotated[
    str,
    typer.Argument(
        help="The unit; `axs6 list` shows them.",
        callback=_known,
        metavar="UNIT",
        autocompletion=units,
    ),
]
"""A unit, checked before the options behind it, whether missing or not."""


def _period(context: typer.Context, text: str | None) -> Any:
    if text is None or context.resilient_parsing:
        return text
    from axs6.hw.core.clock import read_clock

    return read_clock(text)


Clock = Annotated[
    Any,
    typer.Option(
        "--clock",
        help="Clock: a period such as 2.5ns, or a frequency such as 400MHz.",
        callback=_period,
        metavar="CLOCK",
    ),
]
"""The option --clock, which gives the period in picoseconds."""

Rows = Annotated[int | None, typer.Option(help="Rows of a matmul tile.", metavar="R")]
Columns = Annotated[int | None, typer.Option(help="Columns of a matmul tile.", metavar="C")]
Group = Mapping[str, Any]
"""Options that go together, by their names: each an annotation, or one with its default value."""

RESULTS: Group = {
    "json": Annotated[
        str | None,
        typer.Option(
            help="Write the figures as JSON to this file, or - for stdout.", metavar="FILE"
        ),
    ],
    "csv": Annotated[
        str | None,
        typer.Option(
            help="Write the table as CSV, with unrounded values, to this file, or - for stdout.",
            metavar="FILE",
        ),
    ],
    "latex": Annotated[
        str | None,
        typer.Option(
            help="Write the table as LaTeX, for the package booktabs, to this file, or - for "
            "stdout.",
            metavar="FILE",
        ),
    ],
}
"""The options of `axs6.commands.results.ResultFiles`."""

Jobs = Annotated[int, typer.Option(help="Number of designs synthesised in parallel.", metavar="N")]

SEVERAL = "Block formats, names or strings, separated by commas; can be repeated."
"""Help of an option --format that takes several."""

OneFormat = Annotated[
    list[str] | None,
    typer.Option(
        help="Block format: a name, such as mxfp4, or a string.",
        metavar="FORMAT",
        show_default="axs6",
        autocompletion=format_names,
    ),
]
"""The option --format of a command that takes one; `one_format` reads it."""

Operands = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="Block format: a name or string, see `axs6 list --formats`; for two operands a "
        "pair joined by x, such as mxfp4xmxfp8_e4m3.",
        metavar="FORMAT",
        show_default="axs6",
        autocompletion=format_names,
    ),
]
"""The same where it may be a pair."""

ScaleOption = typer.Option(
    "--scale",
    help="Choice of the scales of blocks: max, by the largest magnitude; four-over-six; or mse.",
    metavar="CHOICE",
    show_default="the format's: max",
)
"""The option --scale."""

KINDS = "gpt-oss, modelopt, compressed-tensors, quark, fp8-blocks, gguf or onnx"
"""Kinds of checkpoints, as help texts have them."""

Kind = typer.Option(metavar="KIND", help=f"Kind of the checkpoint: {KINDS}.")
"""The option --to."""

LayoutOption = typer.Option(
    metavar="LAYOUT", help="Layout of the weights, one of the kind's.", show_default="by the format"
)
"""The option --layout of a checkpoint."""

SYNTHESIS: Group = {
    "target": (
        Annotated[
            str,
            typer.Option(help="generic, sky130, ice40, ecp5 or xc7.", autocompletion=target_names),
        ],
        "generic",
    ),
    "liberty": Annotated[
        Path | None, typer.Option(help="Cell library to map to, in place of a target.")
    ],
    "clock": Clock,
    "optimise": Annotated[
        str | None,
        typer.Option(
            help="Goal of mapping to gates: area or speed.",
            show_default="area; with --clock the smallest that meets it",
        ),
    ],
    "adder_cells": (
        Annotated[
            bool,
            typer.Option("--adder-cells", help="Map full adders to the library's full-adder cell."),
        ],
        False,
    ),
    "fmax": (
        Annotated[
            bool, typer.Option("--fmax", help="Place and route for Fmax, on ice40 and ecp5.")
        ],
        False,
    ),
}
"""The options of `axs6.synth.flow.Synthesis`."""

RUNS: Group = {
    "timeout": (
        Annotated[float, typer.Option(help="Time limit of one synthesis, in seconds.")],
        600,
    ),
    "jobs": (Jobs, 1),
    "scheduler": Annotated[
        str | None,
        typer.Option(help="Dask scheduler whose workers synthesise.", metavar="ADDRESS"),
    ],
}
"""How designs are synthesised, as `axs6.synth.sweep.sweep` takes it."""

REPORT: Group = {
    "html": Annotated[
        Path | None, typer.Option(help="Write the report as an HTML page to this file.")
    ],
    "markdown": Annotated[
        Path | None,
        typer.Option(
            help="Write the report as Markdown to this file, with its pictures next to it."
        ),
    ],
    **RESULTS,
}
"""The options of `axs6.commands.report.ReportFiles`."""

UNIT_OPTIONS: Group = {
    "format": Operands,
    "block": Annotated[
        int | None,
        typer.Option(
            help="Values per block: 8, 16 or 32 for AXS-6.",
            metavar="B",
            show_default="the format's",
        ),
    ],
    "stages": Annotated[
        int | None, typer.Option(help="Ranks of pipeline registers, from 0.", metavar="N")
    ],
    "dtype": Annotated[
        str | None,
        typer.Option(help="Floating-point type: fp32, bf16, or for encoders fp16."),
    ],
    "rounding": Annotated[str | None, typer.Option(help="nearest, toward_zero or stochastic.")],
    "mode": Annotated[
        str | None, typer.Option(help="Mode of encoded blocks: dense, sparse or high_precision.")
    ],
    "random_bits": Annotated[
        int | None,
        typer.Option("--random-bits", help="Bits of a random word, 1 to 32.", metavar="R"),
    ],
    "lfsr_seed": Annotated[
        int | None,
        typer.Option("--lfsr-seed", help="Seed: the first state of the shift register of lane 0."),
    ],
    "blocks": Annotated[
        str | None,
        typer.Option(help="Input blocks: dense (exponent and codes) or packed."),
    ],
    "align": Annotated[
        int | None,
        typer.Option(help="Pad packed blocks on a bus to a multiple of N bytes.", metavar="N"),
    ],
    "rows": Rows,
    "columns": Columns,
    "interleave": Annotated[
        int | None,
        typer.Option(help="Number of interleaved vectors or tiles, 1 to 14.", metavar="N"),
    ],
    "accumulator": Annotated[
        str | None,
        typer.Option(
            help="Accumulator of dot products: a name, optionally with changed fields, such as "
            "hopper_fp8,promote=4.",
            show_default="fp32",
            autocompletion=accumulator_names,
        ),
    ],
    "view": Annotated[
        str | None,
        typer.Option(
            help="structure (gates, for synthesis) or behaviour (words, for simulation).",
            show_default="behaviour for simulate and dot products on DSPs, else structure",
        ),
    ],
}
"""An option for each parameter that a unit may have."""


def with_options(**groups: Group) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with groups of options: a parameter of the command stands for each group.

    The command gets a dict there: of the options that were given, or have a default value.
    One format or pair of formats comes as one string.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        arguments: list[inspect.Parameter] = []
        for argument in signature.parameters.values():
            for name, option in groups.get(argument.name, {argument.name: argument}).items():
                if option is not argument:
                    annotation, default = option if isinstance(option, tuple) else (option, None)
                    option = argument.replace(name=name, annotation=annotation, default=default)
                arguments.append(option)

        @functools.wraps(command)
        def run(**values: Any) -> None:
            grouped = {
                group: given(
                    **{name: _read(option, values.pop(name)) for name, option in options.items()}
                )
                for group, options in groups.items()
            }
            command(**values, **grouped)

        run.__signature__ = signature.replace(parameters=arguments)  # type: ignore[attr-defined]
        return run

    return decorated


def _read(option: Any, value: Any) -> Any:
    if option in (OneFormat, Operands):
        return one_format(value, operands=option is Operands)
    return value


def one_format(texts: Sequence[str] | None, *, operands: bool = False) -> str | None:
    """The format of --format, or with `operands` the pair; None if it is not given.

    Raises:
        ValueError: it says more.
    """
    named = format_list(texts or ())
    if len(named) > 1:
        pair = f", or a pair as {named[0]}x{named[1]}" if operands else ""
        raise ValueError(f"--format takes one format here{pair}, not {', '.join(named)}")
    return named[0] if named else None


def check_stochastic(options: Mapping[str, Any]) -> None:
    """Raise ValueError if options of stochastic rounding are given with another rounding."""
    rounding = options.get("rounding", Rounding.NEAREST)
    for name in ("random_bits", "seed"):
        if name in options and rounding != Rounding.STOCHASTIC:
            flag = name.replace("_", "-")
            raise ValueError(f"--{flag} is for --rounding stochastic, not {rounding}")


def given(**options: Any) -> dict[str, Any]:
    """The options that were given: unit parameters by name."""
    return {name: value for name, value in options.items() if value is not None}
