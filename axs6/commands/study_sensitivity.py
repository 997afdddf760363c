"""`axs6 study sensitivity`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import WINDOWS, Json, one_format, with_options

if TYPE_CHECKING:
    from rich.table import Table

    from axs6.studies.language.sensitivity import Sensitivity


@with_options(windows=WINDOWS)
def sensitivity(
    model: Annotated[
        str,
        typer.Argument(
            help="A folder of Hugging Face files, a GGUF file, FILE.py:FUNCTION, or smollm2.",
            metavar="MODEL",
        ),
    ],
    format: Annotated[
        list[str],
        typer.Option("--format", help="Block format, a name or a string.", metavar="FORMAT"),
    ],
    part: Annotated[
        str, typer.Option(help="Operands in the format: weights, activations or both.")
    ] = "both",
    wide: Annotated[
        str | None,
        typer.Option(
            help="Wider format of the most harmful places, in the policy that -o writes.",
            metavar="FORMAT",
        ),
    ] = None,
    bits: Annotated[
        float | None,
        typer.Option(help="Largest mean of bits per weight in the policy.", metavar="B"),
    ] = None,
    head: Annotated[
        bool, typer.Option("--head", help="The product that scores tokens is a place too.")
    ] = False,
    tokens: Annotated[int, typer.Option(help="Number of tokens of the text.", metavar="N")] = 1024,
    *,
    windows: dict[str, Any],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="TOML file for the policy.", metavar="FILE"),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="CSV file for the table.", metavar="FILE")
    ] = None,
    json: Json = None,
) -> None:
    """Measure how much a format in one place of products at a time harms a language model.

    A place is a linear layer, or the products of an attention module. The harm is the perplexity
    relative to FP32; QSNR is that of the scores. With --wide, --bits and -o, a policy keeps the
    places with the most harm per bit in the wider format.

    Example: axs6 study sensitivity smollm2 --format mxfp4 --wide mx9 --bits 5 -o policy.toml
    """
    from axs6.commands.output import (
        check_writable,
        console,
        json_path,
        print_table,
        write_file,
        write_json,
    )
    from axs6.commands.packages import need
    from axs6.golden.formats import block_format, name_of
    from axs6.studies.language.request import Setting, check_windows, model_path
    from axs6.studies.request import check_file

    text, data, window = windows.get("text"), windows.get("data"), windows["window"]
    fmt = name_of(block_format(one_format(format) or ""))
    Setting(fmt, fmt, part=part)
    if len({wide is None, bits is None, output is None}) > 1:
        raise ValueError("a policy needs --wide, --bits and -o together")
    if text is not None:
        check_file(text)
    check_windows(tokens, window)
    path, function = model_path(model)
    need("torch", "transformers")
    read = [each for each in (text, path) if each is not None and each.is_file()]
    check_writable(data, json_path(json), output, csv, inputs=read)

    from axs6.studies.language.models import load
    from axs6.studies.language.sensitivity import check_policy, study_sensitivity
    from axs6.studies.language.tasks import KeptResults
    from axs6.studies.language.texts import read_text
    from axs6.studies.language.texts import windows as cut
    from axs6.studies.language.windows import Window

    if wide is not None and bits is not None:
        wide = name_of(block_format(wide))
        check_policy(fmt, part, wide, bits)
    kept = KeptResults(data, Window)
    out = console(json)
    log = logging.getLogger("axs6")
    with out.status("loading the model") as status:
        loaded = load(path, function)

        def show(setting: str, done: int, total: int, left: float | None) -> None:
            log.info("%s: %d of %d windows", setting, done, total)
            rest = "" if left is None else f", about {left / 60:.0f} minutes left"
            status.update(f"{setting}: {done:,} of {total:,} windows{rest}")

        study = study_sensitivity(
            model,
            (path, function),
            loaded,
            cut(loaded, read_text(text), tokens, window),
            fmt,
            part=part,
            head=head,
            text="Python's documentation" if text is None else str(text),
            kept=kept,
            jobs=windows["jobs"],
            scheduler=windows.get("scheduler"),
            progress=show,
        )
    out.print(
        f"{model}, one place at a time in {fmt}; {study.text}: {study.windows:,} windows of "
        f"{study.window:,} tokens, perplexity {study.perplexity:,.4g} in FP32"
    )
    print_table(out, _table(study))
    if csv is not None:
        write_file(csv, study.csv())
    if output is not None and wide is not None and bits is not None:
        made = study.policy(wide, bits)
        write_file(output, made.to_toml())
        kept_wide = len(made.rules) - (study.head is not None)
        out.print(f"wrote {output}: {kept_wide} of {len(study.places)} places in {wide}")
    write_json(json, study.to_dict())


def _table(study: "Sensitivity") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("place", "weights", "x FP32", "+-", "QSNR dB"):
        table.add_column(name, justify="left" if name == "place" else "right")
    for row in study.places:
        table.add_row(
            row.place,
            f"{row.weights:,}" if row.weights else "-",
            f"{row.ratio:.5f}",
            "-" if row.ratio_error is None else f"{row.ratio_error:.2g}",
            "-" if row.qsnr_db is None else f"{row.qsnr_db:.1f}",
        )
    return table
