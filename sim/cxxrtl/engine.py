"""Arrays through the reference simulator: builds a model and runs one copy of the design."""

import contextlib
import ctypes
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.core.layouts import Field
from axs6.hw.registry import find_with_streams
from axs6.replacing import replacing
from axs6.sim.compiled import PATIENCE, Outcome, Stall, check_outcome, element_type, pointers, room
from axs6.sim.compiler import SOURCE, check_compiler, compiled
from axs6.sim.control import Progress, call, workers
from axs6.sim.cxxrtl.source import CxxrtlDesign, design, model_source, runtime
from axs6.sim.trace import Recorder, Trace
from axs6.sim.words import Items, Rows, check_items, completing

NEEDED_BY = "the CXXRTL simulator"
UNTANGLED = ("-fno-gcse", "--param=max-combine-insns=2")
"""Without these g++ takes minutes in place of seconds over functions of thousands of statements
without a branch, such as a datapath of single bits, for code that is no faster."""

COMMON_OPTIONS = ("-I.", "-fvisibility=hidden")
OPTIONS = (*COMMON_OPTIONS, "-O3", "-fno-tree-vectorize", *UNTANGLED)
"""Vectors over the two or three chunks of a CXXRTL value make a model three times slower."""

WAVE_OPTIONS = (*COMMON_OPTIONS, "-O0")
"""Code for waveforms takes minutes to optimise, for windows that take seconds to simulate."""

_FOR_EVER = 2**63 - 1

WINDOW = (0, 1000)
"""Default cycles of a waveform."""


@dataclass(frozen=True)
class CxxrtlRun:
    """Outputs of a run, its cycles from the first input to the last output, and their trace."""

    outputs: dict[str, NDArray[Any]]
    cycles: int
    trace: Trace


class ComponentModel:
    """A component with one input stream `i` and one output stream `o`.

    It is compiled for the first run that needs it, and again for the first with a waveform. Every
    run starts from reset.

    Args:
        design: what `axs6.sim.cxxrtl.source.design` made of the component.
        name: what messages call it.

    Raises:
        ToolError: g++ is missing.
    """

    def __init__(self, design: CxxrtlDesign, name: str) -> None:
        check_compiler(NEEDED_BY)
        self.inputs, self.outputs = design.inputs, design.outputs
        self._design = design
        self._name = name
        self._libraries: dict[bool, ctypes.CDLL] = {}

    def build(self, waves: bool = False) -> ctypes.CDLL:
        """The compiled design, with what waveforms need or without it.

        Raises:
            ToolError: g++ or Yosys is missing or fails.
        """
        if waves not in self._libraries:
            files = {SOURCE: model_source(self._design, waves), **runtime()}
            options = WAVE_OPTIONS if waves else OPTIONS
            path = compiled("cxxrtl", NEEDED_BY, files, options)
            library = ctypes.CDLL(str(path), use_errno=True)
            library.axs6_run.restype = ctypes.c_int64
            self._libraries[waves] = library
        return self._libraries[waves]

    def run(
        self,
        items: Items,
        stall: Stall | None = None,
        *,
        copy: int = 0,
        trace: int = 0,
        vcd: Path | None = None,
        window: tuple[int, int] = WINDOW,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> CxxrtlRun:
        """Run items through one copy of the design.

        Args:
            items: an array for each input field, its first axis the items, or rows of an array.
            stall: random stalls on both sides; none by default.
            copy: the copy of the batch simulator whose stalls to take.
            trace: cycles to record.
            vcd: file for a waveform of every signal, which is written whole or not at all.
            window: first cycle of the waveform, and the one before which it ends.
            limit: cycles after which the run ends, with the outputs given by then.
            progress: called now and then with the cycle.

        Raises:
            ValueError: arrays that do not fit the input payload, or a window without cycles.
            ToolError: the unit stopped giving outputs, gave more than it should, or could not be
                compiled.
            OSError: the waveform cannot be written.
        """
        check_items(items, self.inputs)
        if not 0 <= window[0] < window[1]:
            raise ValueError(f"window must be two rising cycles from 0, not {window}")
        arrays = {field.name: _items(items[field.name], field) for field in self.inputs}
        count = len(completing(arrays))
        outputs = [room(count, field) for field in self.outputs]
        recorder = Recorder(trace, 1, self.outputs)
        library = self.build(waves=vcd is not None)
        given = ctypes.c_int64()

        def work(file: int) -> int:
            cycles = call(
                library,
                "axs6_run",
                ctypes.c_int64(len(next(iter(arrays.values())))),
                ctypes.c_int64(count),
                pointers(list(arrays.values())),
                pointers(outputs),
                *(stall or Stall()).arguments(),
                ctypes.c_int64(copy),
                ctypes.c_int64(PATIENCE),
                ctypes.c_int64(recorder.cycles),
                recorder.handshake.ctypes.data_as(ctypes.c_void_p),
                pointers(recorder.payload),
                *map(ctypes.c_int64, window),
                ctypes.c_int(file),
                ctypes.c_int64(_FOR_EVER if limit is None else limit),
                ctypes.byref(given),
            )
            self._check(cycles)
            return int(cycles)

        with contextlib.ExitStack() as stack:
            file = -1 if vcd is None else stack.enter_context(replacing(vcd)).fileno()
            (cycles,) = stack.enter_context(workers(1, progress)).map(work, [file])
            if vcd is not None and cycles <= window[0]:
                raise ValueError(f"window {window} begins after the run's {cycles} cycles")
        results = {
            field.name: array[: given.value]
            for field, array in zip(self.outputs, outputs, strict=True)
        }
        return CxxrtlRun(results, cycles, recorder.trace(cycles))

    def _check(self, cycles: int) -> None:
        check_outcome(self._name, cycles)
        if cycles == Outcome.UNWRITABLE:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class CxxrtlModel(ComponentModel):
    """A unit of the registry.

    Args:
        unit: its name.
        parameters: of the unit; the others keep their defaults.

    Raises:
        ValueError: an unknown unit or parameter.
        ToolError: g++ is missing.
    """

    def __init__(self, unit: str, **parameters: Any) -> None:
        settings = tuple(find_with_streams(unit).simulated(parameters).items())
        super().__init__(_unit_design(unit, settings), f"{unit} {dict(settings)}")


def _items(items: NDArray[Any] | Rows, field: Field) -> NDArray[Any]:
    array = items.array[items.index] if isinstance(items, Rows) else items
    return np.ascontiguousarray(array, element_type(field))


@cache
def _unit_design(unit: str, settings: tuple[tuple[str, Any], ...]) -> CxxrtlDesign:
    return design(find_with_streams(unit).build(**dict(settings)), f"axs6_{unit}")
