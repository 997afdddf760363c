"""`axs6 study sensitivity`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.language import (
    ModelFile,
    Tasks,
    WindowSize,
    checked_files,
    loading,
    task_options,
)
from axs6.commands.options import RESULTS, one_format, with_options

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.studies.language.sensitivity import Sensitivity


@with_options(tasks=task_options("windows"), results=RESULTS)
def sensitivity(
    model: ModelFile,
    format: Annotated[
        list[str],
        typer.Option(
            "--format",
            help="Block format, a name or a string.",
            metavar="FORMAT",
            autocompletion=format_names,
        ),
    ],
    part: Annotated[
        str, typer.Option(help="Operands in the format: weights, activations or both.")
    ] = "both",
    wide: Annotated[
        str | None,
        typer.Option(
            help="Wider format of the most harmful places, in the policy that -o writes.",
            metavar="FORMAT",
            autocompletion=format_names,
        ),
    ] = None,
    bits: Annotated[
        float | None,
        typer.Option(help="Largest mean of bits per weight in the policy.", metavar="B"),
    ] = None,
    head: Annotated[
        bool, typer.Option("--head", help="Count the product that scores tokens as a place, too.")
    ] = False,
    tokens: Annotated[int, typer.Option(help="Number of tokens of the text.", metavar="N")] = 1024,
    window: WindowSize = 512,
    *,
    tasks: dict[str, Any],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="TOML file for the policy.", metavar="FILE"),
    ] = None,
    results: dict[str, Any],
) -> None:
    """Measure how much a format in one place of products at a time harms a language model.

    A place is a linear layer, or the products of an attention module. The harm is the perplexity
    relative to FP32; QSNR is measured on the scores. With --wide, --bits and -o, a policy keeps the
    places with the most harm per bit in the wider format.

    Example: axs6 study sensitivity smollm2 --format mxfp4 --wide mx9 --bits 5 -o policy.toml
    """
    from axs6.commands.output import print_table
    from axs6.commands.packages import need
    from axs6.commands.results import ResultFiles
    from axs6.golden.formats import block_format, name_of
    from axs6.studies.language.request import Setting, check_windows, model_path

    given = Tasks(**tasks)
    fmt = name_of(block_format(one_format(format) or ""))
    Setting(fmt, fmt, part=part)
    if len({wide is None, bits is None, output is None}) > 1:
        raise ValueError("a policy needs --wide, --bits and -o together")
    read = checked_files(given.text)
    check_windows(tokens, window)
    path, function = model_path(model)
    need("torch", "transformers")
    if path.is_file():
        read.append(path)
    figures = ResultFiles(**results)
    figures.check(given.data, output, inputs=read)

    from axs6.studies.language.models import load
    from axs6.studies.language.sensitivity import check_policy, study_sensitivity
    from axs6.studies.language.texts import read_text, windows
    from axs6.studies.language.windows import Window

    if wide is not None and bits is not None:
        wide = name_of(block_format(wide))
        check_policy(fmt, part, wide, bits)
    out = figures.console()
    with loading(out, "windows") as progress:
        options = given.options(Window, progress)
        loaded = load(path, function)
        study = study_sensitivity(
            model,
            (path, function),
            loaded,
            windows(loaded, read_text(given.text), tokens, window),
            fmt,
            options,
            part=part,
            head=head,
            text=given.text_name,
        )
    out.print(
        f"{model}, one place at a time in {fmt}; {study.text}: {study.windows:,} windows of "
        f"{study.window:,} tokens, perplexity {study.perplexity:,.4g} in FP32"
    )
    print_table(out, study.table())
    if output is not None and wide is not None and bits is not None:
        _write_policy(study, wide, bits, output, out)
    figures.write(study.to_dict(), study.table())


def _write_policy(
    study: "Sensitivity", wide: str, bits: float, output: Path, out: "Console"
) -> None:
    from axs6.commands.output import write_file

    made = study.policy(wide, bits)
    write_file(output, made.to_toml())
    kept_wide = len(made.rules) - (study.head is not None)
    out.print(f"wrote {output}: {kept_wide} of {len(study.places)} places in {wide}")
