"""`axs6 study`."""

import logging
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axs6.commands.options import SEVERAL, Columns, Json, Rows, given
from axs6.commands.packages import need
from axs6.commands.study_accumulators import accumulators
from axs6.commands.study_pareto import pareto
from axs6.commands.study_perplexity import perplexity
from axs6.commands.study_scales import scales
from axs6.commands.study_sensitivity import sensitivity
from axs6.commands.study_similarity import similarity

if TYPE_CHECKING:
    from rich.table import Table

    from axs6.studies.accuracy import AccuracyStudy
    from axs6.studies.qsnr import QsnrStudy
    from axs6.studies.rounding import RoundingRow
    from axs6.studies.training.study import TrainingStudy

EXTRA = "study"

PICTURES = {f"accuracy.{kind}": kind for kind in ("svg", "png")}
"""Kind of each picture by its file."""

FILES = ("study.json", *PICTURES)

CURVES = {f"training.{kind}": kind for kind in ("svg", "png")}
"""The same for loss curves."""

app = typer.Typer(
    help="Measure the effect of block formats on models, their training and random vectors, "
    "and the bias of stochastic rounding."
    "\n\nExample: axs6 study accuracy mlp",
    no_args_is_help=True,
)


app.command()(accumulators)
app.command()(scales)
app.command()(sensitivity)
app.command()(pareto)
app.command()(perplexity)
app.command()(similarity)


@app.callback()
def _group() -> None:
    pass


@app.command()
def accuracy(
    model: Annotated[
        str, typer.Argument(help="mlp, cnn or transformer, or FILE.py:FUNCTION.", metavar="MODEL")
    ],
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=SEVERAL,
            show_default="axs6 in blocks of 8, 16 and 32",
            metavar="FORMAT",
        ),
    ] = None,
    block: Annotated[
        list[int] | None,
        typer.Option(help="Block size of the formats; can be repeated."),
    ] = None,
    policy: Annotated[
        list[Path] | None,
        typer.Option(
            help="TOML file with formats for each layer; can be repeated.", metavar="FILE"
        ),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            help="Backend to run; can be repeated.",
            show_default="emulated, and rtl without --format and --policy",
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Run the first N samples.", show_default="all", metavar="N")
    ] = None,
    batch: Annotated[int, typer.Option(help="Batch size.", metavar="N")] = 256,
    rows: Rows = None,
    columns: Columns = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder for study.json, accuracy.svg and accuracy.png."
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Measure a model's accuracy in FP32, in block formats emulated, and on the simulated RTL.

    The built-in models are trained first, on the handwritten digits that scikit-learn ships.
    FUNCTION takes nothing and returns (model, inputs, targets) or (model, inputs, targets,
    metric): a trained torch.nn.Module, tensors with samples along their first axis (a tuple of
    tensors for several inputs), and "accuracy" (the default), "cross_entropy" or a function of
    outputs and targets that returns a number.

    Every product on the RTL is compared with its emulation; exit status 1 if a bit differs.

    Example: axs6 study accuracy mlp --format axs6,mx9,mxfp8_e4m3 -o study
    """
    need("torch", "matplotlib")
    from axs6.commands.output import (
        check_writable,
        console,
        json_path,
        print_table,
        write_files,
        write_json,
    )
    from axs6.hw.registry import find
    from axs6.studies.request import BACKENDS, check_request, chosen_formats, user_model

    chosen = chosen_formats(formats or (), block or ()) if formats or block or not policy else []
    backends = backend or (BACKENDS[:1] if formats or policy else BACKENDS)
    check_request(chosen, backends, samples, batch)
    users = user_model(model)
    if users is None:
        need("sklearn")
    tile = given(rows=rows, columns=columns)
    for name in chosen if "rtl" in backends else ():
        find("matmul").build(format=name, **tile)
    files = [] if output is None else [output / name for name in FILES]
    read = [*(users[:1] if users else ()), *(policy or ())]
    check_writable(*files, json_path(json), inputs=read)

    from axs6.studies.accuracy import study_accuracy
    from axs6.studies.figure import picture
    from axs6.studies.models import MODELS
    from axs6.studies.user import blamed, load
    from axs6.torch import Policy

    policies = {path.name: Policy.read(path) for path in policy or ()}
    out = console(json)
    log = logging.getLogger("axs6")
    log.info("preparing the model")
    with out.status("preparing the model") as status:

        def show(line: str) -> None:
            log.info("running %s", line)
            status.update(line)

        workload = load(*users) if users else MODELS[model]()
        with blamed(users[0]) if users else nullcontext():
            study = study_accuracy(
                model,
                workload,
                formats=chosen,
                policies=policies,
                backends=backends,
                samples=samples,
                batch=batch,
                tile=tile,
                progress=show,
            )
    out.print(f"{model}: {study.samples:,} samples, {study.batch:,} at once")
    print_table(out, _table(study))
    compared = sum(run.bits_compared or 0 for run in study.runs)
    if compared:
        out.print(f"{compared:,} bits compared, {study.bits_different:,} differ")
    figures = study.to_dict()
    if output is not None:
        from json import dumps

        pictures = {name: picture(study, kind) for name, kind in PICTURES.items()}
        write_files(output, {"study.json": dumps(figures, indent=2) + "\n", **pictures})
        out.print(f"wrote {', '.join(f'{output}/{name}' for name in FILES)}")
    write_json(json, figures)
    if study.bits_different:
        raise typer.Exit(1)


@app.command()
def training(
    name: Annotated[str, typer.Argument(help="gpt, vit or gpt_1m.", metavar="NAME")],
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            help="Recipe to compare with FP32; can be repeated.",
            show_default="all with FP32 accumulation",
            metavar="RECIPE",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds, from 0.", metavar="N")] = 3,
    steps: Annotated[
        int | None,
        typer.Option(help="Steps of a run.", show_default="150, or 2000 of gpt_1m", metavar="N"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs at a time.", metavar="N")] = 1,
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            help="Folder of checkpoints, from which a stopped study resumes.",
            metavar="FOLDER",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder for study.json, training.svg and training.png."
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Train a small transformer in FP32 and in block formats, cast it into them, and fine-tune it.

    gpt reads Python's own documentation character by character; its figure is the loss on test
    pages. gpt_1m does so with 1.3 million parameters. vit classifies the handwritten digits that
    scikit-learn ships. All recipes start from the same weights and see the same batches. Stopped
    studies resume from their checkpoints with the same bits.

    Example: axs6 study training gpt --checkpoints runs -o study
    """
    need("torch", "matplotlib")
    from axs6.commands.output import (
        check_writable,
        console,
        json_path,
        print_table,
        write_files,
        write_json,
    )
    from axs6.replacing import make_folder
    from axs6.studies.training.request import COMPARED, TASKS, check_request, check_task

    check_task(name)
    steps = TASKS[name] if steps is None else steps
    check_request(recipe or COMPARED, seeds, steps, jobs)
    if name == "vit":
        need("sklearn")
    files = [] if output is None else [output / each for each in ("study.json", *CURVES)]
    check_writable(*files, json_path(json))
    if checkpoints is not None:
        make_folder(checkpoints)

    from axs6.studies.training.figure import picture
    from axs6.studies.training.study import study_training

    out = console(json)
    log = logging.getLogger("axs6")
    with out.status("preparing") as status:

        def show(line: str) -> None:
            if line.endswith(f" 0 of {line.rpartition(' ')[2]}"):
                log.info("running %s", line.partition(":")[0])
            status.update(line)

        study = study_training(
            *(name, recipe or COMPARED, seeds, steps),
            checkpoints=checkpoints,
            jobs=jobs,
            progress=show,
        )
    out.print(f"{name}: {study.parameters:,} parameters, {steps:,} steps, {seeds} seeds")
    print_table(out, _training_table(study))
    figures = study.to_dict()
    if output is not None:
        from json import dumps

        pictures = {each: picture(study, kind) for each, kind in CURVES.items()}
        write_files(output, {"study.json": dumps(figures, indent=2) + "\n", **pictures})
        out.print(f"wrote {', '.join(map(str, files))}")
    write_json(json, figures)


@app.command()
def rounding(
    bits: Annotated[
        list[int] | None,
        typer.Option(
            help="Bits of the random words; can be repeated.",
            show_default="4, 8, 16",
            metavar="R",
        ),
    ] = None,
    values: Annotated[int, typer.Option(help="Number of values.", metavar="N")] = 1 << 20,
    block: Annotated[int, typer.Option(help="Values per block: 8, 16 or 32.", metavar="B")] = 32,
    json: Json = None,
) -> None:
    """Compare bias and variance of stochastic rounding with predictions from its definition.

    The values are normally distributed; the random words come from the hardware's shift registers.
    A step is 1 / 31 of a block's scale.

    Example: axs6 study rounding --bits 8
    """
    from dataclasses import asdict

    from axs6.commands.output import check_writable, console, json_path, print_table, write_json
    from axs6.studies.rounding import WIDTHS, study_rounding

    check_writable(json_path(json))
    rows = study_rounding(bits or WIDTHS, values, block)
    out = console(json)
    out.print(f"{values:,} values in blocks of {block}; steps and their squares")
    print_table(out, _rounding_table(rows))
    write_json(json, [asdict(row) for row in rows])


@app.command()
def qsnr(
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=SEVERAL,
            show_default="named formats and a few more",
            metavar="FORMAT",
        ),
    ] = None,
    vectors: Annotated[int, typer.Option(help="Vectors of 1,024 values.", metavar="N")] = 10_000,
    json: Json = None,
) -> None:
    """Measure the ratio of signal to quantisation noise of block formats.

    The values of each vector are normally distributed; the standard deviation is the magnitude of
    another normally distributed number, as in the shared-microexponents paper. The paper's
    differences are shown beside the measured ones.

    Example: axs6 study qsnr --format mx9 --format e4m3fn_e8m0_t32 --vectors 1000
    """
    from axs6.commands.output import check_writable, console, json_path, print_table, write_json
    from axs6.golden.formats import block_format, format_list
    from axs6.studies.qsnr import study_qsnr

    shown = None if formats is None else [*map(block_format, format_list(formats))]
    check_writable(json_path(json))
    out = console(json)
    log = logging.getLogger("axs6")
    log.info("measuring")
    with out.status("measuring") as status:
        study = study_qsnr(shown, vectors, progress=status.update)
    out.print(
        f"{study.vectors:,} vectors of {study.length:,} values, N(0, |N(0, 1)|), seed {study.seed}"
    )
    for table in _qsnr_tables(study):
        out.print()
        print_table(out, table)
    write_json(json, study.to_dict())


def _qsnr_tables(study: "QsnrStudy") -> "list[Table]":
    from rich.table import Table

    formats, differences = (Table(box=None, pad_edge=False) for _ in range(2))
    for table, names in (
        (formats, ("format", "bits", "QSNR dB")),
        (differences, ("difference", "dB", "in the paper")),
    ):
        for name in names:
            table.add_column(name, justify="left" if name == names[0] else "right")
    differences.add_column("of what")
    for row in study.rows:
        formats.add_row(row.format, f"{row.bits:g}", f"{row.qsnr_db:.2f}")
    for each in study.differences:
        claim = each.claim
        pair = f"{claim.better} - {claim.worse}"
        differences.add_row(pair, f"{each.measured:.2f}", claim.paper, claim.what)
    return [formats, differences] if study.differences else [formats]


def _table(study: "AccuracyStudy") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(
        (
            *("backend", "format", study.metric, "change", "loss", "QSNR dB"),
            *("differ", "cycles", "used", "seconds"),
        )
    ):
        table.add_column(name, justify="left" if index == 0 else "right")
    number = "{:.2%}" if study.metric == "accuracy" else "{:.4f}"
    change = "{:+.2%}" if study.metric == "accuracy" else "{:+.4f}"
    for run in study.runs:
        delta = run.metric - study.reference.metric
        cells = (
            (run.format, "{}"),
            (run.metric, number),
            (None if run.format is None else delta, change),
            (run.loss, "{:.4f}"),
            (run.qsnr_db, "{:.1f}"),
            (run.bits_different, "{:,}"),
            (run.cycles, "{:,}"),
            (run.utilisation, "{:.1%}"),
            (run.seconds, "{:.2f}"),
        )
        table.add_row(
            run.backend,
            *("-" if value is None else form.format(value) for value, form in cells),
        )
    return table


def _training_table(study: "TrainingStudy") -> "Table":
    from rich.table import Table

    from axs6.studies.training.study import mean_and_deviation

    table = Table(box=None, pad_edge=False)
    table.add_column("recipe")
    for column in (f"{study.metric}, trained", "+-", "direct cast", "+-", "fine-tuned", "+-"):
        table.add_column(column, justify="right")
    form = "{:.2%}" if study.metric == "accuracy" else "{:.4f}"
    for row in study.rows:
        cells: list[str] = []
        for values in (row.trained, row.cast, row.tuned):
            cells += map(form.format, mean_and_deviation(values)) if values else ("-", "-")
        table.add_row(row.recipe, *cells)
    return table


def _rounding_table(rows: "list[RoundingRow]") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("rounding")
    for name in ("R", "worst", "bias", "predicted", "+-", "variance", "predicted", "+-"):
        table.add_column(name, justify="right")
    for row in rows:
        moments = [
            form.format(figure)
            for moment in (row.bias, row.variance)
            for figure, form in (
                (moment.measured, "{:.5f}"),
                (moment.predicted, "{:.5f}"),
                (moment.standard_error, "{:.0e}" if row.random_bits else "-"),
            )
        ]
        width = "-" if row.random_bits is None else str(row.random_bits)
        table.add_row(row.rounding, width, f"{row.worst_bias:.2g}", *moments)
    return table
