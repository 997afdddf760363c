"""Tasks of studies of models, each run by itself, and the file that keeps their results."""

import contextlib
import fcntl
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from axs6.studies.language.models import LanguageModel, Tokens
from axs6.studies.language.quantised import quantised
from axs6.studies.language.request import Setting
from axs6.studies.models import repeatable
from axs6.synth.sweep.pools import outcomes
from axs6.synth.sweep.tasks import OtherEnvironmentError, PoolTask

Progress = Callable[[str, int, int, float | None], None]
"""Called with a setting, the number of finished parts, the total, and the estimated seconds for
the rest, None if unknown."""


class TaskResult(Protocol):
    """The result of a task: a frozen dataclass of values that JSON has."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def key(self) -> str:
        """Digest of everything that decides it."""
        ...


R = TypeVar("R", bound=TaskResult)


class KeptResults(Generic[R]):
    """The file of finished parts, from which a stopped study resumes.

    Args:
        path: of lines of JSON; None for no file.
        kind: class of the results.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is no such result; a last line that was cut short is left out.
    """

    def __init__(self, path: Path | None, kind: type[R]) -> None:
        self._path = path
        self._results: dict[str, R] = {}
        text = path.read_text(encoding="utf-8") if path is not None and path.exists() else ""
        lines = text.split("\n")
        self._whole = len(text.encode()) - len(lines[-1].encode())
        for number, line in enumerate(lines[:-1], 1):
            try:
                result = kind(**json.loads(line))
            except (TypeError, ValueError):
                name = kind.__name__.lower()
                raise ValueError(f"{path}, line {number}: it must be a {name}") from None
            self._results[result.key] = result

    def get(self, key: str) -> R | None:
        """The result with this key, if finished."""
        return self._results.get(key)

    def add(self, result: R) -> None:
        """Keep a result, behind those that another study may have written since.

        Raises OSError if the file cannot be written.
        """
        self._results[result.key] = result
        if self._path is None:
            return
        self._path.touch()
        with self._path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(self._whole)
            self._whole += file.read().rfind(b"\n") + 1
            file.seek(self._whole)
            file.write(json.dumps(asdict(result)).encode() + b"\n")
            file.truncate()
            self._whole = file.tell()


@dataclass(frozen=True)
class ModelTask(PoolTask[R]):
    """A part of a study, run here or in another process.

    Args:
        path, function: arguments of `load`.
        digest: of the expected model.
        setting: formats of the model's parts.
        number: of the part, from 0.
        calibration: windows over which the FP32 model is watched; empty for none.
    """

    path: Path
    function: str | None
    digest: str
    setting: Setting
    number: int
    calibration: Tokens

    @staticmethod
    @abstractmethod
    def load(path: Path, function: str | None) -> LanguageModel:
        """Load the model."""

    @abstractmethod
    def result(self, model: LanguageModel, module: nn.Module) -> R:
        """Run the part, through a module with the setting applied.

        Raises:
            ValueError, RuntimeError: it cannot be run.
        """

    @property
    def watched(self) -> Tensor | None:
        """The windows of calibration."""
        return torch.tensor(self.calibration) if self.calibration else None

    def outcome(self) -> R | str:
        """The result, or in one line why there is none.

        Raises:
            OtherEnvironmentError: another model is at the path.
            OSError: the model cannot be read.
        """
        try:
            model = _loaded(self.load, self.path, self.function)
            if model.digest != self.digest:
                raise OtherEnvironmentError(f"{self.path} has another model than it had before")
            with repeatable(0):
                module = _quantised(model, self.setting, self.calibration)
            return self.result(model, module)
        except (ValueError, RuntimeError) as error:
            return " ".join(str(error).split())


@lru_cache(maxsize=1)
def _loaded(
    load: Callable[[Path, str | None], LanguageModel], path: Path, function: str | None
) -> LanguageModel:
    return load(path, function)


@lru_cache(maxsize=1)
def _quantised(model: LanguageModel, setting: Setting, calibration: Tokens) -> nn.Module:
    return quantised(model, setting, torch.tensor(calibration) if calibration else None)


@dataclass(frozen=True)
class TaskOptions(Generic[R]):
    """How the tasks of a study are run.

    Args:
        kept: finished results, to which new ones are added; None keeps nothing.
        jobs: tasks run in parallel, each in a process of its own if there are several.
        scheduler: address of a Dask scheduler whose workers run them instead; the workers need the
            model at the same path.
        progress: called after each task.
    """

    kept: KeptResults[R] | None = None
    jobs: int = 1
    scheduler: str | None = None
    progress: Progress = lambda setting, done, total, left: None


def run_tasks(tasks: Mapping[str, ModelTask[R]], options: TaskOptions[R]) -> dict[str, R]:
    """Run tasks whose results are not kept, and keep them.

    Args:
        tasks: by the keys of their results, in the order in which they are run.
        options: how they are run.

    Returns:
        The results by their keys.

    Raises:
        ValueError: a task cannot be run; the message has its setting.
        OSError: the file of results cannot be written.
        RuntimeError: processes or the cluster are lost.
    """
    kept = options.kept
    known = {} if kept is None else {key: kept.get(key) for key in tasks}
    found = {key: result for key, result in known.items() if result is not None}
    left = [task for key, task in tasks.items() if key not in found]
    already, started = len(found), monotonic()
    with contextlib.closing(outcomes(left, options.jobs, options.scheduler)) as ended:
        for done, (task, result) in enumerate(ended, 1):
            if isinstance(result, str):
                raise ValueError(f"{task.setting}: {result}")
            if kept is not None:
                kept.add(result)
            found[result.key] = result
            rest = (monotonic() - started) / done * (len(left) - done)
            options.progress(str(task.setting), already + done, len(tasks), rest)
    return found
