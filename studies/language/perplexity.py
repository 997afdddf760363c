"""The perplexity of a language model in block formats, window by window."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from axs6.studies.language.linear import shared_copy
from axs6.studies.language.models import LanguageModel
from axs6.studies.language.quantised import excluded
from axs6.studies.language.request import Setting
from axs6.studies.language.rotation import unrotated
from axs6.studies.language.tasks import TaskOptions, run_tasks
from axs6.studies.language.windows import Window, WindowTask, window_key
from axs6.tables import Column, Table, Tabular, table_of, words


@dataclass(frozen=True)
class PerplexityRow:
    """A setting over all windows.

    Args:
        setting: formats of the model's parts. name: its string. bits: of a weight. perplexity:
        exponential of the mean over all predicted tokens. error: its standard error over windows;
        None for one window. ratio: perplexity relative to FP32. ratio_error: its standard error
        over windows, each relative to FP32 on the same window. seconds: CPU time. unconverted: MACs
        in the first window that torch computes, by module and operator: all of them in FP32, and
        not counted where only weights are quantised.
        unrotated: linear layers whose inputs blocks of the rotation do not fill, with these.
    """

    setting: Setting
    name: str
    bits: float
    perplexity: float
    error: float | None
    ratio: float
    ratio_error: float | None
    seconds: float
    unconverted: Mapping[str, int]
    unrotated: Sequence[str] = ()


COLUMNS = (
    words("setting", "format"),
    Column("bits", "bits", "g"),
    Column("perplexity", "perplexity", ",.4g"),
    Column("error", "+-", ".2g"),
    Column("ratio", "x FP32", ",.4g"),
    Column("ratio_error", "+-", ".2g"),
    Column("seconds", None),
)


@dataclass(frozen=True)
class Study(Tabular):
    """Perplexities of one model on one text.

    Args:
        model: its name.
        parameters: their number. text: name of the text. digest: of the tokens. windows, window:
        number of windows, and their length in tokens. rows: FP32 first.
    """

    model: str
    parameters: int
    text: str
    digest: str
    windows: int
    window: int
    rows: tuple[PerplexityRow, ...]

    def left_to_torch(self) -> list[str]:
        """Lines that name the products in FP32 of models with activations in block formats."""
        return left_to_torch(self.rows)

    def not_rotated(self) -> list[str]:
        """Lines that name the layers that a rotation leaves alone."""
        lines = [
            f"inputs no multiple of {row.setting.rotate}, not rotated: {', '.join(row.unrotated)}"
            for row in self.rows
            if row.unrotated
        ]
        return [*dict.fromkeys(lines)]

    def table(self) -> Table:
        """A row for each setting, FP32 first."""
        return table_of(COLUMNS, [{**vars(row), "setting": row.name} for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON, with the conditions of the times."""
        machine = {
            "torch": torch.__version__,
            "instructions": torch.backends.cpu.get_cpu_capability(),
        }
        return {"study": "perplexity", **asdict(self), "machine": machine}


def study_perplexity(
    name: str,
    origin: tuple[Path, str | None],
    model: LanguageModel,
    windows: Tensor,
    settings: Iterable[Setting],
    options: TaskOptions[Window],
    *,
    calibration: Tensor | None = None,
    text: str = "text",
) -> Study:
    """Measure the perplexity of a model in FP32 and in settings.

    Each window runs by itself, in one thread, so stopped studies and studies on several processes
    give the same digits.

    Args:
        name: name of the model in the study.
        origin: arguments of `load`, for other processes.
        model: the model.
        windows: tokens, int64 (N, T); all but the first of each window are predicted.
        settings: formats of the model's parts, in each row of the study.
        options: how windows are run.
        calibration: tokens of other windows, int64 (M, T), for settings that need them.
        text: name of the text in the study.

    Raises:
        ValueError: a score is NaN, or a setting does not go with the model.
        OSError: the file of windows cannot be written.
        RuntimeError: processes or the cluster are lost.
    """
    chosen = list(dict.fromkeys([Setting(), *settings]))
    found = run_windows(*(origin, model, windows, chosen, options), calibration=calibration)
    reference = found[chosen[0]]
    rows = tuple(
        replace(row_of(each, found[each], reference), unrotated=_unrotated(model, each))
        for each in chosen
    )
    digest = hashlib.sha256(windows.numpy().tobytes()).hexdigest()[:16]
    count, size = windows.shape
    return Study(name, model.parameters, text, digest, count, size, rows)


def run_windows(
    origin: tuple[Path, str | None],
    model: LanguageModel,
    windows: Tensor,
    settings: Sequence[Setting],
    options: TaskOptions[Window],
    *,
    calibration: Tensor | None = None,
    by_window: bool = False,
) -> dict[Setting, list[Window]]:
    """The results of all windows in each setting.

    Args:
        by_window: whether all settings of a window come before the next window, not the windows of
            a setting before the next setting.

    The other arguments and errors are those of `study_perplexity`.
    """
    tasks: dict[str, WindowTask] = {}
    keys: dict[Setting, list[str]] = {setting: [] for setting in settings}
    for setting in settings:
        watched = calibration if setting.calibrated else None
        if setting.calibrated and watched is None:
            raise ValueError(f"{setting} needs calibration windows")
        others = () if watched is None else tuple(map(tuple, watched.tolist()))
        for number, tokens in enumerate(windows):
            key = window_key(model.digest, setting, tokens, watched)
            keys[setting].append(key)
            numbers = tuple(tokens.tolist())
            task = WindowTask(*origin, model.digest, setting, number, others, numbers)
            tasks.setdefault(key, task)
    if by_window:
        tasks = dict(sorted(tasks.items(), key=lambda item: item[1].number))
    found = run_tasks(tasks, options)
    return {setting: [found[key] for key in keys[setting]] for setting in settings}


class Counted(Protocol):
    """A row of a study, with its name and the MACs that torch computes."""

    @property
    def name(self) -> str:
        """String of its setting."""
        ...

    @property
    def unconverted(self) -> Mapping[str, int]:
        """These MACs, by module and operator."""
        ...


def left_to_torch(rows: Sequence[Counted]) -> list[str]:
    """Lines that name the products in FP32 of models with activations in block formats.

    Args:
        rows: FP32 first, which has all of them.
    """
    macs = sum(rows[0].unconverted.values())
    names: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for row in rows[1:]:
        names.setdefault(tuple(row.unconverted.items()), []).append(row.name)
    everywhere = len(names) == 1 < len(rows) - 1
    return [
        f"in FP32 in {'all formats' if everywhere else ', '.join(some)}: "
        + ", ".join(f"{name} ({count / macs:.1%} of {macs:,} MACs)" for name, count in left)
        for left, some in names.items()
        if left
    ]


def row_of(
    setting: Setting, windows: Sequence[Window], reference: Sequence[Window]
) -> PerplexityRow:
    """The row of a setting, from its windows and the windows in FP32."""
    ours, theirs = (
        np.array([each.nats / each.tokens for each in some]) for some in (windows, reference)
    )
    perplexity, error = _exponential(ours)
    ratio, ratio_error = _exponential(ours - theirs)
    return PerplexityRow(
        setting,
        str(setting),
        setting.bits,
        perplexity,
        error,
        ratio,
        ratio_error,
        math.fsum(window.seconds for window in windows),
        {name: macs for window in windows for name, macs in window.unconverted.items()},
    )


def _unrotated(model: LanguageModel, setting: Setting) -> list[str]:
    if setting.rotate is None:
        return []
    layers = shared_copy(model.module)
    return unrotated(layers, setting.rotate, excluded(model, setting))


def _exponential(values: Any) -> tuple[float, float | None]:
    """The exponential of a mean, and its standard error to first order."""
    result = float(np.exp(values.mean()))
    if len(values) < 2:
        return result, None
    return result, result * float(values.std(ddof=1)) / math.sqrt(len(values))
