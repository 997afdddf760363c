"""Names beside the points of a picture, where they cover nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.synth.pages.pictures import GROUND, INK

SIZE: Final = 8
"""Size of a name, in points."""

DISTANCES: Final = (6, 9, 15, 22, 30, 40, 52, 66, 82)
"""From a point to the nearest corner or side of its name, in points."""

DIRECTIONS: Final = 24
"""Directions from a point to its name."""

LINE_FROM: Final = 9
"""Distance from which a line leads from a point to its name."""

RADIUS: Final = 3
"""Half the width of a named point's mark, in points."""

COVERED_NAME: Final = 1000.0
COVERED_POINT: Final = 30.0
COVERED_MARK: Final = 4.0
COVERED_LINE: Final = 6.0
"""What a position costs for each name, named point, other mark and sample of a line that the name
covers or its line crosses, and for another named point that is nearer; a point of distance costs
0.2."""

Boxes = NDArray[np.float64]
"""Rectangles (N, 4): left, bottom, right, top."""


@dataclass(frozen=True)
class Obstacles:
    """What names should not cover, in pixels: points (N, 2) and what each costs (N,)."""

    points: NDArray[np.float64]
    costs: NDArray[np.float64]


def place_names(
    axes: Any,
    points: Sequence[tuple[str, float, float]],
    marks: Sequence[tuple[float, float]] = (),
    steps: Sequence[tuple[float, float]] = (),
) -> list[Any]:
    """Write each name near its point, so that it covers no name, and few points and lines.

    The names with the least room come first. Each takes the cheapest of the positions around its
    point; a thin line leads to one that is further away.

    Args:
        points: names with x and y.
        marks: x and y of other marks.
        steps: x and y of the corners of a line that goes right first, then up or down.

    Returns:
        The texts, in the order of the names.
    """
    figure = axes.figure
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    at = axes.transData.transform([(x, y) for _, x, y in points])
    around = _obstacles(axes, at, marks, steps, scale)
    window = axes.get_window_extent()
    texts = [_text(axes, name, (x, y)) for name, x, y in points]
    sizes = [text.get_window_extent() for text in texts]
    offered = [
        _positions(centre, size.width + 2 * scale, size.height + scale, scale)
        for centre, size in zip(at, sizes, strict=True)
    ]
    costs = []
    for index, (boxes, far) in enumerate(offered):
        inside = (boxes[:, 0] >= window.x0) & (boxes[:, 1] >= window.y0)
        inside &= (boxes[:, 2] <= window.x1) & (boxes[:, 3] <= window.y1)
        covered = _covered(boxes, around) + _crossed(at[index], boxes, around, scale)
        misread = COVERED_POINT * _nearer(np.delete(at, index, 0), boxes, far * scale)
        costs.append(covered + misread + 0.2 * far + COVERED_NAME * ~inside)
    taken: list[NDArray[np.float64]] = []
    for index in sorted(range(len(points)), key=lambda k: -costs[k].min()):
        boxes, far = offered[index]
        lines = _samples(at[index], boxes)
        cost = costs[index].copy()
        for box in taken:
            cost += COVERED_NAME * _overlap(boxes, box) + COVERED_NAME * _inside(lines, box)
        best = int(cost.argmin())
        taken += [boxes[best], *_as_boxes(lines[best], scale)]
        _move(texts[index], at[index], boxes[best], far[best], scale)
    return texts


def _text(axes: Any, name: str, point: tuple[float, float]) -> Any:
    """A name at its point, on a ground that keeps lines below it from the letters."""
    ground = {"facecolor": GROUND, "alpha": 0.75, "linewidth": 0, "pad": 0.4}
    line = {"arrowstyle": "-", "color": INK, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
    return axes.annotate(
        name,
        point,
        (0, 0),
        textcoords="offset points",
        fontsize=SIZE,
        va="center",
        ha="center",
        bbox=ground,
        arrowprops=line,
        zorder=5,
    )


def _obstacles(
    axes: Any,
    at: NDArray[np.float64],
    marks: Sequence[tuple[float, float]],
    steps: Sequence[tuple[float, float]],
    scale: float,
) -> Obstacles:
    """The named points, other marks, and samples of the line that are a few pixels apart."""
    corners = RADIUS * scale * np.array([(0, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)])
    named = (at[:, None] + corners).reshape(-1, 2)
    found, costs = [named], [np.full(len(named), COVERED_POINT / len(corners))]
    if marks:
        found.append(axes.transData.transform(marks))
        costs.append(np.full(len(marks), COVERED_MARK))
    if steps:
        places = axes.transData.transform(steps)
        turns = np.stack([places[1:, 0], places[:-1, 1]], -1)
        ends = [p for pair in zip(places[:-1], turns, strict=True) for p in pair] + [places[-1]]
        for start, end in pairwise(ends):
            count = max(2, int(np.abs(end - start).max() / (4 * scale)))
            found.append(np.linspace(start, end, count))
            costs.append(np.full(count, COVERED_LINE))
    return Obstacles(np.concatenate(found), np.concatenate(costs))


def _positions(
    centre: NDArray[np.float64], width: float, height: float, scale: float
) -> tuple[Boxes, NDArray[np.float64]]:
    """Boxes for a name around its point, and how far each is from it, in points."""
    angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    far = np.repeat(np.array(DISTANCES, float), DIRECTIONS)
    right, up = (np.tile(f(angles), len(DISTANCES)) for f in (np.cos, np.sin))
    x = centre[0] + right * (far * scale + width / 2)
    y = centre[1] + up * (far * scale + height / 2)
    return np.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], -1), far


def _covered(boxes: Boxes, around: Obstacles) -> NDArray[np.float64]:
    """What each box costs by what lies in it."""
    x, y = around.points.T
    left, bottom, right, top = (side[:, None] for side in boxes.T)
    return ((x >= left - 2) & (x <= right + 2) & (y >= bottom - 2) & (y <= top + 2)) @ around.costs


def _nearer(
    others: NDArray[np.float64], boxes: Boxes, far: NDArray[np.float64]
) -> NDArray[np.int64]:
    """How many other named points are nearer to each box than its own, which is so far away."""
    nearest = np.clip(others, boxes[:, None, :2], boxes[:, None, 2:])
    return (np.hypot(*(nearest - others).transpose(2, 0, 1)) <= 1.2 * far[:, None]).sum(1)


def _crossed(
    centre: NDArray[np.float64], boxes: Boxes, around: Obstacles, scale: float
) -> NDArray[np.float64]:
    """What the lines from a point to the boxes cost by what they cross, but at the point itself."""
    lines = _samples(centre, boxes)
    apart = np.abs(around.points - centre).max(-1) > 4 * scale
    near = np.abs(lines[:, :, None] - around.points[apart]).max(-1) < 2 * scale
    return 0.5 * near.any(1) @ around.costs[apart]


def _samples(centre: NDArray[np.float64], boxes: Boxes) -> NDArray[np.float64]:
    """Points (N, 12, 2) of the lines from a point to the nearest points of boxes."""
    nearest = np.clip(centre, boxes[:, :2], boxes[:, 2:])
    return centre + (nearest - centre)[:, None] * np.linspace(0.15, 1, 12)[:, None]


def _overlap(boxes: Boxes, other: NDArray[np.float64]) -> Any:
    apart = (boxes[:, :2] >= other[2:]) | (boxes[:, 2:] <= other[:2])
    return ~np.any(apart, axis=-1)


def _inside(lines: NDArray[np.float64], box: NDArray[np.float64]) -> Any:
    """Which lines pass through a box."""
    return ((lines > box[:2]) & (lines < box[2:])).all(-1).any(-1)


def _as_boxes(line: NDArray[np.float64], scale: float) -> Boxes:
    """Small boxes along a line, which other names and lines are not to cover."""
    return np.concatenate([line - scale, line + scale], -1)


def _move(
    text: Any, centre: NDArray[np.float64], box: NDArray[np.float64], far: float, scale: float
) -> None:
    """Put a name into its box, with a line where it is not beside its point."""
    text.set_position(tuple(((box[:2] + box[2:]) / 2 - centre) / scale))
    if far < LINE_FROM:
        text.arrow_patch.set_visible(False)
