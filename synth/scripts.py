"""The project's ABC scripts: how gates are optimised and mapped, for small area or for speed."""

from typing import Final

from axs6.synth.errors import SynthesisError

GOALS: Final = ("area", "speed")

_SWEEP: Final = ("strash", "ifraig -C 100", "scorr -C 100")
"""SAT sweeping: merges what is equal. Its conflict limits bound the time that a pair of nodes can
take, and other than a limit in seconds they give the same result on every machine."""

_AREA: Final = (*_SWEEP, "dc2", "dc2", "dch", "dch", "dch", "amap -m -F 4 -A 10 -C 1000")
"""On five designs (adder trees, coders, a floating-point adder) with a 130 nm library 2 % less
area than with one `dch -f`, and 1 to 3 % less than without sweeping."""

_SPEED: Final = (*_SWEEP, "dc2", "strash", "dch", "map -B 0.9")


_FAN_OUT: Final = ("buffer -N 32", "dnsize")
"""Buffers for what drives more than 32 pins. In a 130 nm library a block dot product of 32 values
takes 0.4 % more area with them and its longest path is 7 % shorter, of three stages 32 %; without
`dnsize`, which takes back needless drive, it would take 6 % more. Pins of flip-flops, such as
enables, count as one: ABC does not see them."""


def abc_script(goal: str, *, timed: bool, buffers: bool) -> str:
    """Return the ABC script for a goal.

    Args:
        goal: `area` or `speed`.
        timed: whether the library has delays, by which ABC sizes gates for speed and reports.
        buffers: whether it has a buffer; without one ABC aborts when it is to insert some.

    Raises:
        SynthesisError: an unknown goal.
    """
    if goal not in GOALS:
        raise SynthesisError(f"optimise must be one of {', '.join(GOALS)}, not {goal!r}")
    script = list(_AREA if goal == "area" else _SPEED)
    if timed:
        if goal == "speed":
            sizing = [*(["buffer -c"] if buffers else []), "upsize", "dnsize"]
        else:
            sizing = list(_FAN_OUT) if buffers else []
        script += ["topo", *sizing, "stime -p"]
    return "\n".join([*script, ""])


def constraints(driver: str, load: float) -> str:
    """Return ABC's constraints: the cell that drives inputs, the load at outputs in femtofarads."""
    return f"set_driving_cell {driver}\nset_load {load:g}\n"
