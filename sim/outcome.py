"""What the compiled simulators return in place of a number of cycles."""

from enum import IntEnum

from axs6.sim.tools import ToolError

PATIENCE = 10_000
"""Cycles without any movement after which a unit counts as stuck."""


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
        raise ToolError(f"{name} gave more outputs than its items complete")
