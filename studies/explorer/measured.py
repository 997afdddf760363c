"""Costs and accumulators in the explorer: figures of the docs, and the Pareto study."""

import json
from importlib.resources import as_file, files
from typing import Any, Final

from axs6.studies.comparison.columns import GROUPS
from axs6.studies.pareto.data import measurements_of, read_rows
from axs6.studies.pareto.space import BASELINE, space

COMPARED: Final = {"comparison": ("bits", "qsnr", "recorded"), "costs": ("cost", "energy")}
"""Figures with tables of `axs6 compare`, and the groups of their columns."""

COSTS: Final = (
    *("bits", "memory_bits", "lanes", "dot_area", "mac_area", "delay_ps", "mac_fj"),
    *("encoder_area", "decoder_area"),
)
"""Columns that the page shows, beside the QSNR."""


def measured() -> dict[str, Any]:
    """Measured data of the page.

    costs: see `costs`. pareto: see `pareto`. accumulators: `products` and `length`, `fractions`,
    and `series`, each with `format`, `accumulator`, `format_db` and an `error_db` for each
    fraction; null if results are exact. sources: sentences with the sources of the data.
    """
    accumulators = figure("accumulators")
    series = [
        {
            "format": name,
            "accumulator": accumulator,
            "format_db": own,
            "error_db": list(map(_or_none, errors)),
        }
        for name, accumulator, own, *errors in accumulators["table"]["rows"]
    ]
    return {
        "costs": costs(),
        "pareto": pareto(),
        "accumulators": {
            **accumulators["values"],
            "fractions": list(map(int, accumulators["table"]["columns"][3:])),
            "series": series,
        },
        "sources": [
            f"Costs: axs6 compare, sky130, {figure('costs')['date']}.",
            "Pareto: axs6 study pareto, docs/data/pareto.jsonl.",
            f"Accumulators: axs6 study accumulators, {accumulators['date']}.",
        ],
    }


def figure(name: str) -> dict[str, Any]:
    """The content of a figure in docs/figures. `figures` beside this module is a link to it; in a
    wheel it has copies of the figures that are read here."""
    found: dict[str, Any] = json.loads(
        (files(__package__) / "figures" / f"{name}.json").read_text(encoding="utf-8")
    )
    return found


def costs() -> list[dict[str, Any]]:
    """Formats with a dot product, as points.

    Each has the `format`, `COSTS` (None if missing), `qsnr_db` on the vectors of the paper, the
    `family`, and the `command` that makes the Verilog.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name, groups in COMPARED.items():
        names = {column.title: column.name for group in groups for column in GROUPS[group].columns}
        table = figure(name)["table"]
        columns = [names[title.removesuffix(" %")] for title in table["columns"][1:]]
        for each, *cells in table["rows"]:
            found = zip(columns, map(_or_none, cells), strict=True)
            rows.setdefault(each, {}).update(found)
    families = {each.name: each.family for each in space()}
    return [
        {
            "format": name,
            "qsnr_db": row["paper_db"],
            **{column: row[column] for column in COSTS},
            "family": families.get(name),
            "command": f"axs6 generate block_dot --format {name} -o {name}",
        }
        for name, row in rows.items()
        if row.get("dot_area")
    ]


def pareto() -> dict[str, Any]:
    """Contents of the file of the Pareto study.

    lanes: of the dot products; formats: number of formats in the study; command: generates the
    Verilog of the dot product of FORMAT; points: measured formats, with areas and memory relative
    to FP8.
    """
    with as_file(files(__package__) / "data" / "pareto.jsonl") as path:
        rows = read_rows(path)
    conditions = rows[BASELINE[0]].conditions
    found = measurements_of(
        {name: row for name, row in rows.items() if row.conditions == conditions}
    )
    listed = space()
    accumulator = f"paper,reduction={conditions.reduction}"
    return {
        "lanes": conditions.reduction,
        "formats": len(listed),
        "command": f"axs6 generate dot --format FORMAT --accumulator {accumulator} -o FORMAT",
        "points": [
            {
                "format": each.name,
                "family": each.family,
                "named": each.named,
                "area": round(x.area, 4),
                "memory": x.memory,
                "qsnr_db": x.qsnr_db,
                "delay_ps": round(x.delay_ps),
            }
            for each in listed
            if (x := found.get(each.name))
        ],
    }


def _or_none(cell: Any) -> Any:
    return None if cell in ("-", "exact") else cell
