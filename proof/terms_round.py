"""Aligned sums normalised and rounded to the accumulator's format, for all inputs.

A sum S under the exponent T is S * 2^(T - f). RoundedSum to nearest, it lies between the midpoints
beside its pattern (`axs6.proof.rounding`); toward zero, between its pattern and the next one, where
that of infinity is in the place of 2^(emax + 1). Nothing is normalised in either relation.

Source: docs/format.md, "Other accumulators".
"""

from fractions import Fraction
from math import floor

from axs6.golden.check.exact.accumulator import Output
from axs6.golden.check.exact.floats import Format, floor_log2, power
from axs6.golden.formats import Float
from axs6.hw.core.parameters import STRUCTURE
from axs6.proof.cores import Core, Statement
from axs6.proof.relations import Numbered, Numbers, constant, defined, extended, place, relation
from axs6.proof.rounding import PLACE, rounding
from axs6.proof.step_meaning import StepMeaning
from axs6.proof.step_part import is_multiple, multiple, signed
from axs6.proof.terms_align import steps_of


def rounded_sum(
    seconds: float,
    format: str = "fp8_e4m3",
    block: int | None = None,
    accumulator: str = "hopper",
    view: str = STRUCTURE,
) -> dict[str, Statement]:
    """Statements about the rounding of aligned sums to the accumulator.

    Args:
        seconds: limit of each question. format, block, accumulator, view: as of a dot product.

    Raises:
        ValueError: as of `StepMeaning`.
    """
    meaning = StepMeaning(format, block, accumulator, view)
    core = Core(steps_of(meaning)[-1], seconds)
    claims = RoundedSum(meaning, core, seconds)
    to = "toward zero" if meaning.defined.output.toward_zero else "to nearest, ties to even"
    found: dict[str, Statement] = {
        f"every sum and exponent is rounded once {to}, and too large ones are infinite": relation(
            core, claims.show, claims.holds
        )
    }
    if meaning.defined.fused and meaning.defined.total_fraction is None:
        found["totals stay multiples of the last bit that any step keeps"] = relation(
            core, claims.show_multiple, claims.stays_multiple
        )
    return found


class RoundedSum:
    """Statements about the rounding.

    Args:
        meaning: of the fields. core: the steps. seconds: limit of a question.
    """

    def __init__(self, meaning: StepMeaning, core: Core, seconds: float) -> None:
        self._meaning, self._core, self._seconds = meaning, core, seconds
        self._words = Numbered(core)
        self._bits = self._words.inputs["sum"].width

    @property
    def _place(self) -> int:
        """Exponent of a unit of a sum under the code 0."""
        own = self._meaning.defined.total_fraction
        return self._meaning.base - (self._meaning.fraction if own is None else own + 1)

    @property
    def _definitions(self) -> str:
        meaning, words, bits = self._meaning, self._words, self._bits
        output = meaning.defined.output
        dtype, width = output.fields, output.fields.exponent_bits + output.fields.fraction_bits + 1
        smallest = f"(= total {constant(1 << bits - 1, bits)})"
        lines = defined(
            ("total", place(bits), "sum"),
            ("code", place(), words.wide("top")),
            ("zero", "Bool", f"(= total {constant(0, bits)})"),
            ("below", "Bool", f"(bvslt total {constant(0, bits)})"),
            *self._kept_lines,
            ("magnitude", place(bits + 1), "(ite below (bvneg kept) kept)"),
            (
                "given",
                "Bool",
                f"(and (not {smallest}) (bvule code {constant(max(meaning.most, 0))}) "
                f"(=> (not zero) (bvuge code {constant(1)})))",
            ),
            ("place", place(), f"(bvadd code {constant(self._place)})"),
            ("pattern", place(width - 1), f"((_ extract {width - 2} 0) new_value)"),
            ("minus", "Bool", f"(= ((_ extract {width - 1} {width - 1}) new_value) #b1)"),
        )
        relation = toward_zero if output.toward_zero else nearest
        return lines + relation(bits + 1, dtype)

    @property
    def _kept_lines(self) -> list[tuple[str, str, str]]:
        """Definition of `kept`: what is rounded of the total, with a bit more."""
        own, bits = self._meaning.defined.total_fraction, self._bits
        wide = "((_ sign_extend 1) total)"
        if own is None:
            return [("kept", place(bits + 1), wide)]
        size = "(ite below (bvneg total) total)"
        leading = constant(0)
        for at in range(bits):
            leading = f"(ite (= ((_ extract {at} {at}) size) #b1) {constant(at)} {leading})"
        emin = constant(1 - self._meaning.output.bias)
        shift = "(ite (bvslt low #x0000) #x0000 (ite (bvsgt low " + constant(bits) + ") "
        shift += f"{constant(bits)} low))"
        by = f"((_ zero_extend {bits + 1 - PLACE}) held)"
        return [
            ("size", place(bits), size),
            ("leading", place(), leading),
            ("least", place(), f"(bvsub {emin} (bvadd code {constant(self._place)}))"),
            ("high", place(), "(ite (bvsgt least leading) least leading)"),
            ("low", place(), f"(bvsub high {constant(own)})"),
            ("held", place(), shift),
            ("kept", place(bits + 1), f"(bvshl (bvashr {wide} {by}) {by})"),
        ]

    @property
    def _right(self) -> str:
        """That a value is what it has to be."""
        words, dtype = self._words, self._meaning.output
        infinity = (1 << dtype.exponent_bits) - 1 << dtype.fraction_bits
        width = dtype.exponent_bits + dtype.fraction_bits
        keeps = self._meaning.defined.keeps_minus or not self._meaning.defined.fused
        empty = f"(= pattern {constant(0, width)})"
        sign = "below" if keeps else f"(and below (not {empty}))"
        nan = constant(infinity | 1 << dtype.fraction_bits - 1, width + 1)
        return f"""
(define-fun right () Bool
  (ite {words.bit("nan")} (= new_value {nan})
  (ite {words.bit("infinite")} (and (= pattern {constant(infinity, width)})
    (= minus {words.bit("negative")}))
  (=> given (and (= minus {sign}) (rounded pattern))))))"""

    def show(self) -> None:
        """Show the value."""
        text = self._definitions + self._right
        self._words.show(["value"], "right", text, seconds=self._seconds)

    def holds(self, given: Numbers, found: Numbers) -> bool:
        """Whether a value is right."""
        meaning = self._meaning
        exact = self._exact(given)
        value = found["value"]
        dtype = meaning.output
        bits = dtype.exponent_bits + dtype.fraction_bits
        infinity = (1 << dtype.exponent_bits) - 1 << dtype.fraction_bits
        if given.get("nan"):
            return value == infinity | 1 << dtype.fraction_bits - 1
        if given.get("infinite"):
            return value == infinity | given.get("negative", 0) << bits
        if exact is None:
            return True
        pattern = rounded_pattern(abs(exact), meaning.defined.output)
        keeps = meaning.defined.keeps_minus or not meaning.defined.fused
        minus = exact < 0 and (keeps or bool(pattern))
        return value == pattern | minus << bits

    def _exact(self, given: Numbers) -> Fraction | None:
        """The number that is rounded; None of one that cannot be."""
        total, top = signed(given["sum"], self._bits), given.get("top", 0)
        possible = top <= self._meaning.most and (top >= 1 or not total)
        if not possible or total == -1 << self._bits - 1:
            return None
        exact, own = total * power(top + self._place), self._meaning.defined.total_fraction
        if own is None or not total:
            return exact
        least = max(floor_log2(abs(exact)), 1 - self._meaning.output.bias)
        return floor(exact / power(least - own)) * power(least - own)

    def show_multiple(self) -> None:
        """Show that a sum of such multiples becomes one."""
        meaning, bits = self._meaning, self._bits
        low = constant(meaning.least_unit - self._place)
        zeros = " ".join(
            f"(or (bvsle (bvsub {low} code) {constant(k)}) (= ((_ extract {k} {k}) total) #b0))"
            for k in range(bits)
        )
        text = self._definitions + is_multiple(meaning, "new_value")
        text += f"\n(define-fun whole () Bool (and true {zeros}))"
        special = f"(or {self._words.bit('nan')} {self._words.bit('infinite')})"
        right = f"(=> (and given whole (not {special})) (or {self._full} (multiple new_value)))"
        self._words.show(["value"], right, text, seconds=self._seconds)

    @property
    def _full(self) -> str:
        """Whether a value is infinite."""
        e, f = self._meaning.output.exponent_bits, self._meaning.output.fraction_bits
        return f"(= ((_ extract {e + f - 1} {f}) new_value) {constant(-1, e)})"

    def stays_multiple(self, given: Numbers, found: Numbers) -> bool:
        """Whether that is so for a sum."""
        exact = self._exact(given)
        if exact is None or given.get("nan") or given.get("infinite"):
            return True
        if (exact / power(self._meaning.least_unit)).denominator > 1:
            return True
        dtype = self._meaning.output
        field = found["value"] >> dtype.fraction_bits & (1 << dtype.exponent_bits) - 1
        return field == (1 << dtype.exponent_bits) - 1 or multiple(self._meaning, found["value"])


def nearest(width: int, dtype: Format) -> str:
    """Definition of `rounded` to nearest even; see `axs6.proof.rounding`."""
    return rounding(width, Float(dtype.exponent_bits, dtype.fraction_bits))


def toward_zero(width: int, dtype: Format) -> str:
    """Definition of `rounded`, of a pattern without its sign: it is the largest that is not above.

    What is rounded is the word `magnitude` times 2 to the word `place`. A pattern is a significand
    times 2 to its exponent; distances between exponents that decide nothing are put at a limit.
    """
    e, f = dtype.exponent_bits, dtype.fraction_bits
    own, significand = e + f, f + 1
    most = width + significand
    wide, bits = most + significand, most.bit_length()
    last, zero = constant((1 << e) - 1 << f, own), constant(0, e)
    shift = constant(significand - dtype.bias - f)
    number = extended(f"(concat normal ((_ extract {f - 1} 0) r))", significand, wide)
    return f"""
(define-fun exact () {place(wide)}
  (bvshl {extended("magnitude", width, wide)} {constant(significand, wide)}))
(define-fun worth ((r {place(own)})) {place(wide)}
  (let ((field ((_ extract {own - 1} {f}) r)))
  (let ((normal (ite (= field {zero}) #b0 #b1))
        (least (ite (= field {zero}) {constant(1, e)} field)))
  (let ((far (bvsub (bvadd ((_ zero_extend {PLACE - e}) least) {shift}) place)))
  (let ((held (ite (bvslt far {constant(0)}) {constant(0)}
                (ite (bvsgt far {constant(most)}) {constant(most)} far))))
    (bvshl {number} {extended(f"((_ extract {bits - 1} 0) held)", bits, wide)}))))))
(define-fun rounded ((r {place(own)})) Bool
  (and (bvule r {last}) (bvuge exact (worth r))
       (or (= r {last}) (bvult exact (worth (bvadd r {constant(1, own)}))))))
"""


def rounded_pattern(x: Fraction, output: Output) -> int:
    """The pattern of a number, 0 or more, rounded to a format."""
    dtype = output.fields
    if not x:
        return 0
    exponent = max(floor_log2(x), 1 - dtype.bias) - dtype.fraction_bits
    unit = power(exponent)
    whole = x / unit
    count = int(whole) if output.toward_zero else round(whole)
    field = exponent + dtype.bias + dtype.fraction_bits
    pattern = count + (field - 1 << dtype.fraction_bits)
    return min(pattern, (1 << dtype.exponent_bits) - 1 << dtype.fraction_bits)
