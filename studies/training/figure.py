"""The loss curves of a training study."""

import io
from typing import Any

from axs6.studies.figure import STYLE, check_kind
from axs6.studies.training.study import TrainingStudy

SMOOTHED = 20
"""Steps whose mean is one point of a curve."""


def picture(study: TrainingStudy, kind: str = "svg") -> bytes:
    """Draw the loss over the steps, and the difference of each recipe from FP32 on the same
    batches.

    A curve is the mean of the seeds, and a point of it the mean of `SMOOTHED` steps. The same
    study gives the same bytes.

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
        curves = {row.recipe: _curve(row.losses) for row in study.rows}
        baseline = next(iter(curves.values()))
        width = min(SMOOTHED, study.steps)
        steps = [width * (point + 1) for point in range(len(baseline))]
        for index, (name, curve) in enumerate(curves.items()):
            style: dict[str, Any] = {"linewidth": 1, "color": "black" if not index else f"C{index}"}
            whole.plot(steps, curve, label=name, **style)
            if index:
                differences = [a - b for a, b in zip(curve, baseline, strict=True)]
                apart.plot(steps, differences, **style)
        apart.axhline(0, color="black", linewidth=1)
        whole.set_ylabel("loss, nats")
        apart.set_ylabel("loss less that of FP32, nats")
        for axes in (whole, apart):
            axes.set_xlabel("step")
            axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        file = io.BytesIO()
        figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()


def _curve(losses: list[list[float]]) -> list[float]:
    """Means over the seeds and over this number of steps."""
    means = [sum(each) / len(each) for each in zip(*losses, strict=True)]
    width = min(SMOOTHED, len(means))
    ends = range(width, len(means) + 1, width)
    return [sum(means[end - width : end]) / width for end in ends]
