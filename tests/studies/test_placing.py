"""Names in pictures cover nothing, and each is read as that of its own point."""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from axs6.studies.placing import LINE_FROM, place_names

POINTS = [(f"format{k}", 0.5 + 0.004 * k, 0.5 + 0.003 * (k % 3)) for k in range(9)]
"""Points so near to each other that no names beside them would be apart."""


def axes() -> Any:
    figure = Figure(figsize=(6, 4))
    found = figure.subplots()
    found.set(xlim=(0, 1), ylim=(0, 1))
    return found


def covered(boxes: list[Any]) -> int:
    """Pairs of boxes of which one covers the other."""
    return sum(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_names_do_not_cover_each_other_or_points_and_stay_inside() -> None:
    found = axes()
    texts = place_names(found, POINTS)
    found.figure.draw_without_rendering()
    assert [text.get_text() for text in texts] == [name for name, *_ in POINTS]
    boxes = [text.get_window_extent() for text in texts]
    window = found.get_window_extent()
    bare = [found.text(x, y, name).get_window_extent() for name, x, y in POINTS]
    assert covered(bare) > 0
    assert covered([Bare.of(text) for text in texts]) == 0
    for x, y in found.transData.transform([(x, y) for _, x, y in POINTS]):
        assert not any(Bare.of(text).contains(x, y) for text in texts)
    assert all(window.x0 <= box.x0 and box.x1 <= window.x1 for box in boxes)


class Bare:
    """The box of the letters of a text, without its line."""

    @staticmethod
    def of(text: Any) -> Any:
        shown = text.arrow_patch
        text.arrow_patch = None
        box = text.get_bbox_patch().get_window_extent()
        text.arrow_patch = shown
        return box


def test_a_name_goes_around_a_cloud_and_a_line_leads_to_it() -> None:
    rng = np.random.default_rng(1)
    cloud = [tuple(x) for x in 0.5 + 0.1 * (rng.random((400, 2)) - 0.5)]
    found = axes()
    (alone,) = place_names(found, POINTS[:1])
    (inside,) = place_names(found, [("format", 0.5, 0.5)], cloud)
    far = [np.hypot(*text.get_position()) for text in (alone, inside)]
    assert not alone.arrow_patch.get_visible()
    assert inside.arrow_patch.get_visible()
    assert far[1] > LINE_FROM
    box = Bare.of(inside)
    assert not any(box.contains(x, y) for x, y in found.transData.transform(cloud))


def test_a_name_keeps_off_a_line_of_steps() -> None:
    found = axes()
    steps = [(0.3, 0.5), (0.5, 0.52), (0.8, 0.56)]
    (text,) = place_names(found, [("format", 0.5, 0.52)], steps=steps)
    box = Bare.of(text)
    corners = found.transData.transform([(0.5, 0.5), (0.5, 0.52), (0.8, 0.52)])
    for start, end in pairwise(corners):
        assert not any(box.contains(*(start + (end - start) * t)) for t in np.linspace(0, 1, 50))


def test_the_same_points_give_the_same_places() -> None:
    one, other = ([text.get_position() for text in place_names(axes(), POINTS)] for _ in range(2))
    assert one == other
