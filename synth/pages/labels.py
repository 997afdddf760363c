"""What the figures of a report are called, their units and how they are written."""

from collections.abc import Mapping
from typing import NamedTuple


class Label(NamedTuple):
    """The names of a figure.

    Args:
        short: column of a table, without the unit.
        long: axis of a picture, with the unit.
        form: format of the value.
        derived: whether another figure tells the same, so that pictures leave it out.
    """

    short: str
    long: str
    form: str
    derived: bool = False


_LABELS: Mapping[str, Label] = {
    "gate_equivalents": Label("GE", "area (gate equivalents)", ",.1f"),
    "transistors": Label("transistors", "transistors", ",d", derived=True),
    "gates": Label("gates", "gates", ",d", derived=True),
    "luts": Label("LUTs", "LUTs", ",d"),
    "flip_flops": Label("FFs", "flip-flops", ",d"),
    "carries": Label("carry", "carry cells", ",d"),
    "dsps": Label("DSPs", "DSP blocks", ",d"),
    "block_rams": Label("BRAMs", "block RAMs", ",d"),
    "area": Label("area", "area (units of the library)", ",.1f"),
    "sequential_area": Label("seq. area", "area of registers", ",.1f", derived=True),
    "sequential_share": Label("seq.", "share of registers", ".1%", derived=True),
    "delay_ps": Label("delay ps", "delay (ps)", ",.0f"),
    "fmax_mhz": Label("MHz", "Fmax (MHz)", ",.1f"),
    "levels": Label("levels", "cells in the longest path", ",d", derived=True),
}


def label(figure: str) -> Label:
    """The names of a figure; one that is not known here is called after its name."""
    known = _LABELS.get(figure)
    if known:
        return known
    words = figure.replace("_", " ")
    return Label(words, words, ",.4g")


def text(figure: str, value: float | None) -> str:
    """A value of a figure as tables show it, `-` where there is none."""
    return "-" if value is None else format(value, label(figure).form)
