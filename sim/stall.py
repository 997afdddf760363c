"""Random stalls, the same in every compiled simulator."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

SHARES = 256
"""Stalls come in this many steps from never to always."""


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
