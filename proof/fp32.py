"""FP32 arithmetic inside of units, held against IEEE 754 for all inputs.

Addition is that of SMT-LIB's theory of floating-point numbers. Results of other operations are
exact numbers that are rounded; see `axs6.proof.rounding`. Any NaN is 0x7fc00000.

Source: docs/hardware.md, docs/formats.md.
"""

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

from axs6.golden.check.exact import floats
from axs6.golden.formats import FP32
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.add import addition_steps
from axs6.hw.fp32.convert import Number, conversion_steps, rounding_steps
from axs6.hw.fp32.multiply import MultiplySignificands, multiplication_steps
from axs6.proof.cores import Core, Statement, show_in_turn
from axs6.proof.products import show_fp32_product
from axs6.proof.rounding import PLACE, rounding
from axs6.proof.scales import show_unit
from axs6.proof.smt import Circuit

NAN, PLUS, MINUS = 1, 2, 3
"""Values of `special`, as docs/hardware.md has them."""

PATTERNS = {
    NAN: floats.FP32_NAN,
    PLUS: floats.FP32.infinity,
    MINUS: floats.FP32.sign | floats.FP32.infinity,
}

PRODUCT = Number(
    width=2 * (FP32.fraction_bits + 1),
    exponent_bits=FP32.exponent_bits + 1,
    offset=2 * (FP32.emin - FP32.fraction_bits - 1),
    special=True,
)
"""The exact product of two significands, integers, under the sum of their exponent fields.

A field is at least 1, and a significand under it counts in 2^(emin - fraction bits + field - 1)."""

NEAR = 27
"""Differences of exponents up to this are a case each, for like and for unlike signs."""


def addition(seconds: float) -> dict[str, Statement]:
    """Statements about the addition.

    Args:
        seconds: limit of each question.
    """
    core = Core(addition_steps(), seconds)

    def show() -> None:
        circuit = Circuit(core.graph, core.inputs, {"value": core.result("value")})
        circuit.show("right", _SUM, _addition_cases(), seconds=seconds)

    def expected(item: Mapping[str, int]) -> int:
        return floats.add_fp32(item["a"], item["b"])

    return {"the sum of any two patterns is that of IEEE 754": Statement(core, show, expected)}


_SUM = f"""
(define-fun sum () Float32 (fp.add RNE ((_ to_fp 8 24) a) ((_ to_fp 8 24) b)))
(define-fun found () Float32 ((_ to_fp 8 24) value))
(define-fun right () Bool (and (= found sum) (=> (fp.isNaN sum) (= value #x{floats.FP32_NAN:08x}))))
(define-fun distance () (_ BitVec 9)
  (bvsub (concat #b0 ((_ extract 30 23) a)) (concat #b0 ((_ extract 30 23) b))))
(define-fun unlike () (_ BitVec 1) (bvxor ((_ extract 31 31) a) ((_ extract 31 31) b)))
"""


def _addition_cases() -> dict[str, str]:
    """Signs, and the difference of exponents if it is small.

    Differences under equal exponents are the hardest: the highest bits of fractions are told apart
    there too.
    """
    found = {}
    for unlike, distance in product((0, 1), range(-NEAR, NEAR + 1)):
        name = f"{('like', 'unlike')[unlike]} signs, exponents {distance} apart"
        case = f"(= unlike #b{unlike}) (= distance (_ bv{distance % 512} 9))"
        if unlike and not distance:
            for a, b in product((0, 1), repeat=2):
                tops = (f"(= ((_ extract 22 22) {x}) #b{top})" for x, top in (("a", a), ("b", b)))
                found[f"{name}, fractions from {a}/2 and {b}/2"] = f"(and {case} {' '.join(tops)})"
        else:
            found[name] = f"(and {case})"
    return found


def conversion(
    seconds: float, format: str = "axs6", block: int | None = None
) -> dict[str, Statement]:
    """Statements about the conversion of the block sums of a format to FP32.

    Args:
        seconds: limit of each question. format, block: as of a block dot product.
    """
    shape = DotShape.of(format, block)
    number = Number(shape.width, shape.exponent_bits, shape.offset, shape.special)

    def statement(*, fine: bool) -> Statement:
        core = Core(conversion_steps(shape.sum, shape.offset, fine=fine), seconds)

        def show() -> None:
            show_unit(shape)
            circuit = Circuit(core.graph, core.inputs, {"value": core.result("value")})
            total = "(concat high sum)" if "high" in shape.sum.members else "sum"
            bits = number.width
            split = f"""
(define-fun total () (_ BitVec {bits}) {total})
(define-fun negative () Bool (bvslt total (_ bv0 {bits})))
(define-fun magnitude () (_ BitVec {bits}) (ite negative (bvneg total) total))
"""
            circuit.show("right", split + _converted(number), seconds=seconds)

        def expected(item: Mapping[str, int]) -> int:
            total = item["sum"] | item.get("high", 0) << 64
            total -= (total >> number.width - 1) << number.width
            return _pattern(total, number, item)

        return Statement(core, show, expected)

    text = "every sum and exponent gives the nearest FP32 number, ties to even"
    return {
        f"{text}, in the shorter steps for many registers": statement(fine=True),
        text: statement(fine=False),
    }


def _converted(number: Number) -> str:
    """Definition of `right`, for `negative` and `magnitude`, a number and what is in its place."""
    exponent = f"((_ zero_extend {PLACE - number.exponent_bits}) exponent)"
    if not number.exponent_bits:
        exponent = f"(_ bv0 {PLACE})"
    sign = "(= ((_ extract 31 31) value) (ite negative #b1 #b0))"
    right = f"(and {sign} (rounded ((_ extract 30 0) value)))"
    if number.special:
        for special, pattern in PATTERNS.items():
            right = f"(ite (= special (_ bv{special} 2)) (= value #x{pattern:08x}) {right})"
    offset = f"(_ bv{number.offset % (1 << PLACE)} {PLACE})"
    return f"""
(define-fun place () (_ BitVec {PLACE}) (bvadd {exponent} {offset}))
{rounding(number.width)}
(define-fun right () Bool {right})
"""


def _pattern(total: int, number: Number, item: Mapping[str, int]) -> int:
    """The pattern of an integer under an exponent, or of what is in its place."""
    if special := item.get("special", 0):
        return PATTERNS[special]
    exponent = item.get("exponent", 0) + number.offset
    return floats.round_to_float(total * floats.power(exponent), floats.FP32)


def rounding_of(number: Number, seconds: float) -> Statement:
    """The statement that a sign, a magnitude and an exponent give the nearest FP32 number.

    Of a number with few leading zeros it says so where the magnitude has no more, or is 0.
    """
    core = Core(rounding_steps(number), seconds)
    bits = number.width
    top = f"((_ extract {bits - 1} {bits - number.leading}) magnitude)"

    def show() -> None:
        circuit = Circuit(core.graph, core.inputs, {"value": core.result("value")})
        text = f"""
(define-fun negative () Bool (= sign #b1))
{_converted(number)}
(define-fun few () Bool (or (distinct {top} (_ bv0 {number.leading})) (= magnitude (_ bv0 {bits}))))
"""
        circuit.show("(=> few right)", text, seconds=seconds)

    def expected(item: Mapping[str, int]) -> int | None:
        if 0 < item["magnitude"] < 1 << bits - number.leading:
            return None
        found = _pattern(item["magnitude"], number, item)
        return found if item.get("special") else found | item["sign"] << 31

    return Statement(core, show, expected)


def multiplication(seconds: float) -> dict[str, Statement]:
    """Statements about the multiplication, which is an exact product and its rounding.

    Args:
        seconds: limit of each question.
    """
    exact = Core([MultiplySignificands(STRUCTURE)], seconds)
    nearest = rounding_of(PRODUCT, seconds)
    whole = Core(multiplication_steps(STRUCTURE), seconds)

    def show_fields() -> None:
        words = {name: exact.result(name) for name in ("sign", "exponent", "special")}
        Circuit(exact.graph, exact.inputs, words).show("right", _FACTORS, seconds=seconds)

    return {
        "the product of any two significands is exact": Statement(
            exact, lambda: show_fp32_product(exact, seconds), _exact_product
        ),
        "sign, exponent, NaN and infinities of the product are those of IEEE 754": Statement(
            exact, show_fields, _exact_product
        ),
        "every exact product gives the nearest FP32 number, ties to even": nearest,
        "the multiplication is these in turn": Statement(
            whole, lambda: show_in_turn(whole, [exact, nearest.core], seconds), _product
        ),
    }


_FACTORS = f"""
(define-fun x () Float32 ((_ to_fp 8 24) value))
(define-fun y () Float32 ((_ to_fp 8 24) outer))
(define-fun field ((p (_ BitVec 32))) (_ BitVec 9)
  (let ((f ((_ extract 30 23) p))) (concat #b0 (ite (= f #x00) #x01 f))))
(define-fun unlike () (_ BitVec 1) (bvxor ((_ extract 31 31) value) ((_ extract 31 31) outer)))
(define-fun invalid () Bool (or (fp.isNaN x) (fp.isNaN y)
  (and (fp.isInfinite x) (fp.isZero y)) (and (fp.isZero x) (fp.isInfinite y))))
(define-fun infinite () Bool (or (fp.isInfinite x) (fp.isInfinite y)))
(define-fun right () Bool (and
  (= sign unlike)
  (= exponent (bvadd (field value) (field outer)))
  (= special (ite invalid (_ bv{NAN} 2) (ite infinite (ite (= unlike #b1) (_ bv{MINUS} 2)
    (_ bv{PLUS} 2)) (_ bv0 2))))))
"""


def _factor(pattern: int) -> tuple[int, int, int]:
    """Sign, significand, and exponent field, at least 1."""
    field, fraction = pattern >> 23 & 0xFF, pattern & 0x7FFFFF
    return pattern >> 31, fraction | bool(field) << 23, max(field, 1)


def _exact_product(item: Mapping[str, int]) -> int:
    """The fields of an exact product: sign, magnitude, exponent and special."""
    sign, significand, exponent = (
        (x, y) for x, y in zip(_factor(item["value"]), _factor(item["outer"]), strict=True)
    )
    found = _product(item)
    special = {pattern: key for key, pattern in PATTERNS.items()}.get(found, 0)
    if all(x < 255 for x in exponent):
        special = 0  # one that is finite, and too large
    word = sign[0] ^ sign[1] | significand[0] * significand[1] << 1
    return word | sum(exponent) << 49 | special << 58


def _product(item: Mapping[str, int]) -> int:
    """The pattern of a product."""
    a, b = item["value"], item["outer"]
    sign = (a ^ b) & floats.FP32.sign
    x, y = (floats.float_value(each & ~floats.FP32.sign, floats.FP32) for each in (a, b))
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return sign | floats.round_to_float(x * y, floats.FP32)
    if floats.Special.NAN in (x, y) or 0 in (x, y):
        return floats.FP32_NAN
    return sign | floats.FP32.infinity
