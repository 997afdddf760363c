"""`axs6 study accuracy`."""

import logging
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.options import RESULTS, SEVERAL, Columns, Rows, given, with_options
from axs6.commands.packages import need

if TYPE_CHECKING:
    from axs6.studies.accuracy import AccuracyStudy

PICTURES = {f"accuracy.{kind}": kind for kind in ("svg", "png")}
"""Kind of each picture by its file."""

FILES = ("study.json", *PICTURES)


@with_options(results=RESULTS)
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
            autocompletion=format_names,
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
    *,
    results: dict[str, Any],
) -> None:
    """Measure a model's accuracy in FP32, in emulated block formats, and on the simulated RTL.

    The built-in models are trained first, on the handwritten digits that scikit-learn ships.
    FUNCTION takes nothing and returns (model, inputs, targets) or (model, inputs, targets,
    metric): a trained torch.nn.Module, tensors with samples along their first axis (a tuple of
    tensors for several inputs), and "accuracy" (the default), "cross_entropy" or a function of
    outputs and targets that returns a number.

    Every product on the RTL is compared with its emulation; exit status 1 if a bit differs.

    Example: axs6 study accuracy mlp --format axs6,mx9,mxfp8_e4m3 -o study
    """
    need("torch", "matplotlib")
    from axs6.commands.output import print_table
    from axs6.commands.results import ResultFiles
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
    figures = ResultFiles(**results)
    figures.check(*files, inputs=read)

    from axs6.studies.accuracy import study_accuracy
    from axs6.studies.models import MODELS
    from axs6.studies.user import blamed, load
    from axs6.torch import Policy

    policies = {path.name: Policy.read(path) for path in policy or ()}
    out = figures.console()
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
    print_table(out, study.table())
    compared = sum(run.bits_compared or 0 for run in study.runs)
    if compared:
        out.print(f"{compared:,} bits compared, {study.bits_different:,} differ")
    if output is not None:
        _write(study, output)
        out.print(f"wrote {', '.join(map(str, files))}")
    figures.write(study.to_dict(), study.table())
    if study.bits_different:
        raise typer.Exit(1)


def _write(study: "AccuracyStudy", output: Path) -> None:
    """Write the files of a study into a folder."""
    from json import dumps

    from axs6.commands.output import write_files
    from axs6.studies.figure import picture

    pictures = {name: picture(study, kind) for name, kind in PICTURES.items()}
    write_files(output, {"study.json": dumps(study.to_dict(), indent=2) + "\n", **pictures})
