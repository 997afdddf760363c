"""Formats that change during training."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import nn
from torch.optim import Optimizer

from axs6.golden.accumulator import accumulator
from axs6.golden.formats import block_format
from axs6.torch.options import ProductOptions
from axs6.torch.training.options import set_options

FIELDS = ("weights", "activations", "gradients")


class FormatSchedule:
    """Formats of a converted model by the step: wide ones at first, narrow ones later.

    Like a learning-rate schedule, call it once after each step of the optimiser.

    Args:
        model: what `convert` gave.
        phases: pairs of the first step of a phase, the first one 0 and all rising, and what
            changes: `weights`, `activations` and `gradients` (names, strings or BlockFormats;
            None for FP32 backward products), `format` for weights and activations, and
            `accumulator`. Other options stay unchanged.

    Raises:
        ValueError: the steps are wrong, a name is unknown, or the model is not converted.
    """

    def __init__(self, model: nn.Module, phases: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        starts = [start for start, _ in phases]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise ValueError(f"phases must begin at rising steps from 0, not {starts}")
        self._model = model
        self._phases = [(start, _fields(changes)) for start, changes in phases]
        self._step, self._phase = 0, -1
        self._apply()

    def step(self) -> None:
        """Count a step, and change the formats where a phase begins."""
        self._step += 1
        self._apply()

    def state_dict(self) -> dict[str, int]:
        """The number of steps."""
        return {"step": self._step}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Resume from a number of steps."""
        self._step = state["step"]
        self._apply()

    def _apply(self) -> None:
        phase = max(i for i, (start, _) in enumerate(self._phases) if start <= self._step)
        if phase != self._phase:
            fields = self._phases[phase][1]

            def change(name: str, options: ProductOptions) -> ProductOptions:
                return replace(options, **fields)

            set_options(self._model, change)
            self._phase = phase


def _fields(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `ProductOptions`, from names."""
    given = dict(changes)
    if "format" in given:
        fmt = given.pop("format")
        given = {"weights": fmt, "activations": fmt, **given}
    unknown = [name for name in given if name not in (*FIELDS, "accumulator")]
    if unknown:
        names = ", ".join(("format", *FIELDS, "accumulator"))
        raise ValueError(f"a phase must change {names}, not {unknown[0]}")
    found = {
        name: None if fmt is None else block_format(fmt)
        for name, fmt in given.items()
        if name in FIELDS
    }
    if "accumulator" in given:
        return {**found, "accumulator": accumulator(given["accumulator"])}
    return found


def reset_optimiser(optimiser: Optimizer, **options: Any) -> None:
    """Reset the moments of an optimiser, for fine-tuning in a narrow format.

    Args:
        optimiser: its parameters stay.
        options: new values for all groups, such as `lr`, `betas` or `momentum`.

    Raises:
        ValueError: the optimiser has no such option.
    """
    for name in options:
        if any(name not in group for group in optimiser.param_groups):
            raise ValueError(f"{type(optimiser).__name__} has no option {name!r}")
    for group in optimiser.param_groups:
        group.update(options)
    optimiser.state = defaultdict(dict)
