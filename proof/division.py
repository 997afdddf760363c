"""The division of an FP32 number by a constant, for all patterns.

Signs and exponents pass through, which is shown for all numbers at once. For one exponent field
among the others, and for the least and the largest, all significands are tried, and each quotient
is held between the midpoints beside it.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from axs6.golden.check.exact import floats
from axs6.golden.formats import FP32
from axs6.golden.fp32 import scale_bits
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.divide import division_steps
from axs6.proof.aig import FALSE, TRUE
from axs6.proof.cases import cases_of, counting
from axs6.proof.cores import Core, Statement
from axs6.proof.scales import show_unit
from axs6.proof.smt import Circuit
from axs6.proof.steps import NotShownError

MIDDLE = 100
"""An exponent field between the least and the largest: any."""

FRACTION = FP32.fraction_bits
TOP = FP32.exponent_special - 1
"""The largest exponent field of a number."""

CHUNK = 18
"""Low bits of fractions that are tried at once."""


def division(
    seconds: float, format: str = "axs6", block: int | None = None
) -> dict[str, Statement]:
    """Statements about the division of the totals of a format.

    Args:
        seconds: limit of each question. format, block: as of a block dot product.

    Raises:
        ValueError: the format has no denominator, or there is no hardware for it.
    """
    shape = DotShape.of(format, block)
    divisor = shape.divisor
    if divisor == 1:
        raise ValueError(f"{format} has no denominator, so nothing is divided")
    core = Core(division_steps(divisor), seconds)

    def expected(item: Mapping[str, int]) -> int:
        pattern = item["value"]
        x = floats.float_value(pattern & ~floats.FP32.sign, floats.FP32)
        if not isinstance(x, Fraction):
            return floats.FP32_NAN if x is floats.Special.NAN else pattern
        quotient = x * 2 ** scale_bits(divisor) / divisor
        return pattern & floats.FP32.sign | floats.round_to_float(quotient, floats.FP32)

    statements = {
        "NaN, infinities and signs pass through, and exponent fields of 1 to 253": partial(
            _show_passing, core, shape, seconds
        )
    }
    for field in (0, MIDDLE, TOP):
        text = f"every significand under exponent field {field} gives the nearest quotient"
        statements[text] = partial(_show_quotients, core, field, divisor)
    return {text: Statement(core, show, expected) for text, show in statements.items()}


_PASSING = f"""
(define-fun sign () (_ BitVec 1) ((_ extract 31 31) value))
(define-fun field () (_ BitVec 8) ((_ extract 30 23) value))
(define-fun x () Float32 ((_ to_fp 8 24) value))
(define-fun moved () (_ BitVec 31)
  (bvadd ((_ extract 30 0) middle) (concat (bvsub field (_ bv{MIDDLE} 8)) (_ bv0 23))))
(define-fun inner () Bool (and (bvugt field #x00) (bvult field (_ bv{TOP} 8))))
(define-fun right () Bool
  (ite (fp.isNaN x) (= quotient #x{floats.FP32_NAN:08x})
  (ite (fp.isInfinite x) (= quotient value)
    (and (= ((_ extract 30 0) quotient) ((_ extract 30 0) positive))
         (= ((_ extract 31 31) quotient) sign)
         (=> inner (= ((_ extract 30 0) quotient) moved))))))
"""


def _show_passing(core: Core, shape: DotShape, seconds: float) -> None:
    """Under a field from 1 to 253 a quotient is that under `MIDDLE`, moved by their difference.

    That is the nearest one, as midpoints move alike: no field of a quotient is then 0 or 255.
    """
    show_unit(shape)
    graph, quotient = core.graph, core.result("value")
    bits = graph.bus("i_payload", 0, FP32.width)
    positive = graph.cofactor(quotient, {bits[-1]: FALSE})
    words = {
        "quotient": quotient,
        "positive": positive,
        "middle": graph.cofactor(positive, _constant(bits[FRACTION:-1], MIDDLE)),
    }
    Circuit(graph, core.inputs, words).show("right", _PASSING, seconds=seconds)


def _constant(bits: Sequence[int], number: int) -> dict[int, int]:
    return {bit: TRUE if number >> k & 1 else FALSE for k, bit in enumerate(bits)}


def _show_quotients(core: Core, field: int, divisor: int) -> None:
    graph = core.graph
    bits = graph.bus("i_payload", 0, FP32.width)
    given = _constant(bits[FRACTION:], field)
    quotient = graph.cofactor(core.result("value"), given)
    cases = counting(bits[:CHUNK])
    words = len(next(iter(cases.values())))
    for high in range(1 << FRACTION - CHUNK):
        for k, bit in enumerate(bits[CHUNK:FRACTION]):
            cases[bit] = np.full(words, -(high >> k & 1), np.int64).view(np.uint64)
        found = np.zeros(1 << CHUNK, np.int64)
        for place, each in enumerate(graph.values(quotient, cases)):
            found |= cases_of(each, CHUNK).astype(np.int64) << place
        fractions = np.arange(1 << CHUNK) + (high << CHUNK)
        if (wrong := ~_nearest(fractions, field, divisor, found)).any():
            fraction = int(fractions[int(np.argmax(wrong))])
            raise NotShownError(f"fraction {fraction:#x} is wrong", field << FRACTION | fraction)


def _nearest(
    fractions: NDArray[np.int64], field: int, divisor: int, found: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether patterns are the quotients of numbers under one field, rounded to nearest even."""
    least = max(field, 1)
    significands = fractions + (bool(field) << FRACTION)
    exact = significands << scale_bits(divisor) + 2

    def midpoint_above(pattern: NDArray[np.int64]) -> NDArray[np.int64]:
        """In the unit of `exact`, times the divisor; shifts beyond the limits decide nothing."""
        own = pattern >> FRACTION
        significand = (pattern & (1 << FRACTION) - 1) + ((own > 0).astype(np.int64) << FRACTION)
        shift = np.clip(np.maximum(own, 1) - least + 1, 0, 20)
        return (2 * significand + 1) * divisor << shift

    even, above, below = found & 1 == 0, midpoint_above(found), midpoint_above(found - 1)
    largest, zero = found == FP32.infinity, found == 0
    return (
        (found <= FP32.infinity)
        & (largest | (exact < above) | (even & (exact == above)))
        & (zero | (exact > below) | (even & (exact == below)))
    )
