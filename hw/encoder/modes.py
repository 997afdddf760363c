"""The modes of encoded blocks: codes of the lanes, and how they become the encoder's output."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, wiring

from axs6.golden.formats import Float, Mode, SignMagnitude
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.formats.modes import HEADER_BITS, HIGH_CODE, LOW_CODE
from axs6.golden.modes import dropped_values
from axs6.hw.core.layouts import code_layout, encoded_layout, lanes_of
from axs6.hw.core.parameters import one_of
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.sparse import before_layout, compared, count_before
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import chosen
from axs6.hw.encoder.fields import unused_exponent_bits

MODES = {mode.label: mode for mode in (Mode.DENSE, Mode.SPARSE, Mode.HIGH_PRECISION)}
"""Modes that an encoder may have, by name."""


def encoder_mode(name: str) -> Mode:
    """The mode called `name`, or ValueError."""
    return MODES[one_of("mode", name, MODES)]


def lane_codes(mode: Mode) -> list[SignMagnitude]:
    """Formats of the codes that lanes take turns among."""
    return [HIGH_CODE, LOW_CODE] if mode is Mode.HIGH_PRECISION else [AXS6_ELEMENT]


def rounded_layout(block: int, mode: Mode) -> data.StructLayout:
    """Output of rounding: the encoder's output, except that a block that may become sparse is
    dense."""
    return encoded_layout(block, Mode.DENSE if mode is Mode.SPARSE else mode)


def code_slots(m: Module, block: Any, mode: Mode, lanes: int) -> list[Value]:
    """Slots of the codes of lanes in a block that is not sparse; sets the mode of a packed one."""
    if mode is Mode.HIGH_PRECISION:
        m.d.comb += block.mode.eq(mode)
        bits = block.payload.as_value()
    else:
        bits = block.codes.as_value()
    codes = lane_codes(mode)
    ends = list(accumulate((codes[k % len(codes)].width for k in range(lanes)), initial=0))
    return [bits[start:end] for start, end in pairwise(ends)]


def add_rounding(
    m: Module,
    platform: Any,
    step: Step,
    mode: Mode,
    makes: Sequence[Callable[[], wiring.Component]],
    lanes: Iterable[Mapping[str, ValueLike]],
) -> None:
    """Build a step to `rounded_layout` from lanes with a port `code`.

    Args:
        m: the step's module.
        platform: the one of its elaboration.
        step: whose input has an exponent and `invalid`.
        mode: of the block.
        makes, lanes: as of `axs6.hw.core.rtlil.add_lanes`, all ports but `code` connected.
    """
    connected = list(lanes)
    m.d.comb += [step.o.block.exponent.eq(step.i.exponent), step.o.invalid.eq(step.i.invalid)]
    codes = code_slots(m, step.o.block, mode, len(connected))
    whole = ({**lane, "code": code} for lane, code in zip(connected, codes, strict=True))
    add_lanes(m, platform, makes, whole)


def held_bits(o: data.StructLayout, dtype: Float, constant: int = 0) -> int:
    """Bits of an output that registers hold: those that are always 0 or equal others are not."""
    return o.size - unused_exponent_bits(dtype) - constant


HEADER_ZEROS = HEADER_BITS - AXS6_SCALE.bits - 1
"""Bits that are 0 in the headers of an encoder: one bit of the mode is not."""


def rounded_bits(block: int, mode: Mode, dtype: Float) -> int:
    """Bits of a `rounded_layout` that registers hold."""
    constant = HEADER_ZEROS if mode is Mode.HIGH_PRECISION else 0
    return held_bits(rounded_layout(block, mode), dtype, constant)


class CountZeroValues(Step):
    """Number of the first B/4 zeros of a block in front of each lane."""

    verilog_name = "count_zeros"

    def __init__(self, block: int, dtype: Float) -> None:
        self._block = block
        i = rounded_layout(block, Mode.SPARSE)
        more = {"before": before_layout(block), "zero": block, "sparse": 1}
        o = StructLayout({**i.members, **more})
        # Whether a zero lies in front of lane 1 is whether lane 0 is one.
        super().__init__(i, o, levels=35, held=held_bits(o, dtype) - 1)

    def elaborate(self, platform: Any) -> Module:
        """Build the counts, which end at B/4."""
        m = Module()
        most = dropped_values(self._block)
        zeros = [~data.View(code_layout, code).magnitude.any() for code in self.i.block.codes]
        before, total = count_before(m, zeros)
        m.d.comb += [
            self.o.zero.eq(Cat(zeros)),
            self.o.sparse.eq(total >= most),
            *(self.o[name].eq(self.i[name]) for name in self.i.shape().members),
        ]
        low = most.bit_length() - 1
        for count, o in zip(before, lanes_of(self.o.before), strict=True):
            full = count[low:].any()
            m.d.comb += o.eq(Cat(count[:low] & ~full.replicate(len(count[:low])), full))
        return m


class PackSparse(Step):
    """The packed bytes of a sparse block, or of a dense one where it has too few zeros."""

    def __init__(self, block: int, dtype: Float, i: data.StructLayout) -> None:
        self._block = block
        o = encoded_layout(block, Mode.SPARSE)
        super().__init__(i, o, levels=14, held=held_bits(o, dtype, HEADER_ZEROS))

    def elaborate(self, platform: Any) -> Module:
        """Build a selection among the nearest codes in each place of the payload."""
        m = Module()
        i, block = self.i, self.o.block
        codes = list(i.block.codes)
        dropped = dropped_values(self._block)
        before = compared(i.before, self._block)
        kept = Signal(self._block)
        m.d.comb += kept.eq(
            Cat(
                ~zero | (skipped[dropped] if len(skipped) > dropped else Const(0, 1))
                for zero, skipped in zip(i.zero, before, strict=True)
            )
        )
        stored: list[Value] = []
        for place in range(self._block - dropped):
            lanes = range(place, place + dropped + 1)
            uses = Signal(len(lanes), name=f"uses{place}")
            m.d.comb += uses.eq(Cat(kept[lane] & before[lane][lane - place] for lane in lanes))
            stored.append(chosen(list(uses), [codes[lane] for lane in lanes]))
        payload = Cat(kept, *stored)
        m.d.comb += [
            block.mode.eq(Mux(i.sparse, Mode.SPARSE, Mode.DENSE)),
            block.exponent.eq(i.block.exponent),
            block.payload.as_value().eq(Mux(i.sparse, payload, Cat(codes))),
            self.o.invalid.eq(i.invalid),
        ]
        return m


def packing_steps(block: int, mode: Mode, dtype: Float) -> list[Step]:
    """Steps from `rounded_layout` to `encoded_layout`, if they differ."""
    if mode is not Mode.SPARSE:
        return []
    count = CountZeroValues(block, dtype)
    return [count, PackSparse(block, dtype, count.o.shape())]
