"""`axs6 study training`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import RESULTS, with_options
from axs6.commands.packages import need

if TYPE_CHECKING:
    from axs6.studies.training.study import TrainingStudy

PICTURES = {f"training.{kind}": kind for kind in ("svg", "png")}
"""Kind of each picture of loss curves by its file."""

FILES = ("study.json", *PICTURES)


@with_options(results=RESULTS)
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
    seeds: Annotated[int, typer.Option(help="Number of seeds, from 0.", metavar="N")] = 3,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Number of steps of a run.", show_default="150, or 2000 for gpt_1m", metavar="N"
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of runs in parallel.", metavar="N")] = 1,
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
    *,
    results: dict[str, Any],
) -> None:
    """Train a small transformer in FP32 and in block formats, cast it into them, and fine-tune it.

    gpt reads Python's own documentation character by character; its metric is the loss on test
    pages. gpt_1m does so with 1.3 million parameters. vit classifies the handwritten digits that
    scikit-learn ships. All recipes start from the same weights and see the same batches. Stopped
    studies resume from their checkpoints with the same bits.

    Example: axs6 study training gpt --checkpoints runs -o study
    """
    need("torch", "matplotlib")
    from axs6.commands.output import print_table
    from axs6.commands.results import ResultFiles
    from axs6.replacing import make_folder
    from axs6.studies.training.request import COMPARED, TASKS, check_request, check_task

    check_task(name)
    steps = TASKS[name] if steps is None else steps
    check_request(recipe or COMPARED, seeds, steps, jobs)
    if name == "vit":
        need("sklearn")
    files = [] if output is None else [output / each for each in FILES]
    figures = ResultFiles(**results)
    figures.check(*files)
    if checkpoints is not None:
        make_folder(checkpoints)

    from axs6.studies.training.study import study_training

    out = figures.console()
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
    print_table(out, study.table())
    if output is not None:
        _write(study, output)
        out.print(f"wrote {', '.join(map(str, files))}")
    figures.write(study.to_dict(), study.table())


def _write(study: "TrainingStudy", output: Path) -> None:
    """Write the files of a study into a folder."""
    from json import dumps

    from axs6.commands.output import write_files
    from axs6.studies.training.figure import picture

    pictures = {name: picture(study, kind) for name, kind in PICTURES.items()}
    write_files(output, {"study.json": dumps(study.to_dict(), indent=2) + "\n", **pictures})
