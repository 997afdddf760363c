"""The tables of the Pareto study, for a terminal and for a page."""

from collections.abc import Sequence

from axs6.studies.pareto.results import ParetoStudy
from axs6.studies.pareto.space import BASELINE
from axs6.synth.pages.document import Page, Section
from axs6.synth.pages.markdown import markdown as page_files
from axs6.tables import Table, text_table


def counts(study: ParetoStudy) -> str:
    """One line with the numbers of measured formats, missing formats, and formats without
    hardware."""
    return (
        f"{len(study.measurements):,} formats measured, {len(study.missing):,} to go, "
        f"{len(study.unbuildable):,} without hardware, {len(study.stale):,} measured otherwise "
        "do not count"
    )


def tables(study: ParetoStudy, wanted: Sequence[str] = ()) -> list[tuple[str, Table]]:
    """The tables with their titles; for given formats only their table."""
    if wanted:
        return [("Formats", study.table([x for x in wanted if x in study.measurements]))]
    return [
        ("Formats with names", study.table()),
        ("The frontier", study.table(study.frontier)),
        ("What the shared-microexponents paper says", _claims(study)),
        ("Area along one parameter", _laws(study)),
    ]


def markdown(study: ParetoStudy) -> str:
    """The tables as a Markdown page."""
    at = study.conditions
    origin = [
        ("lanes", str(at.reduction)),
        ("vectors", f"{at.vectors:,}"),
        ("pyosys", at.pyosys),
        ("commands, scripts and library", at.flow),
        (f"area of {' or '.join(BASELINE)}", f"{study.baseline_um2:,.0f} µm²"),
        ("formats", counts(study)),
    ]
    sections = [Section(title, 1, [table]) for title, table in tables(study)]
    reasons = [*study.unbuildable.items()]
    sections.append(
        Section("Without hardware", 1, [text_table(("format", "reason"), reasons, left=2)])
    )
    page = Page("Pareto study", text_table(("of", "value"), origin, left=2), sections)
    return str(page_files(page, "pareto.md")["pareto.md"])


def _claims(study: ParetoStudy) -> Table:
    rows = []
    for x in study.claims:
        ratios = [None if y is None else y - 1 for y in (x.area, x.cost)]
        figures = ["-" if y is None else f"{y:+.0%}" for y in ratios]
        db = "-" if x.db is None else f"{x.db:+.2f}"
        rows.append((x.what, x.format, x.other, x.paper, db, *figures))
    return text_table(("", "of", "over", "the paper", "dB", "area", "area x memory"), rows, left=4)


def _laws(study: ParetoStudy) -> Table:
    rows = []
    for x in study.laws:
        line = f"{x.fit.intercept:.3f} {x.fit.slope:+.4f} {x.axis}"
        off = "-" if x.fit.deviation is None else f"{x.fit.deviation:.1%}"
        power = "-" if x.fit.exponent is None else f"{x.axis}^{x.fit.exponent:.2f}"
        values = ", ".join(f"{at}: {area:.3f}" for at, area in x.points)
        rows.append((x.format, x.axis, values, line, off, power))
    return text_table(("around", "axis", "areas", "line", "off by", "power"), rows, left=4)
