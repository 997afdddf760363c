"""The reference for area: an encoder and a decoder of plain operators and textbook parts.

They take and give the items of `axs6.hw.encoder.encoder.Encoder` (rounding to nearest) and
`axs6.hw.decoder.decoder.Decoder`, equal on every bit, combinational: latency 0, interval 1.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import AXS6, Float
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.formats.floating import INPUT_DTYPES, OUTPUT_DTYPES
from axs6.hw.core.layouts import block_layout, encoded_layout, float_layout, values_layout
from axs6.hw.core.parameters import float_dtype
from axs6.hw.core.trees import any_of, balanced, leading_zeros

EXPONENT_BITS = AXS6_SCALE.bits
MAGNITUDE_BITS = AXS6_ELEMENT.magnitude_bits
MAGNITUDE_MAX = AXS6_ELEMENT.largest_code

WIDE_DTYPES = {name: f for name, f in INPUT_DTYPES.items() if f.exponent_bits == EXPONENT_BITS}
"""Dtypes with the exponents of AXS-6, which `PlainEncoder` takes."""


def shift_right(m: Module, value: Value, distance: Value, name: str) -> tuple[Value, Value]:
    """Return a barrel shifter's result, and whether any bit that left it on the right was set."""
    lost: list[Value] = []
    for k in range(len(distance)):
        kept, out = value[1 << k :], value[: 1 << k]
        lost.append(distance[k] & out.any())
        shifted = Signal(len(value), name=f"{name}{k}")
        m.d.comb += shifted.eq(Mux(distance[k], kept, value))
        value = shifted
    return value, any_of(lost)


class PlainEncodeLane(wiring.Component):
    """A code: 31 times the significand, shifted right and rounded to nearest, ties to even."""

    def __init__(self, fmt: Float) -> None:
        self._fmt = fmt
        super().__init__(
            {
                "magnitude": In(fmt.width - 1),
                "exponent": In(EXPONENT_BITS),
                "magnitude_code": Out(MAGNITUDE_BITS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the product, the shifter and the rounding."""
        m = Module()
        count = self._fmt.fraction_bits
        fraction, field = self.magnitude[:count], self.magnitude[count:]
        normal = field.any()
        significand = Cat(fraction, normal)
        # Twice the product, shifted by one more: a block of subnormals has E = 0 and shifts by -1.
        product = Signal(count + 2 + MAGNITUDE_BITS)
        distance = Signal(EXPONENT_BITS)
        rounded = Signal(MAGNITUDE_BITS + 2)
        m.d.comb += [
            product.eq(((significand << MAGNITUDE_BITS) - significand) << 1),
            distance.eq(self.exponent - Mux(normal, field, 1) + 1),
        ]
        value, lost = shift_right(m, product, distance, "shifted")
        whole, half, rest = value[count:], value[count - 1], value[: count - 1].any() | lost
        m.d.comb += [
            rounded.eq(whole + (half & (rest | whole[0]))),
            self.magnitude_code.eq(Mux(rounded > MAGNITUDE_MAX, MAGNITUDE_MAX, rounded)),
        ]
        return m


class PlainEncoder(wiring.Component):
    """An encoder with the largest magnitude from a tree of whole comparisons.

    Args:
        block: values in a block: 8, 16 or 32.
        dtype: of the values: one of `WIDE_DTYPES`.
    """

    latency = 0
    interval = 1

    def __init__(self, block: int = 32, dtype: str = "fp32") -> None:
        self._block = AXS6.with_block(block).block
        self._fmt = float_dtype(dtype, WIDE_DTYPES)
        values = values_layout(self._block, self._fmt)
        encoded = encoded_layout(self._block)
        super().__init__({"i": In(stream.Signature(values)), "o": Out(stream.Signature(encoded))})

    def elaborate(self, platform: Any) -> Module:
        """Build the special values, the largest magnitude, the shared exponent and the lanes."""
        m = Module()
        fmt, o = self._fmt, self.o.payload
        special, magnitudes = [], []
        for index, value in enumerate(self.i.payload.values):
            view = float_layout(fmt)(value)
            magnitude = Signal(fmt.width - 1, name=f"magnitude{index}")
            lane = m.submodules[f"lane{index}"] = PlainEncodeLane(fmt)
            here = view.exponent == fmt.exponent_special
            nan = here & view.fraction.any()
            with m.If(nan):
                m.d.comb += magnitude.eq(0)
            with m.Elif(here):
                m.d.comb += magnitude.eq(fmt.max_finite)
            with m.Else():
                m.d.comb += magnitude.eq(value[:-1])
            m.d.comb += [
                lane.magnitude.eq(magnitude),
                lane.exponent.eq(o.block.exponent),
                o.block.codes[index].eq(
                    Cat(lane.magnitude_code, view.sign & magnitude.any()),
                ),
            ]
            special.append(here)
            magnitudes.append(magnitude)
        m.d.comb += [
            o.block.exponent.eq(self._shared_exponent(m, magnitudes)),
            o.invalid.eq(any_of(special)),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
        ]
        return m

    def _shared_exponent(self, m: Module, magnitudes: list[Signal]) -> Value:
        """Return the exponent that puts the largest magnitude in [1/2, 1), 0 if that is below 0."""

        def larger(a: Value, b: Value) -> Value:
            return Mux(a > b, a, b)

        count = self._fmt.fraction_bits
        largest = Signal(self._fmt.width - 1)
        m.d.comb += largest.eq(balanced(magnitudes, larger))
        field = largest[count:]
        normal = field.any()
        exponent = Signal(signed(EXPONENT_BITS + 2))
        zeros = leading_zeros(m, Cat(largest[:count], normal))
        m.d.comb += exponent.eq(Mux(normal, field, 1) + 1 - zeros)
        return Mux(exponent < 0, 0, exponent)


def quotients(fmt: Float) -> list[tuple[int, int]]:
    """Return m / 31 for every magnitude m as a significand and minus its exponent.

    The significand lies in [1, 2) and has two bits below those of `fmt`: the next one, and one
    that says whether there is more. That of m = 0 is 0.
    """
    table = []
    for magnitude in range(MAGNITUDE_MAX + 1):
        below = MAGNITUDE_BITS - magnitude.bit_length() + (magnitude < MAGNITUDE_MAX)
        scaled, rest = divmod(magnitude << below + fmt.fraction_bits + 1, MAGNITUDE_MAX)
        table.append((scaled << 1 | bool(rest), below) if magnitude else (0, 0))
    return table


class PlainDecodeLane(wiring.Component):
    """A value: m / 31 from a table, shifted right if it is subnormal, and rounded."""

    def __init__(self, fmt: Float) -> None:
        self._fmt = fmt
        super().__init__(
            {
                "exponent": In(EXPONENT_BITS),
                "code": In(MAGNITUDE_BITS + 1),
                "value": Out(fmt.width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the table, the subtraction, the shifter and the rounding."""
        m = Module()
        fmt, table = self._fmt, quotients(self._fmt)
        most = max(below for _, below in table)
        bits = fmt.fraction_bits + 3
        magnitude = self.code[:MAGNITUDE_BITS]
        significand = Signal(bits)
        below = Signal(range(most + 1))
        field = Signal(signed(EXPONENT_BITS + 1))
        distance = Signal(range(most + 2))
        pattern = Signal(fmt.width - 1)
        m.d.comb += [
            significand.eq(Array(Const(each, bits) for each, _ in table)[magnitude]),
            below.eq(Array(Const(each, len(below)) for _, each in table)[magnitude]),
            field.eq(self.exponent - below),
            distance.eq(Mux(field < 1, 1 - field, 0)),
        ]
        shifted, lost = shift_right(m, significand, distance, "shifted")
        up = shifted[1] & (shifted[0] | lost | shifted[2])
        exponent = Mux((field < 1) | ~magnitude.any(), 0, field[:EXPONENT_BITS])
        m.d.comb += [
            pattern.eq(Cat(shifted[2:-1], exponent) + up),
            self.value.eq(
                Cat(Mux(pattern >= fmt.infinity, fmt.max_finite, pattern), self.code[-1])
            ),
        ]
        return m


class PlainDecoder(wiring.Component):
    """A decoder with a table of quotients in each lane.

    Args:
        block: values in a block: 8, 16 or 32.
        dtype: of the values: "fp32" or "bf16".
    """

    latency = 0
    interval = 1

    def __init__(self, block: int = 32, dtype: str = "fp32") -> None:
        block = AXS6.with_block(block).block
        self._fmt = float_dtype(dtype, OUTPUT_DTYPES)
        coded, values = block_layout(block), values_layout(block, self._fmt)
        super().__init__({"i": In(stream.Signature(coded)), "o": Out(stream.Signature(values))})

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        i, o = self.i.payload, self.o.payload
        m.d.comb += [self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready)]
        for index, (code, value) in enumerate(zip(i.codes, o.values, strict=True)):
            lane = m.submodules[f"lane{index}"] = PlainDecodeLane(self._fmt)
            m.d.comb += [
                lane.exponent.eq(i.exponent),
                lane.code.eq(code),
                value.eq(lane.value),
            ]
        return m
