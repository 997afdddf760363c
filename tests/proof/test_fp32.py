"""FP32 arithmetic is proved, and faults in it are refuted by inputs that show them."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from amaranth.hdl import Module

from axs6.golden.check.exact import floats
from axs6.golden.formats import BF16, FP32, Float
from axs6.hw.core.pipeline import Step
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32 import add, convert, divide, multiply, quotient
from axs6.proof import division, fp32, smt
from axs6.proof import quotient as proof_quotient
from axs6.proof.components import ComponentProof
from axs6.proof.prove import Claim, Outcome
from axs6.proof.rounding import PLACE, rounding
from axs6.proof.smt import LOGIC, ask
from axs6.proof.steps import NotShownError
from tests.helpers.faults import FaultyStep


def with_fault(steps: list[Step], kind: type[Step], change: Any) -> list[Step]:
    found = [FaultyStep(step, change) if isinstance(step, kind) else step for step in steps]
    assert found != steps
    return found


def claims(name: str, **parameters: Any) -> list[Claim]:
    return [*ComponentProof(name, parameters).specification()]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        pytest.param("fp32_convert", {}, marks=pytest.mark.slow),
        ("fp32_convert", {"format": "nvfp4"}),
        pytest.param("fp32_convert", {"format": "int8"}, marks=pytest.mark.slow),
        pytest.param("fp32_convert", {"format": "mxint8"}, marks=pytest.mark.slow),
        pytest.param("fp32_convert", {"format": "mxfp8_e4m3"}, marks=pytest.mark.slow),
        pytest.param("fp32_convert", {"format": "mxfp8_e5m2"}, marks=pytest.mark.slow),
        pytest.param("fp32_convert", {"format": "fp8_e5m2"}, marks=pytest.mark.slow),
        pytest.param("fp32_multiply", {}, marks=pytest.mark.slow),
        pytest.param("fp32_divide", {}, marks=pytest.mark.slow),
        pytest.param("fp32_divide", {"format": "sm3d_e8m0_t8"}, marks=pytest.mark.slow),
        pytest.param("fp32_quotient", {}, marks=pytest.mark.slow),
        pytest.param("fp32_add", {}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_component_is_proved(name: str, parameters: dict[str, Any]) -> None:
    assert {claim.outcome for claim in claims(name, **parameters)} == {Outcome.PROVED}


ADDITION_FAULTS = {
    "a sticky bit is lost": (add.AlignFine, lambda i, o: [o.small[0].eq(0)]),
    "a tie is rounded up": (
        add.RoundTotal,
        lambda i, o: [o.round_up.eq((i.total << i.odd)[add.GUARD - 1])],
    ),
    "infinities of unlike signs are no NaN": (
        add.Distance,
        lambda i, o: [o.nan.eq(i.large.exponent.all() & i.large.fraction.any())],
    ),
    "a zero has the sign of an operand": (add.Distance, lambda i, o: [o.zero_sign.eq(o.sign)]),
}


@pytest.mark.parametrize("fault", ADDITION_FAULTS)
def test_a_fault_of_the_addition_is_refuted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cases at once: a fault is found sooner than the proof of the others."""
    steps = with_fault(add.addition_steps(), *ADDITION_FAULTS[fault])
    monkeypatch.setattr(fp32, "addition_steps", lambda: steps)
    monkeypatch.setattr(fp32, "_addition_cases", dict)
    (claim,) = claims("fp32_add")
    assert claim.outcome is Outcome.REFUTED
    assert claim.item is not None


FAULTS = {
    "a bit of a conversion is lost": (
        ("fp32_convert", fp32, "conversion_steps", convert.conversion_steps),
        (convert.LimitSubnormal, lambda i, o: [o.magnitude[1].eq(0)]),
    ),
    "a division rounds up": (
        ("fp32_divide", division, "division_steps", divide.division_steps),
        (divide.NormaliseQuotient, lambda i, o: [o.round_up.eq(1)]),
    ),
    "a division by another number": (
        ("fp32_divide", division, "division_steps", lambda divisor: divide.division_steps(225)),
        (divide.PackFp32, lambda i, o: []),
    ),
}

SLOW_FAULTS = {
    "a product is cut": (
        ("fp32_multiply", fp32, "MultiplySignificands", multiply.MultiplySignificands),
        (multiply.MultiplySignificands, lambda i, o: [o.magnitude[-2].eq(0)]),
    ),
    "a quotient is short of a digit": (
        ("fp32_quotient", proof_quotient, "digit_steps", quotient.digit_steps),
        (quotient.QuotientDigits, lambda i, o: [o.quotient[0].eq(0)]),
    ),
    "a remainder is lost": (
        ("fp32_quotient", proof_quotient, "Collect", quotient.Collect),
        (quotient.Collect, lambda i, o: [o.magnitude[0].eq(i.rest[0])]),
    ),
}


@pytest.mark.parametrize(
    "fault", [*FAULTS, *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW_FAULTS)]
)
def test_a_fault_is_refuted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (name, module, make_name, make), (kind, change) = {**FAULTS, **SLOW_FAULTS}[fault]

    def changed(*arguments: Any, **options: Any) -> Any:
        made = make(*arguments, **options)
        return (
            with_fault(made, kind, change) if isinstance(made, list) else FaultyStep(made, change)
        )

    monkeypatch.setattr(module, make_name, changed)
    wrong = [x for x in claims(name) if x.outcome is Outcome.REFUTED]
    assert wrong
    assert all(claim.item is not None for claim in wrong)


def one_more(kind: Any, name: str) -> property:
    """The property of a class, and 1."""
    known = getattr(kind, name).fget
    return property(lambda self: known(self) + 1)


PRODUCT = multiply.exact_product
FOUND = quotient.Quotient.number.fget

NUMBERS: dict[str, tuple[str, Any, str, Any]] = {
    "quotients are half as large": (
        *("fp32_quotient", quotient.Quotient, "base"),
        one_more(quotient.Quotient, "base"),
    ),
    "quotients start with a 1": (
        *("fp32_quotient", quotient.Quotient, "number"),
        property(lambda self: replace(FOUND(self), most_zeros=0)),
    ),
    "quotients have two digits less": (
        *("fp32_quotient", proof_quotient, "QUOTIENT"),
        replace(proof_quotient.QUOTIENT, digits=proof_quotient.DIGITS - 2),
    ),
    "products are twice as large": (
        *("fp32_multiply", multiply, "exact_product"),
        replace(PRODUCT, offset=PRODUCT.offset + 1),
    ),
    "products lose their highest bit": (
        *("fp32_multiply", multiply, "exact_product"),
        replace(PRODUCT, width=PRODUCT.width - 1),
    ),
}
"""Numbers of the generator that are wrong, in all steps alike."""


QUICK = ("quotients start with a 1",)
"""One of a product and one of a quotient; the others are for the long tests."""


@pytest.mark.parametrize(
    "fault", [pytest.param(x, marks=[pytest.mark.slow] * (x not in QUICK)) for x in NUMBERS]
)
def test_what_numbers_are_worth_is_not_taken_from_the_generator(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, where, what, value = NUMBERS[fault]
    monkeypatch.setattr(where, what, value)
    *_, in_turn = ComponentProof(name, {}).statements.values()
    with pytest.raises(NotShownError):
        in_turn.show()


class FourDigits(Step):
    """Two digits below two zeros that nothing has found."""

    def __init__(self) -> None:
        self._first = quotient.QuotientDigits(proof_quotient.QUOTIENT, 0, 2)
        super().__init__(self._first.i.shape(), proof_quotient.QUOTIENT.state(4), levels=1)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.first = first = self._first
        m.d.comb += first.i.eq(self.i)
        m.d.comb += [self.o[name].eq(first.o[name]) for name in self.o.shape().members]
        return m


def test_digits_that_are_left_out_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(of: quotient.Quotient) -> list[Step]:
        first, _, _, *others = quotient.digit_steps(of)
        return [first, FourDigits(), *others]

    monkeypatch.setattr(proof_quotient, "digit_steps", steps)
    _, digits, *_ = ComponentProof("fp32_quotient", {}).statements.values()
    with pytest.raises(NotShownError, match=r"a step must give .*'quotient': 2"):
        digits.show()


@pytest.mark.parametrize(
    ("name", "parameters", "what"),
    [("fp32_convert", {"format": "nvfp4"}, "offset"), ("fp32_divide", {}, "divisor")],
)
def test_what_a_sum_is_worth_is_not_taken_from_the_generator(
    name: str, parameters: dict[str, str], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = one_more(DotShape, what) if what == "offset" else property(lambda self: 225)
    monkeypatch.setattr(DotShape, what, other)
    first, *_ = ComponentProof(name, parameters).statements.values()
    with pytest.raises(NotShownError, match="a unit of the sum is worth"):
        first.show()


def test_what_takes_too_long_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smt, "ask", lambda text, seconds: None)
    first, *_ = claims("fp32_convert")
    assert (first.outcome, first.reason) == (Outcome.OPEN, "time is over: all inputs")


def test_time_is_over_in_the_solver() -> None:
    """It looks for the factors of a product."""
    word, product = "(_ BitVec 96)", (2**47 - 115) * (2**47 - 127)
    text = f"""{LOGIC}
(declare-const a {word})
(declare-const b {word})
(define-fun large ((x {word})) Bool (and (bvugt x (_ bv1 96)) (bvult x (_ bv{1 << 48} 96))))
(assert (and (large a) (large b) (= (bvmul a b) (_ bv{product} 96))))"""
    assert ask(text, 0.2) is None


@pytest.mark.parametrize(
    ("width", "dtype", "saturate"), [(3, FP32, False), (30, FP32, False), (30, BF16, True)]
)
def test_what_is_rounded_is_what_the_exact_model_rounds(
    width: int, dtype: Float, saturate: bool
) -> None:
    """Patterns beside the nearest one are not it; the exact model says which is."""
    magnitudes = [1, (1 << width) - 1, 1 << width - 1, 5, 0x12345677 & (1 << width) - 1]
    for magnitude in [0, *magnitudes]:
        for place in (-300, -200, -151, -150, -149, -140, -100, 0, 96, 97, 103, 125, 126, 200):
            exact = magnitude * Fraction(2) ** place
            exact_dtype = floats.Format(dtype.exponent_bits, dtype.fraction_bits)
            right = floats.round_to_float(exact, exact_dtype, saturate)
            for pattern in range(max(right - 1, 0), right + 2):
                text = f"""{LOGIC}
(define-fun magnitude () (_ BitVec {width}) (_ bv{magnitude} {width}))
(define-fun place () (_ BitVec {PLACE}) (_ bv{place % (1 << PLACE)} {PLACE}))
(declare-const found (_ BitVec {dtype.width - 1}))
{rounding(width, dtype, saturate=saturate)}
(assert (and (rounded found) (= found (_ bv{pattern} {dtype.width - 1}))))"""
                assert bool(ask(text, 10)) == (pattern == right)


def test_parameters_of_components_are_their_own() -> None:
    with pytest.raises(ValueError, match="fp32_add has no parameter format; it has none"):
        ComponentProof("fp32_add", {"format": "axs6"})
    with pytest.raises(ValueError, match="fp32_convert has no parameter stages; it has format and"):
        ComponentProof("fp32_convert", {"stages": 2})
    with pytest.raises(ValueError, match="mxfp4 has no denominator"):
        ComponentProof("fp32_divide", {"format": "mxfp4"})
