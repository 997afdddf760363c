"""Reading back from a mapped netlist what a unit promises: its flip-flops and its latency."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from axs6.hw.registry import find, find_with_streams
from axs6.hw.verilog import generate
from axs6.sim.batch.engine import GateModel
from axs6.synth.mapped import mapped_netlist

_FLIP_FLOP = re.compile(r"\$_(S?DFF|ALDFF)\w*_")
_CYCLES = 1000
"""Cycles that are recorded, which is more than the latency of any unit."""


@dataclass(frozen=True)
class Pipeline:
    """Flip-flops of a unit, and cycles from taking an item to offering its result."""

    flip_flops: int
    latency: int


def read_back(
    unit: str,
    *,
    target: str = "generic",
    liberty: Path | None = None,
    timeout: float = 600,
    **parameters: Any,
) -> Pipeline:
    """Synthesise a unit, count the flip-flops of the netlist and simulate it for its latency.

    Args:
        unit: its name in the registry.
        target, liberty, timeout: as for `axs6.synth.area.area`.
        parameters: of the unit; the others keep their defaults.

    Raises:
        SynthesisError: as `axs6.synth.area.area`.
        ValueError: an unknown unit or parameter, or a unit without streams.
        ToolError: the netlist gives no output, or g++ is missing or fails.
    """
    find_with_streams(unit)
    made = generate(unit, **parameters)
    netlist = mapped_netlist(
        made.verilog, made.module, target=target, liberty=liberty, timeout=timeout
    )
    return measured(netlist, unit, **parameters)


def measured(netlist: str, unit: str, **parameters: Any) -> Pipeline:
    """Count the flip-flops of a mapped netlist and simulate it for its latency.

    Args:
        netlist: as `axs6.synth.mapped.mapped_netlist` gives it.
        unit: name of the unit whose ports it has.
        parameters: of the unit; the others keep their defaults.

    Raises:
        ToolError: the netlist gives no output, or g++ is missing or fails.
    """
    cells = json.loads(netlist)["modules"]["top"]["cells"].values()
    flip_flops = sum(bool(_FLIP_FLOP.fullmatch(cell["type"])) for cell in cells)
    settings = find_with_streams(unit).parameters(parameters)
    turns = settings.get("interleave", 1)
    items = {name: array[:turns] for name, array in find(unit).corners(settings).items()}
    if "last" in items:
        items["last"] = np.ones_like(items["last"])
    trace = GateModel(netlist, unit, **settings).run(items, trace=_CYCLES).trace
    taken, given = (
        trace.handshake[f"{side}_valid"] & trace.handshake[f"{side}_ready"] for side in "io"
    )
    copy = int(given.any(axis=0).argmax())
    latency = int(given[:, copy].argmax() - taken[:, copy].argmax())
    return Pipeline(flip_flops, latency)
