"""How similar sentences are to a sentence encoder in block formats, compared with FP32."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from axs6.studies.language.encoder import SentenceEncoder, load_encoder
from axs6.studies.language.models import LanguageModel, Tokens
from axs6.studies.language.perplexity import left_to_torch
from axs6.studies.language.request import Setting
from axs6.studies.language.tasks import ModelTask, TaskOptions, run_tasks
from axs6.studies.language.windows import window_key
from axs6.studies.models import repeatable
from axs6.tables import Column, Table, Tabular, table_of, words
from axs6.torch.counted import Counter
from axs6.torch.report import ReportRow

COLUMNS = (
    words("setting", "format"),
    Column("bits", "bits", "g"),
    Column("spearman", "Spearman", ".5f"),
    Column("error", "+-", ".2g"),
    Column("nearest", "same nearest", ".1%"),
    Column("nearest_error", "+-", ".1%"),
)


@dataclass(frozen=True)
class Group:
    """Result of one group of sentences.

    Args:
        key: digest of the model, the setting, the tokens and the versions.
        setting: its string.
        number: of the group in the text, from 0.
        sentences: how many there are.
        spearman: rank correlation of the cosine similarities of all pairs with those in FP32.
        nearest: number of sentences whose most similar one is the same as in FP32.
        unconverted: MACs that torch computed for the first sentence, by module and operator; of
            group 0 alone.
    """

    key: str
    setting: str
    number: int
    sentences: int
    spearman: float
    nearest: int
    unconverted: dict[str, int]


@dataclass(frozen=True)
class SimilarityRow:
    """A setting over all groups.

    Args:
        name: string of the setting.
        bits: of a weight. spearman: mean over groups of the rank correlation with FP32. nearest:
        share of sentences whose most similar one is the same as in FP32. error, nearest_error:
        their standard errors over groups; None for one group. unconverted: MACs of the first
        sentence that torch computes, by module and operator: all of them in FP32, and not counted
        where only weights are quantised.
    """

    name: str
    bits: float
    spearman: float
    error: float | None
    nearest: float
    nearest_error: float | None
    unconverted: Mapping[str, int]


@dataclass(frozen=True)
class Similarity(Tabular):
    """Agreement of an encoder with itself in FP32 on one text.

    Args:
        model: its name.
        parameters: their number. text: name of the text. groups, sentences: number of groups, and
        of sentences in each. rows: FP32 first.
    """

    model: str
    parameters: int
    text: str
    groups: int
    sentences: int
    rows: tuple[SimilarityRow, ...]

    def left_to_torch(self) -> list[str]:
        """Lines that name the products in FP32 of models with activations in block formats."""
        return left_to_torch(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON."""
        return {"study": "similarity", **asdict(self)}

    def table(self) -> Table:
        """A row for each setting, FP32 first."""
        return table_of(COLUMNS, [{**vars(row), "setting": row.name} for row in self.rows])


@dataclass(frozen=True)
class GroupTask(ModelTask[Group]):
    """A group of sentences to run.

    Args:
        sentences: their tokens.
    """

    sentences: Tokens

    load = staticmethod(load_encoder)

    def result(self, model: LanguageModel, module: nn.Module) -> Group:
        """The result of the group."""
        assert isinstance(model, SentenceEncoder)
        try:
            plain = _plain_similarities(model, self.sentences)
            same = module is model.module
            found = plain if same else _similarities(model, module, self.sentences)
        except ValueError as error:
            raise ValueError(f"group {self.number}, {error}") from None
        counted: list[ReportRow] = []
        if self.number == 0 and self.setting.counts:
            with repeatable(0), torch.inference_mode(), Counter(counted):
                model.embedding(module, self.sentences[0])
        return Group(
            group_key(self.digest, self.setting, self.sentences),
            str(self.setting),
            self.number,
            len(self.sentences),
            spearman(plain, found),
            int((_nearest(plain) == _nearest(found)).sum()),
            {row.name: row.macs for row in counted},
        )


def group_key(digest: str, setting: Setting, sentences: Tokens) -> str:
    """Digest of everything that decides the result of a group."""
    lengths = [len(each) for each in sentences]
    return window_key(digest, setting, torch.tensor([*lengths, *chain(*sentences)]))


@lru_cache(maxsize=64)
def _plain_similarities(model: SentenceEncoder, sentences: Tokens) -> NDArray[np.float64]:
    return _similarities(model, model.module, sentences)


def _similarities(
    model: SentenceEncoder, module: nn.Module, sentences: Tokens
) -> NDArray[np.float64]:
    """The cosine similarities (N, N) of N sentences, each run by itself.

    Raises:
        ValueError: an embedding is NaN; the message has the sentence's number in the group.
    """
    rows: list[Tensor] = []
    with repeatable(0), torch.inference_mode():
        for number, tokens in enumerate(sentences):
            try:
                rows.append(model.embedding(module, tokens))
            except ValueError as error:
                raise ValueError(f"sentence {number}: {error}") from None
        vectors = torch.stack(rows)
        result: NDArray[np.float64] = (vectors @ vectors.mT).numpy()
    return result


def _nearest(similarities: NDArray[np.float64]) -> NDArray[np.intp]:
    """The most similar other sentence of each."""
    others = similarities.copy()
    np.fill_diagonal(others, -np.inf)
    return others.argmax(1)


def spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Spearman's rank correlation of what lies above the diagonals of two square matrices.

    Equal values share the mean of their ranks. Where all of a matrix are equal there is none: 0.
    """
    above = np.triu_indices(len(a), 1)
    x, y = (_ranks(each[above]) for each in (a, b))
    x, y = x - x.mean(), y - y.mean()
    length = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / length if length else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def study_similarity(
    name: str,
    origin: tuple[Path, str | None],
    model: SentenceEncoder,
    groups: Sequence[Tokens],
    settings: Iterable[Setting],
    options: TaskOptions[Group],
    *,
    text: str = "text",
) -> Similarity:
    """Measure how a sentence encoder in settings agrees with itself in FP32.

    Pairs and nearest sentences are those within a group. Each sentence runs by itself, in one
    thread, so stopped studies and studies on several processes give the same digits.

    Args:
        name: name of the model in the study.
        origin: arguments of `load_encoder`, for other processes.
        model: the model.
        groups: tokens of sentences, 3 or more in each group.
        settings: formats of the model's parts, in each row of the study.
        options: how groups are run.
        text: name of the text in the study.

    Raises:
        ValueError: an embedding is NaN, or a setting does not go with the model.
        OSError: the file of groups cannot be written.
        RuntimeError: processes or the cluster are lost.
    """
    chosen = list(dict.fromkeys([Setting(), *settings]))
    tasks: dict[str, GroupTask] = {}
    keys: dict[Setting, list[str]] = {setting: [] for setting in chosen}
    for setting in chosen:
        for number, sentences in enumerate(groups):
            key = group_key(model.digest, setting, sentences)
            keys[setting].append(key)
            task = GroupTask(*origin, model.digest, setting, number, (), sentences)
            tasks.setdefault(key, task)
    found = run_tasks(tasks, options)
    rows = tuple(_row(each, [found[key] for key in keys[each]]) for each in chosen)
    return Similarity(name, model.parameters, text, len(groups), len(groups[0]), rows)


def _row(setting: Setting, groups: Sequence[Group]) -> SimilarityRow:
    agreement = _mean([each.spearman for each in groups])
    nearest = _mean([each.nearest / each.sentences for each in groups])
    unconverted = {name: macs for each in groups for name, macs in each.unconverted.items()}
    return SimilarityRow(str(setting), setting.bits, *agreement, *nearest, unconverted)


def _mean(values: Sequence[float]) -> tuple[float, float | None]:
    """A mean and its standard error."""
    found = np.array(values)
    if len(found) < 2:
        return float(found.mean()), None
    return float(found.mean()), float(found.std(ddof=1)) / math.sqrt(len(found))
