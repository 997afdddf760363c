"""Parts that the studies of language models share: options, inputs and progress."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from axs6.commands.completion import accumulator_names, format_names
from axs6.commands.options import Group

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.studies.language.request import Setting
    from axs6.studies.language.tasks import Progress, TaskOptions, TaskResult

    R = TypeVar("R", bound=TaskResult)

ModelFile = Annotated[
    str,
    typer.Argument(
        help="A folder of Hugging Face files, a GGUF file, FILE.py:FUNCTION, or smollm2.",
        metavar="MODEL",
    ),
]
"""A causal language model."""

Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="Block formats of weights and activations, separated by commas; can be repeated. WxA "
        "means weights in W and activations in A; A may be fp32 or bf16.",
        metavar="FORMAT",
        autocompletion=format_names,
        show_default="nine named ones",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(help="TOML file with a policy: other formats in some layers.", metavar="FILE"),
]
WindowSize = Annotated[int, typer.Option(help="Tokens per window.", metavar="N")]

SHARED: Group = {
    "accumulator": (
        Annotated[
            str,
            typer.Option(
                help="Accumulator of all dot products, a name or string as for `axs6.matmul`.",
                autocompletion=accumulator_names,
            ),
        ],
        "fp32",
    ),
    "embeddings": (
        Annotated[bool, typer.Option("--embeddings", help="Quantise the embedding table too.")],
        False,
    ),
}
"""Fields of `axs6.studies.language.request.Setting` that several studies take."""


def task_options(name: str) -> Group:
    """The options of `Tasks`; `name` is what a study calls its tasks."""
    return {
        "text": Annotated[
            Path | None,
            typer.Option(
                help="Text in UTF-8.", metavar="FILE", show_default="Python's own documentation"
            ),
        ],
        "data": Annotated[
            Path | None,
            typer.Option(
                help=f"File of finished {name}; a stopped study resumes from it.", metavar="FILE"
            ),
        ],
        "jobs": (
            Annotated[int, typer.Option(help=f"Number of {name} run in parallel.", metavar="N")],
            1,
        ),
        "scheduler": Annotated[
            str | None,
            typer.Option(help=f"Dask scheduler whose workers run {name}.", metavar="ADDRESS"),
        ],
    }


@dataclass(frozen=True)
class Tasks:
    """The text of a study, and how its windows or groups are run.

    Args:
        text: file of the text; None for Python's documentation.
        data: file of finished tasks.
        jobs: tasks run in parallel.
        scheduler: address of a Dask scheduler.
    """

    text: Path | None = None
    data: Path | None = None
    jobs: int = 1
    scheduler: str | None = None

    @property
    def text_name(self) -> str:
        """Name of the text in a study."""
        return "Python's documentation" if self.text is None else str(self.text)

    def options(self, kind: "type[R]", progress: "Progress") -> "TaskOptions[R]":
        """The options of a study whose results have this class.

        Raises:
            OSError, ValueError: as `KeptResults`.
        """
        from axs6.studies.language.tasks import KeptResults, TaskOptions

        return TaskOptions(KeptResults(self.data, kind), self.jobs, self.scheduler, progress)


def checked_files(*paths: Path | None) -> list[Path]:
    """The files that are given.

    Raises:
        OSError: one cannot be read.
    """
    from axs6.studies.request import check_file

    given = [path for path in paths if path is not None]
    for path in given:
        check_file(path)
    return given


def settings_of(
    formats: Sequence[str] | None, scale: str | None, policy: Path | None, others: dict[str, Any]
) -> "list[Setting]":
    """The settings of --format, --scale and --policy, with other fields that all have."""
    from axs6.golden.formats import format_list
    from axs6.studies.language.request import FORMATS, Setting

    if policy is not None:
        others = {**others, "policy": policy.read_text(encoding="utf-8")}
    return [Setting.of(each, scale, **others) for each in format_list(formats or FORMATS)]


@contextmanager
def loading(out: "Console", name: str) -> "Iterator[Progress]":
    """Show that a model is loaded, then how many tasks are done; `name` is as in `task_options`."""
    log = logging.getLogger("axs6")
    log.info("loading the model")
    with out.status("loading the model") as status:

        def show(setting: str, done: int, total: int, left: float | None) -> None:
            log.info("%s: %d of %d %s", setting, done, total, name)
            rest = "" if left is None else f", about {left / 60:.0f} minutes left"
            status.update(f"{setting}: {done:,} of {total:,} {name}{rest}")

        yield show
