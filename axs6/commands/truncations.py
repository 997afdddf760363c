"""`axs6 prove --truncations`: the places where a unit drops the highest bits of a result."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from axs6.commands.results import ResultFiles
from axs6.tables import Column, table_of, words

if TYPE_CHECKING:
    from axs6.proof.truncations import Truncation

COLUMNS = (
    *(words(name) for name in ("verdict", "source", "operator", "signal")),
    *(Column(name, name, "d") for name in ("kept", "width", "copies")),
    words("reason"),
    *(Column(name, None) for name in ("value", "item", "registers")),
)


def print_truncations(
    unit: str,
    parameters: Mapping[str, Any],
    timeout: float,
    files: ResultFiles,
    others: Mapping[str, Any],
) -> None:
    """Print a line for each place of a unit, and write the files that are asked for.

    Args:
        unit, parameters: which unit. timeout: limit of each question, in seconds. files: to write.
        others: other options by name, which may not be given.

    Raises:
        typer.Exit: bits are lost for no reason, or it is not known.
        ValueError: an argument is refused.
    """
    from axs6.proof.truncations import Loss, TruncationSurvey

    if given := [name for name, value in others.items() if value]:
        raise ValueError(f"--truncations is about RTL without registers: not with --{given[0]}")
    out, found = files.console(), []
    for each in TruncationSurvey(unit, parameters, timeout):
        found.append(each)
        out.print(_line(each), highlight=False, soft_wrap=True)
        if each.item is not None:
            numbers = ", ".join(f"{name} = {x}" for name, x in each.to_dict()["item"].items())
            shown = f"{each.value:#x} where {numbers}"
            if each.registers:
                shown += f", and in registers the bits {', '.join(each.registers)} are 1"
            out.print(f"    shown by {shown}", highlight=False)
    if not found:
        out.print("no place drops the highest bits of a result")
    places = [each.to_dict() for each in found]
    files.write({"unit": unit, "truncations": places}, table_of(COLUMNS, places))
    if any(each.loss in (Loss.LOST, Loss.UNKNOWN) for each in found):
        raise typer.Exit(1)


def _line(found: "Truncation") -> str:
    place = found.place
    said = f"{found.loss}: {place.source}: {place.kind} of {place.width} bits keeps {place.kept}"
    told = [*([f"{found.copies} times"] if found.copies > 1 else []), found.reason]
    told = [each for each in told if each]
    return f"{said} ({'; '.join(told)})" if told else said
