"""The view of a unit that is measured or written where none is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.synth.flow import Synthesis
from axs6.synth.sweep.points import all_points
from axs6.synth.targets import FPGAS, TARGETS, WITH_DSPS

Cli = Callable[..., Any]

SMALL = ("block_dot", "--block", "8", "--format", "int4")


def views(unit: str, target: str, **parameters: Any) -> list[str | None]:
    return [point.view for point in all_points([unit], {}, parameters, Synthesis(target=target))]


@pytest.mark.parametrize("target", TARGETS)
def test_words_where_products_become_dsp_blocks(target: str) -> None:
    expected = "behaviour" if target in WITH_DSPS else "structure"
    assert views("block_dot", target) == [expected]
    assert views("block_dot", target, view="structure") == ["structure"]
    assert views("expander", target) == [None]
    assert views("encoder", target, format="mx9") == [None]
    assert views("decoder", target) == ["structure"], "products with constants stay gates"


def test_swept_targets_have_each_their_own() -> None:
    points = all_points(["block_dot"], {"target": TARGETS}, {"block": 8}, Synthesis())
    words = [point.options.target for point in points if point.view == "behaviour"]
    assert words == list(WITH_DSPS)
    swept = {"target": FPGAS, "view": ("structure",)}
    points = all_points(["block_dot"], swept, {"block": 8}, Synthesis())
    assert {point.view for point in points} == {"structure"}


def test_the_report_names_the_view_that_it_took(main: Cli, tmp_path: Path) -> None:
    options = ("--target", "ecp5", "--json", "figures.json")

    def figures() -> Any:
        (found,) = json.loads((tmp_path / "figures.json").read_text())
        return found

    said = main("area", *SMALL, *options).succeeded()
    taken = figures()
    assert "view: behaviour, as a rule the smaller on ecp5; --view takes the other" in said
    assert taken["total"]["figures"]["dsps"] == 8
    assert taken["parameters"]["view"] == "behaviour"
    said = main("area", *SMALL, *options, "--view", "structure").succeeded()
    assert "view:" not in said
    assert figures()["total"]["figures"]["dsps"] == 0
    swept = ("--sweep", "target=generic,ecp5")
    said = main("area", *SMALL, *swept).succeeded()
    assert said.count("view: ") == 1


@pytest.mark.parametrize(
    ("arguments", "view", "line"),
    [
        (("--for", "fpga"), "behaviour", "view: behaviour, for fpga: words, whose products"),
        (("--for", "asic"), "structure", "view: structure, for asic: gates, the smaller"),
        (
            ("--for", "fpga", "--view", "structure"),
            "structure",
            "view: structure, as --view says; for fpga it would be behaviour",
        ),
        ((), "structure", None),
    ],
)
def test_generate(
    main: Cli, tmp_path: Path, arguments: tuple[str, ...], view: str, line: str | None
) -> None:
    said = main("generate", *SMALL, *arguments, "-o", "rtl", "--name", "made").succeeded()
    manifest = json.loads((tmp_path / "rtl" / "made.json").read_text())
    assert manifest["parameters"]["view"] == view
    assert [each for each in said.splitlines() if each.startswith("view:")] == [
        each for each in said.splitlines() if line and each.startswith(line)
    ]
    assert (line is None) == ("view:" not in said)


def test_generate_where_there_is_one_view(main: Cli) -> None:
    said = main("generate", "expander", "--block", "8", "--for", "fpga", "-o", "rtl").succeeded()
    assert "view: expander has one description, for fpga too\n" in said
    line = main("generate", "expander", "--for", "cpu", "-o", "rtl").refused()
    assert line == "--for must be one of asic, fpga, not 'cpu'"
