"""`axs6 list`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import Json, one_format

if TYPE_CHECKING:
    from axs6.hw.units.unit import Unit

EXTRA = "hw"


def run(
    formats: Annotated[bool, typer.Option("--formats", help="Show the block formats.")] = False,
    accumulators: Annotated[
        bool, typer.Option("--accumulators", help="Show the accumulators that have names.")
    ] = False,
    format: Annotated[
        list[str] | None,
        typer.Option(
            help="Show which units take this block format or pair, and why others refuse it.",
            metavar="FORMAT",
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Show the units and their parameters, or the named block formats or accumulators.

    Columns of --formats: bits per value with scales, as packed bytes, and as tiles of 256 values in
    lines of 64 bytes; largest and smallest positive element and number of distinct elements, with
    scales of 1; binades between the largest and the smallest value of a block, and over all scales.

    Example: axs6 list --format mx9
    """
    chosen = one_format(format, operands=True)
    given = [("--formats", formats), ("--accumulators", accumulators), ("--format", chosen)]
    several = [name for name, value in given if value]
    if len(several) > 1:
        raise ValueError(f"list takes one of {', '.join(several)}, not {len(several)}")
    if formats:
        _list_formats(json)
    elif accumulators:
        _list_accumulators(json)
    else:
        _list_units(chosen, json)


def _list_units(format: str | None, json: str | None) -> None:
    from rich.table import Table

    from axs6.commands.output import console, print_table, write_json
    from axs6.golden.formats import operand_formats
    from axs6.hw.registry import ALL_UNITS

    given = {} if format is None else {"format": format}
    operand_formats(format or "axs6")
    described = [_describe(unit, given) for unit in ALL_UNITS.values()]
    table = Table("unit", "what it does", "parameters", box=None, pad_edge=False)
    for each in described:
        table.add_row(each["unit"], each["summary"], each.pop("text"))
    print_table(console(json), table)
    write_json(json, described)


def _describe(unit: "Unit", given: Mapping[str, str]) -> dict[str, Any]:
    """A unit's parameters with a block format, or the reason why it does not take that."""
    found = {"unit": unit.name, "summary": unit.summary}
    try:
        known = unit.in_format(given)
        most_stages = unit.most_stages(known)
    except ValueError as error:
        return {**found, "refused": str(error), "text": f"refused: {error}"}
    parameters = unit.parameters(known)
    lines = [f"{k}={v} ({unit.allowed(k, most_stages, known)})" for k, v in parameters.items()]
    choices = {name: list(values) for name, values in unit.choices(known).items()}
    return {
        **found,
        "parameters": parameters,
        "choices": choices,
        "most_stages": most_stages,
        "text": "\n".join(lines),
    }


def _list_formats(json: str | None) -> None:
    from rich.table import Table

    from axs6.commands.output import console, print_table, write_json
    from axs6.golden.explain import facts, number
    from axs6.golden.formats import formats

    table = Table("format", "string", box=None, pad_edge=False)
    for name in ("bits", "packed", "tile", "largest", "smallest", "levels", "binades", "of all"):
        table.add_column(name, justify="right")
    rows = {name: facts(fmt) for name, fmt in formats().items()}
    for name, fmt in formats().items():
        row = rows[name]
        table.add_row(
            name,
            row["string"],
            *(f"{row[bits]:g}" for bits in ("bits", "packed_bits", "tile_bits")),
            number(fmt.element.largest),
            number(fmt.element.smallest),
            str(row["levels"]),
            *(f"{row[binades]:.1f}" for binades in ("binades", "binades_with_scales")),
        )
    print_table(console(json), table)
    write_json(json, list(rows.values()))


def _list_accumulators(json: str | None) -> None:
    from rich.table import Table

    from axs6.commands.output import console, print_table, write_json
    from axs6.golden.accumulator import ACCUMULATORS

    table = Table("accumulator", "fields unlike those of fp32", box=None, pad_edge=False)
    rows = {name: how.changes for name, how in ACCUMULATORS.items()}
    for name, changes in rows.items():
        table.add_row(name, " ".join(f"{field}={value}" for field, value in changes.items()))
    print_table(console(json), table)
    write_json(json, [{"accumulator": name, **changes} for name, changes in rows.items()])
