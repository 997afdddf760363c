"""Common parts of the compiled simulators: payload fields as arrays, random stalls, and ends of
runs."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.core.layouts import Field
from axs6.sim.tools import ToolError

SHARES = 256
"""Stalls come in this many steps from never to always."""

PATIENCE = 10_000
"""Cycles without any movement after which a unit counts as stuck."""


@cache
def element_type(field: Field) -> np.dtype[Any]:
    """The smallest integer dtype that holds a field's elements, of the field's signedness."""
    size = next(size for size in (8, 16, 32, 64) if size >= field.width)
    return np.dtype(f"{'i' if field.signed else 'u'}{size // 8}")


def room(rows: int, field: Field) -> NDArray[Any]:
    """An array for `rows` items of a field, not filled in."""
    return np.empty((rows, *field.shape), element_type(field))


def pointers(arrays: Sequence[NDArray[Any] | None]) -> ctypes.Array[ctypes.c_void_p]:
    """Addresses of arrays as C takes them, which must be kept while in use; None is a null."""
    addresses = [None if array is None else array.ctypes.data for array in arrays]
    return (ctypes.c_void_p * len(arrays))(*addresses)


@dataclass(frozen=True)
class Stall:
    """Random stalls: the share of cycles, 0 to below 1, and the seed they come from.

    Each side of each copy of a design has a sequence of its own, which `stalls.hpp` defines.
    """

    inputs: float = 0.0
    outputs: float = 0.0
    seed: int = 0

    def arguments(self) -> tuple[ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32]:
        """Seed and shares of the two sides, as the simulators take them."""
        shares = (ctypes.c_uint32(round(share * SHARES)) for share in (self.inputs, self.outputs))
        return ctypes.c_uint64(self.seed), *shares  # type: ignore[return-value]


def stall_header() -> dict[str, str]:
    """The generator's C++ header, by name."""
    path = Path(__file__).with_name("stalls.hpp")
    return {path.name: path.read_text()}


class Outcome(IntEnum):
    """Why a run has no cycles; `Outcome` of the two `stream.hpp` has the same numbers."""

    STUCK = -1
    TOO_MANY = -2
    UNWRITABLE = -3
    BEYOND = -4
    UNFINISHED = -5


def check_outcome(name: str, cycles: int) -> None:
    """Raise ToolError if the unit called `name` stopped, or gave more outputs than it should."""
    if cycles == Outcome.STUCK:
        raise ToolError(f"{name} stopped: nothing moved for {PATIENCE} cycles")
    if cycles == Outcome.TOO_MANY:
        raise ToolError(f"{name} gave too many outputs for its items")
