"""The site's reference, made from the command line, the registry and what modules export.

Marks in a page name a table, around what GitHub shows in its place:

    <!-- made: units -->
    `axs6 list` shows the units.
    <!-- /made -->
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from pages import cells

from axs6.cli import command_line
from axs6.cli import commands as known_commands
from axs6.commands.list_command import format_table
from axs6.golden.accumulator import ACCUMULATORS
from axs6.golden.formats import formats
from axs6.hw.registry import ALL_UNITS
from axs6.hw.units.unit import Unit
from axs6.hw.verilog import describe_streams

MARK = re.compile(r"<!-- made: ([\w.]+) -->.*?<!-- /made -->", re.S)

MODULES = ("axs6", "axs6.files", "axs6.torch", "axs6.torch.training")
"""Modules whose exports have a table each, by its name."""


def fill(text: str) -> str:
    """The text of a page with the tables that its marks name.

    Raises:
        ValueError: a mark names no table.
    """

    def made(mark: re.Match[str]) -> str:
        if mark[1] not in TABLES:
            raise ValueError(f"the mark must name one of {', '.join(TABLES)}, not {mark[1]}")
        return "\n".join(TABLES[mark[1]]())

    return MARK.sub(made, text)


def _commands() -> Iterator[str]:
    """The help of every command: what it does, its arguments and its options."""
    import typer

    whole = command_line(known_commands())

    def described(name: str, command: Any) -> Iterator[str]:
        context = typer.Context(command, info_name=name)
        yield from (f"## {name}", "", *_help(command.help), "")
        for inner, each in getattr(command, "commands", {}).items():
            yield from described(f"{name} {inner}", each)
        given = [
            (f"`{record[0].replace('|', ' or ')}`", record[1])
            for each in command.get_params(context)
            if (record := each.get_help_record(context)) and "help" not in each.name
        ]
        if given:
            yield from (*cells(("argument or option", "meaning"), given), "")

    for name, command in whole.commands.items():
        yield from described(f"axs6 {name}", command)


def _help(text: str) -> Iterator[str]:
    """The paragraphs of a help text, its examples as code."""
    lines = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    start = "Example: "
    for line in lines:
        if not line.startswith(start):
            yield from (line, "")
    examples = [line.removeprefix(start) for line in lines if line.startswith(start)]
    if examples:
        yield from ("```", *examples, "```")


def _units() -> Iterator[str]:
    """Every unit with its parameters, and its ports and fields with their defaults."""
    for unit in ALL_UNITS.values():
        component: Any = unit.build()
        yield from (f"## {unit.name}", "", f"{unit.summary[0].upper()}{unit.summary[1:]}.", "")
        timing = f"latency {component.latency}, interval {component.interval}"
        yield from (f"With the defaults: {timing} (cycles).", "")
        yield from (*cells(("parameter", "default", "values"), _parameters(unit)), "")
        yield from (*cells(("port", "direction", "bits"), _ports(component)), "")
        yield from (*cells(("stream", "field", "offset", "width", "items"), _fields(component)), "")


def _parameters(unit: Unit) -> list[tuple[str, ...]]:
    known = unit.parameters({})
    stages = unit.most_stages(known)
    return [
        (f"`{name}`", str(value), unit.allowed(name, stages, known).replace("|", ", "))
        for name, value in known.items()
    ]


def _ports(component: Any) -> Iterator[tuple[str, ...]]:
    """Ports of the streams; clock and reset are those of every unit."""
    backwards = {"input": "output", "output": "input"}
    for stream in describe_streams(component):
        ways = {"ready": backwards, "tready": backwards}
        for role, port in stream.items():
            if role in ("name", "direction", "width", "fields"):
                continue
            way = ways.get(role, {}).get(stream["direction"], stream["direction"])
            yield f"`{port}`", way, str(stream["width"] if role == "payload" else 1)


def _fields(component: Any) -> Iterator[tuple[str, ...]]:
    for stream in describe_streams(component):
        for field in stream["fields"]:
            sign = ", signed" * field["signed"]
            items = " x ".join(map(str, field["shape"])) or "1"
            yield (
                f"`{stream['name']}`",
                f"`{field['name']}`",
                f"{field['offset']:,}",
                f"{field['width']}{sign}",
                items,
            )


def _formats() -> Iterable[str]:
    """The named block formats, as `axs6 list --formats` has them."""
    table = format_table(formats().values())
    rows = [(f"`{name}`", f"`{string}`", *rest) for name, string, *rest in table.texts]
    right = [place for place, column in enumerate(table.printed) if not column.left]
    return cells(table.headings, rows, right)


def _accumulators() -> Iterable[str]:
    """The accumulators that have names, with what they do unlike fp32."""
    rows = [
        (f"`{name}`", ", ".join(f"{field} {value}" for field, value in each.changes.items()) or "-")
        for name, each in ACCUMULATORS.items()
    ]
    return cells(("accumulator", "fields unlike those of `fp32`"), rows)


def _exports(module: str) -> Iterator[str]:
    """What a module exports, for mkdocstrings: by their files, which may have the same names."""
    found = import_module(module)
    for name in found.__all__:
        value = getattr(found, name)
        yield from (f"::: {value.__module__}.{value.__qualname__}", "")


TABLES: dict[str, Callable[[], Iterable[str]]] = {
    "commands": _commands,
    "units": _units,
    "formats": _formats,
    "accumulators": _accumulators,
    **{name: partial(_exports, name) for name in MODULES},
}
