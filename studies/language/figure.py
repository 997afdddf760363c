"""The picture of a study of perplexity."""

import io

from axs6.studies.figure import STYLE, check_kind, number_ticks
from axs6.studies.language.perplexity import Study


def picture(study: Study, kind: str = "svg") -> bytes:
    """Draw perplexity relative to FP32 for each setting, best first, with standard errors.

    The same study gives the same bytes.

    Args:
        study: the study.
        kind: "svg" or "png".

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: another kind.
    """
    check_kind(kind)
    import matplotlib
    from matplotlib.figure import Figure

    rows = sorted(study.rows[1:], key=lambda row: row.ratio)
    with matplotlib.rc_context(STYLE):
        size = (4.6, 1.1 + 0.22 * len(rows))
        figure = Figure(figsize=size, layout="constrained", dpi=200)
        axes = figure.subplots()
        places = range(len(rows))
        errors = [row.ratio_error or 0.0 for row in rows]
        axes.axvline(1, color="black", linestyle="--", linewidth=1, label="FP32")
        axes.errorbar(
            [row.ratio for row in rows], places, xerr=errors, fmt="o", markersize=4, capsize=2
        )
        axes.set_xscale("log")
        number_ticks(axes.xaxis)
        axes.set_yticks(places, [row.name for row in rows])
        axes.invert_yaxis()
        axes.grid(visible=True, axis="x", color="0.9", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel(f"perplexity over FP32's {study.rows[0].perplexity:.4g}")
        figure.suptitle(
            f"{study.model}, {study.windows:,} windows of {study.window:,} tokens", fontsize=9
        )
        file = io.BytesIO()
        figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()
