"""Quotients of two FP32 numbers, digit by digit, for all pairs.

With significands a and b, whose highest bits are set, each step of the long division keeps
a 2^(n - 1) = Q b + R with R < b and n digits in Q. So the last one has Q and R for which a/b is
(Q + R/b) / 2^(n - 1). What is rounded is 2 Q, and 1 more where R is not 0. That rounds as
2 (Q + R/b): Q has one bit more than a significand of FP32 at least, so midpoints are integers in
the unit of Q, and whether the quotient is above, on or below one depends on Q and on whether R
is 0.

One of the first two digits is 1 unless a is 0, so only they are asked for the highest bit.

Source: docs/hardware.md, "Encoders that find scales".
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

from axs6.golden.check.exact import floats
from axs6.golden.formats import FP32
from axs6.hw.fp32.number import Number
from axs6.hw.fp32.quotient import FP32_NORMAL, Collect, Quotient, digit_steps, quotient_steps
from axs6.proof.cores import Core, Statement, show_in_turn
from axs6.proof.fp32 import rounding_of
from axs6.proof.smt import Circuit
from axs6.proof.steps import NotShownError

QUOTIENT = Quotient(FP32_NORMAL, FP32_NORMAL)

BITS = FP32.fraction_bits + 1
TOP = 1 << BITS - 1

FARTHEST = (1 << FP32_NORMAL.place_bits) - 1
"""Added to the difference of places, which is not negative then."""

DIGITS = BITS + 2
"""The highest digit may be 0, and then one more is left than a significand has."""

NUMBER = Number(
    width=DIGITS + 1,
    exponent_bits=FP32_NORMAL.place_bits + 1,
    offset=-DIGITS - FARTHEST,
    special=False,
    most_zeros=1,
)
"""What is rounded: 2 (Q + R/b) under an exponent that is `FARTHEST` too large."""


def quotient(seconds: float) -> dict[str, Statement]:
    """Statements about the division of two positive FP32 numbers, with their highest bits on top.

    Args:
        seconds: limit of each question.
    """
    prepare, *digits = (Core([step], seconds) for step in digit_steps(QUOTIENT))
    collect = Core([Collect(QUOTIENT)], seconds)
    nearest = rounding_of(NUMBER, seconds)
    whole = Core(quotient_steps(QUOTIENT), seconds)
    parts = [prepare, *digits, collect, nearest.core]
    found = {
        "the first remainder is half the dividend, less than the divisor": _prepared(
            prepare, seconds
        )
    }
    for step, core in enumerate(digits):
        text = f"{2 * step + 2} digits are those of the long division, if those before are"
        found[text] = _divided(core, 2 * step, seconds)
    return {
        **found,
        "the lowest bit says whether a remainder is left": _collected(collect, seconds),
        "the number with this bit gives the nearest FP32 number, ties to even": nearest,
        "the division is these in turn": Statement(
            whole, lambda: show_in_turn(whole, parts, seconds), _quotient
        ),
    }


def _state(digits: int) -> Mapping[str, int]:
    """Fields of a division of which some digits are known, with their widths."""
    fields = {"rest": BITS, "exponent": NUMBER.exponent_bits, "divisor": BITS}
    return fields | ({"quotient": digits} if digits else {"low": 1})


def _statement(
    core: Core,
    right: str,
    expected: Callable[[Mapping[str, int]], int | None],
    outputs: Mapping[str, int],
    seconds: float,
) -> Statement:
    """A statement in SMT-LIB, in which fields of the output have `new_` before their names.

    Args:
        core, expected: of the statement. right: text. outputs: fields that the core must have, with
        their widths. seconds: limit.
    """

    def show() -> None:
        if {field.name: field.width for field in core.outputs} != outputs:
            raise NotShownError(f"a step must give {dict(outputs)}")
        words = {f"new_{field.name}": core.result(field.name) for field in core.outputs}
        Circuit(core.graph, core.inputs, words).show(right, seconds=seconds)

    return Statement(core, show, expected)


def _prepared(core: Core, seconds: float) -> Statement:
    right = """(and
  (= (concat new_rest new_low) (concat #b0 dividend.significand))
  (= new_divisor divisor.significand)
  (= new_exponent (bvadd (concat #b0 dividend.place) (concat #b0 (bvnot divisor.place)))))"""

    def expected(item: Mapping[str, int]) -> int:
        rest, low = divmod(item["dividend.significand"], 2)
        exponent = item["dividend.place"] + FARTHEST - item["divisor.place"]
        fields = {"rest": rest, "low": low, "divisor": item["divisor.significand"]}
        return core.payload({**fields, "exponent": exponent})

    return _statement(core, right, expected, _state(0), seconds)


def _divided(core: Core, known: int, seconds: float) -> Statement:
    """Two digits: 4 R + the next two bits of the dividend = digits b + the new R, less than b.

    One of the first two is 1 where the dividend has its highest bit.

    Args:
        core: of the step. known: digits before it. seconds: limit.
    """
    same = f"(= ((_ extract {known + 1} 2) new_quotient) quotient)"
    some = f"(=> (= ((_ extract {BITS - 2} {BITS - 2}) rest) #b1) (not (= new_quotient #b00)))"
    right = f"""(=> (and (bvult rest divisor) (= ((_ extract {BITS - 1} {BITS - 1}) divisor) #b1))
  (and (= (concat rest {"#b00" if known else "low #b0"})
          (bvadd (bvmul (concat (_ bv0 {BITS}) ((_ extract 1 0) new_quotient))
                        (concat #b00 divisor))
                 (concat #b00 new_rest)))
       (bvult new_rest divisor)
       (= new_divisor divisor) (= new_exponent exponent)
       {same if known else some}))"""

    def expected(item: Mapping[str, int]) -> int | None:
        if item["rest"] >= item["divisor"] or not item["divisor"] & TOP:
            return None
        total = item["rest"] << 2 | item.get("low", 0) << 1
        digits, rest = divmod(total, item["divisor"])
        found = item.get("quotient", 0) << 2 | digits
        return core.payload({**item, "rest": rest, "quotient": found})

    return _statement(core, right, expected, _state(known + 2), seconds)


def _collected(core: Core, seconds: float) -> Statement:
    right = f"""(and (= new_sign #b0) (= new_exponent exponent)
  (= new_magnitude (concat quotient (ite (= rest (_ bv0 {BITS})) #b0 #b1))))"""

    def expected(item: Mapping[str, int]) -> int:
        magnitude = item["quotient"] << 1 | (item["rest"] > 0)
        return core.payload({"sign": 0, "exponent": item["exponent"], "magnitude": magnitude})

    outputs = {"sign": 1, "exponent": NUMBER.exponent_bits, "magnitude": NUMBER.width}
    return _statement(core, right, expected, outputs, seconds)


def _quotient(item: Mapping[str, int]) -> int | None:
    """The pattern of a quotient, of numbers that have their highest bit or a dividend of 0."""
    a, b = item["dividend.significand"], item["divisor.significand"]
    if not b & TOP or not (a & TOP or a == 0):
        return None
    exponent = item["dividend.place"] - item["divisor.place"]
    return floats.round_to_float(Fraction(a, b) * floats.power(exponent), floats.FP32)
