"""FP32 results as a relation to exact values, in SMT-LIB: nothing is normalised or shifted out.

Between two neighbouring FP32 magnitudes lies a midpoint. A pattern is an exact magnitude rounded to
nearest even if that magnitude lies between the midpoints on both sides of the pattern, or on one of
them and the pattern is even. With infinity in the place of 2^128 this holds for overflow as well,
and for subnormal numbers, whose midpoints are no farther apart than those of the least normal ones.
"""

from axs6.golden.formats import FP32

MIDPOINT = FP32.fraction_bits + 2
"""Bits of a midpoint's integer: a significand, and 1 below it."""

PLACE = 16
"""Bits of exponents of two."""

LEAST = FP32.emin - FP32.fraction_bits - 1
"""Exponent of two of the least midpoint: half the least subnormal number."""


def rounding(width: int) -> str:
    """Definition of `rounded`, of the low 31 bits of a pattern.

    What is rounded is the word `magnitude` times 2 to the word `place`, which is signed and has
    `PLACE` bits. Midpoints are compared in units of 2^(place - `MIDPOINT`). So small or so large
    a midpoint that its distance does not matter is put at a limit.

    Args:
        width: bits of the magnitude.
    """
    wide, most = width + 2 * MIDPOINT, width + MIDPOINT
    bits = most.bit_length()
    zero, limit, shift = (
        f"(_ bv{value % (1 << PLACE)} {PLACE})" for value in (0, most, LEAST - 1 + MIDPOINT)
    )

    def extended(word: str, own: int) -> str:
        return f"((_ zero_extend {wide - own}) {word})"

    integer = extended("(concat normal ((_ extract 22 0) r) #b1)", MIDPOINT)
    return f"""
(define-fun exact () (_ BitVec {wide})
  (bvshl {extended("magnitude", width)} (_ bv{MIDPOINT} {wide})))
(define-fun midpoint_above ((r (_ BitVec 31))) (_ BitVec {wide})
  (let ((field ((_ extract 30 23) r)))
  (let ((normal (ite (= field #x00) #b0 #b1)) (least (ite (= field #x00) #x01 field)))
  (let ((far (bvsub (bvadd ((_ zero_extend {PLACE - 8}) least) {shift}) place)))
  (let ((held (ite (bvslt far {zero}) {zero} (ite (bvsgt far {limit}) {limit} far))))
    (bvshl {integer} {extended(f"((_ extract {bits - 1} 0) held)", bits)}))))))
(define-fun rounded ((r (_ BitVec 31))) Bool
  (let ((even (= ((_ extract 0 0) r) #b0))
        (above (midpoint_above r)) (below (midpoint_above (bvsub r (_ bv1 31)))))
    (and (bvule r #b{FP32.infinity:031b})
         (or (= r #b{FP32.infinity:031b}) (bvult exact above) (and even (= exact above)))
         (or (= r (_ bv0 31)) (bvugt exact below) (and even (= exact below))))))
"""
