"""Cores: hardware without registers that is a part of units, and statements about one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from axs6.hw.core.layouts import Field, fields
from axs6.hw.core.pipeline import Pipeline, Step
from axs6.hw.verilog import convert
from axs6.proof.aig import Graph
from axs6.proof.equivalence import compare
from axs6.proof.items import payload_of
from axs6.proof.netlists import verilog_design
from axs6.proof.steps import NotShownError
from axs6.sim.words import payload_width

WORD = 64


class Core:
    """Steps one after the other, and the graph of their netlist.

    Args:
        steps: of the hardware. seconds: limit of Yosys.

    Raises:
        SynthesisError: as `axs6.proof.netlists.verilog_design`.
    """

    def __init__(self, steps: Sequence[Step], seconds: float) -> None:
        self._steps, self._seconds = list(steps), seconds
        self.inputs: list[Field] = fields(self._steps[0].i.shape())
        self.outputs: list[Field] = fields(self._steps[-1].o.shape())
        self.width = payload_width(self.inputs)
        """Bits of the input."""

    @cached_property
    def graph(self) -> Graph:
        """The graph, as that of a unit with streams."""
        verilog = convert(Pipeline(self._steps, 0), "core")
        return verilog_design(verilog, "core", seconds=self._seconds).graph

    def result(self, name: str) -> list[int]:
        """The literals of a field of the output."""
        field = next(field for field in self.outputs if field.name == name)
        return self.graph.bus("o_payload", field.offset, field.width)

    def payload(self, fields: Mapping[str, int]) -> int:
        """A payload of the output with these fields."""
        return sum(fields[field.name] << field.offset for field in self.outputs)

    def through(self, graph: Graph, given: Mapping[str, Sequence[int]]) -> list[int]:
        """The payload that the core gives, in another graph, for fields of its input there.

        Raises:
            NotShownError: its fields are others, or have other widths.
        """
        wanted = {(field.name, field.width * field.count) for field in self.inputs}
        if unlike := wanted ^ {(name, len(bits)) for name, bits in given.items()}:
            name, width = min(unlike)
            raise NotShownError(f"a part has {name} of {width} bits, and its neighbour has not")
        inputs = {
            f"i_payload[{field.offset + k}]": bit
            for field in self.inputs
            for k, bit in enumerate(given[field.name])
        }
        names = [f"o_payload[{k}]" for k in range(payload_width(self.outputs))]
        own = self.graph.with_outputs({name: self.graph.outputs[name] for name in names})
        return [*own.copied(graph, inputs).values()]

    def run(self, payloads: Sequence[int]) -> list[int]:
        """What the graph gives for some inputs."""
        count = -(-len(payloads) // WORD) * WORD
        bits = np.zeros((self.width, count), np.uint8)
        for case, payload in enumerate(payloads):
            bits[:, case] = [payload >> place & 1 for place in range(self.width)]
        literals = self.graph.bus("i_payload", 0, self.width)
        given = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
        ends = self.graph.bus("o_payload", 0, payload_width(self.outputs))
        words = np.stack(self.graph.values(ends, dict(zip(literals, given, strict=True))))
        found = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        return [
            sum(int(bit) << place for place, bit in enumerate(found[:, case]))
            for case in range(len(payloads))
        ]


def split(payload: Sequence[int], of: Sequence[Field]) -> dict[str, Sequence[int]]:
    """The literals of fields among those of a payload."""
    return {x.name: payload[x.offset : x.offset + x.width * x.count] for x in of}


def fields_of(payload: int, of: Sequence[Field]) -> dict[str, int]:
    """The fields of a payload, without signs."""
    return {x.name: payload >> x.offset & (1 << x.width) - 1 for x in of}


@dataclass(frozen=True)
class Statement:
    """What is to be shown of a core.

    Args:
        core: the core. show: raises `NotShownError`. expected: what the core has to give, by the
        fields of its input, in Python's integers: what is to refute a statement is held to it.
        None is for an input of which nothing is said.
    """

    core: Core
    show: Callable[[], None]
    expected: Callable[[Mapping[str, int]], int | None]

    def wrong(self, payloads: Sequence[int]) -> int | None:
        """The first of some inputs for which the core gives something else."""
        for payload, found in zip(payloads, self.core.run(payloads), strict=True):
            wanted = self.expected(fields_of(payload, self.core.inputs))
            if wanted is not None and found != wanted:
                return payload
        return None


def show_in_turn(whole: Core, parts: Sequence[Core], seconds: float) -> None:
    """Show that a core gives what some others give one after the other.

    Raises:
        NotShownError: it does not, or it is not known; or one takes other fields than it is given.
    """
    names = (f"i_payload[{k}]" for k in range(whole.width))
    joined = Graph(names)
    payload = [*joined.inputs.values()]
    given = split(payload, whole.inputs)
    for part in parts:
        payload = part.through(joined, given)
        given = split(payload, part.outputs)
    if len(payload) != payload_width(whole.outputs):
        raise NotShownError(f"the last part gives {len(payload)} bits")
    outputs = {f"o_payload[{k}]": bit for k, bit in enumerate(payload)}
    own = whole.graph.with_outputs({name: whole.graph.outputs[name] for name in outputs})
    found = compare(own, joined.with_outputs(outputs), seconds=seconds)
    if not found.equal:
        wrong = None if found.equal is None else payload_of(found.inputs)
        raise NotShownError(f"it is not shown ({found.by})", wrong)
