"""Exact toggles of every net of a netlist, from one clock cycle to the next, and its levels."""

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.core.layouts import Field
from axs6.sim.batch.engine import OPTIONS, FieldRows
from axs6.sim.batch.model import NETS, model_source, runtime
from axs6.sim.batch.netlist import TOP, NetlistError
from axs6.sim.batch.read import CLOCK, read_netlist
from axs6.sim.compiled import pointers, room
from axs6.sim.compiler import SOURCE, compiled
from axs6.sim.control import call, control_header, workers
from axs6.sim.tools import ToolError
from axs6.sim.words import check_items


@dataclass(frozen=True)
class Activity:
    """Toggles of nets.

    Args: changes: uint64, shape (sequences, nets): number of toggles of each net from cycle to
        cycle. pairs: successive cycles that were compared in each sequence. outputs: the items that
        each sequence gave, one after the other, by field. given: int64, shape (sequences,): how
        many those were. ones: as `changes`, the cycles in which each net was 1, each the latter of
        a pair; None where they were not counted.
    """

    changes: NDArray[np.uint64]
    pairs: int
    outputs: dict[str, NDArray[Any]]
    given: NDArray[np.int64]
    ones: NDArray[np.uint64] | None = None


class ActivityModel:
    """A netlist of gates with streams `i` and `o`, compiled, with nets that are watched.

    A net's value in a cycle is its settled value before the rising edge at the cycle's end; between
    cycles it changes once or not at all.

    Args:
        netlist: Yosys JSON as `axs6.synth.mapped.mapped_netlist` gives it.
        nets: bits of module `top` in it: those to watch.
        inputs, outputs: fields of the payloads.
        name: what messages call it.

    Raises:
        NetlistError: the netlist has something that the batch simulator does not handle, or a net
            is the clock.
        ToolError: g++ is missing or fails.
    """

    def __init__(
        self,
        netlist: str,
        nets: Sequence[int | str],
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        name: str,
    ) -> None:
        self._inputs, self._outputs, self._name = inputs, outputs, name
        self._nets = len(nets)
        gates = read_netlist(_watched(netlist, nets))
        source = {SOURCE: model_source(gates, inputs, outputs), **runtime(), **control_header()}
        path = compiled("activity", "the batch simulator", source, OPTIONS, headers_first=True)
        self._library = ctypes.CDLL(str(path))
        self._library.axs6_copies.restype = ctypes.c_int64
        self._library.axs6_activity.restype = ctypes.c_bool
        self._copies = int(self._library.axs6_copies())

    def run(
        self, items: Mapping[str, NDArray[Any]], settle: int = 0, *, levels: bool = False
    ) -> Activity:
        """Put each sequence of items through a copy of its own, one item a cycle from reset on.

        The items of a sequence follow one another in successive cycles, in their order, and both
        sides are always ready. The result does not depend on how many copies run at once.

        Args:
            items: an array for each input field, shape (sequences, items, ...).
            settle: cycles from reset on that only fill the pipeline: the first change to count is
                the one between cycles `settle` and `settle` + 1.
            levels: whether to count the cycles in which nets are 1, too.

        Raises:
            ValueError: arrays that do not fit the input payload, or too few items in a sequence.
            ToolError: the unit does not take an item in each cycle.
        """
        count, cycles = next(iter(items.values())).shape[:2]
        if not 0 <= settle < cycles - 1:
            raise ValueError(
                f"a sequence must have more than {settle + 1} items to settle in {settle} cycles, "
                f"not {cycles}"
            )
        flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in items.items()}
        total = check_items(flat, self._inputs)
        columns = [FieldRows(flat[field.name], field) for field in self._inputs]
        results = [room(total + 1, field) for field in self._outputs]
        given = np.zeros(count, np.int64)
        changes = np.zeros((count, self._nets), np.uint64)
        ones = np.zeros_like(changes) if levels else None

        def work(first: int) -> None:
            copies = min(self._copies, count - first)
            totals = np.zeros((1 + levels, self._nets, self._copies), np.uint64)
            taken = call(
                self._library,
                "axs6_activity",
                pointers([column.array for column in columns]),
                pointers([column.index for column in columns]),
                pointers(results),
                *map(ctypes.c_int64, (first, copies, cycles, settle, total)),
                totals[0].ctypes.data_as(ctypes.c_void_p),
                totals[1].ctypes.data_as(ctypes.c_void_p) if levels else None,
                given[first:].ctypes.data_as(ctypes.c_void_p),
            )
            if not taken:
                raise ToolError(f"{self._name} must take an item in each cycle and does not")
            changes[first : first + copies] = totals[0, :, :copies].T
            if ones is not None:
                ones[first : first + copies] = totals[1, :, :copies].T

        with workers(1) as pool:
            pool.map(work, range(0, count, self._copies))
        rows = np.arange(cycles) < given[:, None]
        shown = {
            field.name: array[:total].reshape(count, cycles, *field.shape)[rows]
            for field, array in zip(self._outputs, results, strict=True)
        }
        return Activity(changes, cycles - 1 - settle, shown, given, ones)


def _watched(netlist: str, nets: Sequence[int | str]) -> str:
    """The netlist with an output port of the nets to watch."""
    modules = json.loads(netlist)["modules"]
    ports = modules[TOP]["ports"]
    if set(ports[CLOCK]["bits"]) & set(nets):
        raise NetlistError(f"the changes of {CLOCK} cannot be counted: it has two in each cycle")
    ports[NETS] = {"direction": "output", "bits": list(nets)}
    return json.dumps({"modules": modules})
