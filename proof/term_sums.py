"""What is left of terms and accumulator on one exponent, and its sum."""

from axs6.proof.adders import Adders, Form
from axs6.proof.relations import Numbers, constant
from axs6.proof.rounding import PLACE
from axs6.proof.step_part import SPECIAL, TermPart, aligned_number, inverted, kept, signed
from axs6.proof.steps import NotShownError


class CutTerms(TermPart):
    """What is left of each term, and of the accumulator, on the largest exponent."""

    def show(self) -> None:
        """Show it of each, and that the rest passes through."""
        self.show_passed("top", *SPECIAL)
        meaning, words = self.meaning, self.words
        for term in range(self.count):
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
        words = self.words
        field = words.outputs[name]
        width = max(field.width + 2, number[1] + max(up, 0) + 1, PLACE)
        magnitudes = self.meaning.toward_zero
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
        words.show([name], f"(= {found} {cut})", seconds=self.seconds)

    @property
    def _inverted(self) -> bool:
        return inverted(self.meaning)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers."""
        meaning, words = self.meaning, self.words
        right = kept(given, found, self.prefix, "top", *SPECIAL)
        for term in range(self.count):
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
        far, limit = given[distance] - up, (1 << self.words.inputs[distance].width) - 1
        size = abs(number) if self.meaning.toward_zero else number
        cut = size << -far if far < 0 else size >> far
        if given[distance] == limit:
            cut = -1 if size < 0 else 0
        if self.meaning.toward_zero and number < 0:
            cut = -cut
        return aligned_number(found[name], self.words.outputs[name].width, self._inverted) == cut


class AddedTerms(TermPart):
    """The sum of what is aligned."""

    def show(self) -> None:
        """Show it from the adders, that it fits, and that the rest passes through."""
        self.show_passed("top", *SPECIAL)
        meaning, words, graph = self.meaning, self.words, self.core.graph
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
        words = self.words
        return [x for x in words.inputs if x == "own" or x.startswith("terms")]

    @property
    def _most(self) -> int:
        """No sum has a larger magnitude."""
        meaning, up = self.meaning, self.meaning.fraction - self.meaning.point
        term = meaning.bound << up if up > 0 else meaning.bound >> -up
        own = 2 << meaning.fraction if "own" in self.words.inputs else 0
        return self.count * (term + (not meaning.toward_zero)) + own

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether it is so for numbers that terms may have."""
        inputs, turned = self.words.inputs, inverted(self.meaning)
        total = sum(aligned_number(given[x], inputs[x].width, turned) for x in self._aligned)
        right = kept(given, found, self.prefix, "top", *SPECIAL)
        width = self.words.outputs["sum"].width
        return right and (abs(total) > self._most or signed(found["sum"], width) == total)
