"""One lane of a decoder that multiplies: an element times its scales, rounded once.

The product of the significands is looked for in the graph: by its values in random cases, not by
names. That it is the product is shown from its adders. Then it is cut: the rest of the lane is held
to the definition for every product, whatever the factors were.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import Float
from axs6.hw.core.layouts import Field
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.cases import cases_of, counting, words_of
from axs6.proof.factors import TABLE_BITS, Factor
from axs6.proof.products import show_product, sums_of
from axs6.proof.rounding import PLACE, rounding
from axs6.proof.smt import Circuit
from axs6.proof.solver import never
from axs6.proof.steps import NotShownError

WORDS = 256
"""Words of 64 random cases in which nodes are compared with the factors and their products."""

WHOLE = 30.0
"""Seconds for a lane that is not taken apart, where that does not show it."""

Word = tuple[int, ...]
"""Literals, lowest bit first."""


class ScaledLane:
    """A lane to prove.

    Args:
        graph: may grow. value: literals of the value. factors: the element, then its scales.
        dtype: of the value. seconds: limit of each question to a solver.
    """

    def __init__(
        self,
        graph: Graph,
        value: Sequence[int],
        factors: Sequence[Factor],
        dtype: Float,
        seconds: float,
    ) -> None:
        self._graph, self._factors = graph, factors
        self._dtype, self._seconds = dtype, seconds
        self._value = self._swept(value)
        self._wide = tuple(factor for factor in factors if factor.width > 1)

    def show(self) -> None:
        """Show that the lane gives the value of the definition.

        Raises:
            NotShownError: it is not, or it is not known. An input that is said to show the contrary
            has the bits of the factors, one after the other.
        """
        if len(self._wide) < 2:
            self._ask(self._value, seconds=self._seconds)
            return
        try:
            self._show_cut()
        except NotShownError as error:
            try:
                self._ask(self._value, seconds=min(WHOLE, self._seconds))
            except NotShownError as whole:
                raise NotShownError(str(error), whole.payload) from None

    def _show_cut(self) -> None:
        """Show the same for any product of the significands, within its range."""
        product = Products(self._graph, self._value, self._wide, self._seconds).word(self._wide)
        cut = tuple(self._graph.input(f"product[{k}]") for k in range(len(product)))
        places = {bit & ~1: free ^ (bit & 1) for bit, free in zip(product, cut, strict=True)}
        self._ask(self._graph.cofactor(self._value, places), cut, seconds=self._seconds)

    def _swept(self, value: Sequence[int]) -> list[int]:
        """The value where equal functions of one tabulated factor are one literal."""
        graph = self._graph
        merged: dict[int, int] = {}
        kinds = {bit >> 1: 1 << k for k, each in enumerate(self._factors) for bit in each.bits}
        supports = graph.supports(kinds)
        cone = graph.cone(value)
        for number, factor in enumerate(self._factors):
            if len(factor.bits) > TABLE_BITS:
                continue
            known: dict[bytes, int] = {}
            own = [*factor.bits, *factor.significand, FALSE]
            own += [2 * node for node in cone if supports[node] == 1 << number]
            for literal, words in zip(own, graph.values(own, counting(factor.bits)), strict=True):
                table = cases_of(words, len(factor.bits))
                flip = int(table[0])
                key = (table ^ flip).tobytes()
                same = known.setdefault(key, literal ^ flip)
                if same ^ flip != literal and literal > TRUE:
                    merged[literal & ~1] = same ^ flip ^ (literal & 1)
        return graph.cofactor(value, merged)

    def _ask(self, value: Sequence[int], cut: Word = (), *, seconds: float) -> None:
        """Show that the lane gives the rounded product of its factors.

        Args:
            value: what it gives. cut: inputs in place of the product of the significands; then any
            number in its range may be there. seconds: limit.
        """
        graph, factors = self._graph, self._factors
        place: Sequence[int] = [FALSE] * PLACE
        for factor in factors:
            place = graph.sum(place, factor.place, PLACE)
        infinite, zero = factors[0].infinite, graph.any(x.zero for x in factors)
        nan = graph.any([*(x.nan for x in factors), graph.both(infinite, zero)])
        words: dict[str, Sequence[int]] = {
            "value": value,
            "place": place,
            "nan": [nan],
            "infinite": [infinite],
            "negative": [factors[0].negative],
            "zero": [zero],
        }
        words |= {f"factor{k}": factor.significand for k, factor in enumerate(factors)}
        words |= {"cut": cut} if cut else {}
        free = [*(bit for factor in factors for bit in factor.bits), *cut]
        into, moved = _alone(graph, words, free)
        fields = [Field("given", 0, len(free), False, ())]
        text = self._definitions(bool(cut))
        Circuit(into, fields, moved).show("right", text, seconds=seconds)

    def _definitions(self, cut: bool) -> str:
        """Of `right`: that the value is the product in its place, or what stands in its place."""
        dtype, own = self._dtype, self._dtype.width - 1
        low, high = self._range()
        width = sum(factor.width for factor in (self._wide if cut else self._factors))
        product = " ".join(
            f"((_ zero_extend {width - factor.width}) factor{k})"
            for k, factor in enumerate(self._factors)
        )
        magnitude = "cut" if cut else f"(bvmul {product} (_ bv1 {width}))"
        return f"""
(define-fun magnitude () (_ BitVec {width}) {magnitude})
{rounding(width, dtype, saturate=True)}
(define-fun low () (_ BitVec {own}) ((_ extract {own - 1} 0) value))
(define-fun within () Bool
  (ite (= zero #b1) (= magnitude (_ bv0 {width}))
    (and (bvuge magnitude (_ bv{low} {width})) (bvule magnitude (_ bv{high} {width})))))
(define-fun signed () Bool (= ((_ extract {own} {own}) value) negative))
(define-fun right () Bool
  (ite (= nan #b1) (= value (_ bv{dtype.quiet_nan} {dtype.width}))
    (ite (= infinite #b1) (and signed (= low (_ bv{dtype.infinity} {own})))
      (=> {"within" if cut else "true"} (and signed (rounded low))))))
"""

    def _range(self) -> tuple[int, int]:
        """The least and the largest product that is not 0."""
        widths = [factor.width for factor in self._wide]
        return 1 << sum(widths) - len(widths), prod((1 << width) - 1 for width in widths)


def _alone(
    graph: Graph, words: Mapping[str, Sequence[int]], free: Sequence[int]
) -> tuple[Graph, dict[str, list[int]]]:
    """A graph with some inputs as its payload, and words that depend on no others in it."""
    names = {bit: name for name, bit in graph.inputs.items()}
    into = Graph(f"i_payload[{k}]" for k in range(len(free)))
    inputs = {names[bit]: into.inputs[f"i_payload[{k}]"] for k, bit in enumerate(free)}
    outputs = {f"{name} {k}": bit for name, word in words.items() for k, bit in enumerate(word)}
    found = graph.with_outputs(outputs).copied(into, inputs)
    return into, {name: [found[f"{name} {k}"] for k in range(len(w))] for name, w in words.items()}


class Products:
    """Words of a graph that are products of the significands of factors, found by their values.

    Args:
        graph: of the words. ends: literals whose cone has them. factors: of the products.
        seconds: limit of each question to a solver.
    """

    def __init__(
        self, graph: Graph, ends: Sequence[int], factors: Sequence[Factor], seconds: float
    ) -> None:
        self._graph, self._seconds = graph, seconds
        given = _random(factors)
        special = [bit for factor in factors for bit in (factor.nan, factor.infinite)]
        words = graph.values(special, given)
        self._number = ~np.bitwise_or.reduce(words)
        self._given = given
        self._at: dict[bytes, list[int]] = defaultdict(list)
        inputs = [bit for factor in factors for bit in factor.bits]
        nodes = [*inputs, *(2 * node for node in graph.cone(ends))]
        for literal, each in zip(nodes, graph.values(nodes, given), strict=True):
            for flip, found in enumerate((each, ~each)):
                self._at[(found & self._number).tobytes()].append(literal | flip)
        self._known: dict[tuple[Factor, ...], Word | None] = {}

    def word(self, factors: tuple[Factor, ...]) -> Word:
        """The product of some factors where all are numbers, which is shown.

        Raises:
            NotShownError: there is no such word, or it is not shown to be that.
        """
        if factors not in self._known:
            make = self._significand if len(factors) == 1 else self._product
            self._known[factors] = make(factors)
        found = self._known[factors]
        if found is None:
            raise NotShownError(f"no product of {len(factors)} significands is found")
        return found

    def _alike(self, word: NDArray[np.uint64]) -> list[int]:
        return self._at.get((word & self._number).tobytes(), [])

    def _significand(self, factors: tuple[Factor, ...]) -> Word | None:
        graph, (factor,) = self._graph, factors
        number = graph.any([factor.nan, factor.infinite]) ^ 1
        found = []
        for bit, word in zip(
            factor.significand, graph.values(factor.significand, self._given), strict=True
        ):
            alike = [bit] if bit <= TRUE else self._alike(word)
            for each in alike:
                if never(graph, graph.both(number, graph.unlike(bit, each)), self._seconds):
                    found.append(each)
                    break
            else:
                return None
        return tuple(found)

    def _product(self, factors: tuple[Factor, ...]) -> Word | None:
        alike = [self._alike(word) for word in self._values(factors)]
        if not all(alike):
            return None
        product = tuple(sums_of(self._graph, alike))
        number = self._graph.any(x for factor in factors for x in (factor.nan, factor.infinite)) ^ 1
        for some in _parts(factors):
            others = tuple(factor for factor in factors if factor not in some)
            try:
                a, b = self.word(some), self.word(others)
                show_product(self._graph, product, a, b, self._seconds, number)
            except NotShownError:
                continue
            return product
        return None

    def _values(self, factors: tuple[Factor, ...]) -> list[NDArray[np.uint64]]:
        """Bits of the product in the random cases."""
        numbers = np.ones(64 * WORDS, np.uint64)
        for factor in factors:
            own = np.zeros_like(numbers)
            for place, word in enumerate(self._graph.values(factor.significand, self._given)):
                bits = np.unpackbits(word.view(np.uint8), bitorder="little")
                own |= bits.astype(np.uint64) << np.uint64(place)
            numbers *= own
        return [_packed(numbers >> np.uint64(k)) for k in range(sum(x.width for x in factors))]


def _packed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The lowest bits of numbers, 64 in a word."""
    return words_of((numbers & np.uint64(1)).astype(np.uint8))


def _parts(factors: tuple[Factor, ...]) -> Iterator[tuple[Factor, ...]]:
    """Some of several factors, the first one among them, for each way to part them in two."""
    first, *others = factors
    for count in range(len(others)):
        for some in combinations(others, count):
            yield (first, *some)


def _random(factors: Sequence[Factor]) -> dict[int, NDArray[np.uint64]]:
    """Random codes of factors; those of wide ones with any number of zeros on top."""
    rng = np.random.default_rng(0)
    found: dict[int, NDArray[np.uint64]] = {}
    for factor in factors:
        count = len(factor.bits)
        codes = rng.integers(0, 1 << count, 64 * WORDS, np.uint64, endpoint=False)
        if count > TABLE_BITS:
            codes >>= rng.integers(0, count, 64 * WORDS, np.uint64)
        found |= {bit: _packed(codes >> np.uint64(k)) for k, bit in enumerate(factor.bits)}
    return found
