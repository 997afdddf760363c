"""What a regression says that it has met: by hand, and in a run."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axs6.hw.core.layouts import Field
from axs6.hw.registry import UNITS
from axs6.sim.coverage import (
    cycle_coverage,
    field_coverage,
    gap_coverage,
    merged,
    reset_coverage,
)

Cli = Callable[..., Any]

WITH_ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")


def met(bins: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in bins.items() if count}


def test_fields_by_hand() -> None:
    fields = [
        Field("codes", 0, 2, False, (3,)),
        Field("values", 6, 16, False, (6,)),
        Field("sum", 102, 9, True, ()),
    ]
    numbers = [0, 0x8000, 0x8001, 0x3C00, 0x7C00, 0xFE00]
    items = {
        "codes": np.array([[1, 3, 3]]),
        "values": np.array([numbers], np.uint16),
        "sum": np.array([-1]),
    }
    found = field_coverage(items, fields, "i", {"dtype": "fp16"})
    assert found["i.codes, values"] == {"0": 0, "1": 1, "2": 0, "3": 2}
    classes = found["i.values, classes"]
    assert met(classes) == dict.fromkeys(
        ("+zero", "-zero", "-subnormal", "+normal", "+infinite", "NaN"), 1
    )
    assert len(classes) == 9
    assert met(found["i.sum, bits"]) == {f"bit {k} is 1": 1 for k in range(9)}
    assert len(found["i.sum, bits"]) == 18


def test_gaps_within_a_block_by_hand() -> None:
    parameters = UNITS["encoder"].parameters({"block": 8, "dtype": "bf16"})
    numbers = [1.0, 2.0, -8.0, 0.0, np.inf, np.nan, 2.0**-126, 8.0]
    values = (np.array([numbers], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    ((group, bins),) = gap_coverage("encoder", {"values": values}, parameters).items()
    assert group == "i.values, gaps to the largest exponent of the block"
    # From 8: 8 twice, 2 by 2, 1 by 3 and 2^-126 by 129.
    assert met(bins) == {"0": 2, "2 to 3": 2, "128 and beyond": 1}


def test_gaps_and_lengths_of_vectors_by_hand() -> None:
    parameters = UNITS["dot"].parameters({"block": 8, "interleave": 2})
    items = {
        "a.exponent": np.array([100, 7, 103, 7, 90, 7]),
        "b.exponent": np.array([50, 9, 50, 0, 50, 9]),
        "last": np.array([0, 0, 1, 0, 1, 1]),
    }
    found = gap_coverage("dot", items, parameters)
    # The first turn: 150, 153 | 140; the second: 16, 7, 16.
    gaps = found["gaps between exponents of a vector's products"]
    assert met(gaps) == {"2 to 3": 1, "-8 to -15": 1, "8 to 15": 1}
    assert next(iter(gaps)) == "-256 and beyond"
    lengths = found["items of a vector before its last"]
    assert met(lengths) == {"0": 1, "1": 1, "2 to 3": 1}


def test_cycles_resets_and_sums_by_hand() -> None:
    assert cycle_coverage("waits", [0, 0, 5, 16, 99])["waits"] == {
        "0": 2,
        "1": 0,
        "2 to 3": 0,
        "4 to 7": 1,
        "8 to 15": 0,
        "16 and beyond": 2,
    }
    last = [Field("last", 0, 1, False, ())]
    assert met(reset_coverage(last)["reset"]) == {}
    assert met(reset_coverage(last, True, True)["reset"]) == {
        "while an output waits": 1,
        "in the middle of a vector": 1,
    }
    assert list(reset_coverage([], False)["reset"].values()) == [0, 1]
    parts = [{"g": {"a": 1, "b": 0}}, {"g": {"a": 2, "c": 1}, "h": {"a": 1}}]
    assert merged(parts) == {"g": {"a": 3, "b": 0, "c": 1}, "h": {"a": 1}}
    assert parts[0] == {"g": {"a": 1, "b": 0}}


@WITH_ICARUS
def test_a_run_reports_what_it_has_met(main: Cli, tmp_path: Path) -> None:
    # A format and a block with few corners, which Icarus takes longest over.
    kind = ("--format", "int4", "--view", "behaviour", "--block", "4")
    unit = ("regress", "dot", *kind, "--stages", "1", "--simulator", "icarus")
    shown = main(*unit, "--items", "100", "--coverage", "met.json").succeeded()
    groups = json.loads((tmp_path / "met.json").read_text())["dot"]
    assert sum(groups["i.a.codes, values"].values()) % 8 == 0
    for group in ("i.a.codes, values", "i.last, values", "reset", "o, cycles that an item waits"):
        count = len(groups[group])
        assert len(met(groups[group])) == count
        row = next(line.split() for line in shown.splitlines() if f"dot   {group}" in line)
        assert row[-2:] == [str(count)] * 2

    # One test alone has neither stalls nor a reset, and says so.
    alone = main(*unit, "--items", "100", "--test", "full_rate", "--coverage", "met.json")
    shown = alone.succeeded()
    groups = json.loads((tmp_path / "met.json").read_text())["dot"]
    assert met(groups["reset"]) == {}
    assert met(groups["i, idle cycles before an item"]) == {"0": 100}
    assert met(groups["o, cycles that an item waits"]).keys() == {"0"}
    assert "while an output waits, while none waits, in the middle of a vector" in shown


def test_a_unit_on_a_bus_is_refused(main: Cli) -> None:
    done = main("regress", "axis_dot", "--block", "8", "--coverage", "met.json")
    assert done.refused() == "coverage is of units without a bus, not axis_dot"
