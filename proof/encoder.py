"""The encoder held against the definitions of its formats, for all blocks of values.

The block's largest value decides its exponent, and the largest of a group its shift. So each of
these maxima is assumed in turn: that all lanes of a group are at most a magnitude, and some lane
has it. Nodes that depend on several lanes then become constant: a conjunction of functions of one
lane each is 1 if each of these is 1 for all values that the lane may have, and 0 if each is 0 for
the values of which some lane has one. What is left of a lane's code is a function of its value
alone, and is compared with the definition for all of them.

That nodes become constant, and lanes are alike, is read from the graph; nothing is believed of the
generator. Magnitudes with one exponent by definition and one power of two go together (`Rank`).

Source: docs/formats.md, "Encoding"; docs/format.md for AXS-6.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from axs6.golden.check.exact import floats
from axs6.golden.check.exact.formats import Exponent, Shift
from axs6.golden.check.subjects import definition_of
from axs6.golden.formats import BlockFormat, Float
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.hw.core.layouts import Field, scale_names
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.units.encoder import ENCODER, encoded_format
from axs6.hw.verilog import generate
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.cases import cases_of, counting, words_of
from axs6.proof.encoder_rules import EncoderRules, Group
from axs6.proof.equivalence import compare
from axs6.proof.netlists import verilog_design
from axs6.proof.one_value import OneValue, Ranges
from axs6.proof.steps import NotShownError, Proof, Steps, Subject, show_passed

DTYPES = {"fp32": floats.FP32, "bf16": floats.BF16, "fp16": floats.FP16}

CASE_BITS = 20
"""Functions of lanes, at most, of which all values are tried."""


class EncoderProof:
    """Holds the graph of an encoder without registers against the definition.

    Args:
        graph: of the design. fmt: the format, with blocks of the right size. dtype: of the values.
        rounding: "nearest" or "toward_zero". inputs, outputs: fields of the payloads.

    Raises:
        ValueError: scales of the format are not an exponent of the block and shifts.
    """

    def __init__(
        self,
        graph: Graph,
        fmt: BlockFormat,
        dtype: Float,
        rounding: str,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
    ) -> None:
        self._graph = graph
        definition = definition_of(fmt)
        exponent, *shifts = definition.levels[::-1]
        if not isinstance(exponent, Exponent) or exponent.group != fmt.block:
            raise ValueError(f"a proof of an encoder is of blocks with an exponent, unlike {fmt}")
        if not all(isinstance(level, Shift) for level in shifts):
            raise ValueError(f"a proof of an encoder is of an exponent and shifts, unlike {fmt}")
        self._rules = EncoderRules(definition, DTYPES[dtype.name], rounding)
        self._shifts = [level for level in shifts if isinstance(level, Shift)]
        self._levels = definition.levels[::-1]
        (values,) = inputs
        self._lanes = [
            graph.bus("i_payload", values.offset + k * values.width, values.width)
            for k in range(values.count)
        ]
        self._fields = {field.name.removeprefix("block."): field for field in outputs}
        self._scales = scale_names(fmt)
        self._value = OneValue(graph, self._lanes[0], DTYPES[dtype.name])
        kinds = {bit >> 1: 1 << len(self._lanes) for bit in graph.inputs.values()}
        kinds |= {bit >> 1: 1 << k for k, lane in enumerate(self._lanes) for bit in lane}
        self._supports = graph.supports(kinds)
        self._checked: set[object] = set()
        self._solved: dict[tuple[int, Group], bool] = {}

    def steps(self) -> Steps:
        """What is to be shown, by name."""
        return {
            "ready and valid pass through": lambda: show_passed(self._graph),
            "invalid says that a value is NaN or infinite": self._show_invalid,
            "scales and codes are those of the values": self._show_blocks,
        }

    def _bus(self, name: str, index: int = 0) -> list[int]:
        field = self._fields[name]
        return self._graph.bus("o_payload", field.offset + index * field.width, field.width)

    def _support(self, literal: int) -> int:
        """The lanes that a literal depends on, as bits; the bit after these for other inputs."""
        for node in range(len(self._supports), len(self._graph)):
            pair = self._graph.operands(node)
            assert pair is not None
            self._supports.append(self._supports[pair[0] >> 1] | self._supports[pair[1] >> 1])
        return self._supports[literal >> 1]

    def _show_invalid(self) -> None:
        (valid,) = self._bus("invalid")
        parts = self._by_lane(valid ^ 1)
        if parts is None or len(parts) != len(self._lanes):
            raise NotShownError("invalid does not depend on each lane by itself")
        special, number = self._rules.special, self._rules.finite
        for each in parts.values():
            if not (self._value.holds(each, number) and self._value.holds(each ^ 1, special)):
                raise NotShownError("invalid is not that a value is NaN or infinite")

    def _by_lane(self, literal: int) -> dict[int, int] | None:
        """Functions of one lane each, as of lane 0, of which a literal is the conjunction.

        None if it is no such conjunction.
        """
        parts: dict[int, list[int]] = {}
        left = [literal]
        while left:
            each = left.pop()
            support = self._support(each)
            if support >> len(self._lanes):
                return None
            if support & support - 1:
                pair = None if each & 1 else self._graph.operands(each >> 1)
                if pair is None:
                    return None
                left += pair
            else:
                parts.setdefault(support.bit_length() - 1, []).append(each)
        return {
            lane: self._as_of_first(range(lane, lane + 1), [self._graph.all(each)])[0]
            for lane, each in parts.items()
        }

    def _as_of_first(self, lanes: range, literals: Sequence[int]) -> list[int]:
        """Functions of some lanes as those of the first ones."""
        if not lanes.start:
            return list(literals)
        new = {
            bit: first
            for lane, to in zip(lanes, self._lanes, strict=False)
            for bit, first in zip(self._lanes[lane], to, strict=True)
        }
        return self._graph.cofactor(literals, new)

    def _settled(
        self, literals: Sequence[int], lanes: range, group: Group, known: Mapping[int, int]
    ) -> list[int]:
        """Literals with constants for what a group's values decide.

        Args:
            literals: any. lanes: of the group. group: what is assumed of them. known: constants
            that stand for nodes.
        """
        new = dict(known)
        mask = _mask(lanes)

        def at(literal: int) -> int:
            return new.get(literal >> 1, literal & ~1) ^ (literal & 1)

        cone = self._graph.cone(literals, known)
        whole = [x for x in cone if len(lanes) > 1 and self._support(2 * x) == mask]
        seen = dict(zip(whole, self._seen(whole, lanes, group), strict=True))
        for node in cone:
            support = self._support(2 * node)
            if support & support - 1:
                pair = self._graph.operands(node)
                assert pair is not None
                new[node] = self._graph.both(*map(at, pair))
                value = seen[node] if self._support(new[node]) == mask else None
                if value is not None and self._is(new[node] ^ value ^ 1, lanes, group):
                    new[node] = value
        return [at(each) for each in literals]

    def _seen(self, nodes: Sequence[int], lanes: range, group: Group) -> Iterator[int | None]:
        """The value of each node in many blocks with a group's values; None where it varies."""
        given = {}
        for lane, values in zip(lanes, self._rules.samples(group, len(lanes)), strict=True):
            for place, bit in enumerate(self._lanes[lane]):
                ones = (values >> np.uint32(place) & np.uint32(1)).astype(np.uint8)
                given[bit] = words_of(ones)
        for words in self._graph.values([2 * node for node in nodes], given) if nodes else ():
            yield FALSE if not words.any() else TRUE if not (~words).any() else None

    def _is(self, literal: int, lanes: range, group: Group) -> bool:
        """Whether a literal is 1 for all values of a group; False if others decide it too."""
        if self._support(literal) & ~_mask(lanes):
            return False
        holds = self._value.holds
        for each in (literal, literal ^ 1):
            parts = None if each & 1 else self._by_lane(each)
            if parts is None:
                continue
            functions = set(parts.values())
            if each == literal:
                return all(holds(x, group.all) for x in functions)
            return len(parts) == len(lanes) and any(
                all(holds(x ^ 1, some) for x in functions) for some in (*group.some, group.all)
            )
        return self._is_by_cases(self._as_of_first(lanes, [literal])[0], len(lanes), group)

    def _is_by_cases(self, literal: int, lanes: int, group: Group) -> bool:
        """The same for a function of the first lanes, through few functions of one lane each."""
        key = literal, group
        if key not in self._solved:
            parts = self._functions(literal)
            given, cases = [], 1
            for functions in parts.values():
                given += functions
                cases <<= len(functions)
            if len(parts) != lanes or cases > 1 << CASE_BITS:
                return False
            right = cases_of(self._graph.values([literal], counting(given))[0], len(given))
            may = self._cases(parts, group.all, all_of=True)
            for some in group.some:
                may &= self._cases(parts, some, all_of=False)
            self._solved[key] = bool(right[may].all())
        return self._solved[key]

    def _functions(self, literal: int) -> dict[int, list[int]]:
        """The functions of one lane each through which a literal depends on lanes."""
        found: dict[int, set[int]] = defaultdict(set)
        several = {
            node
            for node in self._graph.cone([literal])
            if (support := self._support(2 * node)) & support - 1
        }
        for node in several:
            for each in self._graph.operands(node) or ():
                if each >> 1 not in several:
                    found[self._support(each).bit_length() - 1].add(each & ~1)
        return {lane: sorted(each) for lane, each in sorted(found.items())}

    def _cases(
        self, parts: Mapping[int, Sequence[int]], magnitudes: Ranges, *, all_of: bool
    ) -> NDArray[np.bool_]:
        """For all values of functions of lanes: whether all lanes, or one, may have them."""
        bits = sum(map(len, parts.values()))
        cases, start = np.arange(1 << bits), 0
        found = np.full(1 << bits, all_of)
        for lane, functions in parts.items():
            known = tuple(self._as_of_first(range(lane, lane + 1), functions))
            mine = np.isin(
                cases >> start & (1 << len(known)) - 1, [*self._value.numbers(known, magnitudes)]
            )
            found = found & mine if all_of else found | mine
            start += len(known)
        return found

    def _show_blocks(self) -> None:
        count = len(self._lanes)
        lanes = range(count)
        scales = [
            [self._bus(name, k) for k in range(count // int(level.group))]
            for name, level in zip(self._scales, self._levels, strict=True)
        ]
        codes = [self._bus("codes", k) for k in lanes]
        for code, group in self._rules.blocks(len(scales) > 1):
            ((exponent,), *finer), new = self._settled_words(scales, codes, lanes, group, {})
            if exponent != [code >> k & 1 for k in range(len(exponent))]:
                raise NotShownError(f"the exponent is not {code}")
            self._show_group(lanes, group, finer, new)

    def _settled_words(
        self,
        scales: Sequence[Sequence[Sequence[int]]],
        codes: Sequence[Sequence[int]],
        lanes: range,
        group: Group,
        known: Mapping[int, int],
    ) -> tuple[list[list[list[int]]], list[list[int]]]:
        """The same for the scales of some levels and for codes."""
        words = [each for level in (*scales, codes) for each in level]
        settled = self._settled([x for each in words for x in each], lanes, group, known)
        bits = iter(settled)
        *levels, new = [
            [[next(bits) for _ in each] for each in level] for level in (*scales, codes)
        ]
        return levels, new

    def _show_group(
        self,
        lanes: range,
        above: Group,
        finer: Sequence[Sequence[list[int]]],
        codes: Sequence[list[int]],
    ) -> None:
        """Show scales within a group, and its codes.

        Args:
            lanes: of the group. above: what is assumed of it. finer: for each finer level the
            scales, and codes, as literals under that.
        """
        if not finer:
            for lane, literals in zip(lanes, codes, strict=True):
                self._show_lane(lane, above, literals)
            return
        level = self._shifts[-len(finer)]
        size = int(level.group)
        for number, start in enumerate(range(0, len(lanes), size)):
            within = lanes[start : start + size]
            inner = [
                each[start * len(each) // len(lanes) : (start + size) * len(each) // len(lanes)]
                for each in finer[1:]
            ]
            mine = codes[start : start + size]
            words = [finer[0][number], *(x for each in inner for x in each), *mine]
            alike = self._alike(within, above, words)
            if alike in self._checked:
                continue
            for code, group in self._rules.groups(level, above, len(finer) > 1):
                known = self._shown(finer[0][number], code, within, group)
                settled = self._settled_words(inner, mine, within, group, known)
                self._show_group(within, group, *settled)
            self._checked.add(alike)

    def _alike(self, lanes: range, above: Group, words: Sequence[Sequence[int]]) -> object:
        """Equal for groups whose scales and codes are the same functions of their own lanes."""
        literals = [x for each in words for x in each]
        if any(self._support(x) & ~_mask(lanes) for x in literals):
            return lanes, above, tuple(literals)
        lengths = tuple(map(len, words))
        return above, lengths, tuple(self._as_of_first(lanes, literals))

    def _shown(self, shift: Sequence[int], code: int, lanes: range, group: Group) -> dict[int, int]:
        """The nodes of a shift with their values, if its code is shown to be a number."""
        for place, literal in enumerate(shift):
            equal = literal ^ 1 ^ (code >> place & 1)
            if equal != TRUE and not self._is(equal, lanes, group):
                raise NotShownError(f"a shift is not {code}")
        return {x >> 1: code >> k & 1 ^ x & 1 for k, x in enumerate(shift) if x > TRUE}

    def _show_lane(self, lane: int, group: Group, literals: Sequence[int]) -> None:
        """Show that a code is right for all values that a lane may have."""
        if any(self._support(each) & ~(1 << lane) for each in literals):
            raise NotShownError(f"the code of lane {lane} depends on others beside their scales")
        code = tuple(self._as_of_first(range(lane, lane + 1), literals))
        if (code, group) in self._checked:
            return
        rows = self._value.by_field(code)
        fields = len(rows) // 2
        for sign in (0, 1):
            for field, parts in self._rules.by_field(group, sign).items():
                self._show_field(rows[sign * fields + field], parts, lane)
        self._checked.add((code, group))

    def _show_field(
        self, code: tuple[int, ...], parts: tuple[tuple[int, int, int], ...], lane: int
    ) -> None:
        """Show a function of the fraction: from and to which fraction it gives which code."""
        if (code, parts) in self._checked:
            return
        if max(code) <= TRUE:
            number = sum(bit << k for k, bit in enumerate(code))
            right = {each for _, _, each in parts} == {number}
        else:
            found = self._value.codes(code)
            right = all(bool((found[a:b] == each).all()) for a, b, each in parts)
        if not right:
            raise NotShownError(f"the code of lane {lane} is wrong")
        self._checked.add((code, parts))


def _mask(lanes: range) -> int:
    """Lanes as bits."""
    return (1 << lanes.stop) - (1 << lanes.start)


def encoder_proof(of: Subject) -> Proof:
    """The proof about a design that is to be an encoder; see `Specification`."""
    settings = of.settings
    if settings["mode"] != "dense" or settings["rounding"] == "stochastic":
        raise ValueError(
            f"a proof of an encoder is of dense blocks, to nearest or toward zero, not "
            f"{settings['mode']} and {settings['rounding']}"
        )
    fmt, dtype = encoded_format(settings), INPUT_DTYPES[settings["dtype"]]

    def proof(graph: Graph) -> Proof:
        return EncoderProof(graph, fmt, dtype, settings["rounding"], of.inputs, of.outputs)

    return BehaviourProof(of, proof) if settings["view"] == BEHAVIOUR else proof(of.graph)


class BehaviourProof:
    """Holds a behaviour view against the definition, or else against a structure view that is.

    Args:
        of: the design. proof: that of a graph.

    Raises:
        ValueError: as `proof`.
    """

    def __init__(self, of: Subject, proof: Callable[[Graph], Proof]) -> None:
        self._of, self._proof = of, proof
        self._own = proof(of.graph)

    def steps(self) -> Steps:
        """What is to be shown, by name."""
        return {text: partial(self._show, text, step) for text, step in self._own.steps().items()}

    def _show(self, text: str, step: Callable[[], None]) -> None:
        try:
            step()
        except NotShownError as error:
            made = generate(ENCODER.name, **{**self._of.settings, "view": STRUCTURE})
            other = verilog_design(made.verilog, made.module, seconds=self._of.seconds).graph
            self._proof(other).steps()[text]()
            if not compare(self._of.graph, other, seconds=self._of.seconds, ways=()).equal:
                raise error
