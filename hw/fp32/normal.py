"""Numbers whose significands have their highest bit on top, subnormal ones too."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value


def normalised(m: Module, x: Any, depth: int) -> tuple[Value, Value]:
    """The significand of a floating-point value with its highest bit on top, and its place.

    The place is the exponent field. Significands of subnormal values move to the left by `depth`
    bits at most, and their places go down as far; from a depth of 2 on, 2^(bits of the field) is
    added to all places.

    Args:
        m: the module.
        x: the fields of the value, see `axs6.hw.core.layouts.float_layout`.
        depth: a number whose bits are all ones.
    """
    normal = x.exponent.any()
    significand: Value = Cat(x.fraction, normal)
    if not depth:
        return significand, Cat(x.exponent[0] | ~normal, x.exponent[1:])
    count: Value = Cat()
    size = (depth + 1) // 2
    while size:
        zeros = ~significand[-size:].any() if size <= len(significand) else ~significand.any()
        shifted = Signal.like(significand, name=f"shifted{size}")
        m.d.comb += shifted.eq(Mux(zeros, significand << size, significand))
        significand, count = shifted, Cat(zeros, count)
        size //= 2
    if depth == 1:
        return significand, x.exponent
    top = 1 << len(x.exponent)
    place = Signal(len(x.exponent) + 1, name="normalised")
    m.d.comb += place.eq(Mux(normal, Cat(x.exponent, Const(1, 1)), top + 1 - count))
    return significand, place
