"""Groups of connected full adders: which are inverted, and which may become gates.

The complements of three bits have the complements of their sum and carry, so a full adder may take
and give complements. Mapping cannot move inverters through cells, and what feeds an adder may be
smaller inverted, as a NAND is.

Mapping minimises nothing across cells either, so a few adders between gates may be smaller as
gates. In a dot product of MXFP8 E4M3 they are (the lanes' multipliers, of 8 full adders each, and
the sums of exponents), in one of MXFP6 E2M3 they are not (multipliers of 8 again). Only mapping
both tells which.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

ADDER: Final = "$fa"
"""The type that Yosys gives to full adders."""

INVERTED: Final = "inverted_adder"
"""The type of a full adder with complemented inputs and outputs."""

SMALL: Final = 20
"""Groups of fewer full adders than this may become gates."""

_OPERANDS = ("A", "B", "C")
_RESULTS = ("X", "Y")
_SMALLER_INVERTED = ("$_AND_", "$_MUX_")


def inverted_adders(module: Mapping[str, Any]) -> set[str]:
    """Return the names of the full adders that are to be inverted.

    Connected adders are treated alike, so that inverters between them cancel. They are inverted if
    most of their other input bits come from ANDs and multiplexers, which are smaller with an
    inverter behind them. (An OR of ANDs is not: that is NANDs of NANDs.)

    Args:
        module: of a Yosys JSON netlist of simple gates and full adders of one bit.
    """
    adders = _adders(module)
    cells = module["cells"].values()
    gates = {c["connections"]["Y"][0] for c in cells if c["type"] in _SMALLER_INVERTED}
    inverted: set[str] = set()
    for group in _groups(adders):
        results = {adders[name][pin][0] for name in group for pin in _RESULTS}
        operands = {adders[name][pin][0] for name in group for pin in _OPERANDS} - results
        if 2 * len(operands & gates) > len(operands):
            inverted |= group
    return inverted


def adders_in_small_groups(module: Mapping[str, Any]) -> set[str]:
    """Return the names of the full adders in groups of fewer than `SMALL`.

    Args:
        module: as for `inverted_adders`.
    """
    return {name for group in _groups(_adders(module)) if len(group) < SMALL for name in group}


def _adders(module: Mapping[str, Any]) -> dict[str, Mapping[str, list[Any]]]:
    """The pins of the full adders, by name."""
    cells = module["cells"].items()
    return {name: cell["connections"] for name, cell in cells if cell["type"] == ADDER}


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
