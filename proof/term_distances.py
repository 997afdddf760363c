"""Exponents of terms and of the accumulator, and how far each is below the largest."""

from axs6.proof.relations import Numbers, conjunction, constant, defined, disjunction, place
from axs6.proof.rounding import PLACE
from axs6.proof.step_part import SPECIAL, TermPart, is_multiple, kept, multiple, own_of


class TermDistances(TermPart):
    """The largest exponent of terms, and their distances to it."""

    def _cluster(self, term: int) -> int:
        clusters = sum(x.startswith("scales") for x in self.words.inputs) or 1
        return term * clusters // self.count

    def _counts(self, term: int) -> str:
        name = f"codes{term}"
        if not self.meaning.toward_zero:
            return "true"
        return f"(distinct {self.words.wide(name)} {constant(0)})"

    @property
    def _definitions(self) -> str:
        """`e0` and so on: exponents of terms as codes; `given`: they are those of numbers."""
        meaning, words = self.meaning, self.words
        gated = int(meaning.toward_zero)
        lines, given = [], []
        for term in range(self.count):
            code, scale = words.wide(f"codes{term}"), words.wide(f"scales{self._cluster(term)}")
            offset = constant(meaning.term_code - gated)
            lines.append((f"e{term}", place(), f"(bvadd {code} {scale} {offset})"))
            given.append(f"(bvule {code} {constant(meaning.most_fields + gated)})")
            given.append(f"(bvule {scale} {constant(meaning.most_scales)})")
        counts = [self._counts(term) for term in range(self.count)]
        return defined(
            *lines,
            ("given", "Bool", conjunction(*dict.fromkeys(given))),
            ("some", "Bool", disjunction(*counts)),
            ("least", place(), constant(max(meaning.least_code, 0))),
            ("top", place(), words.wide("new_top")),
        )

    def show_largest(self) -> None:
        """Show that `top` is none below an exponent that counts, and one of them."""
        self.meaning.check_codes()
        definitions, terms = self._definitions, range(self.count)
        above = [f"(=> {self._counts(k)} (bvsge top e{k}))" for k in terms]
        one = [f"(and {self._counts(k)} (= top e{k}))" for k in terms]
        alone = f"(or (= top {constant(0)}) (= top least))"
        known = conjunction("(bvsge top least)", *above, disjunction("(= top least)", *one))
        right = f"(=> given (ite some {known} {alone}))"
        self.words.show(["top"], right, definitions, seconds=self.seconds)

    def is_largest(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        exponents = self._exponents(given)
        if exponents is None:
            return True
        known = [x for x in exponents if x is not None]
        least = max(self.meaning.least_code, 0)
        top = found.get("top", 0)
        return top == max([*known, least]) if known else top in (0, least)

    def show_distances(self) -> None:
        """Show the distance of each term, and that the terms and what is special pass through."""
        self.show_passed("values", *SPECIAL)
        definitions = self._definitions
        for term in range(self.count):
            name = f"distances{term}"
            limit = constant(self.limit(name))
            right = f"""(=> (and given {self._counts(term)})
  (let ((far (bvsub top e{term}))) (= {self.words.wide(f"new_{name}")}
    (ite (bvult far {limit}) far {limit}))))"""
            self.words.show(["top", name], right, definitions, seconds=self.seconds)

    def are_distances(self, given: Numbers, found: Numbers) -> bool:
        """Whether they are for numbers."""
        exponents = self._exponents(given) or []
        return kept(given, found, self.prefix, "values", *SPECIAL) and all(
            found.get(f"distances{k}", 0)
            == min(found.get("top", 0) - exponent, self.limit(f"distances{k}"))
            for k, exponent in enumerate(exponents)
            if exponent is not None
        )

    def _exponents(self, given: Numbers) -> list[int | None] | None:
        """Codes of exponents; none of what does not count, and none where they are impossible."""
        meaning, gated = self.meaning, int(self.meaning.toward_zero)
        found: list[int | None] = []
        for term in range(self.count):
            code = given.get(f"codes{term}", 0)
            scale = given.get(f"scales{self._cluster(term)}", 0)
            if code > meaning.most_fields + gated or scale > meaning.most_scales:
                return None
            counts = code or not gated
            found.append(code - gated + scale + meaning.term_code if counts else None)
        return found


class JoinedTotal(TermPart):
    """The accumulator among the terms."""

    prefix = "term."

    @property
    def _definitions(self) -> str:
        """`own`: the code of the accumulator's exponent; `top`: the larger one."""
        meaning, words = self.meaning, self.words
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
        self.show_passed("values")
        words, definitions = self.words, self._definitions
        condition = "(and given finite (multiple total))"
        least = constant(self.limit("own_distance"))
        high = words.inputs["total"].width - 1
        sign = f"((_ extract {high} {high}) total)"
        right = f"""(=> {condition} (and (= {words.wide("new_top")} top)
  (= new_significand (concat normal fraction))
  (= new_sign {sign})
  (=> counts (let ((far (bvsub top own))) (= {words.wide("new_own_distance")}
    (ite (bvult far {least}) far {least}))))))"""
        names = ["top", "own_distance", "significand", "sign"]
        words.show(names, right, definitions, seconds=self.seconds)
        for term in range(self.count):
            name = f"distances{term}"
            limit = constant(self.limit(name))
            right = f"""(=> {condition}
  (let ((far (bvadd {words.wide(f"term.{name}")} (bvsub top before))))
  (= {words.wide(f"new_{name}")} (ite (bvult far {limit}) far {limit}))))"""
            words.show([name], right, definitions, seconds=self.seconds)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        meaning, total = self.meaning, given["total"]
        if not kept(given, found, self.prefix, "values"):
            return False
        field, significand, own = own_of(meaning, total)
        before = given.get("term.top", 0)
        possible = before <= meaning.most_terms and multiple(meaning, total)
        if field == 2**meaning.output.exponent_bits - 1 or not possible:
            return True
        counts = significand or not meaning.toward_zero
        top = max(own, before) if counts else before
        far = self.limit("own_distance")
        return (
            found.get("top", 0) == top
            and found["significand"] == significand
            and found["sign"]
            == total >> meaning.output.exponent_bits + meaning.output.fraction_bits
            and (not counts or found["own_distance"] == min(top - own, far))
            and all(
                found[f"distances{k}"]
                == min(given[f"term.distances{k}"] + top - before, self.limit(f"distances{k}"))
                for k in range(self.count)
                if f"distances{k}" in found
            )
        )

    def show_special(self) -> None:
        """Show what is special."""
        words = self.words
        nan, infinite = words.bit("term.nan"), words.bit("term.infinite")
        minus = words.bit("term.negative")
        sign = words.inputs["total"].width - 1
        definitions = self._definitions + defined(
            ("none", "Bool", f"(= fraction {constant(0, self.meaning.output.fraction_bits)})"),
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
        words.show(SPECIAL, right, definitions, seconds=self.seconds)

    def is_special(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        meaning, total = self.meaning, given["total"]
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
