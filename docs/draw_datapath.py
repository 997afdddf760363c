"""Draws docs/datapath.svg: `python docs/draw_datapath.py`. Widths come from the specification."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.hw.dot.shape import DotShape

BLOCK = 32
UNIT, CORE, LINE, TEXT = "#dbe7f5", "#f7f3e6", "#44546a", "#1c2733"


def box(ax: Axes, x: float, y: float, w: float, h: float, text: str, colour: str = CORE) -> None:
    style = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x, y), w, h, boxstyle=style, fc=colour, ec=LINE, lw=1))
    ax.text(x + w / 2, y + h / 2, text, ha="center", va="center", fontsize=8, color=TEXT)


def group(ax: Axes, x: float, y: float, w: float, h: float, title: str) -> None:
    style = "round,pad=0,rounding_size=0.12"
    ax.add_patch(FancyBboxPatch((x, y), w, h, boxstyle=style, fc=UNIT, ec=LINE, lw=1.4))
    ax.text(x + 0.12, y + h - 0.2, title, ha="left", va="center", fontsize=9, weight="bold")


def arrow(ax: Axes, x0: float, y0: float, x1: float, y1: float, text: str = "") -> None:
    line = {"arrowstyle": "-|>", "color": LINE, "lw": 1.1}
    ax.annotate("", (x1, y1), (x0, y0), arrowprops=line)
    if text:
        ax.text((x0 + x1) / 2, (y0 + y1) / 2 + 0.12, text, ha="center", fontsize=7, color=TEXT)


def main() -> None:
    shape = DotShape.of("axs6", BLOCK)
    product_bits = (AXS6_ELEMENT.largest_code**2).bit_length()
    codes = f"{BLOCK} x {AXS6_ELEMENT.width}"
    figure, ax = plt.subplots(figsize=(12, 5.6))
    group(ax, 1.2, 3.2, 4.3, 2.1, "encoder")
    box(ax, 1.4, 3.5, 1.1, 1.2, "unpack\nlanes")
    box(ax, 2.7, 3.5, 1.3, 1.2, "largest\nexponent,\nshared E")
    box(ax, 4.2, 3.5, 1.1, 1.2, "first 5 bits,\ncompare,\n-1, 0 or +1")
    arrow(ax, 0.1, 4.1, 1.4, 4.1, "B floats")
    arrow(ax, 2.5, 4.1, 2.7, 4.1)
    arrow(ax, 4.0, 4.1, 4.2, 4.1)
    group(ax, 7.6, 3.2, 3.2, 2.1, "decoder")
    box(ax, 7.8, 3.5, 1.3, 1.2, "repeat the\nbits of m,\nplace them")
    box(ax, 9.3, 3.5, 1.3, 1.2, "round once,\nlimits")
    arrow(ax, 5.3, 4.1, 7.8, 4.1, f"block: E {AXS6_SCALE.bits}, codes {codes}")
    arrow(ax, 9.1, 4.1, 9.3, 4.1)
    arrow(ax, 10.6, 4.1, 11.9, 4.1, "B floats")
    group(ax, 1.2, 0.2, 9.6, 2.5, "dot")
    ax.add_patch(FancyBboxPatch((1.4, 0.4), 3.6, 1.85, boxstyle="round,pad=0", fc="white", ec=LINE))
    ax.text(1.5, 2.08, "block_dot", fontsize=8, weight="bold")
    box(
        ax,
        1.6,
        0.6,
        1.4,
        1.2,
        f"{BLOCK} products,\n{product_bits} bits,\ninverted where\nsigns differ",
    )
    box(ax, 3.4, 0.6, 1.4, 1.2, "compressor tree,\nexponent sum")
    box(ax, 5.95, 0.6, 1.1, 1.2, "to FP32:\nP·2^(e-264)")
    box(ax, 7.5, 0.6, 1.2, 1.2, "FP32 adder,\naccumulator")
    box(ax, 9.35, 0.6, 1.25, 1.2, "divide by\n961/1024,\nround")
    arrow(ax, 0.1, 1.2, 1.6, 1.2, "a, b, last")
    arrow(ax, 3.0, 1.2, 3.4, 1.2)
    arrow(ax, 4.8, 1.2, 5.95, 1.2, f"P {shape.width}, e {shape.exponent_bits}")
    arrow(ax, 7.05, 1.2, 7.5, 1.2)
    arrow(ax, 8.7, 1.2, 9.35, 1.2, "last")
    arrow(ax, 10.6, 1.2, 11.9, 1.2, "FP32")
    ax.annotate(
        "",
        (7.7, 1.8),
        (8.4, 1.8),
        arrowprops={
            "arrowstyle": "-|>",
            "color": LINE,
            "lw": 1.1,
            "connectionstyle": "arc3,rad=1.1",
        },
    )
    ax.plot([6.5, 6.5, 0.6, 0.6], [4.1, 2.95, 2.95, 1.7], color=LINE, lw=1.1)
    arrow(ax, 0.6, 1.75, 0.6, 1.45)
    ax.set_xlim(0, 12)
    ax.set_ylim(0, 5.5)
    ax.axis("off")
    plt.rcParams["svg.hashsalt"] = "axs6"
    figure.savefig(
        Path(__file__).parent / "datapath.svg", bbox_inches="tight", metadata={"Date": None}
    )


if __name__ == "__main__":
    main()
