"""What a SAIF file says, and the same counted in another simulator."""

import re
from collections.abc import Sequence
from itertools import pairwise

from waves import Values

Counts = dict[str, tuple[int, int]]
"""Toggles and picoseconds at 1 of each net, by its path below the top."""


def counted(text: str) -> Counts:
    """The counts of a SAIF file as `axs6.sim.saif` writes it."""
    path: list[str] = []
    open_lists = []
    found = {}
    for line in text.splitlines()[1:]:
        if start := re.match(r"\(INSTANCE (\S+)$", line):
            path.append(start[1].replace("\\", ""))
            open_lists.append(True)
        elif line == "(NET":
            open_lists.append(False)
        elif line == ")" and open_lists:
            if open_lists.pop():
                path.pop()
        elif net := re.match(r"\((\S+) \(T0 \d+\) \(T1 (\d+)\) \(TX 0\) \(TC (\d+)\)", line):
            name = ".".join([*path[1:], net[1].replace("\\", "")])
            found[name] = int(net[3]), int(net[2])
    return found


def differing(found: Counts, seen: Sequence[Values], period: float) -> list[str]:
    """Nets but the clock, in all instances, whose counts are not those of successive cycles."""
    return [
        name
        for name, counts in found.items()
        if name.rpartition(".")[2] != "clk"
        and counts
        != (
            sum(before[name] != now[name] for before, now in pairwise(seen)),
            round(period * sum(now[name] or 0 for now in seen[1:])),
        )
    ]
