"""The units by name. Every command, test, benchmark and report finds a unit here.

Every module in `axs6.hw.units` is searched: a file there adds its units.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from axs6.hw import units
from axs6.hw.units.unit import Unit


def collect(package: ModuleType) -> dict[str, Unit]:
    """The units in the modules of a package, in the order of their names.

    Raises:
        ValueError: two units have one name.
    """
    found: dict[str, Unit] = {}
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Unit) and found.setdefault(value.name, value) is not value:
                raise ValueError(f"{module.name} has a second unit with the name {value.name}")
    return dict(sorted(found.items()))


_FOUND = collect(units)

UNITS: Mapping[str, Unit] = {name: unit for name, unit in _FOUND.items() if not unit.bus}
"""The units with streams `i` and `o`, by name."""

BUS_UNITS: Mapping[str, Unit] = {name: unit for name, unit in _FOUND.items() if unit.bus}
"""The units on AXI4-Stream, by name: the others behind a bus."""

ALL_UNITS: Mapping[str, Unit] = {**UNITS, **BUS_UNITS}
"""Every unit, by name."""


def find(name: str) -> Unit:
    """The unit called `name`.

    Raises:
        ValueError: there is none; the message lists the known ones.
    """
    if name not in ALL_UNITS:
        raise ValueError(f"unit must be one of {', '.join(ALL_UNITS)}, not {name!r}")
    return ALL_UNITS[name]


def find_with_streams(name: str) -> Unit:
    """The unit called `name`, which must have streams `i` and `o`.

    Raises:
        ValueError: there is none, or it is on a bus; the message lists those that may be named.
    """
    if name in BUS_UNITS:
        raise ValueError(f"{name} is on AXI4-Stream; unit must be one of {', '.join(UNITS)} here")
    return find(name)
