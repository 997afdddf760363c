"""Accuracy of a model in FP32, and in each block format and backend."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from axs6.golden.formats import BlockFormat, block_format, name_of
from axs6.studies.request import BACKENDS, BATCH, FORMATS, check_request
from axs6.studies.workload import Workload
from axs6.tables import Column, Table, Tabular, table_of, words
from axs6.torch import Policy, convert, profile
from axs6.torch.backends import ProductBatch
from axs6.torch.site import Site, Wholes, observed


@dataclass(frozen=True)
class ModelRun:
    """All samples through a model once.

    Args:
        backend: "fp32", "emulated" or "rtl".
        format: name of the block format, or of the policy; None in FP32.
        metric: the workload's metric of the outputs.
        seconds: wall time of the model alone: without training, the build of the simulator, and
            the comparison.
        loss: mean cross-entropy of the outputs in nats; None if the metric is a function. qsnr_db:
        power of the FP32 outputs over the power of the error, in dB; None in FP32 or without a
        finite ratio. bits_compared: number of bits compared with "emulated", of all products and,
        if both backends ran, of the outputs; None except for "rtl". bits_different: number of
        differing bits, which must be 0. cycles: clock cycles of the hardware's tile; None except
        for "rtl". utilisation: utilisation of its multipliers, 0 to 1. layers: the rows of
        `axs6.torch.Report`, for "rtl".
    """

    backend: str
    format: str | None
    metric: float
    seconds: float
    loss: float | None = None
    qsnr_db: float | None = None
    bits_compared: int | None = None
    bits_different: int | None = None
    cycles: int | None = None
    utilisation: float | None = None
    layers: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class AccuracyStudy(Tabular):
    """The runs of a model, FP32 first.

    Args:
        model: its name.
        metric: the metric's name.
        samples: number of samples. batch: batch size. tile: parameters of the hardware's tile;
        others have the unit's defaults. runs: one in FP32, then each format and backend.
    """

    model: str
    metric: str
    samples: int
    batch: int
    tile: Mapping[str, int]
    runs: list[ModelRun]

    def table(self) -> Table:
        """A row for each run; the change is that of the metric from FP32."""
        share = self.metric == "accuracy"
        columns = [
            words("backend"),
            Column("format", "format"),
            Column("metric", self.metric, ".2%" if share else ".4f"),
            Column("change", "change", "+.2%" if share else "+.4f"),
            Column("loss", "loss", ".4f"),
            Column("qsnr_db", "QSNR dB", ".1f"),
            Column("bits_different", "differ", ","),
            Column("cycles", "cycles", ","),
            Column("utilisation", "used", ".1%"),
            Column("seconds", "seconds", ".2f"),
        ]
        changes = [run.metric - self.reference.metric for run in self.runs]
        return table_of(
            columns,
            [
                {**vars(run), "change": None if run.format is None else change}
                for run, change in zip(self.runs, changes, strict=True)
            ],
        )

    @property
    def reference(self) -> ModelRun:
        """The run in FP32."""
        return self.runs[0]

    @property
    def bits_different(self) -> int:
        """Bits in which backends differ, over all runs."""
        return sum(run.bits_different or 0 for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON, with the conditions of the times."""
        machine = {
            "torch": torch.__version__,
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        }
        return {"study": "accuracy", **asdict(self), "machine": machine}


def study_accuracy(
    name: str,
    workload: Workload,
    *,
    formats: Iterable[str | BlockFormat] = FORMATS,
    policies: Mapping[str, Policy] | None = None,
    backends: Iterable[str] = BACKENDS,
    samples: int | None = None,
    batch: int = BATCH,
    tile: Mapping[str, int] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> AccuracyStudy:
    """Run a model in FP32 and in block formats, and measure it.

    Every run starts from one random seed. With "rtl", every product is computed by "emulated"
    too and compared on every bit.

    Args:
        name: name of the model in the study.
        workload: the model, its data and metric.
        formats: block formats of all products.
        policies: policies with different formats in different layers, by their names in the study.
        backends: of "emulated" and "rtl".
        samples: run only the first ones; None for all. batch: batch size. The tile fills its
        pipeline for every product, so cycles depend on it.
        tile: parameters of `axs6.sim.tile.Tile`.
        progress: called with a line of text before each run.

    Raises:
        TypeError, ValueError: an argument or an output of the model is refused, or the model has
            no product for a block format.
        ToolError: the simulator cannot be built or fails.
    """
    named = list(dict.fromkeys(name_of(block_format(fmt)) for fmt in formats))
    ways: dict[str, dict[str, Any]] = {name: {"format": name} for name in named}
    ways |= {name: {"policy": policy} for name, policy in (policies or {}).items()}
    chosen = [backend for backend in BACKENDS if backend in set(backends)]
    check_request(named, backends, samples, batch)
    if samples is not None:
        workload = workload.first(samples)
    workload.model.eval()
    progress("fp32")
    reference, seconds = _timed(workload.model, workload, batch)
    metric = workload.judge(reference)
    runs = [ModelRun("fp32", None, metric, seconds, workload.loss(reference))]
    for each, options in ways.items():
        outputs: dict[str, Tensor] = {}
        for backend in chosen:
            progress(f"{backend}, {each}")
            simulated = tile if backend == "rtl" else None
            model = convert(workload.model, backend, tile=simulated, **options)
            run, outputs[backend] = _run(
                workload, model, (backend, each), batch, reference, outputs
            )
            runs.append(run)
    return AccuracyStudy(
        name, workload.metric_name, workload.samples, batch, dict(tile or {}), runs
    )


def _run(
    workload: Workload,
    model: nn.Module,
    names: tuple[str, str],
    batch: int,
    reference: Tensor,
    others: Mapping[str, Tensor],
) -> tuple[ModelRun, Tensor]:
    """One run of a converted model, with its backend and format, and its outputs."""
    if names[0] == "emulated":
        outputs, seconds = _timed(model, workload, batch)
        quality = _qsnr(reference, outputs)
        metric = workload.judge(outputs)
        return ModelRun(*names, metric, seconds, workload.loss(outputs), quality), outputs
    clock = _Clock()
    # Observers act in the order in which they are entered: the clock stands still for `profile`.
    with observed(clock.stop), profile(compare="emulated") as report, observed(clock.go_on):
        outputs, seconds = _timed(model, workload, batch)
    compared = clock.bits
    if not compared:
        raise ValueError("model must have a matrix product that can be converted, not none")
    total = report.total
    different = total.bits_different or 0
    if "emulated" in others:
        compared += 8 * outputs.numel() * outputs.element_size()
        different += _different(outputs, others["emulated"])
    run = ModelRun(
        *names,
        workload.judge(outputs),
        seconds - clock.stood,
        workload.loss(outputs),
        _qsnr(reference, outputs),
        compared,
        different,
        total.cycles,
        total.utilisation,
        [row.as_dict() for row in report.rows],
    )
    return run, outputs


class _Clock:
    """Observers that measure the time of the observers between them, and count the products'
    bits."""

    def __init__(self) -> None:
        self.bits = 0
        self.stood = 0.0
        self._stopped = 0.0

    def stop(self, site: Site, a: Tensor, b: Tensor, result: ProductBatch, wholes: Wholes) -> None:
        self.bits += 32 * result.values.numel()
        self._stopped = perf_counter()

    def go_on(self, site: Site, a: Tensor, b: Tensor, result: ProductBatch, wholes: Wholes) -> None:
        self.stood += perf_counter() - self._stopped


def _timed(model: nn.Module, workload: Workload, batch: int) -> tuple[Tensor, float]:
    """Outputs for all samples, and the seconds that they took."""
    parts = []
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        started = perf_counter()
        for start in range(0, workload.samples, batch):
            output = model(*(x[start : start + batch] for x in workload.tensors))
            if not isinstance(output, Tensor) or output.dtype != torch.float32:
                kind = output.dtype if isinstance(output, Tensor) else type(output).__name__
                raise TypeError(f"model must return a float32 tensor, not {kind}")
            parts.append(output)
        seconds = perf_counter() - started
    return torch.cat(parts), seconds


def _qsnr(reference: Tensor, outputs: Tensor) -> float | None:
    signal = float(reference.double().square().sum())
    noise = float((outputs.double() - reference.double()).square().sum())
    if not (signal and noise and math.isfinite(signal + noise)):
        return None
    return 10 * math.log10(signal / noise)


def _different(a: Tensor, b: Tensor) -> int:
    """Bits in which float32 tensors of one shape differ."""
    ours, theirs = (np.ascontiguousarray(x.numpy()).view(np.uint32) for x in (a, b))
    return int(np.bitwise_count(ours ^ theirs).sum(dtype=np.int64))
