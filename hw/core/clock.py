"""Clocks as people write them: a period or a frequency, with its unit."""

import math
import re
from typing import Final

_PERIODS: Final = {"fs": 1e-3, "ps": 1.0, "ns": 1e3, "us": 1e6}
"""Units of a period, in picoseconds."""

_FREQUENCIES: Final = {"khz": 1e9, "mhz": 1e6, "ghz": 1e3}
"""Units of a frequency, by their period in picoseconds."""

_CLOCK: Final = re.compile(r"(\d+\.?\d*|\.\d+) ?([a-z]+)", re.I)


def read_clock(text: str) -> float:
    """Return the period of a clock in picoseconds.

    Args:
        text: a period or a frequency with its unit, such as `2.5ns` or `400MHz`.

    Raises:
        ValueError: it is neither, or out of range.
    """
    found = _CLOCK.fullmatch(text.strip())
    unit = found[2].lower() if found else ""
    value = float(found[1]) if found else 0.0
    period = 0.0
    if unit in _PERIODS:
        period = round(value * _PERIODS[unit], 6)
    elif value and unit in _FREQUENCIES:
        period = round(_FREQUENCIES[unit] / value, 6)
    if 0 < period < math.inf:
        return period
    raise ValueError(
        "--clock must be a period in fs, ps, ns or us or a frequency in kHz, MHz or GHz, such as "
        f"2.5ns or 400MHz, not {text!r}"
    )


def clock_text(period: float) -> str:
    """A clock with a period in picoseconds, as messages show it: `2.5 ns (400 MHz)`."""
    return f"{period / 1e3:.6g} ns ({1e6 / period:.6g} MHz)"
