"""Sweep expressions: which values each parameter of a unit, or setting of synthesis, takes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from axs6.hw.registry import Unit, find
from axs6.synth.scripts import GOALS
from axs6.synth.targets import TARGETS

Axes = dict[str, tuple[Any, ...]]
"""The values of each swept parameter or setting, in the order in which they were given."""

SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {"target": TARGETS, "optimise": GOALS}
"""Arguments of `axs6.synth.area.area` that may be swept beside a unit's parameters."""

_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_MOST_VALUES = 1000


def parse(
    expression: str, units: Sequence[str], parameters: Mapping[str, Any] | None = None
) -> Axes:
    """Read an expression such as `stages=0..4 block=8,16,32 rounding=nearest,toward_zero`.

    Each word is NAME=VALUES, where the values are separated by commas and `a..b` stands for the
    integers from a to b. NAME is a parameter that every unit has, or one of `SETTINGS`. A value
    must be possible with one of the block formats of the sweep.

    Args:
        expression: what varies.
        units: names in `axs6.hw.registry`.
        parameters: those that do not vary.

    Raises:
        ValueError: the expression is malformed; the message names the parameter.
    """
    texts: dict[str, Sequence[str]] = {}
    for word in expression.split():
        name, equals, values = word.partition("=")
        if not (name and equals and values):
            raise ValueError(f"sweep: {word!r} must be NAME=VALUES, such as stages=0..4")
        if name in texts:
            raise ValueError(f"sweep: {name} is given twice")
        texts[name] = values.split(",")
    if not texts:
        raise ValueError("sweep: the expression is empty; give NAME=VALUES, such as stages=0..4")
    fixed = parameters or {}
    formats = texts.get("format", [fixed["format"]] if "format" in fixed else [])
    beside = [{"format": each} for each in formats] or [{}]
    entries = [find(unit) for unit in units]
    return {name: _values(name, values, entries, beside) for name, values in texts.items()}


def _values(
    name: str, texts: Sequence[str], units: Sequence[Unit], beside: Sequence[Mapping[str, str]]
) -> tuple[Any, ...]:
    """The values of a parameter, each of which a unit can have beside one of some others."""
    if name in SETTINGS:
        values = [_choice(name, text, SETTINGS[name]) for text in texts]
    else:
        for unit in units:
            if name not in unit.defaults:
                names = ", ".join([*unit.defaults, *SETTINGS])
                raise ValueError(
                    f"sweep: {unit.name} has no parameter {name!r}; parameters to sweep are {names}"
                )
        numeric = all(isinstance(unit.defaults[name], int) for unit in units)
        values = [v for text in texts for v in (_integers(name, text) if numeric else [text])]
        for unit in units:
            known = [x for given in beside for x in unit.choices(given).get(name, ())]
            choices = list(dict.fromkeys(known))
            if choices:
                values = [_choice(name, str(value), choices) for value in values]
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"sweep: {name} has the value {value} twice")
    return tuple(values)


def _integers(name: str, text: str) -> Sequence[int]:
    if re.fullmatch(r"\d+", text):
        return [int(text)]
    ends = _RANGE.fullmatch(text)
    if not ends:
        raise ValueError(f"sweep: {name} must be integers and ranges a..b, not {text!r}")
    first, last = int(ends[1]), int(ends[2])
    if first > last:
        raise ValueError(f"sweep: {name} has the empty range {text}: write {last}..{first}")
    if last - first >= _MOST_VALUES:
        raise ValueError(f"sweep: {name} must have at most {_MOST_VALUES:,} values, not {text}")
    return range(first, last + 1)


def _choice(name: str, text: str, choices: Sequence[Any]) -> Any:
    for choice in choices:
        if str(choice) == text:
            return choice
    raise ValueError(f"sweep: {name} must be of {', '.join(map(str, choices))}, not {text!r}")
