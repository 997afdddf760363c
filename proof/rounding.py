"""Rounded results as a relation to exact values, in SMT-LIB: nothing is normalised or shifted out.

Between two neighbouring magnitudes of a dtype lies a midpoint. A pattern is an exact magnitude
rounded to nearest even if that magnitude lies between the midpoints on both sides of the pattern,
or on one of them and the pattern is even. With infinity in the place of 2^(emax + 1) this holds for
overflow as well, and for subnormal numbers, whose midpoints are no farther apart than those of the
least normal ones.
"""

from axs6.golden.formats import FP32, Float

PLACE = 16
"""Bits of exponents of two."""


def rounding(width: int, dtype: Float = FP32, *, saturate: bool = False) -> str:
    """Definition of `rounded`, of a pattern without its sign.

    What is rounded is the word `magnitude` times 2 to the word `place`, which is signed and has
    `PLACE` bits. A midpoint's integer is a significand, and 1 below it; midpoints are compared in
    units of 2^(place - bits of that). So small or so large a midpoint that its distance does not
    matter is put at a limit.

    Args:
        width: bits of the magnitude. dtype: of the pattern, with infinities. saturate: whether what
        is too large becomes the largest finite number in place of infinity.
    """
    bits_below, own = dtype.fraction_bits, dtype.width - 1
    midpoint = bits_below + 2
    last = dtype.max_finite if saturate else dtype.infinity
    wide, most = width + 2 * midpoint, width + midpoint
    least = dtype.emin - bits_below - 1  # of the least midpoint: half the least subnormal number
    bits = most.bit_length()
    zero, limit, shift = (
        f"(_ bv{value % (1 << PLACE)} {PLACE})" for value in (0, most, least - 1 + midpoint)
    )

    def extended(word: str, own: int) -> str:
        return f"((_ zero_extend {wide - own}) {word})"

    integer = extended(f"(concat normal ((_ extract {bits_below - 1} 0) r) #b1)", midpoint)
    return f"""
(define-fun exact () (_ BitVec {wide})
  (bvshl {extended("magnitude", width)} (_ bv{midpoint} {wide})))
(define-fun midpoint_above ((r (_ BitVec {own}))) (_ BitVec {wide})
  (let ((field ((_ extract {own - 1} {bits_below}) r)))
  (let ((normal (ite (= field {_field(0, dtype)}) #b0 #b1))
        (least (ite (= field {_field(0, dtype)}) {_field(1, dtype)} field)))
  (let ((far (bvsub (bvadd ((_ zero_extend {PLACE - dtype.exponent_bits}) least) {shift}) place)))
  (let ((held (ite (bvslt far {zero}) {zero} (ite (bvsgt far {limit}) {limit} far))))
    (bvshl {integer} {extended(f"((_ extract {bits - 1} 0) held)", bits)}))))))
(define-fun rounded ((r (_ BitVec {own}))) Bool
  (let ((even (= ((_ extract 0 0) r) #b0))
        (above (midpoint_above r)) (below (midpoint_above (bvsub r (_ bv1 {own})))))
    (and (bvule r (_ bv{last} {own}))
         (or (= r (_ bv{last} {own})) (bvult exact above) (and even (= exact above)))
         (or (= r (_ bv0 {own})) (bvugt exact below) (and even (= exact below))))))
"""


def _field(value: int, dtype: Float) -> str:
    return f"(_ bv{value} {dtype.exponent_bits})"
