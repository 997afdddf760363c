"""Windows of a text, each run by itself."""

import hashlib
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from time import process_time

import torch
from torch import Tensor, nn

from axs6.studies.language.models import LanguageModel, load, scores
from axs6.studies.language.quantised import quantised, quantised_cache
from axs6.studies.language.request import Setting
from axs6.studies.language.tasks import ModelTask
from axs6.studies.models import repeatable
from axs6.torch.counted import Counter
from axs6.torch.report import ReportRow


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
class WindowTask(ModelTask[Window]):
    """A window to run.

    Args:
        tokens: of the window.
    """

    tokens: tuple[int, ...]

    load = staticmethod(load)

    def result(self, model: LanguageModel, module: nn.Module) -> Window:
        """The result of the window."""
        tokens = torch.tensor(self.tokens)
        key = window_key(self.digest, self.setting, tokens, self.watched)
        window = _window(module, key, self.setting, self.number, tokens)
        if not self.setting.place:
            return window
        with repeatable(0), torch.inference_mode():
            plain = _plain_scores(model, self.tokens)
            apart = (scores(module, tokens.unsqueeze(0)) - plain).double()
        signal, noise = (float(x.double().square().sum()) for x in (plain, apart))
        return replace(window, signal=signal, noise=noise)


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
def _plain_scores(model: LanguageModel, tokens: tuple[int, ...]) -> Tensor:
    return scores(model.module, torch.tensor(tokens).unsqueeze(0))


def _nats(module: nn.Module, setting: Setting, tokens: Tensor) -> float:
    options = {}
    if setting.kv is not None:
        options = {"past_key_values": quantised_cache(setting.kv), "use_cache": True}
    found = scores(module, tokens.unsqueeze(0), **options)[0, :-1]
    costs = nn.functional.cross_entropy(found.float(), tokens[1:], reduction="none")
    return float(costs.double().sum())
