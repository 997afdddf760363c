"""Areas, delays and energies of the units of formats."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axs6.golden.formats import ScaleChoice, block_format
from axs6.studies.comparison.errors import Found
from axs6.studies.comparison.table import Cell
from axs6.studies.stimuli import DIGITS
from axs6.synth.bound import unit_bound
from axs6.synth.flow import Synthesis
from axs6.synth.sweep import Result, sweep

CONVERTED = {"dtype": "bf16"}
"""Dtype of encoder inputs and decoder outputs."""


Advance = Callable[[str], None]
"""Called with each measured design."""


def synthesis_on(liberty: Path | None) -> Synthesis:
    """How all designs are synthesised: as by `axs6 area --target sky130`, or --liberty.

    Args:
        liberty: a cell library; None for the compact sky130 library.
    """
    return Synthesis(target="generic" if liberty else "sky130", liberty=liberty)


def options(
    liberty: Path | None, *, timeout: float = 600, jobs: int = 1, scheduler: str | None = None
) -> dict[str, Any]:
    """The arguments of `sweep` for all designs.

    Args:
        liberty: as of `synthesis_on`.
        timeout, jobs, scheduler: as of `sweep`.
    """
    runs = {"timeout": timeout, "jobs": jobs, "scheduler": scheduler}
    return {**vars(synthesis_on(liberty)), **runs}


def cost(names: Sequence[str], settings: dict[str, Any], advance: Advance) -> Found:
    """Areas and delays of dot products, and areas of encoders and decoders."""
    for name, result in zip(names, _measured("block_dot", names, settings, advance), strict=True):
        for column, figure in _dot(result).items():
            yield name, column, result.reason or figure
    for name, result in zip(
        names, _measured("encoder", names, settings, advance, CONVERTED), strict=True
    ):
        area = _figure(result, "area")
        yield name, "encoder_area", area
        yield name, "value_area", _each(area, result.point.parameters["block"])
    yield from _figures("decoder", names, settings, advance, {"decoder_area": "area"}, CONVERTED)


def encoder(
    names: Sequence[str],
    settings: dict[str, Any],
    advance: Advance,
    columns: Mapping[str, str],
) -> Found:
    """Figures of encoders, by their columns."""
    return _figures("encoder", names, settings, advance, columns, CONVERTED)


def dot(
    names: Sequence[str], accumulator: str, settings: dict[str, Any], advance: Advance
) -> Found:
    """Areas and delays of dot products with an accumulator."""
    columns = {figure: figure for figure in ("area", "delay_ps")}
    return _figures("dot", names, settings, advance, columns, {"accumulator": accumulator})


def _figures(
    unit: str,
    names: Sequence[str],
    settings: dict[str, Any],
    advance: Advance,
    columns: Mapping[str, str],
    parameters: dict[str, Any],
) -> Found:
    """Figures of a unit, by their columns."""
    found = _measured(unit, names, settings, advance, parameters)
    for name, result in zip(names, found, strict=True):
        for column, figure in columns.items():
            yield name, column, _figure(result, figure)


def _figure(result: Result, name: str) -> Cell:
    """A figure of a design, or the reason why it is missing."""
    if result.measured is None:
        return str(result.reason)
    return result.measured.figures.get(name, "the library has no delays")


def _dot(result: Result) -> dict[str, Cell]:
    """Figures of a dot product by their columns."""
    lanes, area = result.point.parameters["block"], _figure(result, "area")
    bound = unit_bound(result.point) if result.measured else None
    return {
        "lanes": lanes,
        "dot_area": area,
        "mac_area": _each(area, lanes),
        "delay_ps": _figure(result, "delay_ps"),
        "of_bound": _NO_BOUND if bound is None or isinstance(area, str) else bound.area / area,
    }


def _each(area: Cell, lanes: int) -> Cell:
    """The area of a lane, or the reason why it is missing."""
    return area if isinstance(area, str) else area / lanes


_NO_BOUND = (
    "the bound is of elements with a fixed point, with their signs alike, and of libraries with a "
    "full adder"
)


def energy(names: Sequence[str], settings: dict[str, Any], advance: Advance) -> Found:
    """Energies of the MACs of dot products."""
    for name, each in zip(names, used("block_dot", names, settings, advance), strict=True):
        yield name, "mac_fj", each if isinstance(each, str) else each.femtojoules


@dataclass(frozen=True)
class Consumed:
    """Energy of a unit.

    Args:
        lanes: operations of an item. femtojoules: of one operation.
    """

    lanes: int
    femtojoules: float


def used(
    unit: str,
    names: Sequence[str],
    settings: dict[str, Any],
    advance: Advance,
    parameters: dict[str, Any] | None = None,
) -> list[Consumed | str]:
    """Energy of a unit in each format, or the reason why it is missing."""
    found = _measured(unit, names, {**settings, "stimulus": DIGITS}, advance, parameters)
    energies = [each.measured.energy if each.measured else None for each in found]
    return [
        str(result.reason)
        if report is None
        else Consumed(report.measured.operations, report.measured.per_operation)
        for result, report in zip(found, energies, strict=True)
    ]


def _measured(
    unit: str,
    names: Sequence[str],
    settings: dict[str, Any],
    advance: Advance,
    parameters: dict[str, Any] | None = None,
) -> tuple[Result, ...]:
    """A unit in each format."""

    def progress(result: Result, done: int, total: int) -> None:
        advance(f"{result.point.label(['format'])} ({done} of {total})")

    measured: dict[str, Result] = {}
    units = {name: unit_of(unit, name) for name in names}
    for each in dict.fromkeys(units.values()):
        here = [name for name in names if units[name] == each]
        expression = f"format={','.join(here)}"
        found = sweep([each], expression, parameters=parameters, progress=progress, **settings)
        measured |= dict(zip(here, found.results, strict=True))
    return tuple(measured[name] for name in names)


def unit_of(unit: str, name: str) -> str:
    """The unit that does it in a format: encoders of formats that choose scales are another."""
    chooses = block_format(name).choice is not ScaleChoice.MAX
    return "choice_encoder" if unit == "encoder" and chooses else unit
