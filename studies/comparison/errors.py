"""QSNR of formats on random vectors and on recorded matrices, and accuracy of models."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from axs6.golden.formats import BlockFormat, block_format
from axs6.golden.metrics import qsnr_bound
from axs6.sim.cache import kept, sources
from axs6.studies.comparison.columns import DISTRIBUTIONS, KINDS
from axs6.studies.comparison.table import Cell
from axs6.studies.request import BUILT_IN

if TYPE_CHECKING:
    from axs6.studies.workload import Workload

Found = Iterator[tuple[str, str, Cell]]
"""Cells as they are measured: the format, the column, and the figure or the reason why it is
missing."""

FP32 = "fp32"
"""Name of the format of unconverted models."""


def bits(names: list[str]) -> Found:
    """Bits of a value."""
    for name in names:
        a_value = block_format(name).bits_a_value
        for column, count in zip(("bits", "packed_bits", "memory_bits"), a_value, strict=True):
            yield name, column, float(count)


def qsnr(names: list[str], vectors: int) -> Found:
    """QSNR on the distributions, and the theorem's bound."""
    from axs6.studies.qsnr import measure

    def measured(fmt: BlockFormat, distribution: str) -> float:
        return measure([fmt], vectors, distribution=distribution)[fmt].qsnr

    code = [sources("axs6.golden", "axs6.studies"), version("numpy")]
    for name in names:
        fmt = block_format(name)
        for each in DISTRIBUTIONS:
            key = [*code, str(fmt), each, str(vectors)]
            found = kept("qsnr", key, float, lambda fmt=fmt, each=each: measured(fmt, each))  # type: ignore[misc]
            yield name, f"{each}_db", _decibels(found)
        bound = qsnr_bound(fmt)
        yield name, "bound_db", _NO_BOUND if bound is None else bound


_NO_BOUND = (
    "Theorem 1 is of elements with a fixed point under one power of two for each block, found by "
    "the rule floor, with one level of shifts at most"
)


def recorded(names: list[str]) -> Found:
    """QSNR on the weights, activations and gradients of the built-in models; or the reasons why it
    is missing, as where a matrix is smaller than a tile."""

    def measured(fmt: BlockFormat, kind: str) -> float:
        from axs6.studies.recorded import recorded_qsnr

        return recorded_qsnr(fmt, _matrices()[kind])

    for name in names:
        fmt = block_format(name)
        for kind in KINDS:
            key = [*_trained(), str(fmt), kind]
            cell: Cell
            try:
                found = kept("recorded", key, float, lambda fmt=fmt, kind=kind: measured(fmt, kind))  # type: ignore[misc]
                cell = _decibels(found)
            except ValueError as error:
                cell = str(error)
            yield name, f"{kind}_db", cell


@dataclass(frozen=True)
class _Judgement:
    """Accuracy and loss of a model in a format; the loss is None if the metric is a function."""

    accuracy: float
    loss: float | None


def accuracy(names: Sequence[str], accumulator: str | None = None) -> Found:
    """Accuracy and loss of the built-in models in each format; with the default accumulator in FP32
    too."""
    for name in names if accumulator else [FP32, *names]:
        for model in BUILT_IN:
            yield from _judged(name, model, accumulator)


def _judged(name: str, model: str, accumulator: str | None) -> Found:
    def measured() -> _Judgement:
        from axs6.studies.accuracy import study_accuracy
        from axs6.torch.policy import Policy

        named = {"accumulator": accumulator} if accumulator else {}
        policies = {} if name == FP32 else {name: Policy({"format": name, **named})}
        study = study_accuracy(
            model, _workload(model), formats=[], policies=policies, backends=["emulated"]
        )
        return _Judgement(study.runs[-1].metric, study.runs[-1].loss)

    text = name if name == FP32 else str(block_format(name))
    found: Any
    try:
        key = [*_trained(), text, accumulator or "", model]
        found = astuple(kept("accuracy", key, _Judgement, measured))
    except ValueError as error:
        found = (str(error), str(error))
    for column, figure in zip(("accuracy", "loss"), found, strict=True):
        yield name, f"{model}_{column}", figure


def _trained() -> list[str]:
    """Everything that decides the bits of the built-in models and of their products."""
    machine = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    tools = [version(name) for name in ("numpy", "torch", "scikit-learn")]
    return [sources("axs6.golden", "axs6.sim"), *tools, *machine]


@cache
def _workload(model: str) -> "Workload":
    from axs6.studies.models import MODELS

    return MODELS[model]()


@cache
def _matrices() -> dict[str, list[Any]]:
    """Recorded matrices of all built-in models."""
    from axs6.studies.recorded import record

    each = [record(_workload(model)) for model in BUILT_IN]
    return {kind: [x for found in each for x in found[kind]] for kind in KINDS}


def _decibels(found: float) -> Cell:
    return found if math.isfinite(found) else "every value comes back as it was"
