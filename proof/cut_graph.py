"""A design cut open where it drops bits, put together again with other values in these places."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from axs6.proof.aig import FALSE, NEXT
from axs6.proof.places import FULL, Copy, Opened, Place
from axs6.sim.tools import ToolError


class Rule(StrEnum):
    """What the bits that are dropped may be without a loss, all of them for all inputs."""

    ZERO = "0"
    SIGN = "copies of the sign"


class CutGraph:
    """The graph of a design that is cut open, and literals in it about the whole design.

    Args:
        cut: the design.

    Raises:
        ToolError: results depend on themselves.
    """

    def __init__(self, cut: Opened) -> None:
        self.graph = graph = cut.design.graph
        self._places = cut.places
        self._kept = {copy: place.kept for place, each in cut.places.items() for copy in each}
        self._full = {x: graph.bus(x.full, 0, len(x.bits)) for x in self._kept}
        self._cut = {x: graph.bus(x.cut, 0, kept) for x, kept in self._kept.items()}
        self._ends = [bit for name, bit in graph.outputs.items() if not name.startswith(FULL)]
        self._outputs: dict[Copy, list[int]] = {copy: [] for copy in self._kept}
        self._needs = self._order()
        self._values: dict[int, int] = {}
        self.results: dict[Copy, list[int]] = {}
        for copy in self._needs:
            self.results[copy] = graph.cofactor(self._full[copy], self._values)
            self._values |= self._joined(copy, self.results[copy])
        self._before = graph.cofactor(self._ends, self._values)

    @property
    def registers(self) -> list[str]:
        """Names of the bits of registers, which are inputs of the graph."""
        return [x.removeprefix(NEXT) for x in self.graph.outputs if x.startswith(NEXT)]

    def _joined(self, copy: Copy, bits: Sequence[int]) -> dict[int, int]:
        """Bits in place of those that others read of a copy."""
        return dict(zip(self._cut[copy], bits[: self._kept[copy]], strict=True))

    def _order(self) -> dict[Copy, set[Copy]]:
        """The copies, each after those that it reads, with these; notes outputs that read one."""
        graph = self.graph
        owner = {bit >> 1: copy for copy, bits in self._cut.items() for bit in bits}
        needs = {
            copy: {owner[node] for node in graph.leaves(bits) & owner.keys()}
            for copy, bits in self._full.items()
        }
        for bit in self._ends:
            for other in {owner[node] for node in graph.leaves([bit]) & owner.keys()}:
                self._outputs[other].append(bit)
        found: dict[Copy, set[Copy]] = {}
        while len(found) < len(needs):
            ready = [x for x, each in needs.items() if x not in found and each <= found.keys()]
            if not ready:
                raise ToolError("results depend on themselves: there is a combinational loop")
            found |= {copy: needs[copy] for copy in ready}
        return found

    def lost(self, place: Place, rule: Rule) -> dict[Copy, int]:
        """For each copy of a place whether one of the bits that it drops is not as in a rule."""
        return {x: self._unlike(self.results[x], place.kept, rule) for x in self._places[place]}

    def _unlike(self, bits: Sequence[int], kept: int, rule: Rule) -> int:
        like = FALSE if rule is Rule.ZERO else bits[kept - 1]
        return self.graph.any(self.graph.unlike(bit, like) for bit in bits[kept:])

    def seen_nearby(self, place: Place, rule: Rule, steps: int) -> int:
        """Whether results of operators in a few steps, or outputs, depend on what a copy of a place
        keeps where it loses bits. What others keep is free, so that this is a smaller question; if
        the answer is no, it is no to `seen` too.

        Args:
            steps: operators that drop bits, one after the other, that the answer looks through.
        """
        graph = self.graph
        found: list[int] = []
        for copy in self._places[place]:
            bits = self._full[copy]
            lost = self._unlike(bits, place.kept, rule)
            changed = [graph.choose(lost, self._free(), bit) for bit in bits[: place.kept]]
            before, after = (self._joined(copy, each) for each in (bits, changed))
            near = {copy}
            for _ in range(steps):
                near |= {x for x, needs in self._needs.items() if needs & near}
            for each in [x for x in self._needs if x in near and x != copy]:
                for values in (before, after):
                    values |= self._joined(each, graph.cofactor(self._full[each], values))
            ends = [bit for each in near for bit in self._outputs[each]]
            for each, needs in self._needs.items():
                ends += self._full[each] if needs & near and each not in near else []
            pair = (graph.cofactor(ends, values) for values in (before, after))
            found += map(graph.unlike, *pair)
        return graph.any(found)

    def seen(self, lost: Mapping[Copy, int]) -> int:
        """Whether outputs, or registers, depend on what copies keep where they lose bits.

        Args:
            lost: where they do. The copies there may keep anything, all of them at once.
        """
        graph = self.graph
        values, changed = dict(self._values), set(lost)
        for copy, needs in self._needs.items():
            if copy not in lost and not needs & changed:
                continue
            changed.add(copy)
            bits = graph.cofactor(self._full[copy], values)
            if copy in lost:
                kept = bits[: self._kept[copy]]
                bits = [graph.choose(lost[copy], self._free(), bit) for bit in kept]
            values |= self._joined(copy, bits)
        after = graph.cofactor(self._ends, values)
        return graph.any(map(graph.unlike, self._before, after))

    def _free(self) -> int:
        return self.graph.input(f"free {len(self.graph)}")
