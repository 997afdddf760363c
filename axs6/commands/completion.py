"""Values that a shell completes: names of units, formats, accumulators and targets.

A shell asks at every tab, so that nothing here imports hardware or torch.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import axs6

_UNIT = re.compile(r'^[A-Z_]+ = \w*Unit\(\n    name="(\w+)"', re.M)


def unit_names() -> list[str]:
    """The names of the units, as their sources have them: their import would take Amaranth's."""
    folder = Path(axs6.__file__).parent / "hw" / "units"
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    return sorted(name for text in texts for name in _UNIT.findall(text))


def units(incomplete: str) -> list[str]:
    """Units, for a shell."""
    return _beginning(incomplete, unit_names())


def format_names(incomplete: str) -> list[str]:
    """Named block formats; in a list with commas the last one is completed."""
    from axs6.golden.formats import formats

    *before, last = incomplete.split(",")
    return [",".join([*before, name]) for name in _beginning(last, formats())]


def accumulator_names(incomplete: str) -> list[str]:
    """Accumulators."""
    from axs6.golden.accumulator import ACCUMULATORS

    return _beginning(incomplete, ACCUMULATORS)


def target_names(incomplete: str) -> list[str]:
    """Targets of synthesis."""
    from axs6.synth.targets import TARGETS

    return _beginning(incomplete, TARGETS)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
