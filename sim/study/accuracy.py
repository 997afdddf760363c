"""What AXS-6 costs in accuracy: a model in FP32, and in each backend and block size."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from axs6.golden.formats.block_format import MODE_BLOCKS
from axs6.sim.study.request import BACKENDS, BATCH, check_request
from axs6.sim.study.workload import Workload
from axs6.sim.torch import convert, profile
from axs6.sim.torch.backends import Result
from axs6.sim.torch.site import Site, observed


@dataclass(frozen=True)
class Run:
    """All samples through a model once.

    Args:
        backend: "fp32", "emulated" or "rtl".
        block: values that share an exponent; None in FP32.
        metric: the workload's metric of the outputs.
        seconds: wall time of the model alone: without training, the build of the simulator, and
            the comparison.
        qsnr_db: squares of FP32's outputs to those of the differences from them, in dB; None in
            FP32, or where there is no finite ratio.
        bits_compared: bits of all products, and of the outputs where both backends ran, that
            were compared with "emulated"; None but with "rtl".
        bits_different: those of them that differ, which must be none.
        cycles: clock cycles of the hardware's tile; None but with "rtl".
        utilisation: share of its multipliers' work that counts, 0 to 1.
        layers: the rows of `axs6.sim.torch.Report`, for "rtl".
    """

    backend: str
    block: int | None
    metric: float
    seconds: float
    qsnr_db: float | None = None
    bits_compared: int | None = None
    bits_different: int | None = None
    cycles: int | None = None
    utilisation: float | None = None
    layers: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Study:
    """The runs of a model, FP32 first.

    Args:
        model: its name.
        metric: the metric's name.
        samples: how many were run.
        batch: how many at once.
        tile: parameters of the hardware's tile; those not named are the unit's defaults.
        runs: one in FP32, then each block size and backend.
    """

    model: str
    metric: str
    samples: int
    batch: int
    tile: Mapping[str, int]
    runs: list[Run]

    @property
    def reference(self) -> Run:
        """The run in FP32."""
        return self.runs[0]

    @property
    def bits_different(self) -> int:
        """Bits in which backends differ, over all runs."""
        return sum(run.bits_different or 0 for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON, with what the times depend on."""
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
    blocks: Iterable[int] = MODE_BLOCKS,
    backends: Iterable[str] = BACKENDS,
    samples: int | None = None,
    batch: int = BATCH,
    tile: Mapping[str, int] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Study:
    """Run a model in FP32 and in AXS-6, and measure it.

    Every run starts from one random seed. With "rtl", every product is computed by "emulated"
    too and compared on every bit.

    Args:
        name: what the study calls the model.
        workload: the model, its data and metric.
        blocks: block sizes, of 8, 16 and 32.
        backends: of "emulated" and "rtl".
        samples: run the first ones alone; None for all.
        batch: samples that the model gets at once. The tile fills its pipeline for every
            product, so cycles depend on it.
        tile: parameters of `axs6.sim.tile.Tile`.
        progress: called with a line of text before each run.

    Raises:
        TypeError, ValueError: an argument or an output of the model is refused, or the model has
            no product for AXS-6.
        ToolError: the simulator cannot be built or fails.
    """
    sizes = sorted(set(blocks))
    chosen = [backend for backend in BACKENDS if backend in set(backends)]
    check_request(sizes, backends, samples, batch)
    if samples is not None:
        workload = workload.first(samples)
    workload.model.eval()
    progress("fp32")
    reference, seconds = _timed(workload.model, workload, batch)
    runs = [Run("fp32", None, workload.judge(reference), seconds)]
    for block in sizes:
        outputs: dict[str, Tensor] = {}
        for backend in chosen:
            progress(f"{backend}, block {block}")
            run, outputs[backend] = _run(workload, backend, block, batch, tile, reference, outputs)
            runs.append(run)
    return Study(name, workload.metric_name, workload.samples, batch, dict(tile or {}), runs)


def _run(
    workload: Workload,
    backend: str,
    block: int,
    batch: int,
    tile: Mapping[str, int] | None,
    reference: Tensor,
    others: Mapping[str, Tensor],
) -> tuple[Run, Tensor]:
    """One run in AXS-6, and its outputs."""
    if backend == "emulated":
        outputs, seconds = _timed(convert(workload.model, block=block), workload, batch)
        quality = _qsnr(reference, outputs)
        return Run(backend, block, workload.judge(outputs), seconds, quality), outputs
    model = convert(workload.model, backend, block=block, tile=tile)
    clock = _Clock()
    # Observers act in the order in which they are entered: the clock stands still for `profile`.
    with observed(clock.stop), profile(compare="emulated") as report, observed(clock.go_on):
        outputs, seconds = _timed(model, workload, batch)
    compared = clock.bits
    if not compared:
        raise ValueError("model must have a matrix product that AXS-6 can compute, not none")
    total = report.total
    different = total.bits_different or 0
    if "emulated" in others:
        compared += 8 * outputs.numel() * outputs.element_size()
        different += _different(outputs, others["emulated"])
    run = Run(
        backend,
        block,
        workload.judge(outputs),
        seconds - clock.stood,
        _qsnr(reference, outputs),
        compared,
        different,
        total.cycles,
        total.utilisation,
        [row.as_dict() for row in report.rows],
    )
    return run, outputs


class _Clock:
    """Observers that measure how long others take between them, and count the products' bits."""

    def __init__(self) -> None:
        self.bits = 0
        self.stood = 0.0
        self._stopped = 0.0

    def stop(self, site: Site, a: Tensor, b: Tensor, result: Result) -> None:
        self.bits += 32 * result.values.numel()
        self._stopped = perf_counter()

    def go_on(self, site: Site, a: Tensor, b: Tensor, result: Result) -> None:
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
