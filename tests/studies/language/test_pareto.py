"""Perplexity against area and memory."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from axs6.studies.language import pareto
from axs6.studies.language.pareto import CostPoint, cost_points, frontier_of, read_costs
from axs6.studies.language.perplexity import PerplexityRow, Study
from axs6.studies.language.request import Setting
from axs6.studies.pareto.data import Measurement
from axs6.studies.pareto.space import space

Cli = Callable[..., Any]

DATA = Path(__file__).parents[3] / "docs" / "data" / "pareto.jsonl"


def study(ratios: dict[str, tuple[float, float]], **others: Any) -> Study:
    rows = [PerplexityRow(Setting(), "fp32", 32.0, 15.0, 1.0, 1.0, 0.0, 1.0, {})]
    for name, (ratio, error) in ratios.items():
        setting = Setting.of(name, **others)
        rows.append(
            PerplexityRow(setting, str(setting), 4.0, 15 * ratio, 1.0, ratio, error, 1.0, {})
        )
    return Study("small", 1, "text", "digest", 2, 32, tuple(rows))


def measured(name: str, area: float, memory: float = 1.0) -> Measurement:
    return Measurement(name, area, memory, 30.0, 1000.0)


def test_points_lie_above_fp32_or_at_two_errors() -> None:
    costs = {name: measured(name, 0.5, 3.0) for name in ("mx9", "mx6", "mxint8", "axs6")}
    ratios = {"mx9": (0.999, 0.002), "mx6": (1.2, 0.01), "mxint8": (1.01, 0.006), "mx4": (9, 1)}
    found = {x.format: x for x in cost_points(study(ratios), costs)}
    assert found["mx6"].above == pytest.approx(0.2)
    assert found["mx9"].above == pytest.approx(0.004)
    assert found["mxint8"].above == pytest.approx(0.022)
    assert {name: x.bounded for name, x in found.items()} == {
        "mx9": True,
        "mx6": False,
        "mxint8": True,
    }
    assert all(x.cost == 1.5 for x in found.values())
    for other in (study({"mx6xfp32": (1.2, 0.1)}), study({"mx6": (1.2, 0.1)}, head=True)):
        with pytest.raises(ValueError, match="needs a format of weights and activations"):
            cost_points(other, costs)


def test_the_frontier_has_what_no_other_beats() -> None:
    figures = {"a": (1, 9), "b": (2, 9), "c": (3, 1), "d": (3, 2), "e": (4, 1), "f": (5, 0.5)}
    points = [CostPoint(name, cost, above, False) for name, (cost, above) in figures.items()]
    assert [x.format for x in frontier_of(points)] == ["a", "c", "f"]


def test_costs_are_those_of_the_study() -> None:
    costs = read_costs(DATA)
    assert costs["fp8_e4m3"].cost == 1
    assert 0.3 < costs["mx6"].cost < 0.5 < costs["axs6"].cost < 0.7


def test_names_lie_beside_each_other() -> None:
    from matplotlib.figure import Figure

    # Nine of ten lie close together.
    ratios = {name: (1.1 + 0.02 * place, 0.001) for place, name in enumerate(read_costs(DATA))}
    some = {name: ratios[name] for name in list(ratios)[:21]}
    found = study(some)
    figure = Figure(figsize=(8, 5.6), layout="constrained")
    points = cost_points(found, read_costs(DATA))
    texts = pareto._draw(figure, found, points, space())
    figure.draw_without_rendering()
    assert [text.get_text() for text in texts] == [x.format for x in points]
    boxes = [text.get_window_extent() for text in texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_the_command_draws_it(main: Cli, folder: Path, tmp_path: Path) -> None:
    arguments = ("study", "perplexity", str(folder), "--format", "mxfp4,mx6,uint8")
    sizes = ("--tokens", "64", "--window", "32", "--pareto", str(DATA))
    printed = main(*arguments, *sizes, "-o", str(tmp_path)).succeeded()
    assert "not in perplexity-pareto.svg, without a cost" in printed
    assert " uint8\n" in printed
    assert ">mxfp4</text>" in (tmp_path / "perplexity-pareto.svg").read_text()
    done = main(*arguments, *sizes)
    assert done.returncode == 2
    assert done.stderr == "axs6: --pareto needs a folder for its picture: -o\n"
