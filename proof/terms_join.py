"""Sums of terms joined with an accumulator that is aligned with them afterwards, for all inputs.

A group of terms has a sum S under the exponent T of its terms, in units of 2^(T - f). The sums are
aligned to the largest T, in the same units, and added. Their sum is aligned with the accumulator to
the larger exponent L of the two, that of an accumulator of 0 included; n + 1 bits below L are kept
of the sum and f of the accumulator, which counts as 0 beyond its reach. All is dropped toward minus
infinity. A group without a term has the code 0 in place of T.

Source: docs/format.md, "Other accumulators".
"""

from functools import cached_property

from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.dot.joined import JoinGroups, JoinPlan, Overflows, joining_steps
from axs6.proof.cores import Core, Statement
from axs6.proof.relations import Numbers, conjunction, constant, defined, place, relation
from axs6.proof.rounding import PLACE
from axs6.proof.step_meaning import StepMeaning
from axs6.proof.step_part import SPECIAL, TermPart, kept, own_of, signed
from axs6.proof.term_distances import JoinedTotal

FAR = 64
"""Bits of numbers that are shifted: more than any of them has."""


def joined_sum(
    seconds: float,
    format: str = "fp8_e4m3",
    block: int | None = None,
    accumulator: str = "cdna3",
    view: str = STRUCTURE,
) -> dict[str, Statement]:
    """Statements about the sum of the terms of a step and the accumulator.

    Args:
        seconds: limit of each question. format, block, accumulator, view: as of a dot product.

    Raises:
        ValueError: as of `StepMeaning`, or there is no second alignment.
    """
    meaning = StepMeaning(format, block, accumulator, view)
    if meaning.defined.total_fraction is None:
        raise ValueError(f"{accumulator} aligns once, and this is about a second alignment")
    join = JoinPlan(meaning.align)
    compares, shifts, adds, *_ = joining_steps(join, skips=False)
    found: dict[str, Statement] = {}
    if meaning.align.plan.overflows:
        core = Core([Overflows(meaning.align)], seconds)
        large = LargeTerms(meaning, core, seconds)
        found["terms of 2^128 or more are infinite"] = relation(core, large.show, large.holds)
    core = Core([JoinGroups(join)], seconds)
    groups = GroupSums(meaning, core, seconds)
    found["sums of groups are aligned to the largest exponent, and added"] = relation(
        core, groups.show, groups.holds
    )
    core = Core([compares], seconds)
    both = SecondDistances(meaning, core, seconds)
    found["sum and accumulator have their distances to the larger exponent, and a reach"] = (
        relation(core, both.show, both.holds)
    )
    found["NaN and infinities are those of terms and accumulator by IEEE 754"] = relation(
        core, both.show_special, both.is_special
    )
    core = Core([shifts], seconds)
    cut = SecondCut(meaning, core, seconds)
    found["what is below is dropped toward minus infinity"] = relation(core, cut.show, cut.holds)
    core = Core([adds], seconds)
    total = SecondSum(meaning, core, seconds)
    found["the sum is that of both"] = relation(core, total.show, total.holds)
    return found


def wide(name: str, width: int) -> str:
    """A number in two's complement, in `FAR` bits."""
    return f"((_ sign_extend {FAR - width}) {name})"


class LargeTerms(TermPart):
    """Terms that are too large to be numbers."""

    @property
    def _terms(self) -> list[tuple[str, str, int]]:
        """Names of terms and of the scales of each, and bits of a magnitude."""
        plan = self.meaning.align.plan
        bits = self.words.inputs["values0"].width - 1
        return [(f"{k}", f"scales{k // plan.cluster}", bits) for k in range(plan.count)]

    def show(self) -> None:
        """Show what is special, and that the rest passes through."""
        self.show_passed("values", "codes", "scales")
        meaning, words = self.meaning, self.words
        lines, plus, minus = [], [], []
        for term, scale, bits in self._terms:
            code, at = words.wide(f"codes{term}"), words.wide(scale)
            number, magnitude = f"values{term}", f"((_ extract {bits - 1} 0) values{term})"
            negative = f"(= ((_ extract {bits} {bits}) {number}) #b1)"
            if not meaning.toward_zero:
                magnitude = f"(ite {negative} (bvneg {magnitude}) {magnitude})"
            offset = constant(meaning.unit - int(meaning.toward_zero) - 128)
            lines.append((f"far{term}", place(), f"(bvadd {code} {at} {offset})"))
            large = [
                f"(and (= ((_ extract {k} {k}) {magnitude}) #b1) (bvsge far{term} {constant(-k)}))"
                for k in range(bits)
            ]
            lines.append((f"large{term}", "Bool", f"(or {' '.join(large)})"))
            plus.append(f"(and large{term} (not {negative}))")
            minus.append(f"(and large{term} {negative})")
        nan, infinite, sign = (words.bit(x) for x in SPECIAL)
        definitions = defined(
            *lines,
            ("plus", "Bool", f"(or {' '.join(plus)} (and {infinite} (not {sign})))"),
            ("minus", "Bool", f"(or {' '.join(minus)} (and {infinite} {sign}))"),
            ("is_nan", "Bool", f"(or {nan} (and plus minus))"),
        )
        right = f"""(and (= {words.bit("new_nan")} is_nan) (=> (not is_nan)
  (and (= {words.bit("new_infinite")} (or plus minus))
       (=> (or plus minus) (= {words.bit("new_negative")} minus)))))"""
        words.show(SPECIAL, right, definitions, seconds=self.seconds)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        meaning, signs = self.meaning, set()
        for term, scale, bits in self._terms:
            value = given[f"values{term}"]
            negative = value >> bits
            magnitude = value & (1 << bits) - 1
            if not meaning.toward_zero:
                magnitude = abs(signed(value, bits + 1))
            fields = given.get(f"codes{term}", 0) + given.get(scale, 0)
            high = magnitude.bit_length() + fields + meaning.unit - int(meaning.toward_zero)
            if magnitude and high > 128:
                signs.add(negative)
        nan, infinite, sign = (given.get(x, 0) for x in SPECIAL)
        if infinite:
            signs.add(sign)
        is_nan = bool(nan) or len(signs) == 2
        if not kept(given, found, "", "values", "codes", "scales"):
            return False
        if is_nan or found["nan"]:
            return is_nan == bool(found["nan"])
        same = not signs or found["negative"] in signs
        return bool(found["infinite"]) == bool(signs) and same


class GroupSums(TermPart):
    """The sums of groups on one exponent."""

    @property
    def _groups(self) -> list[str]:
        return [f"g{k}" for k in range(self.meaning.defined.groups)]

    def show(self) -> None:
        """Show exponent and sum, and that what is special passes through."""
        words = self.words
        words.show_passed({name: f"g0.{name}" for name in SPECIAL})
        tops = [words.wide(f"{x}.top") for x in self._groups]
        above = [f"(bvuge {words.wide('new_top')} {x})" for x in tops]
        one = [f"(= {words.wide('new_top')} {x})" for x in tops]
        parts = []
        for group, top in zip(self._groups, tops, strict=True):
            number = wide(f"{group}.sum", words.inputs[f"{group}.sum"].width)
            far = f"(bvsub {words.wide('new_top')} {top})"
            shift = f"((_ zero_extend {FAR - PLACE}) {far})"
            parts.append(f"(bvashr {number} {shift})")
        total = parts[0] if len(parts) == 1 else f"(bvadd {' '.join(parts)})"
        found = wide("new_sum", words.outputs["sum"].width)
        right = conjunction(*above, f"(or false {' '.join(one)})", f"(= {found} {total})")
        words.show(["top", "sum"], right, seconds=self.seconds)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        tops = [given.get(f"{x}.top", 0) for x in self._groups]
        top = max(tops)
        total = sum(
            signed(given[f"{x}.sum"], self.words.inputs[f"{x}.sum"].width) >> top - own
            for x, own in zip(self._groups, tops, strict=True)
        )
        same = all(found[x] == given[f"g0.{x}"] for x in SPECIAL)
        width = self.words.outputs["sum"].width
        return same and found.get("top", 0) == top and signed(found["sum"], width) == total


class SecondDistances(JoinedTotal):
    """The exponents of the sum and of the accumulator."""

    def show(self) -> None:
        """Show the larger one, the distances to it, and whether the accumulator is in reach."""
        self.meaning.check_codes()
        self.show_passed("sum")
        words, reach = self.words, self.meaning.defined.reach
        high = words.inputs["total"].width - 1
        limits = {x: constant(self.limit(x)) for x in ("below", "own_below")}
        definitions = self._definitions + defined(
            ("larger", place(), "(ite (bvsgt own before) own before)"),
            ("far", place(), "(bvsub larger before)"),
            ("own_far", place(), "(bvsub larger own)"),
        )
        reached = "true" if reach is None else f"(bvule own_far {constant(reach)})"
        right = f"""(=> (and given finite) (and
  (= {words.wide("new_top")} larger) (= new_significand (concat normal fraction))
  (= new_sign ((_ extract {high} {high}) total)) (= {words.bit("new_reached")} {reached})
  (=> (distinct before {constant(0)}) (= {words.wide("new_below")}
    (ite (bvult far {limits["below"]}) far {limits["below"]})))
  (= {words.wide("new_own_below")}
    (ite (bvult own_far {limits["own_below"]}) own_far {limits["own_below"]}))))"""
        names = ["top", "significand", "sign", "reached", "below", "own_below"]
        words.show(names, right, definitions, seconds=self.seconds)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        meaning, total = self.meaning, given["total"]
        field, significand, own = own_of(meaning, total)
        before = given.get("term.top", 0)
        if not kept(given, found, self.prefix, "sum"):
            return False
        if field == 2**meaning.output.exponent_bits - 1 or before > meaning.most_terms:
            return True
        top, reach = max(own, before), meaning.defined.reach
        return (
            (found.get("top", 0), found["significand"]) == (top, significand)
            and found["sign"]
            == total >> meaning.output.exponent_bits + meaning.output.fraction_bits
            and bool(found["reached"]) == (reach is None or top - own <= reach)
            and (not before or found["below"] == min(top - before, self.limit("below")))
            and found["own_below"] == min(top - own, self.limit("own_below"))
        )


class SecondCut(TermPart):
    """What is left of the sum and the accumulator on one exponent."""

    @property
    def _ups(self) -> tuple[int, int]:
        """Places that the sum, and before it is cut the accumulator, move up."""
        meaning = self.meaning
        assert meaning.defined.total_fraction is not None
        return (
            meaning.defined.total_fraction + 1 - meaning.fraction,
            meaning.fraction - meaning.output.fraction_bits,
        )

    def show(self) -> None:
        """Show both, and that the rest passes through."""
        self.show_passed("top", *SPECIAL)
        words, (up, own_up) = self.words, self._ups
        number = wide("sum", words.inputs["sum"].width)
        bits = words.inputs["significand"].width
        own = f"((_ zero_extend {FAR - bits}) significand)"
        own = f"(ite (= sign #b1) (bvneg {own}) {own})"

        def moved(value: str, first: int, distance: str) -> str:
            size = words.inputs[distance].width
            value = f"(bvshl {value} {constant(first, FAR)})"
            far = f"((_ zero_extend {FAR - size}) {distance})"
            gone = f"(= {distance} {constant(-1, size)})"
            return f"(bvashr {value} (ite {gone} {constant(FAR - 1, FAR)} {far}))"

        own = f"(bvshl {moved(own, own_up, 'own_below')} {constant(up, FAR)})"
        own = f"(ite {words.bit('reached')} {own} {constant(0, FAR)})"
        sums = wide("new_sum", words.outputs["sum"].width)
        owns = wide("new_own", words.outputs["own"].width)
        right = f"(and (= {sums} {moved(number, up, 'below')}) (= {owns} {own}))"
        words.show(["sum", "own"], right, seconds=self.seconds)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        words, (up, own_up) = self.words, self._ups

        def moved(value: int, first: int, distance: str) -> int:
            last = (1 << words.inputs[distance].width) - 1
            return (value << first) >> (FAR if given[distance] == last else given[distance])

        own = -given["significand"] if given["sign"] else given["significand"]
        own = moved(own, own_up, "own_below") << up if given["reached"] else 0
        total = moved(signed(given["sum"], words.inputs["sum"].width), up, "below")
        outputs = (signed(found[x], words.outputs[x].width) for x in ("sum", "own"))
        return (*outputs,) == (total, own) and kept(given, found, "", "top", *SPECIAL)


class SecondSum(TermPart):
    """The sum of both."""

    @cached_property
    def most(self) -> int:
        """No sum of terms has a larger magnitude here."""
        return most_joined(self.meaning)

    def show(self) -> None:
        """Show it for sums that terms can have, and that the rest passes through."""
        self.show_passed("top", *SPECIAL)
        words = self.words
        total = wide("sum", words.inputs["sum"].width)
        own = wide("own", words.inputs["own"].width)
        given = conjunction(
            f"(bvsle {total} {constant(self.most, FAR)})",
            f"(bvsge {total} {constant(-self.most, FAR)})",
        )
        found = wide("new_sum", words.outputs["sum"].width)
        right = f"(=> {given} (= {found} (bvadd {total} {own})))"
        words.show(["sum"], right, seconds=self.seconds)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        total, own = (signed(given[x], self.words.inputs[x].width) for x in ("sum", "own"))
        width = self.words.outputs["sum"].width
        right = abs(total) > self.most or signed(found["sum"], width) == total + own
        return right and kept(given, found, "", "top", *SPECIAL)


def most_joined(meaning: StepMeaning) -> int:
    """The largest magnitude of a sum of terms, before the accumulator is added."""
    assert meaning.defined.total_fraction is not None
    up, groups = meaning.fraction - meaning.point, meaning.defined.groups
    term = meaning.bound << up if up > 0 else meaning.bound >> -up
    terms = meaning.lanes // meaning.size * (term + (not meaning.toward_zero))
    return terms + groups << meaning.defined.total_fraction + 1 - meaning.fraction
