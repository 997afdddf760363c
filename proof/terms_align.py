"""Terms of a step aligned to the largest exponent, cut, and added, for all inputs.

The sum S and the exponent T that a step gives are held to this definition: T is the largest of the
exponents of its terms that count, of the accumulator's if that is one of them, and of `least`; each
of these is cut to multiples of 2^(T - f), toward zero or toward minus infinity; and S * 2^(T - f)
is their sum. Where no term counts, and so the sum is the accumulator alone, T may be below `least`:
a total is a multiple of 2^(`least` - f), of which nothing is cut then.

Source: docs/format.md, "Other accumulators".
"""

from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Step
from axs6.hw.dot.align import AlignTerms, distance_steps
from axs6.hw.dot.aligned_sum import sum_steps
from axs6.hw.dot.fused import fused_steps
from axs6.hw.fp32.normalise import normalising_steps
from axs6.proof.adders import Adders, Form
from axs6.proof.cores import Core, Statement
from axs6.proof.relations import (
    Numbered,
    Numbers,
    conjunction,
    constant,
    defined,
    disjunction,
    place,
    relation,
)
from axs6.proof.rounding import PLACE
from axs6.proof.step_meaning import StepMeaning
from axs6.proof.steps import NotShownError

SPECIAL = ("nan", "infinite", "negative")
"""Fields of what is no number."""


def steps_of(meaning: StepMeaning) -> list[list[Step]]:
    """The generator's steps by the statement about them: distances, those with the accumulator,
    shifts, the sum, and its rounding."""
    align, view = meaning.align, meaning.view
    if align.fused:
        loop = fused_steps(align, view)
        last = len(loop) - len(normalising_steps(align.wide))
        return [distance_steps(align), loop[:3], loop[3:4], loop[4:last], loop[last:]]
    shift: list[Step] = [AlignTerms(align, view)]
    rounds = normalising_steps(align.wide)
    return [distance_steps(align), [], shift, sum_steps(align, view), rounds]


def alignment(
    seconds: float,
    format: str = "fp8_e4m3",
    block: int | None = None,
    accumulator: str = "hopper",
    view: str = STRUCTURE,
) -> dict[str, Statement]:
    """Statements about the aligned sum of a step.

    Args:
        seconds: limit of each question. format, block, accumulator, view: as of a dot product.

    Raises:
        ValueError: as of `StepMeaning`, or the sum is aligned with the accumulator afterwards.
    """
    meaning = StepMeaning(format, block, accumulator, view)
    if meaning.defined.total_fraction is not None:
        raise ValueError(f"{accumulator} aligns twice, and this is about one alignment")
    first, joined, shift, added, _ = (Core(x, seconds) if x else None for x in steps_of(meaning))
    assert first is not None
    assert shift is not None
    assert added is not None
    found: dict[str, Statement] = {}
    claims = Distances(meaning, first, seconds)
    found["the largest exponent of a step is that of its terms that count, or the least"] = (
        relation(first, claims.show_largest, claims.is_largest)
    )
    found["each term has its distance to the largest exponent"] = relation(
        first, claims.show_distances, claims.are_distances
    )
    if joined is not None:
        both = Joined(meaning, joined, seconds)
        found["the accumulator and the terms have their distances to the larger exponent"] = (
            relation(joined, both.show, both.holds)
        )
        found["NaN and infinities are those of terms and accumulator by IEEE 754"] = relation(
            joined, both.show_special, both.is_special
        )
    cut = Cut(meaning, shift, seconds)
    toward = "zero" if meaning.toward_zero else "minus infinity"
    found[f"everything below {meaning.fraction} bits is dropped toward {toward}"] = relation(
        shift, cut.show, cut.holds
    )
    total = Added(meaning, added)
    found["the sum is that of all that is aligned"] = relation(added, total.show, total.holds)
    return found


class _Part:
    """Statements about some steps.

    Args:
        meaning: of their fields. core: the steps. seconds: limit of a question.
    """

    prefix = ""
    """Of the names of terms in the input."""

    def __init__(self, meaning: StepMeaning, core: Core, seconds: float = 600) -> None:
        self._meaning, self._core, self._seconds = meaning, core, seconds

    @property
    def _words(self) -> Numbered:
        return Numbered(self._core)

    @property
    def _count(self) -> int:
        return self._meaning.lanes // self._meaning.size

    def _passed(self, *names: str) -> None:
        """Show that fields pass through."""
        words = self._words
        inputs = {x: f"{self.prefix}{x}" for x in words.outputs}
        words.show_passed({x: inputs[x] for x in words.outputs if x.rstrip("0123456789") in names})

    def _limit(self, name: str) -> int:
        """The largest distance, which stands for all above it."""
        words = self._words
        return (1 << words.outputs[name].width) - 1 if name in words.outputs else 0


class Distances(_Part):
    """The largest exponent of terms, and their distances to it."""

    def _cluster(self, term: int) -> int:
        clusters = sum(x.startswith("scales") for x in self._words.inputs) or 1
        return term * clusters // self._count

    def _counts(self, term: int) -> str:
        name = f"codes{term}"
        if not self._meaning.toward_zero:
            return "true"
        return f"(distinct {self._words.wide(name)} {constant(0)})"

    @property
    def _definitions(self) -> str:
        """`e0` and so on: exponents of terms as codes; `given`: they are those of numbers."""
        meaning, words = self._meaning, self._words
        gated = int(meaning.toward_zero)
        lines, given = [], []
        for term in range(self._count):
            code, scale = words.wide(f"codes{term}"), words.wide(f"scales{self._cluster(term)}")
            offset = constant(meaning.term_code - gated)
            lines.append((f"e{term}", place(), f"(bvadd {code} {scale} {offset})"))
            given.append(f"(bvule {code} {constant(meaning.most_fields + gated)})")
            given.append(f"(bvule {scale} {constant(meaning.most_scales)})")
        counts = [self._counts(term) for term in range(self._count)]
        return defined(
            *lines,
            ("given", "Bool", conjunction(*dict.fromkeys(given))),
            ("some", "Bool", disjunction(*counts)),
            ("least", place(), constant(max(meaning.least_code, 0))),
            ("top", place(), words.wide("new_top")),
        )

    def show_largest(self) -> None:
        """Show that `top` is none below an exponent that counts, and one of them."""
        self._meaning.check_codes()
        definitions, terms = self._definitions, range(self._count)
        above = [f"(=> {self._counts(k)} (bvsge top e{k}))" for k in terms]
        one = [f"(and {self._counts(k)} (= top e{k}))" for k in terms]
        alone = f"(or (= top {constant(0)}) (= top least))"
        known = conjunction("(bvsge top least)", *above, disjunction("(= top least)", *one))
        right = f"(=> given (ite some {known} {alone}))"
        self._words.show(["top"], right, definitions, seconds=self._seconds)

    def is_largest(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        exponents = self._exponents(given)
        if exponents is None:
            return True
        known = [x for x in exponents if x is not None]
        least = max(self._meaning.least_code, 0)
        top = found.get("top", 0)
        return top == max([*known, least]) if known else top in (0, least)

    def show_distances(self) -> None:
        """Show the distance of each term, and that the terms and what is special pass through."""
        self._passed("values", *SPECIAL)
        definitions = self._definitions
        for term in range(self._count):
            name = f"distances{term}"
            limit = constant(self._limit(name))
            right = f"""(=> (and given {self._counts(term)})
  (let ((far (bvsub top e{term}))) (= {self._words.wide(f"new_{name}")}
    (ite (bvult far {limit}) far {limit}))))"""
            self._words.show(["top", name], right, definitions, seconds=self._seconds)

    def are_distances(self, given: Numbers, found: Numbers) -> bool:
        """Whether they are for numbers."""
        exponents = self._exponents(given) or []
        return _kept(given, found, self.prefix, "values", *SPECIAL) and all(
            found.get(f"distances{k}", 0)
            == min(found.get("top", 0) - exponent, self._limit(f"distances{k}"))
            for k, exponent in enumerate(exponents)
            if exponent is not None
        )

    def _exponents(self, given: Numbers) -> list[int | None] | None:
        """Codes of exponents; none of what does not count, and none where they are impossible."""
        meaning, gated = self._meaning, int(self._meaning.toward_zero)
        found: list[int | None] = []
        for term in range(self._count):
            code = given.get(f"codes{term}", 0)
            scale = given.get(f"scales{self._cluster(term)}", 0)
            if code > meaning.most_fields + gated or scale > meaning.most_scales:
                return None
            counts = code or not gated
            found.append(code - gated + scale + meaning.term_code if counts else None)
        return found


class Joined(_Part):
    """The accumulator among the terms."""

    prefix = "term."

    @property
    def _definitions(self) -> str:
        """`own`: the code of the accumulator's exponent; `top`: the larger one."""
        meaning, words = self._meaning, self._words
        e, f = meaning.output.exponent_bits, meaning.output.fraction_bits
        low = constant(0, e)
        some = f"(distinct ((_ extract {e + f - 1} 0) total) {constant(0, e + f)})"
        counts = some if meaning.toward_zero else "true"
        field = f"(ite (= field {low}) {constant(1)} ((_ zero_extend {PLACE - e}) field))"
        before = words.wide("term.top")
        return defined(
            ("field", place(e), f"((_ extract {f + e - 1} {f}) total)"),
            ("fraction", place(f), f"((_ extract {f - 1} 0) total)"),
            ("finite", "Bool", f"(distinct field {constant(-1, e)})"),
            ("normal", place(1), f"(ite (= field {low}) #b0 #b1)"),
            ("counts", "Bool", counts),
            ("own", place(), f"(bvadd {field} {constant(meaning.own_code)})"),
            ("before", place(), before),
            ("given", "Bool", f"(bvule before {constant(max(meaning.most_terms, 0))})"),
            ("top", place(), "(ite (and counts (bvsgt own before)) own before)"),
        ) + is_multiple(meaning, "total")

    def show(self) -> None:
        """Show the larger exponent, and each distance to it."""
        self._passed("values")
        words, definitions = self._words, self._definitions
        condition = "(and given finite (multiple total))"
        least = constant(self._limit("own_distance"))
        high = words.inputs["total"].width - 1
        sign = f"((_ extract {high} {high}) total)"
        right = f"""(=> {condition} (and (= {words.wide("new_top")} top)
  (= new_significand (concat normal fraction))
  (= new_sign {sign})
  (=> counts (let ((far (bvsub top own))) (= {words.wide("new_own_distance")}
    (ite (bvult far {least}) far {least}))))))"""
        names = ["top", "own_distance", "significand", "sign"]
        words.show(names, right, definitions, seconds=self._seconds)
        for term in range(self._count):
            name = f"distances{term}"
            limit = constant(self._limit(name))
            right = f"""(=> {condition}
  (let ((far (bvadd {words.wide(f"term.{name}")} (bvsub top before))))
  (= {words.wide(f"new_{name}")} (ite (bvult far {limit}) far {limit}))))"""
            words.show([name], right, definitions, seconds=self._seconds)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        meaning, total = self._meaning, given["total"]
        if not _kept(given, found, self.prefix, "values"):
            return False
        field, significand, own = own_of(meaning, total)
        before = given.get("term.top", 0)
        possible = before <= meaning.most_terms and multiple(meaning, total)
        if field == 2**meaning.output.exponent_bits - 1 or not possible:
            return True
        counts = significand or not meaning.toward_zero
        top = max(own, before) if counts else before
        far = self._limit("own_distance")
        return (
            found.get("top", 0) == top
            and found["significand"] == significand
            and found["sign"]
            == total >> meaning.output.exponent_bits + meaning.output.fraction_bits
            and (not counts or found["own_distance"] == min(top - own, far))
            and all(
                found[f"distances{k}"]
                == min(given[f"term.distances{k}"] + top - before, self._limit(f"distances{k}"))
                for k in range(self._count)
                if f"distances{k}" in found
            )
        )

    def show_special(self) -> None:
        """Show what is special."""
        words = self._words
        nan, infinite = words.bit("term.nan"), words.bit("term.infinite")
        minus = words.bit("term.negative")
        sign = words.inputs["total"].width - 1
        definitions = self._definitions + defined(
            ("none", "Bool", f"(= fraction {constant(0, self._meaning.output.fraction_bits)})"),
            ("own_infinite", "Bool", "(and (not finite) none)"),
            ("own_minus", "Bool", f"(= ((_ extract {sign} {sign}) total) #b1)"),
            ("clash", "Bool", f"(and own_infinite {infinite} (xor own_minus {minus}))"),
            ("is_nan", "Bool", f"(or {nan} (and (not finite) (not none)) clash)"),
            ("is_infinite", "Bool", f"(or {infinite} own_infinite)"),
            ("is_minus", "Bool", f"(ite {infinite} {minus} own_minus)"),
        )
        right = f"""(and (= {words.bit("new_nan")} is_nan) (=> (not is_nan)
  (and (= {words.bit("new_infinite")} is_infinite)
       (=> is_infinite (= {words.bit("new_negative")} is_minus)))))"""
        words.show(SPECIAL, right, definitions, seconds=self._seconds)

    def is_special(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        meaning, total = self._meaning, given["total"]
        e, f = meaning.output.exponent_bits, meaning.output.fraction_bits
        minus = total >> e + f
        full = total >> f & (1 << e) - 1 == (1 << e) - 1
        own_nan, own_infinite = full and total & (1 << f) - 1, full and not total & (1 << f) - 1
        nan, infinite, negative = (given.get(f"term.{x}", 0) for x in SPECIAL)
        is_nan = bool(nan or own_nan or (own_infinite and infinite and minus != negative))
        if is_nan or found["nan"]:
            return is_nan == bool(found["nan"])
        is_infinite = bool(infinite or own_infinite)
        sign = negative if infinite else minus
        return is_infinite == bool(found["infinite"]) and (
            not is_infinite or found["negative"] == sign
        )


class Cut(_Part):
    """What is left of each term, and of the accumulator, on the largest exponent."""

    def show(self) -> None:
        """Show it of each, and that the rest passes through."""
        self._passed("top", *SPECIAL)
        meaning, words = self._meaning, self._words
        for term in range(self._count):
            value, bits = f"values{term}", words.inputs[f"values{term}"].width
            number = value
            if meaning.toward_zero:
                number = f"(concat #b0 ((_ extract {bits - 2} 0) {value}))"
            negative = f"(= ((_ extract {bits - 1} {bits - 1}) {value}) #b1)"
            up = meaning.fraction - meaning.point
            self._show_one(f"terms{term}", f"distances{term}", (number, bits), negative, up)
        if "own" in words.outputs:
            bits = words.inputs["significand"].width
            number, negative = "(concat #b0 significand)", "(= sign #b1)"
            if not meaning.toward_zero:
                number = f"(ite {negative} (bvneg {number}) {number})"
            up = meaning.fraction + 1 - bits
            self._show_one("own", "own_distance", (number, bits + 1), negative, up)

    def _show_one(
        self, name: str, distance: str, number: tuple[str, int], negative: str, up: int
    ) -> None:
        """Show that an output is a number times 2^`up`, over 2^`distance`, cut."""
        words = self._words
        field = words.outputs[name]
        width = max(field.width + 2, number[1] + max(up, 0) + 1, PLACE)
        magnitudes = self._meaning.toward_zero
        wide = f"((_ {'zero' if magnitudes else 'sign'}_extend {width - number[1]}) {number[0]})"
        if up > 0:
            wide = f"(bvshl {wide} {constant(up, width)})"
        shift = "bvlshr" if magnitudes else "bvashr"
        far = f"(bvadd {words.wide(distance, width)} {constant(max(-up, 0), width)})"
        gone = constant((1 << words.inputs[distance].width) - 1, words.inputs[distance].width)
        cut = f"(ite (= {distance} {gone}) ({shift} {wide} {constant(width - 1, width)}) "
        cut += f"({shift} {wide} {far}))"
        top = f"((_ extract {field.width - 1} {field.width - 1}) new_{name})"
        found = f"((_ sign_extend {width - field.width}) new_{name})"
        if self._inverted:
            found = f"(bvadd {found} ((_ zero_extend {width - 1}) {top}))"
        if magnitudes:
            cut = f"(let ((kept {cut})) (ite {negative} (bvneg kept) kept))"
        words.show([name], f"(= {found} {cut})", seconds=self._seconds)

    @property
    def _inverted(self) -> bool:
        return inverted(self._meaning)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        meaning, words = self._meaning, self._words
        right = _kept(given, found, self.prefix, "top", *SPECIAL)
        for term in range(self._count):
            bits = words.inputs[f"values{term}"].width
            value = given[f"values{term}"]
            number = signed(value, bits)
            if meaning.toward_zero:
                magnitude = value & (1 << bits - 1) - 1
                number = -magnitude if value >> bits - 1 else magnitude
            up = meaning.fraction - meaning.point
            right &= self._is_one(given, found, f"terms{term}", f"distances{term}", number, up)
        if "own" in found:
            number = -given["significand"] if given["sign"] else given["significand"]
            up = meaning.fraction + 1 - words.inputs["significand"].width
            right &= self._is_one(given, found, "own", "own_distance", number, up)
        return right

    def _is_one(
        self, given: Numbers, found: Numbers, name: str, distance: str, number: int, up: int
    ) -> bool:
        far, limit = given[distance] - up, (1 << self._words.inputs[distance].width) - 1
        size = abs(number) if self._meaning.toward_zero else number
        cut = size << -far if far < 0 else size >> far
        if given[distance] == limit:
            cut = -1 if size < 0 else 0
        if self._meaning.toward_zero and number < 0:
            cut = -cut
        return aligned_number(found[name], self._words.outputs[name].width, self._inverted) == cut


class Added(_Part):
    """The sum of what is aligned."""

    def show(self) -> None:
        """Show it from the adders, that it fits, and that the rest passes through."""
        self._passed("top", *SPECIAL)
        meaning, words, graph = self._meaning, self._words, self._core.graph
        bits = words.found("sum")
        adders, found, wanted = Adders(graph), Form(len(bits), bits), Form(len(bits))
        adders.search(bits)
        found.expand(adders)
        for name in self._aligned:
            *number, sign = words.given(name)
            for at, bit in enumerate(number):
                wanted.add(bit, 1 << at)
            wanted.add(sign, -(1 << len(number)) + inverted(meaning))
        if (found.constant, found.of) != (wanted.constant, wanted.of):
            raise NotShownError("its adders do not end in the bits of what is added")
        most = self._most
        if most >> len(bits) - 1:
            raise NotShownError(f"sums of up to {most} need more than {len(bits)} bits")

    @property
    def _aligned(self) -> list[str]:
        words = self._words
        return [x for x in words.inputs if x == "own" or x.startswith("terms")]

    @property
    def _most(self) -> int:
        """No sum has a larger magnitude."""
        meaning, up = self._meaning, self._meaning.fraction - self._meaning.point
        term = meaning.bound << up if up > 0 else meaning.bound >> -up
        own = 2 << meaning.fraction if "own" in self._words.inputs else 0
        return self._count * (term + (not meaning.toward_zero)) + own

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers that terms may have."""
        inputs, turned = self._words.inputs, inverted(self._meaning)
        total = sum(aligned_number(given[x], inputs[x].width, turned) for x in self._aligned)
        right = _kept(given, found, self.prefix, "top", *SPECIAL)
        width = self._words.outputs["sum"].width
        return right and (abs(total) > self._most or signed(found["sum"], width) == total)


def inverted(meaning: StepMeaning) -> bool:
    """Whether an aligned number lacks a 1 where it is negative."""
    return meaning.toward_zero and meaning.view == STRUCTURE


def signed(number: int, width: int) -> int:
    """A number in two's complement."""
    return number - (number >> width - 1 << width)


def aligned_number(number: int, width: int, lacking: bool) -> int:
    """What an aligned number is worth."""
    return signed(number, width) + (lacking and number >> width - 1)


def own_of(meaning: StepMeaning, total: int) -> tuple[int, int, int]:
    """The exponent field of a total, its significand, and the code of its exponent."""
    e, f = meaning.output.exponent_bits, meaning.output.fraction_bits
    field, fraction = total >> f & (1 << e) - 1, total & (1 << f) - 1
    return field, fraction | bool(field) << f, max(field, 1) + meaning.own_code


def multiple(meaning: StepMeaning, total: int) -> bool:
    """Whether a total is a multiple of the last bit that any step keeps."""
    _, significand, own = own_of(meaning, total)
    low = meaning.least_unit - (own + meaning.base - meaning.output.fraction_bits)
    return low <= 0 or significand % (1 << low) == 0


def is_multiple(meaning: StepMeaning, name: str) -> str:
    """Definition of `multiple` in SMT-LIB."""
    e, f = meaning.output.exponent_bits, meaning.output.fraction_bits
    width = e + f + 1
    low = meaning.least_unit - meaning.base + f - meaning.own_code
    return f"""
(define-fun multiple ((x {place(width)})) Bool
  (let ((field ((_ extract {e + f - 1} {f}) x)))
  (let ((low (bvsub {constant(low)} (ite (= field {constant(0, e)}) {constant(1)}
          ((_ zero_extend {PLACE - e}) field))))
        (own (concat (ite (= field {constant(0, e)}) #b0 #b1) ((_ extract {f - 1} 0) x))))
    (or (bvsle low {constant(0)}) {_multiples(f)}))))
"""


def _multiples(f: int) -> str:
    """That the lowest `low` of the bits of a significand are 0."""
    zeros = [
        f"(or (bvsle low {constant(k)}) (= ((_ extract {k} {k}) own) #b0))" for k in range(f + 1)
    ]
    return conjunction(*zeros)


def _kept(given: Numbers, found: Numbers, prefix: str, *names: str) -> bool:
    """Whether numbers pass through."""
    return all(
        found[x] == given.get(f"{prefix}{x}", 0) for x in found if x.rstrip("0123456789") in names
    )
