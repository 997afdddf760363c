"""Draws docs/handshakes.svg from simulations: `python docs/draw_handshakes.py [FILE]`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from axs6.hw.registry import find
from axs6.sim.compiled import Stall
from axs6.sim.cxxrtl import CxxrtlModel

LINE, TEXT, MOVES, WAITS = "#44546a", "#1c2733", "#dbe7f5", "#f7f3e6"
CYCLES = 20
ROW = 1.35


@dataclass(frozen=True)
class Diagram:
    """A run to draw: the name of each item, and of each output; `ends` are items with `last`."""

    title: str
    unit: str
    parameters: dict[str, Any]
    items: Sequence[str]
    outputs: Sequence[str]
    stall: Stall = field(default_factory=Stall)

    @property
    def ends(self) -> list[bool]:
        return [name.endswith("*") for name in self.items]


NUMBERS = [str(n) for n in range(6)]
DIAGRAMS = (
    Diagram("decoder, 3 stages: an item in each cycle", "decoder", {"stages": 3}, NUMBERS, NUMBERS),
    Diagram(
        "the same with stalls on both sides: valid and payload stay until ready, and bubbles close",
        *("decoder", {"stages": 3}, NUMBERS, NUMBERS, Stall(0.3, 0.5, seed=17)),
    ),
    Diagram(
        "dot, 2 stages: a result for each vector, 3 cycles after its last item (*)",
        *("dot", {"stages": 2}, ["a0", "a1", "a2*", "b0*", "c0", "c1*"], ["a", "b", "c"]),
    ),
    Diagram(
        "dot, 2 stages, interleave 2: two vectors take turns, each with 4 cycles of latency",
        *("dot", {"stages": 2, "interleave": 2}),
        *(["a0", "b0*", "a1", "c0", "a2*", "c1*"], ["b", "a", "c"]),
    ),
)


def rows_of(diagram: Diagram) -> list[tuple[str, list[bool], list[str] | None]]:
    """Name of each signal, whether it is 1 in each cycle, and what a payload then holds."""
    parameters = find(diagram.unit).parameters({"block": 8, **diagram.parameters})
    items = find(diagram.unit).random(parameters, np.random.default_rng(0), len(diagram.items))
    if "last" in items:
        items = {**items, "last": np.array(diagram.ends, np.uint8)}
    run = CxxrtlModel(diagram.unit, **parameters).run(items, diagram.stall, trace=CYCLES)
    seen = {name: values[:, 0].tolist() for name, values in run.trace.handshake.items()}
    found: list[tuple[str, list[bool], list[str] | None]] = []
    for stream, names in (("i", diagram.items), ("o", diagram.outputs)):
        valid, ready = seen[f"{stream}_valid"], seen[f"{stream}_ready"]
        moved = np.cumsum([0, *(np.array(valid) & ready)])
        shown = [names[n] if on else "" for n, on in zip(moved, valid, strict=False)]
        found += [(f"{stream} valid", valid, None), (f"{stream} ready", ready, None)]
        found.append((f"{stream} payload", valid, shown))
    return found


def draw(ax: Axes, diagram: Diagram) -> None:
    """Draw the signals of a run; cycles in which an item moves are shaded."""
    rows = rows_of(diagram)
    cycles = len(rows[0][1])
    for stream in range(2):
        (_, valid, _), (_, ready, _) = rows[3 * stream : 3 * stream + 2]
        for cycle in range(cycles):
            if valid[cycle]:
                top, bottom = -3 * stream * ROW + 1.15, -(3 * stream + 2) * ROW - 0.15
                colour = MOVES if ready[cycle] else WAITS
                ax.fill_between([cycle, cycle + 1], bottom, top, color=colour, lw=0)
    for index, (name, high, shown) in enumerate(rows):
        y = -index * ROW
        ax.text(-0.3, y + 0.5, name, ha="right", va="center", color=TEXT)
        if shown is None:
            ax.step(
                [*range(cycles + 1)], [y + v for v in (*high, high[-1])], where="post", color=LINE
            )
            continue
        for cycle in range(cycles):
            ends = [y, y + 1] if shown[cycle] else [y + 0.5]
            for end in ends:
                ax.plot([cycle, cycle + 1], [end, end], color=LINE)
            if not cycle or shown[cycle] != shown[cycle - 1]:
                ax.plot([cycle, cycle], [ends[0], ends[-1]], color=LINE)
                ax.text(cycle + 0.5, y + 0.5, shown[cycle], ha="center", va="center", color=TEXT)
    ax.set(xlim=(-3, CYCLES), ylim=(-5 * ROW - 0.3, 1.3), yticks=[], xticks=[])
    ax.set_title(diagram.title, loc="left", fontsize=9, color=TEXT)
    ax.spines[:].set_visible(False)


def main(path: Path) -> None:
    """Draw all runs into an SVG file, the same bytes each time."""
    plt.rcParams.update({"svg.hashsalt": "axs6", "svg.fonttype": "none", "font.size": 8})
    plt.rcParams["lines.linewidth"] = 1.1
    figure, axes = plt.subplots(len(DIAGRAMS), figsize=(10, 9))
    for ax, diagram in zip(axes, DIAGRAMS, strict=True):
        draw(ax, diagram)
    figure.tight_layout()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("handshakes.svg"))
