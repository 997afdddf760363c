"""Names, units and number formats of the figures of a report."""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Label(NamedTuple):
    """The names of a figure.

    Args:
        short: column of a table.
        long: axis of a picture, with the unit.
        form: format of the value.
        told_by: another figure that tells the same, so that pictures leave this one out where
            there is that one.
    """

    short: str
    long: str
    form: str
    told_by: str = ""


_LABELS: Mapping[str, Label] = {
    "gate_equivalents": Label("GE", "area (gate equivalents)", ",.1f"),
    "transistors": Label("transistors", "transistors", ",d", "gate_equivalents"),
    "gates": Label("gates", "gates", ",d", "gate_equivalents"),
    "luts": Label("LUTs", "LUTs", ",d"),
    "flip_flops": Label("FFs", "flip-flops", ",d"),
    "carries": Label("carry", "carry cells", ",d"),
    "dsps": Label("DSPs", "DSP blocks", ",d"),
    "block_rams": Label("BRAMs", "block RAMs", ",d"),
    "area": Label("area", "area", ",.1f"),
    "sequential_area": Label("seq. area", "area of registers", ",.1f", "area"),
    "sequential_share": Label("seq.", "share of registers", ".1%", "area"),
    "delay_ps": Label("delay ps", "delay (ps)", ",.0f"),
    "fmax_mhz": Label("MHz", "Fmax (MHz)", ",.1f"),
    "clock_ps": Label("clock ps", "clock (ps)", ",.0f"),
    "slack_ps": Label("slack ps", "slack (ps)", ",.0f", "delay_ps"),
    "levels": Label("levels", "cells in the longest path", ",d", "delay_ps"),
}

_AREAS = ("area", "sequential_area")


def label(figure: str, unit: str | None = None) -> Label:
    """The names of a figure; one that is not known here is called after its name.

    Args:
        figure: its name in a report.
        unit: `AreaReport.area_unit` for the names of an area to have it; a column has it if it is
            one word.
    """
    known = _LABELS.get(figure)
    if known and unit and figure in _AREAS:
        column = known.short if " " in unit else f"{known.short} {unit}"
        return known._replace(short=column, long=f"{known.long} ({unit})")
    if known:
        return known
    words = figure.replace("_", " ")
    return Label(words, words, ",.4g")


def derived(figure: str, figures: Collection[str]) -> bool:
    """Whether another of the figures makes this one redundant, so that pictures leave it out."""
    return label(figure).told_by in figures


def text(figure: str, value: float | None) -> str:
    """A value of a figure as tables show it, `-` where there is none."""
    return "-" if value is None else format(value, label(figure).form)
