"""Which full adders take and give complements: a full adder is self-dual, so either will do.

The complements of three bits have the complements of their sum and carry. Mapping cannot move
inverters through cells, and what feeds an adder may be smaller inverted, as a NAND is.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

ADDER: Final = "$fa"
"""The type that Yosys gives to full adders."""

INVERTED: Final = "inverted_adder"
"""The type of a full adder that is to take and give complements."""

_OPERANDS = ("A", "B", "C")
_RESULTS = ("X", "Y")
_SMALLER_INVERTED = ("$_AND_", "$_MUX_")


def inverted_adders(module: Mapping[str, Any]) -> set[str]:
    """Return the names of the full adders that are to be inverted.

    Adders that feed one another are alike, so that inverters between them cancel. They are inverted
    where most of the bits that come from elsewhere come from ANDs and multiplexers, which are
    smaller with an inverter behind them. (An OR of ANDs is not: that is NANDs of NANDs.)

    Args:
        module: of a Yosys JSON netlist of simple gates and full adders of one bit.
    """
    cells = module["cells"].items()
    adders = {name: cell["connections"] for name, cell in cells if cell["type"] == ADDER}
    gates = {c["connections"]["Y"][0] for _, c in cells if c["type"] in _SMALLER_INVERTED}
    inverted: set[str] = set()
    for group in _groups(adders):
        results = {adders[name][pin][0] for name in group for pin in _RESULTS}
        operands = {adders[name][pin][0] for name in group for pin in _OPERANDS} - results
        if 2 * len(operands & gates) > len(operands):
            inverted |= group
    return inverted


def _groups(adders: Mapping[str, Mapping[str, list[Any]]]) -> list[set[str]]:
    """The adders that results and operands connect with one another."""
    driver = {pins[pin][0]: name for name, pins in adders.items() for pin in _RESULTS}
    beside: dict[str, set[str]] = defaultdict(set)
    for name, pins in adders.items():
        for before in {driver.get(pins[pin][0], name) for pin in _OPERANDS}:
            beside[name].add(before)
            beside[before].add(name)
    groups: list[set[str]] = []
    left = set(adders)
    while left:
        group: set[str] = set()
        reached = {left.pop()}
        while reached:
            group |= reached
            reached = set().union(*(beside[name] for name in reached)) - group
        left -= group
        groups.append(group)
    return groups
