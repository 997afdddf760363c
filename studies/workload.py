"""Workload of a study: a trained model, test data, and a metric."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

Metric = Callable[[Tensor, Tensor], float]


def accuracy(outputs: Tensor, targets: Tensor) -> float:
    """Share of targets (...) at which outputs (..., classes) are largest."""
    return float((outputs.argmax(-1) == targets).double().mean())


def cross_entropy(outputs: Tensor, targets: Tensor) -> float:
    """Mean cross-entropy in nats of scores (..., classes) and classes (...)."""
    scores = outputs.reshape(-1, outputs.shape[-1]).double()
    return float(nn.functional.cross_entropy(scores, targets.reshape(-1).long()))


METRICS: dict[str, Metric] = {"accuracy": accuracy, "cross_entropy": cross_entropy}
"""Metrics that have a name."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A model with the data and the metric of a study.

    Args:
        model: trained, with parameters in float32; studies put it into evaluation mode.
        inputs: inputs of the model, samples along the first axis; a tuple of tensors if the model
            takes several.
        targets: expected results for the metric, samples along the first axis.
        metric: "accuracy", "cross_entropy", or a function of the outputs and targets of all samples
            that returns a number.

    Raises:
        TypeError: an argument is of another type.
        ValueError: there is no sample, their numbers differ, the metric has no such name, or a
            parameter is not in float32.
    """

    model: nn.Module
    inputs: Tensor | tuple[Tensor, ...]
    targets: Tensor
    metric: str | Metric = "accuracy"

    def __post_init__(self) -> None:
        if not isinstance(self.model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, not {_kind(self.model)}")
        for tensor in self.tensors:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"inputs must be a tensor or several, not {_kind(tensor)}")
        if not isinstance(self.targets, Tensor):
            raise TypeError(f"targets must be a tensor, not {_kind(self.targets)}")
        counts = [len(x) if x.ndim else 0 for x in (*self.tensors, self.targets)]
        if min(counts) == 0 or len(set(counts)) > 1 or len(counts) < 2:
            raise ValueError(f"inputs and targets must have as many samples, not {counts}")
        if isinstance(self.metric, str):
            if self.metric not in METRICS:
                names = ", ".join(METRICS)
                raise ValueError(f"metric must be {names} or a function, not {self.metric!r}")
        elif not callable(self.metric):
            raise TypeError(f"metric must be a name or a function, not {_kind(self.metric)}")
        for name, parameter in self.model.named_parameters():
            if parameter.dtype != torch.float32:
                raise ValueError(f"model must be in float32, but {name} is {parameter.dtype}")

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The arguments of the model."""
        return self.inputs if isinstance(self.inputs, tuple) else (self.inputs,)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.targets)

    @property
    def metric_name(self) -> str:
        """Name of the metric in tables."""
        if isinstance(self.metric, str):
            return self.metric
        return getattr(self.metric, "__name__", _kind(self.metric))

    def first(self, samples: int) -> "Workload":
        """The workload with only the first samples."""
        inputs = tuple(x[:samples] for x in self.tensors)
        return replace(self, inputs=inputs, targets=self.targets[:samples])

    def loss(self, outputs: Tensor) -> float | None:
        """The mean cross-entropy of the outputs in nats; None unless targets are classes."""
        named = isinstance(self.metric, str)
        return cross_entropy(outputs, self.targets) if named else None

    def judge(self, outputs: Tensor) -> float:
        """The metric of the outputs of all samples.

        Raises:
            ValueError: the outputs do not fit the targets, or the metric is no finite number.
        """
        if isinstance(self.metric, str):
            if outputs.shape[:-1] != self.targets.shape:
                raise ValueError(
                    f"{self.metric} needs outputs of shape {(*self.targets.shape, 'classes')}, "
                    f"not {tuple(outputs.shape)}"
                )
            metric = METRICS[self.metric]
        else:
            metric = self.metric
        value: Any = metric(outputs, self.targets)
        try:
            number = float(value)
        except (TypeError, ValueError, RuntimeError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"{self.metric_name} must be a finite number, not {value!r}")
        return number


def _kind(value: object) -> str:
    return type(value).__name__
