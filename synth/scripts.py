"""The project's ABC scripts: how gates are optimised and mapped, for small area or for speed."""

from typing import Final

from axs6.synth.errors import SynthesisError

GOALS: Final = ("area", "speed")

_SWEEP: Final = ("strash", "ifraig -C 100", "scorr -C 100")
"""SAT sweeping: merges what is equal. Its conflict limits bound the time that a pair of nodes can
take, and other than a limit in seconds they give the same result on every machine."""

_AREA: Final = (*_SWEEP, "dc2", "dc2", "dch", "dch", "dch", "amap -m")
"""In sum over four designs (coders, two adder trees) with a 130 nm library, 1 % less area than with
one `dch -f` and area recovery in `amap` (`-F 4 -A 10 -C 1000`), for a block dot product 4 % less.
That recovery loses 1 % in sum over four units, on the library and on the generic gates alike,
though it gains up to 1 % on the coders."""

_SPEED: Final = (*_SWEEP, "dch", "map -B 0.9", "strash", "dch", "map -B 0.9")
"""Mapped again from what the first mapping made, and without `dc2`, which saves gates and makes
paths longer: with it and mapped once, a block dot product on sky130 has 18 % less area and 14 %
more delay."""


def abc_script(goal: str, *, timed: bool) -> str:
    """Return the ABC script for a goal.

    Args:
        goal: `area` or `speed`.
        timed: whether ABC is to size gates for speed and to report delays, for which the library
            must have delays and a buffer: without them ABC crashes.

    Raises:
        SynthesisError: an unknown goal.
    """
    if goal not in GOALS:
        raise SynthesisError(f"optimise must be one of {', '.join(GOALS)}, not {goal!r}")
    script = list(_AREA if goal == "area" else _SPEED)
    if timed:
        sizing = ["buffer -c", "upsize", "dnsize"] if goal == "speed" else []
        script += ["topo", *sizing, "stime -p"]
    return "\n".join([*script, ""])


def constraints(driver: str, load: float) -> str:
    """Return ABC's constraints: the cell that drives inputs, the load at outputs in femtofarads."""
    return f"set_driving_cell {driver}\nset_load {load:g}\n"
