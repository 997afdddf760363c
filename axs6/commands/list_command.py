"""`axs6 list`."""

from typing import Annotated

import typer

from axs6.commands.options import Json


def run(
    formats: Annotated[bool, typer.Option("--formats", help="Show the block formats.")] = False,
    json: Json = None,
) -> None:
    """Show the units and their parameters, or the block formats that have names.

    Columns of --formats: bits a value with scales, as packed bytes, and as tiles of 256 values in
    lines of 64 bytes; largest and smallest positive element and how many different ones there are,
    under scales of 1; binades between the largest and the smallest value of a block, and of all.

    Example: axs6 list --formats
    """
    if formats:
        _list_formats(json)
    else:
        _list_units(json)


def _list_units(json: str | None) -> None:
    from rich.table import Table

    from axs6.commands.output import console, print_table, write_json
    from axs6.hw.registry import ALL_UNITS

    table = Table("unit", "what it does", "parameters", box=None, pad_edge=False)
    most_stages = {name: unit.most_stages({}) for name, unit in ALL_UNITS.items()}
    for unit in ALL_UNITS.values():
        settings = []
        for name, default in unit.defaults.items():
            settings.append(f"{name}={default} ({unit.allowed(name, most_stages[unit.name])})")
        table.add_row(unit.name, unit.summary, "\n".join(settings))
    print_table(console(json), table)
    write_json(
        json,
        [
            {
                "unit": unit.name,
                "summary": unit.summary,
                "parameters": unit.defaults,
                "choices": {name: list(values) for name, values in unit.choices({}).items()},
                "most_stages": most_stages[unit.name],
            }
            for unit in ALL_UNITS.values()
        ],
    )


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
