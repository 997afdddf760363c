"""The expander held against the layout of packed AXS-6 blocks, for all their bits.

The layout is stated again, as circuits: the fields of the header, then six bits for each value, or
in sparse blocks a bit for each value that says whether it is stored, the codes of those that are,
and zeros. Sparse blocks leave out the first quarter of their zeros.

Source: docs/format.md, "Packed blocks".
"""

from collections.abc import Sequence

from axs6.hw.core.layouts import Field
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.equivalence import compare
from axs6.proof.steps import NotShownError, Proof, Steps, Subject, show_passed

CODE_BITS = 6


class ExpanderProof:
    """Holds the graph of an expander without registers against the layout.

    Args:
        graph: of the design. block: values in a block. inputs, outputs: fields of the payloads.
        seconds: limit of the comparison.
    """

    def __init__(
        self,
        graph: Graph,
        block: int,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        seconds: float,
    ) -> None:
        self._graph, self._block, self._seconds = graph, block, seconds
        self._inputs = {field.name: field for field in inputs}
        self._outputs = {field.name: field for field in outputs}

    def steps(self) -> Steps:
        """What is to be shown, by name."""
        return {
            "ready and valid pass through": lambda: show_passed(self._graph),
            "exponent, codes and error are those of the packed block": self._show_block,
        }

    def _show_block(self) -> None:
        right = self._definition()
        found = compare(
            self._graph.with_outputs({name: self._graph.outputs[name] for name in right.outputs}),
            right,
            seconds=self._seconds,
        )
        if not found.equal:
            raise NotShownError(f"{', '.join(found.outputs) or 'it'} is not shown ({found.by})")

    def _definition(self) -> Graph:
        """A graph with the outputs that a packed block has to give."""
        graph = Graph(name for name in self._graph.inputs if name.startswith("i_payload["))

        def given(name: str) -> list[int]:
            field = self._inputs[name]
            return graph.bus("i_payload", field.offset, field.width * field.count)

        mode, payload = given("mode"), given("payload")
        dense = [payload[CODE_BITS * k : CODE_BITS * (k + 1)] for k in range(self._block)]
        is_sparse = graph.both(mode[0], mode[1] ^ 1)
        sparse, wrong = self._sparse(graph, payload)
        error = graph.any([*given("reserved"), mode[1], graph.both(is_sparse, wrong)])
        codes = [
            graph.choose(is_sparse, one, zero)
            for lane in zip(sparse, dense, strict=True)
            for one, zero in zip(*lane, strict=True)
        ]
        results = {"exponent": given("exponent"), "codes": codes}
        bits = {
            name: [graph.both(bit, error ^ 1) for bit in each] for name, each in results.items()
        }
        for name, each in {**bits, "error": [error]}.items():
            first = self._outputs[name].offset
            graph.outputs |= {f"o_payload[{first + k}]": bit for k, bit in enumerate(each)}
        return graph

    def _sparse(self, graph: Graph, payload: Sequence[int]) -> tuple[list[list[int]], int]:
        """The codes of a sparse block, and whether mask or padding are not as they must be."""
        block, stored, dropped = self._block, self._block * 3 // 4, self._block // 4
        mask, rest = payload[:block], payload[block:]
        at = [rest[CODE_BITS * k : CODE_BITS * (k + 1)] for k in range(stored)]
        codes = []
        wrong = list(rest[CODE_BITS * stored :])
        # before[k]: at least k values are stored before this one; zeros[k]: at least k are 0.
        before, zeros = [TRUE], [TRUE]
        for bit in mask:
            here = [graph.all([bit, _at(before, k), _at(before, k + 1) ^ 1]) for k in range(stored)]
            code = [
                graph.any(graph.both(x, y[place]) for x, y in zip(here, at, strict=True))
                for place in range(CODE_BITS)
            ]
            codes.append(code)
            is_zero = graph.any(code[:-1]) ^ 1
            wrong.append(graph.all([bit, is_zero, _at(zeros, dropped) ^ 1]))
            before, zeros = _more(graph, before, bit), _more(graph, zeros, is_zero)
        exactly = graph.both(_at(before, stored), _at(before, stored + 1) ^ 1)
        return codes, graph.any([*wrong, exactly ^ 1])


def _at(count: Sequence[int], number: int) -> int:
    """Whether a count, of which literals say whether it is at least 0, 1 and so on, is."""
    return count[number] if number < len(count) else FALSE


def _more(graph: Graph, count: Sequence[int], bit: int) -> list[int]:
    """A count, and one more where a bit is 1."""
    shifted = (graph.both(each, bit) for each in count)
    return [TRUE, *(graph.any([x, _at(count, k)]) for k, x in enumerate(shifted, 1))]


def expander_proof(of: Subject) -> Proof:
    """The proof about a design that is to be an expander; see `Specification`."""
    return ExpanderProof(of.graph, of.settings["block"], of.inputs, of.outputs, of.seconds)
