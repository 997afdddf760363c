"""An encoder with stochastic rounding whose random words come from shift registers of its own."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib.wiring import connect, flipped

from axs6.golden.formats import block_format
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.lfsr import RANDOM_SEED
from axs6.golden.rounding import RANDOM_BITS, Rounding
from axs6.hw.core.parameters import STRUCTURE, float_dtype
from axs6.hw.core.pipeline import Pipeline, UnitSeries, most_split_stages, split_stages
from axs6.hw.encoder.encoder import encoder_format, encoder_steps
from axs6.hw.encoder.modes import encoder_mode
from axs6.hw.lfsr import Lfsr


class StochasticEncoder(UnitSeries):
    """Encodes a block of floating-point values in each cycle, rounded by words of an `Lfsr`.

    The first block after a reset takes the first words, and each later one the next. The words
    meet a block where it is rounded, behind the ranks of registers of the steps before. All else
    is as in `Encoder`.

    Args:
        block: values in a block: 8, 16 or 32; None for the format's own.
        dtype: of the values: "fp32", "bf16" or "fp16".
        mode: as of `Encoder`.
        random_bits: bits of a random word, 1 to 32.
        lfsr_seed: of the shift registers, 1 to 2^32 - 1.
        stages: ranks of registers, from 0.
        format: block format, as of `Encoder`.

    Ports:
        i (in, stream): an item is a block of values.
        i.values (in, `block` x the bits of `dtype`): the values as bit patterns, lane 0 first.
        i.outer (in, 32 bits): the scale of the tensor or channel in FP32, where the format has one.
        o (out, stream): an item is the block, as `Encoder` gives it.
        o.block.exponent, o.block.scale, o.block.shifts, o.block.factor, o.block.outer (out, the
            bits of each scale): codes of the scales that the format has.
        o.block.codes (out, `block` x the bits of an element): the codes, lane 0 first.
        o.block.mode, o.block.reserved (out, 2 and 6 bits): header of a packed block, in place of
            codes where `mode` is not dense.
        o.block.payload (out, bytes): the bytes after the header, zeros behind a sparse block.
        o.invalid (out, 1 bit): whether a value was NaN or infinite and the block cannot say so.

    Latency is `stages` cycles, interval 1. Source: specification section 7, docs/format.md.

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(
        self,
        block: int | None = None,
        dtype: str = "fp32",
        mode: str = "dense",
        random_bits: int = RANDOM_BITS,
        lfsr_seed: int = RANDOM_SEED,
        stages: int = 0,
        format: str = "axs6",
    ) -> None:
        values, kind = float_dtype(dtype, INPUT_DTYPES), encoder_mode(mode)
        fmt, lanes = encoder_format(block_format(format), block, kind, "stochastic_encoder")
        words = Lfsr(lanes, random_bits, lfsr_seed)
        front, last, packing = encoder_steps(
            fmt, lanes, values, Rounding.STOCHASTIC, random_bits, kind, STRUCTURE
        )
        back = [last, *packing]
        self.most_stages = most_split_stages(front, back)
        before, after = split_stages(front, back, stages)
        self._scale, self._round = Pipeline(front, before), Pipeline(back, after)
        self._words = words
        super().__init__((self._scale, self._words, self._round), self._scale.i, self._round.o)

    def elaborate(self, platform: Any) -> Module:
        """Join scaled values and words."""
        m = Module()
        m.submodules.scale = scale = self._scale
        m.submodules.words = words = self._words
        m.submodules.round = last = self._round
        connect(m, flipped(self.i), scale.i)
        connect(m, last.o, flipped(self.o))
        fields = scale.o.payload.shape().members
        m.d.comb += [
            words.i.valid.eq(scale.o.valid),
            words.o.ready.eq(last.i.ready),
            last.i.valid.eq(scale.o.valid),
            scale.o.ready.eq(last.i.ready),
            last.i.payload.random.eq(words.o.payload.random),
            *(last.i.payload[name].eq(scale.o.payload[name]) for name in fields),
        ]
        return m
