"""Arrays through the batch simulator: builds a model, shares the items out, runs the copies."""

import ctypes
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.layouts import Field, fields
from axs6.hw.registry import find
from axs6.sim.arrays import column, pointers, room
from axs6.sim.batch.model import model_source, runtime
from axs6.sim.batch.netlist import yosys_json
from axs6.sim.batch.read import read_netlist
from axs6.sim.compiler import SOURCE, compiled
from axs6.sim.stall import Stall, stall_header
from axs6.sim.tools import ToolError
from axs6.sim.trace import Recorder, Trace
from axs6.sim.words import check_items, completing

PATIENCE = 10_000
"""Cycles without any movement after which a unit counts as stuck."""


@dataclass(frozen=True)
class BatchRun:
    """Outputs of a run, and the cycles that its copies worked, added up.

    `trace` is that of the copies of the first thread, from their common first cycle on.
    """

    outputs: dict[str, NDArray[Any]]
    cycles: int
    trace: Trace


class ComponentModel:
    """A component with one input stream `i` and one output stream `o`, compiled.

    Every run starts from reset.

    Args:
        source: what `component_source` made of the component.
        name: what messages call it.

    Raises:
        ToolError: g++ is missing or fails.
    """

    def __init__(self, source: "Source", name: str) -> None:
        self.inputs, self.outputs = source.inputs, source.outputs
        files = {SOURCE: source.text, **runtime(), **stall_header()}
        self._library = ctypes.CDLL(str(compiled("batch", "the batch simulator", files)))
        self._library.axs6_lanes.restype = ctypes.c_int64
        self._library.axs6_run.restype = ctypes.c_int64
        self._lanes = int(self._library.axs6_lanes())
        self._name = name

    def run(
        self,
        items: Mapping[str, NDArray[Any]],
        stall: Stall | None = None,
        threads: int = 1,
        trace: int = 0,
    ) -> BatchRun:
        """Put items through copies of the unit, each copy on its own share of them.

        Args:
            items: an array for each input field, its first axis the items. Whole vectors, up to
                their `last`, stay with one copy.
            stall: random stalls on both sides; none by default.
            threads: threads that share the copies.
            trace: cycles to record of the first thread's copies.

        Raises:
            ValueError: arrays that do not fit the input payload, or no thread.
            ToolError: the unit stopped giving outputs, or gave more than it should.
        """
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        chosen = stall or Stall()
        check_items(items, self.inputs)
        arrays = [column(items[field.name], field) for field in self.inputs]
        ends = completing(items)
        outputs = [room(len(ends) + threads, field) for field in self.outputs]
        shares = _shares(len(arrays[0]), ends, "last" in items, self._lanes, threads)

        recorders = [
            Recorder(0 if thread else trace, self._lanes, self.outputs) for thread in range(threads)
        ]

        def work(thread: int) -> tuple[int, int]:
            return self._run_share(
                shares[thread], arrays, outputs, chosen, thread, recorders[thread]
            )

        if threads == 1:
            done = [work(0)]
        else:
            with ThreadPoolExecutor(threads) as pool:
                done = list(pool.map(work, range(threads)))
        results = {
            field.name: array[: len(ends)]
            for field, array in zip(self.outputs, outputs, strict=True)
        }
        return BatchRun(results, sum(busy for busy, _ in done), recorders[0].trace(done[0][1]))

    def _run_share(
        self,
        share: "_Share",
        arrays: Sequence[NDArray[Any]],
        outputs: Sequence[NDArray[Any]],
        stall: Stall,
        thread: int,
        recorder: Recorder,
    ) -> tuple[int, int]:
        """Cycles that the copies worked, added up, and cycles that they ran side by side."""
        busy = np.zeros(self._lanes, np.int64)
        if not share.input_count.any():
            return 0, 0
        done = self._library.axs6_run(
            share.packed(thread).ctypes.data_as(ctypes.c_void_p),
            pointers(arrays),
            pointers(outputs),
            *stall.arguments(),
            ctypes.c_int64(thread * self._lanes),
            ctypes.c_int64(PATIENCE),
            busy.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_int64(recorder.cycles),
            recorder.handshake.ctypes.data_as(ctypes.c_void_p),
            pointers(recorder.payload),
        )
        if done == -1:
            raise ToolError(f"{self._name} stopped: nothing moved for {PATIENCE} cycles")
        if done < 0:
            raise ToolError(f"{self._name} gave more outputs than its items complete")
        return int(busy.sum()), int(done)


class BatchModel(ComponentModel):
    """A unit of the registry, compiled.

    Args:
        unit: its name.
        parameters: of the unit; the others keep their defaults.

    Raises:
        ValueError: an unknown unit or parameter.
        ToolError: g++ is missing or fails.
    """

    def __init__(self, unit: str, **parameters: Any) -> None:
        settings = tuple(find(unit).parameters(parameters).items())
        super().__init__(_unit_source(unit, settings), f"{unit} {dict(settings)}")


@dataclass(frozen=True)
class _Share:
    """What the copies of one thread work on: first rows, counts, and the distance of rows."""

    input_first: NDArray[np.int64]
    input_count: NDArray[np.int64]
    output_first: NDArray[np.int64]
    output_count: NDArray[np.int64]
    stride: int
    outputs: int

    def packed(self, thread: int) -> NDArray[np.int64]:
        """The C++ struct `Share`; rows that nobody wants go behind all outputs."""
        return np.concatenate(
            [
                self.input_first,
                self.input_count,
                self.output_first,
                self.output_count,
                [self.stride, self.outputs + thread],
            ]
        ).astype(np.int64)


def _shares(
    items: int, ends: NDArray[np.intp], whole_vectors: bool, lanes: int, threads: int
) -> list[_Share]:
    """Share out the items: in turn where each stands alone, else in runs of whole vectors."""
    copies = lanes * threads
    if whole_vectors:
        bounds = np.linspace(0, len(ends), copies + 1).astype(np.int64)
        starts = np.concatenate([[0], ends + 1])[bounds]
        first, count = starts[:-1], np.diff(starts)
        output_first, output_count, stride = bounds[:-1], np.diff(bounds), 1
    else:
        first = np.arange(copies)
        count = (items - first + copies - 1) // copies
        output_first, output_count, stride = first, count, copies
    return [
        _Share(first[t], count[t], output_first[t], output_count[t], stride, len(ends))
        for t in (slice(i * lanes, (i + 1) * lanes) for i in range(threads))
    ]


@dataclass(frozen=True)
class Source:
    """C++ of a component, and the fields of its two payloads."""

    text: str
    inputs: list[Field]
    outputs: list[Field]


def component_source(component: Any) -> Source:
    """C++ of a component with streams `i` and `o`.

    Raises:
        NetlistError: the component has something that the batch simulator does not handle.
    """
    inputs, outputs = (fields(port.payload.shape()) for port in (component.i, component.o))
    netlist = read_netlist(yosys_json(component), {"i__payload": inputs, "o__payload": outputs})
    return Source(model_source(netlist, inputs, outputs), inputs, outputs)


@cache
def _unit_source(unit: str, settings: tuple[tuple[str, Any], ...]) -> Source:
    return component_source(find(unit).build(**dict(settings)))
