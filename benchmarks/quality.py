"""Area and depth of every unit in a few configurations, and what changed since a table of them.

`python benchmarks/quality.py FILE [UNIT]...` measures all units, or those that are named, and
writes the table; `make quality` does so for the one that the tests compare with.
"""

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from axs6.hw.registry import ALL_UNITS, find
from axs6.hw.verilog import generate
from axs6.replacing import replacing
from axs6.synth.area import area, modules_area
from axs6.synth.errors import SynthesisError

TOLERANCE = 0.03
"""By how much, relative to the table, a figure may change before it counts."""

TIMEOUT = 1200.0
"""Seconds that one synthesis may take."""

FIGURES: Mapping[str, tuple[str, ...]] = {
    "generic": ("gate_equivalents", "flip_flops", "levels"),
    "sky130": ("area", "delay_ps"),
}
"""Figures that are kept of each target: sums of `axs6.synth.report.Resources`, and of `Timing`."""

_DTYPES = [{"block": block, "dtype": name} for block in (8, 32) for name in ("bf16", "fp32")]


def _in_formats(*names: str) -> list[dict[str, Any]]:
    return [{"block": 8, "format": name, "dtype": "bf16"} for name in names]


_CHOSEN: Sequence[tuple[str, dict[str, Any]]] = (
    *(("encoder", each) for each in _DTYPES),
    *(("decoder", each) for each in _DTYPES),
    ("encoder", {"block": 8, "mode": "high_precision"}),
    ("encoder", {"block": 8, "mode": "sparse"}),
    ("encoder", {"block": 8, "rounding": "stochastic"}),
    ("decoder", {"block": 8, "blocks": "packed"}),
    ("expander", {"block": 8}),
    ("expander", {"block": 32}),
    ("block_dot", {"block": 8}),
    ("block_dot", {"block": 32}),
    ("block_dot", {"block": 32, "stages": 3}),
    ("dot", {"block": 8, "interleave": 1}),
    ("dot", {"block": 32, "interleave": 4}),
    ("dot", {"block": 8, "blocks": "packed"}),
    ("matmul", {"block": 8, "rows": 2, "columns": 2}),
    *(("encoder", each) for each in _in_formats("mxfp4", "mxfp8_e4m3", "mx9")),
    *(("decoder", each) for each in _in_formats("mxfp4", "mx9")),
)

DESIGNS: Sequence[tuple[str, dict[str, Any]]] = (
    *_CHOSEN,
    *((unit, {"block": 8}) for unit in ALL_UNITS if unit not in dict(_CHOSEN)),
)
"""The units that are measured, with their parameters."""

IN_MODULES: Sequence[tuple[str, dict[str, Any]]] = (
    ("feedback_encoder", {"block": 8}),
    ("matmul", {"block": 8, "rows": 2, "columns": 2}),
)
"""Designs whose modules are also measured one by one, on generic gates, which takes seconds."""


class Key(NamedTuple):
    """The subject of a figure."""

    unit: str
    parameters: str
    target: str
    figure: str


Table = dict[Key, float]


@dataclass(frozen=True)
class Change:
    """A figure that is not what the table says; `old` is None where the table lacks it."""

    key: Key
    old: float | None
    new: float

    @property
    def grew(self) -> bool:
        """Whether the figure is larger than the table says, or new."""
        return self.old is None or self.new > self.old

    def __str__(self) -> str:
        unit, parameters, target, figure = self.key
        subject = f"{unit} {parameters} on {target}: {figure}"
        if self.old is None:
            return f"{subject} is {self.new:g} and not in the table"
        share = f" ({self.new / self.old - 1:+.1%})" if self.old else ""
        return f"{subject} was {self.old:g} and is {self.new:g}{share}"


def measured(unit: str, parameters: Mapping[str, Any], target: str) -> Table:
    """Synthesise a unit, flattened and for area.

    Raises:
        ValueError: the unit cannot be built with these parameters.
        SynthesisError: as `axs6.synth.area.area`.
    """
    design = generate(unit, **parameters)
    report = area(design.verilog, design.module, target=target, breakdown=False, timeout=TIMEOUT)
    assert report.timing is not None
    figures = {**report.total.figures, **report.timing.to_dict()}
    settings = _settings(parameters)
    return {Key(unit, settings, target, name): figures[name] for name in FIGURES[target]}


def measured_in_modules(unit: str, parameters: Mapping[str, Any]) -> Table:
    """Synthesise each module of a unit by itself, on generic gates.

    Raises:
        ValueError, SynthesisError: as `measured`, or a unit without submodules.
    """
    design = generate(unit, **parameters)
    figures = modules_area(design.verilog, design.module, timeout=TIMEOUT).figures
    key = Key(unit, _settings(parameters), "generic", "gate_equivalents_of_modules")
    return {key: figures["gate_equivalents"]}


def _settings(parameters: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def changes(old: Mapping[Key, float], new: Mapping[Key, float]) -> list[Change]:
    """Return the figures of `new` that differ from those of `old` by more than `TOLERANCE`."""
    return [
        Change(key, old.get(key), value)
        for key, value in new.items()
        if key not in old or abs(value - old[key]) > TOLERANCE * old[key]
    ]


def read_table(path: Path) -> Table:
    """Return a table that `write_table` wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such table.
    """
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if header != [*Key._fields, "value"] or any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path} must have the columns {', '.join(Key._fields)}, value")
    return {Key(*row[:-1]): float(row[-1]) for row in rows}


def write_table(path: Path, table: Mapping[Key, float]) -> None:
    """Write a table as CSV, complete or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*Key._fields, "value"])
    writer.writerows([*key, f"{value:.10g}"] for key, value in table.items())
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def _measured_all(units: Sequence[str]) -> Iterator[Table]:
    for unit, parameters in DESIGNS:
        for target in FIGURES:
            if unit in units:
                yield measured(unit, parameters, target)
    for unit, parameters in IN_MODULES:
        if unit in units:
            yield measured_in_modules(unit, parameters)


def _joined(tables: Iterable[Table]) -> Table:
    joined: Table = {}
    for table in tables:
        for key, value in table.items():
            print(f"{' '.join(key)} = {value:,g}", flush=True)
        joined |= table
    return joined


def main(arguments: Sequence[str]) -> int:
    """Measure units and write the table; say what differs from the one that was there."""
    if not arguments:
        print("axs6: needed: python benchmarks/quality.py FILE [UNIT]...", file=sys.stderr)
        return 2
    path = Path(arguments[0])
    try:
        units = [find(name).name for name in arguments[1:]] or list(ALL_UNITS)
        old = read_table(path) if path.exists() else {}
        new = _joined(_measured_all(units))
        others = set(ALL_UNITS) - set(units)
        kept = {key: old[key] for key in old if key in new or key.unit in others}
        write_table(path, kept | new)
    except (OSError, ValueError, SynthesisError) as error:
        print(f"axs6: {error}", file=sys.stderr)
        return 2
    for change in changes(old, new):
        print(change)
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
