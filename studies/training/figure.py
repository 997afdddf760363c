"""The loss curves of a training study."""

import io
from statistics import fmean
from typing import Any

from axs6.studies.figure import STYLE, check_kind, number_ticks
from axs6.studies.training.study import TrainingStudy

SMOOTHED = 20
"""Steps whose mean is one point of a curve."""


def picture(study: TrainingStudy, kind: str = "svg") -> bytes:
    """Draw the loss over the steps, and the difference of each recipe from FP32 on the same
    batches.

    A curve is the mean of the seeds, with a band from the smallest to the largest of them. A point
    is the mean of `SMOOTHED` steps. The same study gives the same bytes.

    Args:
        study: with at least `SMOOTHED` steps; fewer are one point.
        kind: "svg" or "png".

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: another kind.
    """
    check_kind(kind)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7, 2.9), layout="constrained", dpi=200)
        whole, apart = figure.subplots(1, 2)
        curves = {row.recipe: [_curve(losses) for losses in row.losses] for row in study.rows}
        baseline = next(iter(curves.values()))
        width = min(SMOOTHED, study.steps)
        steps = [width * (point + 1) for point in range(len(baseline[0]))]
        for index, (name, seeds) in enumerate(curves.items()):
            style: dict[str, Any] = {"color": "black" if not index else f"C{index - 1}"}
            _draw(whole, steps, seeds, style, name)
            if index:
                pairs = zip(seeds, baseline, strict=True)
                _draw(apart, steps, [_less(*pair) for pair in pairs], style)
        apart.axhline(0, color="black", linewidth=1)
        whole.set_ylabel("loss, nats")
        whole.set_yscale("log")
        number_ticks(whole.yaxis)
        apart.set_ylabel("loss less that of FP32, nats")
        for axes in (whole, apart):
            axes.set_xscale("log")
            number_ticks(axes.xaxis)
            axes.set_xlabel("step")
            axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        file = io.BytesIO()
        figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()


def _draw(
    axes: Any, steps: list[int], seeds: list[list[float]], style: dict[str, Any], name: str = ""
) -> None:
    """The mean of the seeds as a line, and a band from the smallest to the largest."""
    points = list(zip(*seeds, strict=True))
    axes.plot(steps, [fmean(each) for each in points], label=name or None, linewidth=1, **style)
    if len(seeds) > 1:
        low, high = [min(each) for each in points], [max(each) for each in points]
        axes.fill_between(steps, low, high, alpha=0.2, linewidth=0, **style)


def _less(curve: list[float], other: list[float]) -> list[float]:
    return [a - b for a, b in zip(curve, other, strict=True)]


def _curve(losses: list[float]) -> list[float]:
    """Means over this number of steps."""
    width = min(SMOOTHED, len(losses))
    return [fmean(losses[end - width : end]) for end in range(width, len(losses) + 1, width)]
