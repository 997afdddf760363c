"""Mutants of a unit: its netlist with one fault, many of them in one netlist with a selector.

A fault inverts a bit of a cell's port, makes it constant, or inverts it where another bit of the
cell is 0 or 1. All copies of the batch simulator run the same items, each copy another mutant.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.core.layouts import Field, port_fields
from axs6.hw.registry import find_with_streams
from axs6.hw.units.unit import Fields, Items
from axs6.hw.verilog import generate
from axs6.proof.aig import Graph, read_aiger
from axs6.proof.netlists import CHAINS, NO_FIRST_VALUES, TO_GRAPH, output_names
from axs6.proof.yosys import run_yosys
from axs6.sim.batch.engine import ComponentModel, Source, in_runs
from axs6.sim.batch.model import model_source
from axs6.sim.batch.read import read_netlist
from axs6.sim.compiled import Stall
from axs6.sim.process import temporary_folder
from axs6.sim.tools import ToolError
from axs6.sim.words import Rows, last_of, whole_vectors

SELECTOR = "mutant"
"""The input that chooses a mutant; 0 is the unit itself."""

SELECTOR_BITS = 9

MOST = (1 << SELECTOR_BITS) - 1
"""Mutants of a run, beside the unit itself."""

CHUNK = 1 << 10
"""Items that all mutants run at a time, where each item stands alone."""

_FLAT = ("proc", "flatten", "opt_clean -purge", "delete */t:$scopeinfo")

_PARTS = re.compile(r"-mode (\S+).* -cell (\S+) -port (\S+) -portbit (\d+)")


@dataclass(frozen=True)
class Mutation:
    """A fault.

    Args:
        number: value of the selector, from 1.
        mode: "inv", "const0", "const1", or "cnot0" and "cnot1", which invert where another bit of
            the cell is 0 or 1.
        cell, port, bit: where.
    """

    number: int
    mode: str
    cell: str
    port: str
    bit: int

    def __str__(self) -> str:
        return f"{self.mode} at {self.port}[{self.bit}] of {self.cell}"


@dataclass(frozen=True)
class Mutants:
    """A unit with its mutants.

    Args:
        unit: name. settings: all parameters. mutations: the faults. source: C++ of the netlist in
        which the selector is a field of every item. graph: its gates, in which registers are
        inputs, and what they take outputs.
    """

    unit: str
    settings: Mapping[str, Any]
    mutations: Sequence[Mutation]
    source: Source
    graph: Graph

    @property
    def inputs(self) -> Sequence[Field]:
        """The fields of the unit's own payload."""
        return self.source.inputs[:-1]


def mutants(
    unit: str, parameters: Mapping[str, Any], count: int, seed: int, seconds: float = 600
) -> Mutants:
    """Mutants of a unit's netlist before synthesis, without hierarchy.

    Args:
        unit: name in the registry. parameters: of the unit; the others keep their defaults. count:
        number of mutants, at most `MOST`; small units may have fewer. seed: chooses them. seconds:
        limit of Yosys.

    Raises:
        ValueError: an argument is refused.
        SynthesisError: pyosys is missing, fails, or takes too long.
    """
    entry = find_with_streams(unit)
    settings = entry.parameters(parameters)
    made = generate(unit, **settings)
    with temporary_folder("axs6-mutants-") as folder:
        (folder / "design.v").write_text(made.verilog)
        commands = [
            "read_verilog -sv design.v",
            f"hierarchy -top {made.module}",
            *_FLAT,
            f"mutate -list {count} -seed {seed} -ctrl {SELECTOR} {SELECTOR_BITS} 1 -o list.ys "
            # Not at registers: a fault of their clock cannot be simulated, others are their gates'.
            "t:* t:$*dff* %d",
            # Simulator and graph must agree on a multiplexer of which a mutant selects two inputs,
            # or none where there is no other.
            *("script list.ys", "pmuxtree", "opt_clean", "setundef -zero -undriven"),
            *(f"rename {made.module} top", "write_json design.json"),
            *(NO_FIRST_VALUES, "alumacc", "maccmap", f"techmap -map {CHAINS}", "techmap"),
            *TO_GRAPH,
        ]
        run_yosys(folder, commands, f"mutants of {unit}", seconds)
        netlist = json.loads((folder / "design.json").read_text())
        listed = (folder / "list.ys").read_text().splitlines()
        names = output_names(netlist)
        graph = read_aiger(folder / "design.aig", folder / "design.map", names)
    inputs, outputs = port_fields(entry.build(**settings))
    fields = [*inputs, _selected(netlist)]
    text = model_source(read_netlist(json.dumps(netlist)), fields, outputs)
    return Mutants(unit, settings, _mutations(listed), Source(text, fields, outputs), graph)


def _mutations(lines: Sequence[str]) -> list[Mutation]:
    """The faults of a script of Yosys."""
    found = []
    for number, line in enumerate(lines, 1):
        parts = _PARTS.search(line)
        assert parts is not None, line
        mode, cell, port, bit = parts.groups()
        cell, port = (each.replace("\\", "") for each in (cell, port))
        found.append(Mutation(number, mode, cell, port, int(bit)))
    return found


def _selected(netlist: dict[str, Any]) -> Field:
    """Make the selector a field behind the payload, and return the field."""
    ports = netlist["modules"]["top"]["ports"]
    payload = ports["i_payload"]["bits"]
    field = Field(SELECTOR, len(payload), SELECTOR_BITS, signed=False, shape=())
    payload += ports.pop(SELECTOR)["bits"]
    return field


class MutantModel(ComponentModel):
    """All mutants, each in a copy of the batch simulator or two, with the unit itself in copy 0.

    A copy may stop, or give more than it should: that kills its mutant.
    """

    def __init__(self, of: Mutants) -> None:
        entry = find_with_streams(of.unit)
        turns = of.settings.get("interleave", 1)
        super().__init__(of.source, f"mutants of {of.unit}", turns, remembers=entry.remembers)
        self._of = of
        self._threads = max(1, (MOST + 1) // self._copies)
        self._busy = np.zeros((self._threads, self._copies), np.int64)

    def killed(self, items: Fields, stall: Stall | None = None) -> NDArray[np.bool_]:
        """Which mutants give other outputs than the golden model, or at full rate at another time.

        Args:
            items: of the unit.
            stall: on both sides.

        Returns:
            For each value of the selector whether that mutant is killed.

        Raises:
            ToolError: the unit itself is.
        """
        found = np.zeros(MOST + 1, np.bool_)
        for part in self._parts(items):
            found |= self._killed(part, stall)
        if found[0]:
            raise ToolError(f"{self._of.unit} differs from the golden model before any mutation")
        return found

    def _killed(self, items: Items, stall: Stall | None) -> NDArray[np.bool_]:
        count, copies = len(next(iter(items.values()))), self._threads * self._copies
        rows = np.tile(np.arange(count, dtype=np.int32), copies)
        given: dict[str, Any] = {name: Rows(values, rows) for name, values in items.items()}
        numbers = (np.arange(copies) % (MOST + 1)).astype(np.uint16)
        given[SELECTOR] = Rows(numbers, np.repeat(np.arange(copies, dtype=np.int32), count))
        expected = find_with_streams(self._of.unit).golden(items, self._of.settings)
        self._most_cycles = 1000 + 64 * count
        outputs = self.run(given, stall, self._threads).outputs
        busy = self._busy.reshape(-1)
        dead = busy <= 0
        if stall is None:
            dead |= busy != busy[0]
        for name, right in expected.items():
            values = outputs[name].reshape(copies, *right.shape)
            differs = values != right.astype(values.dtype)
            dead |= differs.reshape(copies, -1).any(axis=1)
        return dead[: MOST + 1]

    def _parts(self, items: Fields) -> Iterator[Items]:
        """Items in parts that take little memory in all copies; vectors stay whole."""
        count = len(next(iter(items.values())))
        ends = np.arange(CHUNK, count, CHUNK)
        last = last_of(items)
        if self._remembers:
            ends = ends[:0]
        elif last is not None:
            whole = whole_vectors(last, self._turns)
            ends = np.unique(whole[np.searchsorted(whole, ends)])
        for start, end in pairwise([0, *ends.tolist(), count]):
            if end > start:
                yield {name: np.ascontiguousarray(x[start:end]) for name, x in items.items()}

    def _share_out(self, count: int, items: Any, threads: int) -> Any:
        """Each copy has all items once."""
        copies = self._copies * threads
        last = last_of(items)
        ends = np.arange(count) if last is None else np.flatnonzero(last.astype(bool))
        return in_runs(ends, np.arange(copies + 1) * (count // copies), self._copies, threads)

    def _check(self, done: int, thread: int, busy: NDArray[np.int64]) -> None:
        self._busy[thread] = busy
