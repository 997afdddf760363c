"""The explorer's measured data, from the figures that are kept, and its page in docs."""

import json
from collections.abc import Mapping
from typing import Any

from digests import ROOT
from figure import Figure

from axs6.replacing import replacing
from axs6.studies.comparison.columns import GROUPS
from axs6.studies.explorer.page import page
from axs6.studies.pareto.data import read_rows
from axs6.studies.pareto.results import study_of
from axs6.studies.pareto.space import BASELINE, space

MEASURED = ROOT / "studies" / "explorer" / "measured.json"
POINTS = ROOT / "docs" / "data" / "pareto.jsonl"
PAGE = ROOT / "docs" / "explorer.html"
COMPARED = {"comparison": ("bits", "qsnr", "recorded"), "costs": ("cost", "energy")}
"""Figures with tables of `axs6 compare`, and the groups of their columns."""

ACCUMULATORS = "accumulators"
"""The figure with errors of accumulators."""

COSTS = (
    *("bits", "tile_bits", "lanes", "dot_area", "mac_area", "delay_ps", "mac_fj"),
    *("encoder_area", "decoder_area"),
)
"""Columns that the page shows, beside the QSNR."""


def measured(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """What the page shows of costs, the Pareto study and accumulators.

    costs: see `costs`. pareto: see `pareto`. accumulators: `products` and `length`,
    `fractions`, and `series`, each with `format`, `accumulator`, `format_db` and an `error_db` for
    each fraction; null where results are exact. sources: sentences that say where these are from.
    """
    accumulators = figures[ACCUMULATORS].stored()
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
        "costs": costs(figures),
        "pareto": pareto(),
        "accumulators": {
            **accumulators["values"],
            "fractions": list(map(int, accumulators["table"]["columns"][3:])),
            "series": series,
        },
        "sources": [
            f"Costs: axs6 compare, sky130, {figures['costs'].stored()['date']}.",
            "Pareto: axs6 study pareto, docs/data/pareto.jsonl.",
            f"Accumulators: axs6 study accumulators, {accumulators['date']}.",
        ],
    }


def costs(figures: Mapping[str, Figure]) -> list[dict[str, Any]]:
    """Formats with a dot product, as points.

    Each has the `format`, `COSTS`, None where there is none; `qsnr_db` on the vectors of the
    paper, the `family`, and the `command` that makes the Verilog.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name, groups in COMPARED.items():
        columns = [column.name for group in groups for column in GROUPS[group].columns]
        for each, *cells in figures[name].stored()["table"]["rows"]:
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
        if row["dot_area"]
    ]


def pareto() -> dict[str, Any]:
    """What the file of the Pareto study says.

    lanes: of the dot products; formats: how many the study has; command: makes the Verilog of the
    dot product of FORMAT; points: those measured, areas and memory over those of FP8.
    """
    rows = read_rows(POINTS)
    conditions = rows[BASELINE[0]].conditions
    listed = space()
    found = study_of(rows, [each.name for each in listed], conditions).measurements
    measured = [(each, found[each.name]) for each in listed if each.name in found]
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
            for each, x in measured
        ],
    }


def _or_none(cell: Any) -> Any:
    return None if cell in ("-", "exact") else cell


def write(figures: Mapping[str, Figure]) -> None:
    """Write the data and the page, where their figures are among these."""
    if not {ACCUMULATORS, *COMPARED} <= figures.keys():
        return
    with replacing(MEASURED) as file:
        file.write(f"{json.dumps(measured(figures), indent=1)}\n".encode())
    with replacing(PAGE) as file:
        file.write(page().encode())
