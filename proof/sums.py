"""Whether a number is the sum of products of lanes, each times a factor that its scales decide.

The number is a linear form of its bits modulo a power of two. Adders turn it into a form of nodes
that depend on fewer inputs (`axs6.proof.adders`). Where these also depend on scales, they do so
through a few nodes of scales alone; with values for those, what is left depends on one lane each,
and all codes of a lane are tried. How often a product counts is then compared with the factor, for
all scales.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.proof.adders import Adders, Form
from axs6.proof.aig import Graph
from axs6.proof.cases import Numbers, cases_of, counting
from axs6.proof.steps import NotShownError

CONTROLS = 8
"""Nodes of scales, at most, through which a node depends on them."""

WORD_BITS = 22
"""Bits of a word, at most, of which all values are tried."""

REACHABLE_INPUTS = 16
"""Inputs of nodes of scales, at most, for which it is enumerated which values these take."""


@dataclass(frozen=True)
class Scaling:
    """What multiplies a product, or the sum of a group.

    Args:
        scales: literals of the scales of both operands.
        factors: by the number of these bits.
        valid: which of them are of codes that scales may have.
    """

    scales: Sequence[int]
    factors: NDArray[Any]
    valid: NDArray[np.bool_]


@dataclass(frozen=True)
class Lane:
    """What a lane adds to a sum: the product of its codes times a factor.

    Args:
        codes: literals of both codes, a's first, lowest bit first.
        products: by the number of these bits; 0 is among them.
        numbers: which of them are of two numbers; others do not count.
        scaling: what multiplies the product.
    """

    codes: Sequence[int]
    products: NDArray[Any]
    numbers: NDArray[np.bool_]
    scaling: Scaling


class SumOfProducts:
    """Shows that a number is the sum of what lanes add to it.

    Args:
        graph: of the number.
        lanes: as above.
        groups: lanes whose sum the smallest group of scales multiplies, as bits of numbers; empty
            where no scale multiplies sums of fewer lanes than all.
    """

    def __init__(self, graph: Graph, lanes: Sequence[Lane], groups: Sequence[int] = ()) -> None:
        self._graph, self._lanes, self._groups = graph, _with_odd_products(lanes), groups
        self._all = (1 << len(lanes)) - 1
        kinds = {bit >> 1: 1 << k for k, lane in enumerate(lanes) for bit in lane.codes}
        scales = sorted({bit >> 1 for lane in lanes for bit in lane.scaling.scales})
        kinds |= {node: 1 << len(lanes) + k for k, node in enumerate(scales)}
        self._kinds = kinds
        self._supports = graph.supports(kinds)
        self._adders = Adders(graph)
        self._words: dict[tuple[int, ...], tuple[dict[int, int], int]] = {}
        self._expected: dict[tuple[int, int, int, int], Numbers] = {}
        self._compared: set[str] = set()

    def show(self, bits: Sequence[int]) -> None:
        """Show it of a number with these bits, lowest first, modulo 2^n.

        Raises:
            NotShownError: a step fails.
        """
        if others := self._graph.leaves(bits) - set(self._kinds):
            raise NotShownError(f"the sum depends on {len(others)} bits that are no code or factor")
        self._adders.search(bits)
        form = Form(len(bits), bits)
        form.expand(self._adders, self._beyond_groups)
        constant = form.constant
        counts: dict[int, list[_Counts]] = defaultdict(list)
        for controls, nodes in self._by_controls(form).items():
            offset, found = self._under_controls(controls, nodes, form.width)
            constant += offset
            for lane, each in found.items():
                counts[lane].append((controls, each))
        if constant % (1 << form.width):
            raise NotShownError(f"a constant of {constant % (1 << form.width)} is added")
        for number in range(len(self._lanes)):
            self._compare_factors(number, counts[number], form.width)

    def _beyond_groups(self, node: int) -> bool:
        """Whether a node depends on lanes of several groups, or there are none."""
        lanes = self._supports[node] & self._all
        return not any(lanes & ~group == 0 for group in self._groups)

    def _by_controls(self, form: Form) -> dict[tuple[int, ...], list[tuple[int, int]]]:
        """Nodes of a form with their numbers, by the nodes of scales that they depend on.

        Nodes that have lanes in common come together, where few nodes of scales decide all of them.
        """
        parts: list[tuple[int, set[int], list[tuple[frozenset[int], int, int]]]] = []
        cut = self._graph.cuts([2 * node for node in form.of], self._supports, self._all)
        for node, times in form.of.items():
            lanes, controls = self._supports[node] & self._all, set(cut(node))
            mine = [(cut(node), node, times)]
            for other in [part for part in parts if part[0] & lanes]:
                parts.remove(other)
                lanes |= other[0]
                controls |= other[1]
                mine += other[2]
            parts.append((lanes, controls, mine))
        found = defaultdict(list)
        for _, controls, mine in parts:
            for own, node, times in mine:
                key = controls if len(controls) <= CONTROLS else own
                found[tuple(sorted(key))].append((node, times))
        return found

    def _under_controls(
        self, controls: tuple[int, ...], nodes: Sequence[tuple[int, int]], width: int
    ) -> tuple[int, dict[int, dict[int, int]]]:
        """A constant, and for each lane how often its product counts by the values of controls."""
        if len(controls) > CONTROLS:
            raise NotShownError(f"{len(controls)} nodes of scales decide one bit")
        offsets = set()
        found: dict[int, dict[int, int]] = defaultdict(dict)
        later = []
        for case in self._reachable(controls):
            values = {2 * node: case >> k & 1 for k, node in enumerate(controls)}
            literals = self._graph.cofactor([2 * node for node, _ in nodes], values)
            form = Form(width)
            for literal, (_, times) in zip(literals, nodes, strict=True):
                form.add(literal, times)
            try:
                shown = self._resolve(form)
            except NotShownError as error:
                later.append((case, form, error))
                continue
            offsets.add(shown[1])
            for lane, times in shown[0].items():
                found[lane][case] = times
        for case, form, failure in later:
            counts, offset = self._of_known_word(form, failure)
            offsets.add(offset)
            for lane, times in counts.items():
                found[lane][case] = times
        if len(offsets) != 1:
            raise NotShownError("a constant that depends on scales is added")
        return offsets.pop(), found

    def _of_known_word(self, form: Form, failure: NotShownError) -> tuple[dict[int, int], int]:
        """The same as `_resolve` for a form that depends on one of the known words alone.

        All values of the word are tried. So are products of a sum by a factor in words shown.
        """
        literals = [2 * node for node in form.of]
        for bits, (counts, offset) in self._words.items():
            nodes = {bit >> 1 for bit in bits}
            cone = self._graph.cone(literals, nodes)
            below = {x >> 1 for node in cone for x in self._graph.operands(node) or ()}
            if len(bits) > WORD_BITS or (below | set(form.of)) - nodes - set(cone) - {0}:
                continue
            given = counting([*range(0, 2 * len(bits), 2)])
            words = {
                bit & ~1: ~each if bit & 1 else each
                for bit, each in zip(bits, given.values(), strict=True)
            }
            total = Numbers.zeros(1 << len(bits), form.width)
            for each, times in zip(
                self._graph.values(literals, words), form.of.values(), strict=True
            ):
                total.add(cases_of(each, len(bits)), times)
            modulus, half = 1 << form.width, 1 << len(bits) - 1
            times = (total.at(1) - total.at(0)) % modulus
            signed = (np.arange(2 * half) + half) % (2 * half) - half
            wanted = signed.astype(object) * times + total.at(0)
            if total.equal(Numbers.of(wanted, form.width)).all():
                found = {lane: each * times % modulus for lane, each in counts.items()}
                return found, (offset * times + total.at(0) + form.constant) % modulus
        raise failure

    def _reachable(self, controls: Sequence[int]) -> list[int]:
        """The values that nodes take together, the first one in the lowest bit."""
        literals = [2 * node for node in controls]
        inputs = [2 * node for node in sorted(self._graph.leaves(literals))]
        if len(controls) < 2 or len(inputs) > REACHABLE_INPUTS:
            return list(range(1 << len(controls)))
        words = self._graph.values(literals, counting(inputs))
        taken = sum(
            cases_of(each, len(inputs)).astype(np.int64) << k for k, each in enumerate(words)
        )
        return np.unique(taken).tolist()

    def _resolve(self, form: Form) -> tuple[dict[int, int], int]:
        """How often each lane's product counts in a form of nodes of lanes, and a constant.

        Words that are narrower than the form must stay together, so it is tried first as it is.
        """
        if len(self._graph) > len(self._supports):
            self._supports = self._graph.supports(self._kinds)
        try:
            return self._grouped(form)
        except NotShownError:
            self._adders.search(2 * node for node in form.of)
            expanded = form.copy()
            expanded.expand(self._adders)
            return self._grouped(expanded)

    def _grouped(self, form: Form) -> tuple[dict[int, int], int]:
        """The same for a form whose nodes are of one lane each, or words of several."""
        words: list[tuple[int, list[tuple[int, int]]]] = []
        single: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for node, times in form.of.items():
            lanes = self._supports[node]
            if lanes & ~self._all:
                raise NotShownError("a bit depends on scales in more ways than through few nodes")
            if lanes & (lanes - 1):
                mine = [(node, times)]
                for other in [word for word in words if word[0] & lanes]:
                    words.remove(other)
                    lanes |= other[0]
                    mine += other[1]
                words.append((lanes, mine))
            else:
                single[lanes.bit_length() - 1].append((node, times))
        counts: dict[int, int] = {}
        constant = form.constant
        for lanes, nodes in words:
            inside = [number for number in single if lanes >> number & 1]
            whole = nodes + [each for number in inside for each in single.pop(number)]
            found, offset = self._word(whole, form.width)
            constant += offset
            counts |= found
        for number, nodes in single.items():
            counts[number], offset = self._lane(number, nodes, form.width)
            constant += offset
        return counts, constant % (1 << form.width)

    def _word(self, nodes: Sequence[tuple[int, int]], width: int) -> tuple[dict[int, int], int]:
        """The same for nodes that are a signed word times a number.

        Its bits are a sum of products modulo a power of two, and the bound of that sum shows that
        the word holds it.
        """
        if len(nodes) >= width:
            raise NotShownError("a sum of several lanes is as wide as the result")
        modulus, top = 1 << width, len(nodes) - 1
        by_times = {times: 2 * node for node, times in nodes}
        unit = min(by_times, key=lambda times: times & -times)
        for low in (unit, -unit):
            bits, constant = [], 0
            for wanted in [*(low << k for k in range(top)), -(low << top)]:
                if wanted % modulus in by_times:
                    bits.append(by_times[wanted % modulus])
                elif -wanted % modulus in by_times:
                    bits.append(by_times[-wanted % modulus] ^ 1)
                    constant -= wanted
            if len({bit >> 1 for bit in bits}) == len(nodes):
                break
        else:
            raise NotShownError("bits of several lanes are no word")
        key = tuple(bits)
        if key not in self._words:
            self._words[key] = self._signed_word(bits)
        counts, offset = self._words[key]
        times = {lane: each * low for lane, each in counts.items()}
        return times, offset * low + constant

    def _signed_word(self, bits: Sequence[int]) -> tuple[dict[int, int], int]:
        """What the number of some bits, the last one the sign, is made of."""
        counts, constant = self._resolve(Form(len(bits), bits))
        half = 1 << len(bits) - 1

        def signed(value: int) -> int:
            return value - 2 * half if value >= half else value

        found = {lane: signed(times) for lane, times in counts.items()}
        largest = {lane: int(np.abs(self._lanes[lane].products).max()) for lane in found}
        bound = sum(abs(times) * largest[lane] for lane, times in found.items())
        if bound + abs(signed(constant)) >= half:
            raise NotShownError(f"a word of {len(bits)} bits is to hold sums of up to {bound}")
        return found, signed(constant)

    def _lane(self, number: int, nodes: Sequence[tuple[int, int]], width: int) -> tuple[int, int]:
        """How often a lane's product counts in nodes of it alone, and a constant: for all codes."""
        lane = self._lanes[number]
        bits = len(lane.codes)
        words = self._graph.values([2 * node for node, _ in nodes], counting(lane.codes))
        total = Numbers.zeros(1 << bits, width)
        for each, (_, times) in zip(words, nodes, strict=True):
            total.add(cases_of(each, bits), times)
        zero = int(np.argmax(lane.numbers & (lane.products == 0)))
        odd = np.flatnonzero(lane.numbers & (lane.products % 2 == 1))
        one = int(odd[np.argmin(np.abs(lane.products[odd]))])
        constant = total.at(zero)
        times = (total.at(one) - constant) * pow(int(lane.products[one]), -1, 1 << width)
        times %= 1 << width
        wrong = ~total.equal(self._expected_of(lane, times, constant, width)) & lane.numbers
        if wrong.any():
            case = int(np.argmax(wrong))
            raise NotShownError(f"the product of lane {number} is wrong for codes {case:#x}")
        return times, constant

    def _expected_of(self, lane: Lane, times: int, constant: int, width: int) -> Numbers:
        key = id(lane.products), times, constant, width
        if key not in self._expected:
            numbers = lane.products.astype(object) * times + constant
            self._expected[key] = Numbers.of(numbers, width)
        return self._expected[key]

    def _compare_factors(self, number: int, counts: "Sequence[_Counts]", width: int) -> None:
        """Whether a lane's product counts as its factor says, for all scales."""
        lane = self._lanes[number]
        key = repr(
            (lane.scaling.scales, sorted((each, sorted(times.items())) for each, times in counts))
        )
        if key in self._compared:
            return
        nodes = sorted({node for controls, _ in counts for node in controls})
        literals = [2 * node for node in nodes]
        if beyond := self._graph.leaves(literals) - {each >> 1 for each in lane.scaling.scales}:
            raise NotShownError(f"lane {number} depends on {len(beyond)} bits of others' scales")
        bits = len(lane.scaling.scales)
        words = self._graph.values(literals, counting(lane.scaling.scales)) if nodes else []
        values = {
            node: cases_of(each, bits).astype(np.int64)
            for node, each in zip(nodes, words, strict=True)
        }
        total = np.zeros(1 << bits, object)
        for controls, times in counts:
            case = np.zeros(1 << bits, np.int64)
            for place, node in enumerate(controls):
                case += values[node] << place
            total += np.array([times.get(k, 0) for k in range(1 << len(controls))], object)[case]
        wrong = ((total - lane.scaling.factors) % (1 << width)).astype(bool) & lane.scaling.valid
        if wrong.any():
            first = int(np.argmax(wrong))
            raise NotShownError(f"the factor of lane {number} is wrong for scales {first:#x}")
        self._compared.add(key)


def _with_odd_products(lanes: Sequence[Lane]) -> list[Lane]:
    """Lanes with some odd products: a power of two that all have becomes one of the factors.

    Odd numbers have an inverse modulo powers of two.
    """
    places: dict[int, tuple[NDArray[Any], int]] = {}
    found = []
    for lane in lanes:
        if id(lane.products) not in places:
            either = int(np.bitwise_or.reduce(lane.products[lane.numbers]))
            place = max((either & -either).bit_length() - 1, 0)
            places[id(lane.products)] = lane.products >> place, place
        products, place = places[id(lane.products)]
        scaling = replace(lane.scaling, factors=lane.scaling.factors << place)
        found.append(replace(lane, products=products, scaling=scaling))
    return found


_Counts = tuple[tuple[int, ...], Mapping[int, int]]
"""Nodes of scales, and by their values how often a product counts."""
