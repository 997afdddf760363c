"""The explorer's measured data, from the figures that are kept, and its page in docs."""

import json
from collections.abc import Mapping
from typing import Any

from digests import ROOT
from figure import Figure

from axs6.explorer.page import page
from axs6.replacing import replacing

MEASURED = ROOT / "axs6" / "explorer" / "measured.json"
PAGE = ROOT / "docs" / "explorer.html"
SOURCES = ("costs", "accumulators")  # names of the figures with the data


def measured(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """What the page shows of costs and accumulators.

    costs: a list of points, an object with the columns of `readings.COSTS` and the `command` that
    makes the Verilog; null where nothing is measured. accumulators: `products` and `length`,
    `fractions`, and `series`, each with `format`, `accumulator`, `format_db` and an `error_db` for
    each fraction; null where results are exact. sources: sentences that say where these are from.
    """
    costs, accumulators = (figures[name].stored() for name in SOURCES)
    columns = costs["table"]["columns"]
    points = [dict(zip(columns, map(_or_none, row), strict=True)) for row in costs["table"]["rows"]]
    for point in points:
        name = point["format"]
        point["command"] = f"axs6 generate block_dot --format {name} -o {name}"
    series = [
        {
            "format": name,
            "accumulator": how,
            "format_db": own,
            "error_db": list(map(_or_none, errors)),
        }
        for name, how, own, *errors in accumulators["table"]["rows"]
    ]
    return {
        "costs": points,
        "accumulators": {
            **accumulators["values"],
            "fractions": list(map(int, accumulators["table"]["columns"][3:])),
            "series": series,
        },
        "sources": [
            f"Costs: axs6 study qsnr and axs6 area --target sky130, {costs['date']}.",
            f"Accumulators: axs6 study accumulators, {accumulators['date']}.",
        ],
    }


def _or_none(cell: Any) -> Any:
    return None if cell in ("-", "exact") else cell


def write(figures: Mapping[str, Figure]) -> None:
    """Write the data and the page, where their figures are among these."""
    if not set(SOURCES) <= figures.keys():
        return
    with replacing(MEASURED) as file:
        file.write(f"{json.dumps(measured(figures), indent=1)}\n".encode())
    with replacing(PAGE) as file:
        file.write(page().encode())
