"""`axs6 list`."""

from axs6.commands.options import Json


def run(json: Json = None) -> None:
    """Show the units and their parameters.

    Example: axs6 list
    """
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
                "choices": {name: list(values) for name, values in unit.choices.items()},
                "most_stages": most_stages[unit.name],
            }
            for unit in ALL_UNITS.values()
        ],
    )
