"""How the outputs of studies of language models become what figures keep."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from figure import CommandRun
from readings import Reading, printed


def perplexity(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Output of the study of a language model, and its figures for the text of README."""
    (run,) = runs
    rows = {row["name"]: row for row in run.json["rows"]}
    values = {"fp32": round(rows["fp32"]["perplexity"], 1)}
    for name in ("axs6", "mx9", "mxfp4", "nvfp4"):
        values[f"{name}_ratio"] = round(rows[name]["ratio"], 2)
    return {**printed(runs), "values": values}


def around(methods: Sequence[str]) -> Reading:
    """Perplexities over that of FP32, a row for each format and a column for each method."""

    def read(runs: Sequence[CommandRun]) -> dict[str, Any]:
        found: dict[str, dict[str, str]] = {}
        for method, run in zip(methods, runs, strict=True):
            for row in run.json["rows"]:
                if row["name"] != "fp32":
                    ratio, error = row["ratio"], row["ratio_error"]
                    shown = f"{ratio:.2f} ± {error:.2f}" if ratio < 1000 else "over 1,000"
                    name = row["name"].partition(",")[0].partition("_")[0]
                    found.setdefault(name, {})[method] = shown
        rows = [[name, *(each.get(x, "-") for x in methods)] for name, each in found.items()]
        return {"table": {"columns": ["format", *methods], "rows": rows}}

    return read


def sensitivity(runs: Sequence[CommandRun]) -> dict[str, Any]:
    """Harm of the places of a model by kind: the layers of a name, or attention's products.

    The harm of several places is the product of their ratios to FP32.
    """
    (run,) = runs
    kinds = defaultdict(list)
    for place in run.json["places"]:
        kinds[place["place"].rpartition(".")[2]].append(place)
    every = _harm(run.json["places"])
    rows = []
    for name, places in sorted(kinds.items(), key=lambda item: -_harm(item[1])):
        worst = places[0]
        rows.append(
            [
                name,
                len(places),
                sum(place["weights"] for place in places),
                f"{math.exp(_harm(places)):.3f}",
                f"{100 * _harm(places) / every:.0f} %",
                f"{worst['ratio']:.4f}",
                f"`{worst['place']}`",
            ]
        )
    columns = ["places", "count", "weights", "x FP32", "of all", "largest", "of"]
    first = run.json["places"][:10]
    values = {
        "places": len(run.json["places"]),
        "product": round(math.exp(every), 2),
        "first_ten": round(100 * _harm(first) / every),
    }
    return {"values": values, "table": {"columns": columns, "rows": rows}}


def _harm(places: Sequence[dict[str, Any]]) -> float:
    return math.fsum(math.log(place["ratio"]) for place in places)
