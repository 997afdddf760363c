"""Units on AXI4-Stream that add up vectors, held against docs/axis.md, for all beats and stalls.

The beats of both buses are taken together, so that a pair of beats is an item. The unit is then
compared with the unit behind the buses, of which each item is proved to be added once
(`axs6.proof.vectors`).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from axs6.hw.core.layouts import PADDING, port_fields
from axs6.hw.registry import UNITS
from axs6.proof.aig import NEXT, TRUE, Graph
from axs6.proof.buses import BEHIND, BESIDE, SLAVE, BusProof
from axs6.proof.cores import split
from axs6.proof.equivalence import compare
from axs6.proof.items import one_item_each
from axs6.proof.netlists import Design
from axs6.proof.prove import Claim, Outcome
from axs6.proof.steps import NotShownError
from axs6.sim.words import payload_width

TOGETHER = "a beat of one bus is taken with one of the other, and not without"
RESULTS = "results are what the unit behind the buses gives, with tlast and tuser of their own"
"""What is claimed before the claims of vectors."""


class VectorBusProof(BusProof):
    """Proves that a unit on AXI4-Stream is the unit behind its buses, which adds up vectors.

    Arguments and errors are those of `BusProof`; vectors may not take turns either.
    """

    _same_totals = RESULTS

    def __init__(self, unit: str, parameters: Mapping[str, Any], seconds: float = 600) -> None:
        super().__init__(unit, parameters, seconds)
        self._alone = False
        lasts = [f"{side}.last" for side in self._sides]
        self._ends = [f"i_payload[{x.offset}]" for x in self.inputs if x.name in lasts]
        self._check_turns()

    @cached_property
    def _slaves(self) -> list[str]:
        """The buses that give beats."""
        return [*self._buses["i"]]

    @cached_property
    def _sides(self) -> list[str]:
        """What the names of the fields of each bus begin with."""
        return [bus.removeprefix(f"{SLAVE}_") for bus in self._slaves]

    def _equal(self, name: str, design: Design) -> Iterator[Claim]:
        yield self._together(name, design)
        found = replace(design, graph=self._as_stream(design.graph))
        yield from self._equal_vectors(name, found, self.expected)

    def _together(self, name: str, design: Design) -> Claim:
        """The claim that beats are taken together."""
        start, graph = time.perf_counter(), design.graph
        valid = [graph.inputs[f"{bus}_tvalid[0]"] for bus in self._slaves]
        joined = dict.fromkeys(valid, graph.all(valid))
        wanted, ready = _cofactor(graph, joined), self._ready(graph)
        for bus, own in zip(self._slaves, valid, strict=True):
            others = graph.all(x for x in valid if x != own)
            wanted[f"{bus}_tready[0]"] = graph.both(others, ready)
        found = compare(graph, graph.with_outputs(wanted), seconds=self._seconds)
        outcome = Outcome.PROVED if found.equal else Outcome.OPEN
        by = f"not {found.outputs[0]}, by {found.by}" if found.outputs else found.by
        return Claim(name, TOGETHER, outcome, by, time.perf_counter() - start)

    def _ready(self, graph: Graph) -> int:
        """Whether the unit is ready, if all buses have a beat."""
        valid = [graph.inputs[f"{bus}_tvalid[0]"] for bus in self._slaves]
        ready = graph.outputs[f"{self._slaves[0]}_tready[0]"]
        return graph.cofactor([ready], dict.fromkeys(valid, TRUE))[0]

    def _as_stream(self, graph: Graph) -> Graph:
        """The graph with one stream in place of the buses, whose beats are valid together."""
        first, *others = self._slaves
        one, *more = (f"{bus}_tvalid[0]" for bus in self._slaves)
        same = {graph.inputs[x]: graph.inputs[one] for x in more}
        found = _cofactor(graph, same)
        found[f"{first}_tready[0]"] = self._ready(graph)
        for bus in others:
            del found[f"{bus}_tready[0]"]
        joined = graph.with_outputs(found)
        joined.inputs = {x: bit for x, bit in graph.inputs.items() if x not in more}
        return super()._as_stream(joined)

    @cached_property
    def expected(self) -> Graph:
        """The unit behind the buses, which takes zeros in place of a wrong pair of beats."""
        behind, inputs, outputs = self._behind
        behind = super()._as_stream(behind)  # its ports are those of streams
        others = [x for x in behind.inputs if not x.startswith("i_payload")]
        payload = [f"i_payload[{k}]" for k in range(payload_width(self.inputs))]
        graph = Graph([*others, *payload])
        beat = split([graph.inputs[x] for x in payload], self.inputs)
        last, wrong = self._marks(graph, beat)
        known = {x: graph.inputs[x] for x in others}
        for field in inputs:
            bits = [graph.both(wrong ^ 1, bit) for bit in beat.get(field.name, ())] or [last]
            known |= {f"i_payload[{field.offset + k}]": bit for k, bit in enumerate(bits)}
        found = behind.copied(graph, known)
        result = split(
            [found.pop(f"o_payload[{k}]") for k in range(payload_width(outputs))], outputs
        )
        (error,) = result["error"]
        held = [NEXT + x for x in others if NEXT + x in found and graph.inputs[x] == error]
        if len(held) != 1:
            raise NotShownError("whether a vector is wrong is in no register")
        taken = graph.both(graph.inputs["i_valid[0]"], found["i_ready[0]"])
        found[held[0]] = graph.any([found[held[0]], graph.both(taken, wrong)])
        bits = [*result["value"], TRUE, error]
        return graph.with_outputs(found | {f"o_payload[{k}]": bit for k, bit in enumerate(bits)})

    def _marks(self, graph: Graph, beat: Mapping[str, Sequence[int]]) -> tuple[int, int]:
        """Whether a pair of beats ends a vector, and whether it is wrong."""
        lasts, users = ([beat[f"{side}.{x}"][0] for side in self._sides] for x in BESIDE)
        last = graph.any(lasts)
        padding = [bit for side in self._sides for bit in beat.get(f"{side}.{PADDING}", ())]
        return last, graph.any([*users, *padding, *(graph.unlike(last, x) for x in lasts)])

    def _vector_ends(self, items: Mapping[str, Any]) -> dict[str, Any]:
        one, other = (items[f"{side}.last"] for side in self._sides)
        return {"last": one | other}

    def _items_of(self, items: Mapping[str, Any], output: int) -> slice:
        return super()._items_of(self._vector_ends(items), output)

    def _take_streams(self, module: dict[str, Any]) -> None:
        one, *others = (module["ports"][f"{bus}_tvalid"]["bits"][0] for bus in self._slaves)
        super()._take_streams(module)
        for cell in module["cells"].values():
            for pin, bits in cell["connections"].items():
                cell["connections"][pin] = [one if bit in others else bit for bit in bits]


def _cofactor(graph: Graph, values: Mapping[int, int]) -> dict[str, int]:
    """The outputs with literals in place of some inputs."""
    found = graph.cofactor([*graph.outputs.values()], values)
    return dict(zip(graph.outputs, found, strict=True))


def proof_of_bus(unit: str) -> type[BusProof]:
    """The proof of a unit on AXI4-Stream."""
    name, _ = BEHIND[unit]
    inputs, _ = port_fields(UNITS[name].build())
    return BusProof if one_item_each(UNITS[name], inputs) else VectorBusProof
