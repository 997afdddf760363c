"""`axs6 list`."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.options import RESULTS, one_format, with_options

if TYPE_CHECKING:
    from axs6.commands.results import ResultFiles
    from axs6.golden.formats import BlockFormat
    from axs6.hw.units.unit import Unit
    from axs6.tables import Table

EXTRA = "hw"


@with_options(results=RESULTS)
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
            autocompletion=format_names,
        ),
    ] = None,
    *,
    results: dict[str, Any],
) -> None:
    """Show the units and their parameters, or the named block formats or accumulators.

    Columns of --formats: bits per value with scales, as packed bytes, and as 256 values in lines of
    memory of 64 bytes; largest and smallest positive element and number of distinct elements, with
    scales of 1; binades between the largest and the smallest value of a block, and over all scales.

    Example: axs6 list --format mx9
    """
    chosen = one_format(format, operands=True)
    given = [("--formats", formats), ("--accumulators", accumulators), ("--format", chosen)]
    several = [name for name, value in given if value]
    if len(several) > 1:
        raise ValueError(f"list takes one of {', '.join(several)}, not {len(several)}")
    from axs6.commands.results import ResultFiles

    files = ResultFiles(**results)
    files.check()
    if formats:
        _list_formats(files)
    elif accumulators:
        _list_accumulators(files)
    else:
        _list_units(chosen, files)


def _list_units(format: str | None, files: "ResultFiles") -> None:
    from axs6.commands.output import print_table
    from axs6.golden.formats import operand_formats
    from axs6.hw.registry import ALL_UNITS
    from axs6.tables import Column, Written, table_of, words

    given = {} if format is None else {"format": format}
    operand_formats(format or "axs6")
    described = [_describe(unit, given) for unit in ALL_UNITS.values()]
    columns = [
        words("unit"),
        words("summary", "what it does"),
        words("parameters"),
        *(Column(name, None) for name in ("most_stages", "refused")),
    ]
    texts = [each.pop("text") for each in described]
    rows = [
        {**each, "parameters": Written(each.get("parameters"), text)}
        for each, text in zip(described, texts, strict=True)
    ]
    table = table_of(columns, rows)
    print_table(files.console(), table)
    files.write(described, table)


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


def _list_formats(files: "ResultFiles") -> None:
    from axs6.commands.output import print_table
    from axs6.golden.explain import facts
    from axs6.golden.formats import formats

    table = format_table(formats().values())
    print_table(files.console(), table)
    files.write([facts(fmt) for fmt in formats().values()], table)


def format_table(formats: "Iterable[BlockFormat]") -> "Table":
    """The numbers of formats, as `axs6.golden.explain.facts` gives them."""
    from axs6.golden.explain import facts, number
    from axs6.tables import Column, Written, table_of, words

    columns = [
        words("name", "format"),
        words("string"),
        Column("bits", "bits", "g"),
        Column("packed_bits", "packed", "g"),
        Column("memory_bits", "memory", "g"),
        Column("largest", "largest"),
        Column("smallest", "smallest"),
        Column("levels", "levels"),
        Column("binades", "binades", ".1f"),
        Column("binades_with_scales", "of all", ".1f"),
    ]
    rows = []
    for fmt in formats:
        known = facts(fmt)
        exact = {"largest": fmt.element.largest, "smallest": fmt.element.smallest}
        rows.append({**known, **{k: Written(known[k], number(x)) for k, x in exact.items()}})
    return table_of(columns, rows)


def _list_accumulators(files: "ResultFiles") -> None:
    from axs6.commands.output import print_table
    from axs6.golden.accumulator import ACCUMULATORS
    from axs6.tables import Column, table_of, words

    changes = {name: how.changes for name, how in ACCUMULATORS.items()}
    fields = dict.fromkeys(field for each in changes.values() for field in each)
    rows = [
        {
            "accumulator": name,
            "changes": " ".join(f"{field}={value}" for field, value in each.items()),
            **each,
        }
        for name, each in changes.items()
    ]
    known = [words("accumulator"), words("changes", "fields unlike those of fp32")]
    table = table_of([*known, *(Column(field, None) for field in fields)], rows)
    print_table(files.console(), table)
    files.write([{"accumulator": name, **each} for name, each in changes.items()], table)
