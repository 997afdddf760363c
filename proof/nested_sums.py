"""Sums of products whose scales multiply sums at several depths of a tree, or are wide.

The scales of a large group multiply a sum in which those of smaller groups multiply sums. Each of
these sums is looked for in the graph, by its values in random cases, not by names. Then it is cut:
what is outside is held to the definition for every number that may be there, and the sum itself to
its own definition in turn. The product of two wide significands is cut in the same way.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.proof.adders import Adders, Form
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.cases import words_of
from axs6.proof.products import show_product, sums_of
from axs6.proof.steps import NotShownError
from axs6.proof.sums import WORD_BITS, Lane, Scaling, SumOfProducts

WORDS = 256
"""Words of 64 random cases in which nodes are compared with numbers."""

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class WideScaling:
    """What multiplies the sum of a group, of more bits than can be tried: a product.

    Args:
        factors: one or two words without sign, literals, lowest bit first.
    """

    factors: Sequence[Sequence[int]]


class NestedSums:
    """Shows that a number is the sum of what lanes add to it, with scales of groups in groups.

    Args:
        graph: of the number; may grow.
        lanes: as of `SumOfProducts`; their own scaling does not count.
        sizes: by the lanes of a group, the scaling of each such group in order. Only the largest
        groups may have a wide one.
        seconds: limit of each question to a solver.
    """

    def __init__(
        self,
        graph: Graph,
        lanes: Sequence[Lane],
        sizes: Mapping[int, Sequence[Scaling | WideScaling]],
        seconds: float,
    ) -> None:
        self._graph, self._lanes, self._sizes, self._seconds = graph, lanes, sizes, seconds

    def show(self, bits: Sequence[int]) -> None:
        """Show it of a number with these bits, lowest first, modulo 2^n.

        Raises:
            NotShownError: a step fails, or a sum is not found.
        """
        self._show(bits, range(len(self._lanes)), sorted(self._sizes, reverse=True))

    def _show(self, bits: Sequence[int], lanes: range, sizes: Sequence[int]) -> None:
        """Show that bits are the sum of some lanes with the scales of groups of some sizes."""
        if len(sizes) < 2 and not self._wide(sizes):
            scaled = [
                replace(self._lanes[lane], scaling=self._scaling(lane, sizes)) for lane in lanes
            ]
            size = sizes[0] if sizes else len(lanes)
            groups = [((1 << size) - 1) << k for k in range(0, len(scaled), size)]
            SumOfProducts(self._graph, scaled, groups if len(groups) > 1 else ()).show(bits)
            return
        size, *smaller = sizes
        groups_of = [range(first, first + size) for first in lanes[::size]]
        words = [self._word(bits, group, smaller) for group in groups_of]
        if self._wide(sizes):
            factors = [self._factor(bits, self._sizes[size][x[0] // size]) for x in groups_of]
            self._show_multiplied(bits, words, factors)
        else:
            self._show_scaled(bits, words, groups_of, sizes)
        for group, word in zip(groups_of, words, strict=True):
            self._show(word.bits + word.more, group, smaller)

    def _wide(self, sizes: Sequence[int]) -> bool:
        """Whether the scaling of the first size is wide."""
        return bool(sizes) and isinstance(self._sizes[sizes[0]][0], WideScaling)

    def _scaling(self, lane: int, sizes: Sequence[int]) -> Scaling:
        """What multiplies the product of a lane, of one size or none."""
        if not sizes:
            return Scaling((), np.ones(1, object), np.ones(1, np.bool_))
        found = self._sizes[sizes[0]][lane // sizes[0]]
        assert isinstance(found, Scaling)
        return found

    # What is outside of sums.

    def _show_scaled(
        self,
        bits: Sequence[int],
        words: "Sequence[_Word]",
        groups: Sequence[range],
        sizes: Sequence[int],
    ) -> None:
        """Show that bits are the sum of the words of groups, each times what its scales are."""
        places, outer = dict[int, int](), []
        for group, word in zip(groups, words, strict=True):
            free = word.cut(self._graph, places)
            half = 1 << len(free) - 1
            numbers = (np.arange(2 * half) + half) % (2 * half) - half
            within = np.abs(numbers) <= self._bound(group, sizes[1:])
            outer.append(Lane(free, numbers.astype(object), within, self._scaling(group[0], sizes)))
        single = [1 << k for k in range(len(outer))]
        cut = self._graph.cofactor(bits, places)
        SumOfProducts(self._graph, outer, single if len(outer) > 1 else ()).show(cut)

    def _show_multiplied(
        self, bits: Sequence[int], words: "Sequence[_Word]", factors: "Sequence[_Word]"
    ) -> None:
        """Show that bits are the sum of the words of groups, each times a factor without sign."""
        modulus, places = 1 << len(bits), dict[int, int]()
        wanted: dict[frozenset[int], int] = {}
        for word, factor in zip(words, factors, strict=True):
            a, b = (each.cut(self._graph, places) for each in (word, factor))
            for i, x in enumerate(a):
                for j, y in enumerate(b):
                    sign = -1 if x == a[-1] else 1
                    wanted[frozenset({x >> 1, y >> 1})] = (sign << i + j) % modulus
        cut = self._graph.cofactor(bits, places)
        adders, found = Adders(self._graph), Form(len(cut), cut)
        adders.search(cut)
        found.expand(adders)
        if _polynomial(self._graph, found) != {x: times for x, times in wanted.items() if times}:
            raise NotShownError("the sum is not shown to be sums of groups times products")

    # Words.

    def _word(self, ends: Sequence[int], lanes: range, sizes: Sequence[int]) -> "_Word":
        """Bits of the sum of some lanes with scales of some sizes, found in the cone of ends."""
        width = self._bound(lanes, sizes).bit_length() + 1
        if width > WORD_BITS:
            raise NotShownError(f"a sum of {width} bits is looked for, and {WORD_BITS} are tried")
        given, total = self._random(lanes, sizes)
        *low, signs = self._found(ends, self._inputs(lanes, sizes), given, total, width)
        first, *more = sorted(signs)
        return _Word([*sums_of(self._graph, low), first], more)

    def _factor(self, ends: Sequence[int], scaling: Scaling | WideScaling) -> "_Word":
        """Bits of the product of significands, which is shown, found in the cone of ends."""
        assert isinstance(scaling, WideScaling)
        first, *others = scaling.factors
        if not others:
            return _Word(list(first), [])
        graph, (second,) = self._graph, others
        rng = np.random.default_rng(0)
        inputs = [2 * node for node in sorted(graph.leaves([*first, *second]))]
        given = {bit: rng.integers(0, 1 << 64, WORDS, np.uint64) for bit in inputs}
        numbers = [_numbers(graph.values(word, given)) for word in (first, second)]
        width = len(first) + len(second)
        alike = self._found(ends, inputs, given, numbers[0] * numbers[1], width)
        product = sums_of(graph, alike)
        show_product(graph, product, first, second, self._seconds)
        return _Word(product, [])

    def _found(
        self,
        ends: Sequence[int],
        inputs: Iterator[int] | Sequence[int],
        given: Mapping[int, Words],
        numbers: NDArray[Any],
        width: int,
    ) -> list[list[int]]:
        """For each bit of numbers in random cases the literals in the cone of ends that have its
        values, and depend on no more than some inputs."""
        graph, within = self._graph, {bit >> 1 for bit in inputs}
        others = graph.supports({bit >> 1: bit >> 1 not in within for bit in graph.inputs.values()})
        nodes = [2 * node for node in graph.cone(ends) if not others[node]]
        alike: dict[bytes, list[int]] = defaultdict(list)
        for literal, words in zip(nodes, graph.values(nodes, given), strict=True):
            alike[words.tobytes()].append(literal)
            alike[(~words).tobytes()].append(literal | 1)
        bits = ((numbers >> place & 1).astype(np.uint8) for place in range(width))
        found = [alike[words_of(each).tobytes()] for each in bits]
        if not all(found):
            raise NotShownError(f"no word of {width} bits is a sum of a group, or its factor")
        return found

    def _inputs(self, lanes: range, sizes: Sequence[int]) -> Iterator[int]:
        """Codes of some lanes, and their scales of some sizes."""
        for lane in lanes:
            yield from self._lanes[lane].codes
            for size in sizes:
                yield from self._scaling(lane, [size]).scales

    def _bound(self, lanes: range, sizes: Sequence[int]) -> int:
        """The largest magnitude of the sum of some lanes with scales of some sizes."""
        bound = 0
        for lane in lanes:
            most = int(np.abs(self._lanes[lane].products).max())
            for size in sizes:
                scaling = self._scaling(lane, [size])
                most *= max(scaling.factors[scaling.valid])
            bound += most
        return bound

    def _random(
        self, lanes: range, sizes: Sequence[int]
    ) -> tuple[dict[int, Words], NDArray[np.int64]]:
        """Words of random cases for the inputs, and the sums in these cases.

        In half of them most products and factors are the largest ones, of one sign.
        """
        rng, count = np.random.default_rng(0), 64 * WORDS
        large, minus = np.arange(count) % 2 == 0, rng.random(count) < 0.5
        given: dict[int, Words] = {}

        def chosen(literals: Sequence[int], most: Any) -> NDArray[np.int64]:
            often = large & (rng.random(count) < 0.9)
            codes = np.where(often, most, rng.integers(0, 1 << len(literals), count))
            for k, bit in enumerate(literals):
                given[bit] = words_of((codes >> k & 1).astype(np.uint8))
            return codes

        groups = {(size, lane // size): lane for size in sizes for lane in lanes}
        factors = {}
        for (size, group), lane in groups.items():
            scaling = self._scaling(lane, [size])
            codes = chosen(scaling.scales, np.argmax(scaling.factors))
            factors[size, group] = scaling.factors[codes].astype(np.int64)
        total = np.zeros(count, np.int64)
        for lane in lanes:
            plain = self._lanes[lane]
            most, least = np.argmax(plain.products), np.argmin(plain.products)
            codes = chosen(plain.codes, np.where(minus, least, most))
            product = plain.products[codes].astype(np.int64)
            for size in sizes:
                product *= factors[size, lane // size]
            total += product
        return given, total


@dataclass(frozen=True)
class _Word:
    """Literals of a number, lowest bit first, and behind its sign more literals like that."""

    bits: list[int]
    more: list[int]

    def cut(self, graph: Graph, places: dict[int, int]) -> list[int]:
        """New inputs in place of the bits: `places` says what stands for which literal."""
        free = [graph.input(f"cut[{len(graph)}]") for _ in self.bits]
        all_free = [*free, *(free[-1] for _ in self.more)]
        for bit, new in zip([*self.bits, *self.more], all_free, strict=True):
            if bit in (FALSE, TRUE):
                raise NotShownError("a bit of a sum or of its factor is a constant")
            places[bit & ~1] = new ^ (bit & 1)
        return free


def _numbers(words: Sequence[Words]) -> NDArray[Any]:
    """Numbers of which words have a bit each, the lowest first."""
    total = np.zeros(64 * WORDS, object)
    for place, each in enumerate(words):
        total += np.unpackbits(each.view(np.uint8), bitorder="little").astype(object) << place
    return total


def _polynomial(graph: Graph, form: Form) -> dict[frozenset[int], int]:
    """A form of inputs and conjunctions of two, as numbers by products of inputs.

    Raises:
        NotShownError: it has other nodes.
    """
    found: dict[frozenset[int], int] = defaultdict(int)
    found[frozenset()] = form.constant
    for node, times in form.of.items():
        terms = {frozenset[int](): times}
        for literal in graph.operands(node) or (2 * node,):
            if graph.operands(literal >> 1):
                raise NotShownError("the sum has other terms than products of two bits")
            multiplied: dict[frozenset[int], int] = defaultdict(int)
            for product, each in terms.items():  # an inverted literal is 1 minus its node
                multiplied[product | {literal >> 1}] += -each if literal & 1 else each
                if literal & 1:
                    multiplied[product] += each
            terms = multiplied
        for product, each in terms.items():
            found[product] += each
    return {x: times % (1 << form.width) for x, times in found.items() if times % (1 << form.width)}
