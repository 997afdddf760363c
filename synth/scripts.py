"""The project's ABC scripts: how gates are optimised and mapped, for small area or for speed."""

from typing import Final

from axs6.synth.errors import SynthesisError

GOALS: Final = ("area", "speed")
FOR_CLOCK: Final = ("area", "sized", "mapped", "balanced", "speed")
"""Goals that are tried for a clock, from the smallest design to the fastest: that for area; the
same with gates sized for the clock; mapped for delay and sized for it; mapped twice with sums
balanced and sized for it; that for speed, whatever the clock."""

_SWEEP: Final = ("strash", "ifraig -C 100", "scorr -C 100")
"""SAT sweeping: merges equal nodes. Its conflict limits bound the time that a pair of nodes can
take, and other than a limit in seconds they give the same result on every machine."""

_AREA: Final = (*_SWEEP, "dc2", "dc2", "dch", "dch", "dch", "amap -m")
"""In sum over four designs (coders, two adder trees) with a 130 nm library, 1 % less area than with
one `dch -f` and area recovery in `amap` (`-F 4 -A 10 -C 1000`), for a block dot product 4 % less.
That recovery loses 1 % in sum over four units, on the library and on the generic gates alike,
though it gains up to 1 % on the coders."""

_RESTRUCTURE: Final = (
    _AREA[:-1],
    (*_SWEEP, "drf -z", "drwsat", "resub -K 10", "drf -z", "drw -z", "dch"),
    (*_SWEEP, "rewrite -z", "drwsat", "resub", "&get -n", "&dch", "&dc2", "&put", "drw -z"),
)
_BETWEEN_CELLS: Final = tuple(
    (*steps, mapping) for steps in _RESTRUCTURE for mapping in ("amap -m", "amap -m -F 4 -A 4")
)
"""Scripts for the gates between full-adder cells: small pieces, for which none is best for all
designs. The first is that for area. With the smallest of all, block dot products of eight formats
on sky130 are 0 to 5 % smaller than with the first alone."""

_MAP: Final = ("dch", "map -B 0.9", "strash")
_BALANCE: Final = ("if -g -K 6", "strash")
_SPEED: Final = (*_SWEEP, *2 * _MAP, *2 * (*_BALANCE, *_MAP))[:-1]
"""Mapped again and again from what the last mapping made, twice after sums of products were
balanced by their arrival. Without `dc2`, which saves gates and makes paths longer. Beside two
mappings without that balance and one sizing, six units on sky130 (an encoder and five block dot
products) have 3 to 13 % less delay and 5 to 19 % more area."""

_SIZING: Final = ("buffer -c -N 12", "upsize", "dnsize", "upsize -R 1 -J 500", "dnsize")
"""Gates are sized twice, the second time in smaller steps, which takes 1 % from the delay."""

_TO_CLOCK: Final = {
    "sized": _AREA,
    "mapped": (*_SWEEP, "dc2", "dc2", *_MAP[:-1]),
    "balanced": (*_SWEEP, *_MAP, *_BALANCE, *_MAP[:-1]),
}
"""Commands before the sizing for a clock. On sky130 a block dot product of 8 values with one stage
has 8,064 µm² and 176 MHz with `area`, up to 8,244 µm² and 206 MHz with `sized`, 9,464 and 253 with
`mapped`, 12,077 and 304 with `balanced`, and 12,393 and 313 with `speed`."""

_OF_CLOCK: Final = 0.9
"""Part of a clock's period that ABC sizes gates for: it does not see the delay of registers."""


def _sized(period: float) -> tuple[str, ...]:
    """Commands that buffer and size gates for a clock, whose period is in picoseconds."""
    limit = f"{_OF_CLOCK * period:.0f}"
    return ("buffer -c -N 12", f"upsize -D {limit}", f"dnsize -D {limit}")


def abc_scripts(goal: str, *, timed: bool, adders: bool, period: float | None = None) -> list[str]:
    """Return the ABC scripts for a goal, of which the one that gives the smallest design is meant.

    Args:
        goal: `area`, `speed`, or with a clock any of `FOR_CLOCK`.
        timed: whether ABC is to size gates for speed and to report delays, for which the library
            must have delays and a buffer: without them ABC crashes.
        adders: whether full adders are cells, between which it maps the gates. There are several
            scripts for area then.
        period: of the clock, in picoseconds; None without one.

    Raises:
        SynthesisError: an unknown goal.
    """
    known = GOALS if period is None else FOR_CLOCK
    if goal not in known:
        raise SynthesisError(f"optimise must be one of {', '.join(known)}, not {goal!r}")
    sizing: tuple[str, ...] = _SIZING if goal == "speed" else ()
    if goal in _TO_CLOCK and period is not None:
        sizing = _sized(period)
    ending = ("topo", *sizing, "stime -p") if timed else ()
    scripts = [{**_TO_CLOCK, "area": _AREA, "speed": _SPEED}[goal]]
    if adders and goal == "area":
        scripts = [*_BETWEEN_CELLS]
    return ["\n".join([*script, *ending, ""]) for script in scripts]


def constraints(driver: str, load: float) -> str:
    """Return ABC's constraints: the cell that drives inputs, the load at outputs in femtofarads."""
    return f"set_driving_cell {driver}\nset_load {load:g}\n"
