"""Results of the Pareto study: costs, the frontier and its knees, growth, and the paper's
claims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import log2
from typing import Any

from axs6.golden.formats import CATALOG
from axs6.studies.pareto.data import (
    Conditions,
    FormatRow,
    Measurement,
    baseline_of,
    measurements_of,
)
from axs6.studies.pareto.space import (
    BASELINE,
    BLOCKS,
    MAGNITUDES,
    MICRO,
    SHIFT_BITS,
    SUBBLOCKS,
    two_level,
)
from axs6.synth.sweep.growth import Fit, fit
from axs6.tables import Column, Table, Tabular, table_of, words


@dataclass(frozen=True)
class ParetoClaim:
    """The paper's claim about two formats, and the measurement; None if one is missing.

    Args:
        what: the comparison.
        format, other: the formats.
        paper: its words.
        db: difference of the first from the other. area, cost: ratio of the first to the other.
    """

    what: str
    format: str
    other: str
    paper: str
    db: float | None = None
    area: float | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Law:
    """How the area of formats grows with one of their parameters; see `axs6.synth.sweep.growth`.

    Args:
        format: the base format; the others differ from it only in the parameter.
        axis: the parameter: m, k1, k2 or d2.
        points: its values and the areas over the baseline's.
        fit: the line and the power law through them.
    """

    format: str
    axis: str
    points: list[tuple[int, float]]
    fit: Fit


COLUMNS = (
    words("format"),
    Column("qsnr_db", "QSNR dB", ".2f"),
    Column("area", "area", ".3f"),
    Column("memory", "memory", ".3f"),
    Column("cost", "area x memory", ".3f"),
    Column("delay_ps", "delay ns", lambda delay: f"{delay / 1000:.1f}"),
    Column("frontier", "frontier", none=""),
)
"""A measured format: area, memory and their product over those of the baseline."""


@dataclass(frozen=True)
class ParetoStudy(Tabular):
    """Results in a file under some conditions.

    Args:
        conditions: of the measurements.
        baseline_um2: area of the baseline.
        measurements: by format.
        frontier: the formats that no other beats at equal or lower cost, by cost. knees: the
        corners of the frontier's concave hull over the logarithm of the cost. unbuildable: formats
        without hardware, and why. missing: unmeasured formats of the study. stale: formats in the
        file with rows of other conditions, which do not count. claims, laws: of the paper, and of
        the area.
    """

    conditions: Conditions
    baseline_um2: float
    measurements: dict[str, Measurement]
    frontier: list[str]
    knees: list[str]
    unbuildable: dict[str, str]
    missing: list[str]
    stale: list[str]
    claims: list[ParetoClaim]
    laws: list[Law]

    def table(self, names: Iterable[str] | None = None) -> Table:
        """A row for each of some measured formats; for those with names unless others are given."""
        rows = []
        for name in [x for x in self.measurements if x in CATALOG] if names is None else names:
            x = self.measurements[name]
            mark = "knee" if name in self.knees else "yes" if name in self.frontier else None
            rows.append({**vars(x), "cost": x.cost, "frontier": mark})
        return table_of(COLUMNS, rows)

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON."""
        found = asdict(self)
        found["measurements"] = [{**asdict(x), "cost": x.cost} for x in self.measurements.values()]
        return {"study": "pareto", **found}


def study_of(
    rows: Mapping[str, FormatRow], names: Sequence[str], conditions: Conditions
) -> ParetoStudy:
    """Results of rows under some conditions.

    Args:
        rows: by format, as `axs6.studies.pareto.data.read_rows` gives them.
        names: the formats of the study.
        conditions: required conditions of a row.

    Raises:
        ValueError: a format of the baseline is not among the rows that count.
    """
    usable = {name: row for name, row in rows.items() if row.conditions == conditions}
    whole = baseline_of(usable)
    found = measurements_of(usable)
    frontier = frontier_of(found.values())
    return ParetoStudy(
        conditions,
        whole,
        found,
        [x.format for x in frontier],
        [x.format for x in knees_of(frontier)],
        {name: row.reason for name, row in usable.items() if row.reason is not None},
        [name for name in names if name not in usable],
        [name for name in rows if name not in usable],
        [_measured_claim(claim, found) for claim in claims()],
        laws(found),
    )


def frontier_of(measurements: Iterable[Measurement]) -> list[Measurement]:
    """The formats that no other beats at equal or lower cost, by cost."""
    kept: list[Measurement] = []
    for each in sorted(measurements, key=lambda x: (x.cost, -x.qsnr_db)):
        if not kept or each.qsnr_db > kept[-1].qsnr_db:
            kept.append(each)
    return kept


def knees_of(frontier: Sequence[Measurement]) -> list[Measurement]:
    """The corners of the concave hull of a frontier over the logarithm of the cost, without its
    ends."""
    hull: list[Measurement] = []
    for each in frontier:
        while len(hull) > 1 and _slope(hull[-1], each) >= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(each)
    return hull[1:-1]


def _slope(a: Measurement, b: Measurement) -> float:
    return (b.qsnr_db - a.qsnr_db) / (log2(b.cost) - log2(a.cost))


def claims() -> list[ParetoClaim]:
    """The shared-microexponents paper's claims about its formats, section IV-C."""
    found = [
        ParetoClaim("MX9 and FP8", "mx9", BASELINE[0], "+16 dB, an area close to FP8's"),
        ParetoClaim("MX6 and FP8", "mx6", BASELINE[0], "half of FP8's area times memory"),
        ParetoClaim("MX4 and FP8", "mx4", BASELINE[0], "a quarter of FP8's area times memory"),
    ]
    for name, m in MICRO.items():
        found += [
            ParetoClaim("d2 from 1 to 2", two_level(m, 16, 2, 2), name, "+0.5 dB for 30 to 50 %"),
            ParetoClaim("k2 from 8 to 2", name, two_level(m, 16, 8, 1), "+2 dB for 3 %"),
            ParetoClaim("k2 from 2 to 1", two_level(m, 16, 1, 1), name, "+0.7 dB for 30 to 40 %"),
        ]
    return found


def _measured_claim(claim: ParetoClaim, found: Mapping[str, Measurement]) -> ParetoClaim:
    one, other = found.get(claim.format), found.get(claim.other)
    if one is None or other is None:
        return claim
    area, cost = (1.0, 1.0) if claim.other in BASELINE else (other.area, other.cost)
    db = one.qsnr_db - other.qsnr_db
    return replace(claim, db=db, area=one.area / area, cost=one.cost / cost)


def laws(found: Mapping[str, Measurement]) -> list[Law]:
    """Growth of the area around each microexponent format, along parameters with three points or
    more."""
    found_laws: list[Law] = []
    for name, m in MICRO.items():
        axes = {
            "m": {x: two_level(x, 16, 2, 1) for x in sorted(MAGNITUDES)},
            "k1": {x: two_level(m, x, 2, 1) for x in sorted(BLOCKS)},
            "k2": {x: two_level(m, 16, x, 1) for x in sorted(SUBBLOCKS) if x < 16},
            "d2": {x: two_level(m, 16, 2, x) for x in (0, *SHIFT_BITS)},
        }
        for axis, names in axes.items():
            points = [(x, found[each].area) for x, each in names.items() if each in found]
            fitted = fit([x for x, _ in points], [y for _, y in points])
            same = any(law.points == points for law in found_laws)
            if fitted and not same:
                found_laws.append(Law(name, axis, points, fitted))
    return found_laws
