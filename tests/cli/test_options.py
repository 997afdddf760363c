"""Groups of options and the classes that take them."""

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Annotated, Any

import pytest
import typer

from axs6 import cli
from axs6.commands.area_command import TIMED
from axs6.commands.area_timing import TimedOutput
from axs6.commands.encode_command import ENCODING
from axs6.commands.options import REPORT, RUNS, SYNTHESIS, Group, one_format, with_options
from axs6.commands.report import ReportFiles
from axs6.files import Options
from axs6.golden.formats import format_list
from axs6.synth.flow import Synthesis
from axs6.synth.sweep import sweep


def defaults(group: Group) -> dict[str, Any]:
    return {name: each[1] for name, each in group.items() if isinstance(each, tuple)}


@pytest.mark.parametrize(
    ("group", "taker"),
    [(SYNTHESIS, Synthesis), (TIMED, TimedOutput), (REPORT, ReportFiles), (ENCODING, Options)],
)
def test_a_class_takes_its_group(group: Group, taker: type[Any]) -> None:
    known = {each.name: each.default for each in fields(taker)}
    assert set(group) <= set(known)
    assert MISSING not in known.values()
    assert {name: known[name] for name in defaults(group)} == defaults(group)


def test_a_sweep_takes_how_it_runs() -> None:
    known = inspect.signature(sweep).parameters
    assert set(RUNS) <= set(known)
    assert {name: known[name].default for name in defaults(RUNS)} == defaults(RUNS)


def test_a_command_gets_the_options_that_were_given() -> None:
    found = {}

    @with_options(one={"a": Annotated[int | None, typer.Option()], "b": (int, 3)}, two={"c": int})
    def command(x: int, *, one: dict[str, Any], two: dict[str, Any], y: int = 1) -> None:
        found.update(locals())

    assert list(inspect.signature(command).parameters) == ["x", "a", "b", "c", "y"]
    command(x=0, a=None, b=3, c=5, y=2)
    assert found["one"] == {"b": 3}
    assert found["two"] == {"c": 5}
    assert (found["x"], found["y"]) == (0, 2)


def walk(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from walk(each)


def test_every_option_format_may_be_repeated() -> None:
    found = {
        command.name: [each.multiple for each in command.params if "--format" in each.opts]
        for command in walk(cli.command_line(cli.commands()))
    }
    assert len([name for name in found if found[name]]) == 17
    assert all(all(repeated) for repeated in found.values())


def test_formats_come_with_commas_or_one_by_one() -> None:
    assert format_list(["mx9, mx6", "int8"]) == ["mx9", "mx6", "int8"]
    assert one_format(["mx9xmx6"], operands=True) == "mx9xmx6"
    assert one_format(None) is None
