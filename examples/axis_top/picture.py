"""Draws the handshakes of the design's buses from the samples of its test bench."""

from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from design import BUSES, SIGNALS

CYCLES = 64
LINE, BEAT, END = "#44546a", "#dbe7f5", "#f3c9a5"


def draw(samples: Path, picture: Path) -> None:
    """Draw the first cycles in which anything is offered; beats that move are shaded."""
    with np.load(samples) as file:
        buses = {bus: file[bus] for bus in BUSES}
    start = min(int(rows[:, 0].argmax()) for rows in buses.values())
    plt.rcParams.update({"svg.hashsalt": "axs6", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(len(BUSES) * len(SIGNALS), sharex=True, figsize=(11, 4.2))
    for ax, (bus, k) in zip(axes, product(BUSES, range(len(SIGNALS))), strict=True):
        rows = buses[bus][start : start + CYCLES]
        for cycle in np.flatnonzero(rows[:, 0] & rows[:, 1]):
            colour = END if rows[cycle, 2] else BEAT
            ax.axvspan(cycle, cycle + 1, color=colour, lw=0)
        ax.step(range(len(rows)), rows[:, k], where="post", color=LINE, lw=1.2)
        ax.set(ylim=(-0.15, 1.25), xlim=(0, CYCLES), yticks=[])
        ax.spines[["top", "right", "left", "bottom"]].set_visible(False)
        ax.set_ylabel(f"{bus}_{SIGNALS[k]}", rotation=0, ha="right", va="center")
        ax.tick_params(bottom=ax is axes[-1])
    axes[-1].set_xlabel("cycle; shaded where a beat moves, darker where it ends a packet")
    figure.savefig(picture, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
