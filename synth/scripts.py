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

_MAP: Final = ("dch", "map -B 0.9", "strash")
_BALANCE: Final = ("if -g -K 6", "strash")
_SPEED: Final = (*_SWEEP, *2 * _MAP, *2 * (*_BALANCE, *_MAP))[:-1]
"""Mapped again and again from what the last mapping made, twice after sums of products were
balanced by their arrival. Without `dc2`, which saves gates and makes paths longer. Beside two
mappings without that balance and one sizing, six units on sky130 (an encoder and five block dot
products) have 3 to 13 % less delay and 5 to 19 % more area."""

_SIZING: Final = ("buffer -c -N 12", "upsize", "dnsize", "upsize -R 1 -J 500", "dnsize")
"""Gates are sized twice, the second time in smaller steps, which takes 1 % from the delay."""


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
        sizing = _SIZING if goal == "speed" else ()
        script += ["topo", *sizing, "stime -p"]
    return "\n".join([*script, ""])


def constraints(driver: str, load: float) -> str:
    """Return ABC's constraints: the cell that drives inputs, the load at outputs in femtofarads."""
    return f"set_driving_cell {driver}\nset_load {load:g}\n"
