"""The picture of a study, as a paper would print it."""

import io
import math
from typing import Any

from axs6.studies.accuracy import AccuracyStudy

KINDS = ("svg", "png")
STYLE: dict[Any, Any] = {"svg.hashsalt": "axs6", "svg.fonttype": "none", "font.size": 9}
MARKERS: dict[str, dict[str, Any]] = {
    "emulated": {"marker": "s", "markersize": 9, "fillstyle": "none"},
    "rtl": {"marker": "o", "markersize": 4},
}
LABELS = {"emulated": "emulated", "rtl": "RTL"}

FEW = 4
"""Formats whose names lie side by side."""

FEW_DECADES = 3
"""Decades below which a logarithmic axis has ticks between powers of ten."""


def check_kind(kind: str) -> None:
    """Raise ValueError unless pictures of this kind can be drawn."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")


def number_ticks(axis: Any) -> None:
    """Plain numbers at the ticks of a logarithmic axis, few enough to stand beside each other.

    On less than half a decade the ticks are those of a linear axis.
    """
    from matplotlib.ticker import AutoLocator, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    subs = (1, 2, 5) if decades < FEW_DECADES else (1,)
    axis.set_major_locator(AutoLocator() if decades < 0.5 else LogLocator(subs=subs, numticks=6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,.12g}")


def picture(study: AccuracyStudy, kind: str = "svg") -> bytes:
    """Draw the metric against the format, and the tile's cycles where it was simulated.

    For accuracy, a band around the FP32 line shows one standard error for the number of samples.
    The same study gives the same bytes.

    Args:
        study: with runs in block formats.
        kind: "svg" or "png".

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: another kind.
    """
    check_kind(kind)
    import matplotlib
    from matplotlib.figure import Figure

    simulated = any(run.cycles for run in study.runs)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7 if simulated else 3.8, 2.9), layout="constrained", dpi=200)
        panels = figure.subplots(1, 2 if simulated else 1, squeeze=False)[0]
        formats = list(dict.fromkeys(run.format for run in study.runs if run.format))
        _draw_metric(panels[0], study, formats)
        if simulated:
            _draw_cycles(panels[1], study, formats)
        for axes in panels:
            axes.set_xticks(range(len(formats)), formats, rotation=90 * (len(formats) > FEW))
            axes.set_xlim(-0.6, len(formats) - 0.4)
            axes.set_xlabel("format")
            axes.spines[["top", "right"]].set_visible(False)
        figure.suptitle(f"{study.model}, {study.samples:,} samples", fontsize=9)
        file = io.BytesIO()
        figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()


def _draw_metric(axes: Any, study: AccuracyStudy, formats: list[str]) -> None:
    from matplotlib.ticker import PercentFormatter

    value = study.reference.metric
    axes.axhline(value, color="black", linestyle="--", linewidth=1, label="FP32")
    if study.metric == "accuracy":
        error = math.sqrt(value * (1 - value) / study.samples)
        axes.axhspan(
            value - error, value + error, color="0.92", linewidth=0, label="FP32 ± 1 std. error"
        )
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    for backend, marker in MARKERS.items():
        points = [
            (formats.index(run.format), run.metric)
            for run in study.runs
            if run.backend == backend and run.format is not None
        ]
        if points:
            axes.plot(*zip(*points, strict=True), linestyle="none", label=LABELS[backend], **marker)
    axes.set_ylabel(study.metric.replace("_", " "))
    axes.margins(y=0.25)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.25), ncols=2, frameon=False)


def _draw_cycles(axes: Any, study: AccuracyStudy, formats: list[str]) -> None:
    runs = [run for run in study.runs if run.cycles is not None and run.format is not None]
    bars = axes.bar(
        [formats.index(run.format) for run in runs if run.format is not None],
        [(run.cycles or 0) / study.samples for run in runs],
        width=0.55,
        color="C1",
    )
    axes.bar_label(bars, [f"{100 * (run.utilisation or 0):.0f}% used" for run in runs])
    axes.set_ylabel("cycles per sample")
    axes.margins(y=0.12)
