"""Values at the ports of a simulated design, cycle by cycle."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.core.layouts import Field
from axs6.sim.compiled import room

HANDSHAKE = ("i_valid", "i_ready", "o_valid", "o_ready")


@dataclass(frozen=True)
class Trace:
    """Ports of some copies of a design in each cycle, just before the clock's edge.

    Args:
        handshake: bool of shape (cycles, copies) for each of `HANDSHAKE`.
        payload: an array for each output field, its first axes cycles and copies; what it holds
            where `o_valid` is False means nothing.
    """

    handshake: dict[str, NDArray[np.bool_]]
    payload: dict[str, NDArray[Any]]


class Recorder:
    """Memory in which a simulator leaves a trace.

    Args:
        cycles: how many cycles to record; 0 records none.
        copies: copies of the design.
        outputs: fields of the output payload.
    """

    def __init__(self, cycles: int, copies: int, outputs: Sequence[Field]) -> None:
        self.cycles = cycles
        self._copies = copies
        self._fields = outputs
        self.handshake = np.zeros((cycles, copies, len(HANDSHAKE)), np.uint8)
        self.payload = [room(cycles * copies, field) for field in outputs]

    def trace(self, cycles: int) -> Trace:
        """The trace of a run of `cycles` cycles, cut off where the memory was full."""
        kept = min(cycles, self.cycles)
        handshake = {
            name: self.handshake[:kept, :, index].astype(bool)
            for index, name in enumerate(HANDSHAKE)
        }
        payload = {
            field.name: array.reshape(self.cycles, self._copies, *array.shape[1:])[:kept]
            for field, array in zip(self._fields, self.payload, strict=True)
        }
        return Trace(handshake, payload)
