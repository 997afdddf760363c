"""What the FP32 units share: fields, rounded patterns, special values, shifts.

Every FP32 result has one rounding to nearest even; subnormals are kept, overflow gives infinity,
and a NaN is always the positive quiet one.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from axs6.golden.spec import FP32
from axs6.hw.layouts import float_layout

FIELD = FP32.exponent_bits
SIGNIFICAND = FP32.fraction_bits + 1
MAGNITUDE = FP32.width - 1

layout = float_layout(FP32)


def significand_of(x: data.View) -> Value:
    """Fraction with its hidden bit."""
    return Cat(x.fraction, x.exponent.any())


def rounded_pattern(m: Module, base: Value, kept: Value, round_up: Value) -> Value:
    """Exponent field and fraction of a rounded result, infinity where it is too large.

    `base` is the exponent field less one: the hidden bit of `kept` adds the one, and a carry out
    of the rounding adds another.
    """
    total = Signal(MAGNITUDE + 1)
    pattern = Signal(MAGNITUDE)
    m.d.comb += [
        total.eq((base << FP32.fraction_bits) + kept + round_up),
        pattern.eq(Mux(total >= FP32.infinity, FP32.infinity, total[:MAGNITUDE])),
    ]
    return pattern


def special_or(nan: Value, infinite: Value, sign: Value, pattern: Value) -> Value:
    """NaN, a signed infinity, or the pattern with its sign."""
    magnitude = Mux(infinite, FP32.infinity, pattern)
    return Mux(nan, FP32.quiet_nan, Cat(magnitude[:MAGNITUDE], sign))


def shift_right_sticky(m: Module, value: Value, distance: Value) -> Value:
    """`value >> distance`, the lowest bit or-ed with every bit that falls off."""
    for stage in range(len(distance)):
        amount = 1 << stage
        shifted = Signal(len(value), name=f"shifted{stage}")
        lost = value[: min(amount + 1, len(value))].any()
        kept = value[amount + 1 :] if amount + 1 < len(value) else Cat()
        m.d.comb += shifted.eq(Mux(distance[stage], Cat(lost, kept), value))
        value = shifted
    return value
