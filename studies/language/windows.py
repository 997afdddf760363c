"""Windows of a text, each run by itself and kept in a file."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Self

import torch
from torch import Tensor, nn

from axs6.studies.language.models import LanguageModel, load, scores
from axs6.studies.language.quantised import quantised, quantised_cache
from axs6.studies.language.request import Setting
from axs6.studies.models import repeatable
from axs6.synth.sweep.tasks import OtherEnvironmentError, PoolTask
from axs6.torch.counted import Counter
from axs6.torch.report import ReportRow

Tokens = tuple[tuple[int, ...], ...]
"""Tokens of several windows."""


@dataclass(frozen=True)
class Window:
    """Result of one window.

    Args:
        key: digest of the model, the setting, the tokens and the versions.
        setting: its string.
        number: of the window in the text, from 0.
        tokens: number of predicted tokens.
        nats: sum of their negative log-likelihoods.
        seconds: CPU time of the model.
        unconverted: MACs that torch computed, by module and operator; of window 0 alone.
        signal, noise: sums of squares of the model's scores in FP32, and of how far others are from
            them, where one place is quantised; else 0.
    """

    key: str
    setting: str
    number: int
    tokens: int
    nats: float
    seconds: float
    unconverted: dict[str, int]
    signal: float = 0.0
    noise: float = 0.0

    @classmethod
    def of_line(cls, line: str) -> Self:
        """The window of a line of JSON. Raises ValueError for any other line."""
        try:
            return cls(**json.loads(line))
        except TypeError:
            raise ValueError("it must be a window of a study of perplexity") from None


class KeptWindows:
    """The file of finished windows, from which a stopped study resumes.

    Args:
        path: of lines of JSON; None keeps nothing.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is no window; a last line that was cut short is left out.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._windows: dict[str, Window] = {}
        text = path.read_text(encoding="utf-8") if path is not None and path.exists() else ""
        lines = text.split("\n")
        self._whole = len(text) - len(lines[-1])
        for number, line in enumerate(lines[:-1], 1):
            try:
                window = Window.of_line(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
            self._windows[window.key] = window

    def get(self, key: str) -> Window | None:
        """The window with this key, if finished."""
        return self._windows.get(key)

    def add(self, window: Window) -> None:
        """Keep a window. Raises OSError if the file cannot be written."""
        self._windows[window.key] = window
        if self._path is None:
            return
        with self._path.open("r+b" if self._path.exists() else "wb") as file:
            file.seek(self._whole)
            file.write(json.dumps(asdict(window)).encode() + b"\n")
            file.truncate()
            self._whole = file.tell()


def window_key(
    digest: str, setting: Setting, tokens: Tensor, calibration: Tensor | None = None
) -> str:
    """Digest of everything that decides the result of a window of a model with a digest."""
    capability = torch.backends.cpu.get_cpu_capability()
    parts = [digest, setting.key(), version("axs6"), torch.__version__, capability]
    found = hashlib.sha256("\n".join(parts).encode())
    found.update(tokens.numpy().tobytes())
    if calibration is not None:
        found.update(calibration.numpy().tobytes())
    return found.hexdigest()[:32]


@dataclass(frozen=True)
class WindowTask(PoolTask[Window]):
    """A window to run, here or in another process.

    Args:
        path, function: arguments of `load`. digest: of the expected model. setting: formats of the
        model's parts. number: of the window in the text. tokens: of the window. calibration:
        windows over which the FP32 model is watched; empty for none.
    """

    path: Path
    function: str | None
    digest: str
    setting: Setting
    number: int
    tokens: tuple[int, ...]
    calibration: Tokens = ()

    def outcome(self) -> Window | str:
        """The result of the window, or in one line why it cannot be run.

        Raises:
            OtherEnvironmentError: another model is at the path.
            OSError: the model cannot be read.
        """
        try:
            model = _loaded(self.path, self.function)
            if model.digest != self.digest:
                raise OtherEnvironmentError(f"{self.path} has another model than it had before")
            with repeatable(0):
                module = _quantised(self.path, self.function, self.setting, self.calibration)
            tokens = torch.tensor(self.tokens)
            key = window_key(self.digest, self.setting, tokens, _windows(self.calibration))
            window = _window(module, key, self.setting, self.number, tokens)
            if not self.setting.place:
                return window
            with repeatable(0), torch.inference_mode():
                plain = _plain_scores(self.path, self.function, self.tokens)
                apart = (scores(module, tokens.unsqueeze(0)) - plain).double()
            signal, noise = (float(x.double().square().sum()) for x in (plain, apart))
            return replace(window, signal=signal, noise=noise)
        except (ValueError, RuntimeError) as error:
            return " ".join(str(error).split())


def run(model: LanguageModel, setting: Setting, windows: Tensor) -> list[Window]:
    """Run windows (N, T) of a text through a model in a setting.

    Raises:
        ValueError: a score is NaN, or the setting does not go with the model.
    """
    module = quantised(model, setting)
    return [
        _window(module, window_key(model.digest, setting, tokens), setting, number, tokens)
        for number, tokens in enumerate(windows)
    ]


def _window(module: nn.Module, key: str, setting: Setting, number: int, tokens: Tensor) -> Window:
    counted: list[ReportRow] = []
    with repeatable(0), torch.inference_mode():
        started = process_time()
        nats = _nats(module, setting, tokens)
        seconds = process_time() - started
        if math.isnan(nats):
            first = number * len(tokens)
            last = first + len(tokens) - 1
            raise ValueError(f"scores of window {number}, tokens {first} to {last}, are NaN")
        if number == 0 and setting.counts:
            with Counter(counted):
                _nats(module, setting, tokens)
    return Window(
        key,
        str(setting),
        number,
        len(tokens) - 1,
        nats,
        seconds,
        {row.name: row.macs for row in counted},
    )


@lru_cache(maxsize=1)
def _loaded(path: Path, function: str | None) -> LanguageModel:
    return load(path, function)


@lru_cache(maxsize=1)
def _quantised(
    path: Path, function: str | None, setting: Setting, calibration: Tokens
) -> nn.Module:
    return quantised(_loaded(path, function), setting, _windows(calibration))


@lru_cache(maxsize=1)
def _plain_scores(path: Path, function: str | None, tokens: tuple[int, ...]) -> Tensor:
    return scores(_loaded(path, function).module, torch.tensor(tokens).unsqueeze(0))


def _windows(tokens: Tokens) -> Tensor | None:
    return torch.tensor(tokens) if tokens else None


def _nats(module: nn.Module, setting: Setting, tokens: Tensor) -> float:
    options = {}
    if setting.kv is not None:
        options = {"past_key_values": quantised_cache(setting.kv), "use_cache": True}
    found = scores(module, tokens.unsqueeze(0), **options)[0, :-1]
    costs = nn.functional.cross_entropy(found.float(), tokens[1:], reduction="none")
    return float(costs.double().sum())
