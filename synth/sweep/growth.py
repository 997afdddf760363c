"""How a figure grows with a parameter: series of points, and the curves that fit them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from axs6.synth.sweep.axes import Axes
from axs6.synth.sweep.points import Result, Sweep

PRODUCT = "rows x columns"
"""The size of a tile as an axis of its own, where both of its sides are swept."""

_FEWEST = 3

_ROUNDING = 1e-12
"""Share of the largest value within which a fit cannot tell a number from 0."""


@dataclass(frozen=True)
class Series:
    """Results that differ in one parameter, by its values `xs`; `name` has the other values."""

    name: str
    xs: tuple[float, ...]
    results: tuple[Result, ...]

    def values(self, figure: str) -> list[float]:
        """A figure of each point; NaN where it is missing."""
        return [
            result.measured.figures.get(figure, np.nan) if result.measured else np.nan
            for result in self.results
        ]


@dataclass(frozen=True)
class Fit:
    """The least-squares line y = intercept + slope x through a series, and its power law.

    Numbers within the rounding of double precision, 1e-12 of the points' values, are 0.
    `deviation` is the largest |y - line| / |y|, None where a y is zero. `exponent` is k of the
    least-squares y = c x^k, a line in logarithms; None where a point is not above zero. `points`
    counts those fitted.
    """

    points: int
    intercept: float
    slope: float
    deviation: float | None
    exponent: float | None

    def at(self, x: float) -> float:
        """The straight line's value."""
        return self.intercept + self.slope * x


@dataclass(frozen=True)
class Growth:
    """How one figure of one design grows along an axis; `line` has the points."""

    subject: str
    axis: str
    figure: str
    line: Series
    fit: Fit

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        names = {"design": self.subject, "axis": self.axis, "figure": self.figure}
        return {**names, "at": self.line.name, **asdict(self.fit)}


def growth(sweep: Sweep) -> list[Growth]:
    """How every figure that changes grows along every axis with three points or more."""
    return [
        Growth(subject, axis, figure, line, found)
        for subject, results in sweep.subjects.items()
        for axis in growth_axes(sweep.axes)
        for figure in varying(results)
        for line in series(results, sweep.axes, axis)
        if (found := fit(line.xs, line.values(figure)))
    ]


def varying(results: Sequence[Result]) -> list[str]:
    """The figures that differ between results."""
    known = [result.measured.figures for result in results if result.measured]
    names = dict.fromkeys(name for figures in known for name in figures)
    return [name for name in names if len({figures.get(name) for figures in known}) > 1]


def numeric(axes: Axes) -> list[str]:
    """The axes along which figures can grow: integers, more than one value."""
    return [n for n, vs in axes.items() if len(vs) > 1 and all(isinstance(v, int) for v in vs)]


def growth_axes(axes: Axes) -> list[str]:
    """`numeric`, and `PRODUCT` where there are rows and columns."""
    names = numeric(axes)
    return [*names, PRODUCT] if {"rows", "columns"} <= set(names) else names


def series(results: Sequence[Result], axes: Axes, axis: str) -> list[Series]:
    """The results along one of `growth_axes`, one series for each combination of the others."""
    own = {"rows", "columns"} if axis == PRODUCT else {axis}
    others = [name for name, values in axes.items() if name not in own and len(values) > 1]
    groups: dict[str, list[Result]] = {}
    for result in results:
        name = ", ".join(f"{other} = {result.point.value(other)}" for other in others)
        groups.setdefault(name, []).append(result)
    return [_series(name, group, axis) for name, group in groups.items()]


def _series(name: str, group: list[Result], axis: str) -> Series:
    def position(result: Result) -> float:
        value = result.point.value
        size: Any = value("rows") * value("columns") if axis == PRODUCT else value(axis)
        return float(size)

    ordered = sorted(group, key=position)
    return Series(name, tuple(map(position, ordered)), tuple(ordered))


def fit(xs: Sequence[float], ys: Sequence[float]) -> Fit | None:
    """Fit a line and a power law; None with points at fewer than three places or no change."""
    x, y = np.array(xs, float), np.array(ys, float)
    known = np.isfinite(y)
    x, y = x[known], y[known]
    if len(set(x)) < _FEWEST or len(set(y)) == 1:
        return None
    highest = np.abs(y).max()
    slope, intercept = np.polyfit(x, y, 1)
    slope = _rounded(slope, highest / np.abs(x).max())
    intercept = _rounded(intercept, highest)
    deviation = None
    if y.all():
        deviation = _rounded((np.abs(y - intercept - slope * x) / np.abs(y)).max(), 1)
    exponent = None
    if (x > 0).all() and (y > 0).all():
        exponent = _rounded(np.polyfit(np.log(x), np.log(y), 1)[0], 1)
    return Fit(len(x), intercept, slope, deviation, exponent)


def _rounded(value: float, scale: float) -> float:
    """A number, 0 where it is nothing but rounding beside the scale."""
    return 0.0 if abs(value) <= _ROUNDING * scale else float(value)
