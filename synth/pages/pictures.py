"""The pictures of report pages: SVG that is the same whenever it is drawn."""

import io
import re
from collections.abc import Callable, Sequence
from itertools import cycle, product
from typing import Any, Final

import numpy as np

from axs6.synth.pages.conditions import area_unit
from axs6.synth.pages.labels import label, text
from axs6.synth.sweep.growth import Growth, Series

INK: Final = "#010203"
"""Colour of text and axes, which `inline` and `standalone` replace."""

GROUND: Final = "#fcfdfe"
"""Colour of what lies behind the names in a picture, which they replace likewise."""

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Colours of Okabe and Ito's palette, distinct for any colour vision, visible on any ground."""

_MARKERS: Final = ("o", "s", "^", "D", "v", "P")
_DASHES: Final = ("-", "--", ":", "-.")
_STYLE: Final[dict[Any, Any]] = {
    "svg.hashsalt": "axs6",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "legend.frameon": False,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}
_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
WIDTH: Final = 7.0
_PANEL: Final = 2.3


def curves(axis: str, lines: Sequence[Series], figures: Sequence[str]) -> str:
    """Draw figures over an axis, a panel for each, one line for each series.

    Args:
        axis: name of the axis.
        lines: the series.
        figures: what to draw.
    """

    unit = area_unit(result for line in lines for result in line.results)

    def draw(figure: Any) -> None:
        columns = min(2, len(figures))
        rows = -(-len(figures) // columns)
        figure.set_size_inches(WIDTH if columns == 2 else WIDTH * 0.6, rows * _PANEL + 0.5)
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes, name in zip(panels, figures, strict=False):
            for line, style in zip(lines, _styles(), strict=False):
                axes.plot(line.xs, line.values(name), label=line.name, clip_on=False, **style)
            _axes(axes, axis, lines, _label(name, unit))
            axes.set_ylim(bottom=0)
        for axes in panels[len(figures) :]:
            axes.set_visible(False)
        _legend(figure)

    return svg(draw)


def growth(grown: Sequence[Growth]) -> str:
    """Draw one figure over one axis with the straight lines that fit it, their equations, and how
    far off they are.

    Args:
        grown: the series and their fits, all of the same axis and figure.
    """
    axis, name = grown[0].axis, grown[0].figure
    unit = area_unit(result for each in grown for result in each.line.results)

    def draw(figure: Any) -> None:
        figure.set_size_inches(WIDTH, _PANEL + 0.7)
        values, residuals = figure.subplots(1, 2)
        residuals.axhline(0, color=INK, linewidth=0.8)
        for each, style in zip(grown, _styles(), strict=False):
            line, fitted = each.line, each.fit
            points = {**style, "linestyle": "none"}
            ys = np.array(line.values(name))
            on_line = np.array([fitted.at(x) for x in line.xs])
            values.plot(line.xs, ys, label=_equation(each), **points)
            ends = [0.0, *(x for x, y in zip(line.xs, ys, strict=True) if np.isfinite(y))]
            values.plot(ends, [fitted.at(x) for x in ends], color=style["color"], linewidth=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                off = np.where(ys != 0, 100 * (ys - on_line) / ys, np.nan)
            residuals.plot(line.xs, off, **points)
        series = [each.line for each in grown]
        _axes(values, axis, series, _label(name, unit))
        _axes(residuals, axis, series, "off the straight line (%)")
        values.set_xlim(left=min(0.0, *values.get_xlim()))
        values.set_ylim(bottom=0)
        largest = max(1.0, *(abs(end) for end in residuals.get_ylim()))
        residuals.set_ylim(-largest, largest)
        _legend(figure, least=1)

    return svg(draw)


def bars(
    names: Sequence[str], values: Sequence[float], figure_name: str, unit: str | None = None
) -> str:
    """Draw a horizontal bar for each name, from the top, with its value.

    Args:
        names: one for each bar.
        values: lengths of the bars.
        figure_name: what they are.
        unit: that of areas.
    """

    def draw(figure: Any) -> None:
        figure.set_size_inches(WIDTH, 0.22 * len(names) + 0.7)
        axes = figure.subplots()
        drawn = axes.barh(range(len(names)), values, color=COLOURS[0], height=0.7)
        axes.bar_label(drawn, [text(figure_name, x) for x in values], padding=4, fontsize=8)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel(_label(figure_name, unit))
        axes.set_xlim(0, 1.2 * max(values) or 1)
        axes.xaxis.set_major_formatter(_thousands)

    return svg(draw)


def standalone(svg: str) -> str:
    """The picture as a file of its own: dark ink on a white ground."""
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    head, rest = re.split(r"(?<=>)", _shaded(svg, "#1a1a1a", "#ffffff"), maxsplit=1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}\n{ground}{rest}'


_SHADES: Final = (
    "<style>svg { --ink: #1a1a1a; --ground: #ffffff } "
    "@media (prefers-color-scheme: dark) { svg { --ink: #e6e6e6; --ground: #0d1117 } }</style>"
)


def in_shades(svg: str) -> str:
    """The picture as a file of its own, light or dark as its viewer asks for."""
    ground = '<rect width="100%" height="100%" fill="var(--ground)"/>'
    head, rest = re.split(r"(?<=>)", _shaded(svg, "var(--ink)", "var(--ground)"), maxsplit=1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}\n{_SHADES}{ground}{rest}'


def inline(svg: str, name: str) -> str:
    """The picture as part of an HTML page: ink of the page's text colour, names of its own.

    Args:
        svg: the picture.
        name: what to put before its identifiers, which must differ from those of other pictures.
    """
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", _shaded(svg, "currentColor", "var(--ground)"))
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{name}-", svg)


def _shaded(svg: str, ink: str, ground: str) -> str:
    """The picture in other colours."""
    return svg.replace(INK, ink).replace(GROUND, ground)


def _label(figure: str, unit: str | None) -> str:
    """A figure at an axis."""
    return label(figure, unit).long


def _styles() -> Any:
    """Endless styles of lines: colours and markers first, then other dashes of them."""
    looks = product(_DASHES, zip(COLOURS, _MARKERS, strict=True))
    return cycle(
        {"color": colour, "marker": marker, "markersize": 5, "linestyle": dash, "linewidth": 1.4}
        for dash, (colour, marker) in looks
    )


def _axes(axes: Any, axis: str, lines: Sequence[Series], ylabel: str) -> None:
    places = sorted({x for line in lines for x in line.xs})
    if len(places) <= 10:
        axes.set_xticks(places, [f"{x:g}" for x in places])
    axes.set_xlabel(axis)
    axes.set_ylabel(ylabel)
    axes.yaxis.set_major_formatter(_thousands)
    axes.grid(visible=True, color="#808080", alpha=0.25, linewidth=0.6)


def _thousands(value: float, position: object = None) -> str:
    return f"{value:,.10g}"


def _equation(grown: Growth) -> str:
    """The straight line of a series: `stages = 2: 890.3 · block + 12`."""
    fit = grown.fit
    of = f"({grown.axis})" if " " in grown.axis else grown.axis
    sign = "+" if fit.intercept >= 0 else "\N{MINUS SIGN}"
    line = f"{_coefficient(fit.slope)} · {of} {sign} {_coefficient(abs(fit.intercept))}"
    return f"{grown.line.name}: {line}" if grown.line.name else line


def _coefficient(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _legend(figure: Any, least: int = 2) -> None:
    """Name the lines, if there are at least so many."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    if len(names) >= least:
        widest = max(map(len, names))
        columns = max(1, min(len(names), 100 // (widest + 8)))
        figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=8)


def svg(draw: Callable[[Any], None]) -> str:
    """The drawing of `draw` as an <svg> element with a transparent ground.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context(_STYLE):
        figure = Figure(
            layout=ConstrainedLayoutEngine(w_pad=0.08, wspace=0.04, rect=(0, 0, 0.97, 1))
        )
        draw(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata=_METADATA)
    drawn = file.getvalue()
    return drawn[drawn.index("<svg") :]
