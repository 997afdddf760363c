"""Digests of designs, by which results are known to be of the present ones."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axs6.hw.core.rtlil import convert
from axs6.hw.registry import ALL_UNITS
from axs6.sim.cache import cached
from axs6.sim.imports import code_digest


def digest(text: str) -> str:
    """16 hexadecimal digits for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def design_digest(unit: str, parameters: Mapping[str, Any]) -> str:
    """Digest of the RTLIL that a unit's Verilog is written from.

    It is kept in the cache under the code of the component: only the first call takes its time.

    Raises:
        ValueError: the unit does not take the parameters.
    """

    entry = ALL_UNITS[unit]
    chosen = entry.parameters(parameters)

    def build(folder: Path) -> None:
        text = convert(entry.component(**chosen), f"axs6_{unit}")
        (folder / "digest").write_text(digest(text))

    modules = (entry.component.__module__, convert.__module__)
    code = code_digest(modules, ("axs6.hw", "axs6.golden"))
    key = [code, unit, repr(sorted(chosen.items()))]
    return (cached("digest", key, build) / "digest").read_text()
