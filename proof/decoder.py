"""The decoder held against the definitions of its formats, for all blocks.

A value depends on its code and on the scales of its groups alone. That the netlist depends on no
more is read from its graph. Then every code under all scales is tried in every lane, and compared
with the exact model's value, rounded once to the output type; where those are too many, the lane is
taken apart at the product of the significands: see `axs6.proof.scaled_lane`.

Source: docs/formats.md, "Decoding".
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axs6.golden.check.exact import floats
from axs6.golden.check.exact.blocks import Block, decode_bits
from axs6.golden.check.subjects import definition_of
from axs6.golden.formats import BlockFormat, Float
from axs6.golden.formats.floating import OUTPUT_DTYPES
from axs6.hw.core.layouts import ZERO_POINT, Field, outer_names, scale_names
from axs6.hw.core.parameters import block_format_of
from axs6.proof.aig import Graph
from axs6.proof.cases import cases_of, counting
from axs6.proof.factors import Factor, check_factors, element, is_negative, scale
from axs6.proof.items import payload_of
from axs6.proof.scaled_lane import ScaledLane
from axs6.proof.steps import NotShownError, Proof, Steps, Subject, show_passed

LANE_BITS = 20
"""Bits that a lane depends on, at most, of which all values are tried."""


class DecoderProof:
    """Holds the graph of a decoder of dense blocks without registers against the definition.

    Args:
        graph: of the design. fmt: the format, with blocks of the right size. dtype: of the values.
        inputs, outputs: fields of the payloads. seconds: limit of each question to a solver.

    Raises:
        ValueError: a lane depends on too many bits to try all their values, and is no product of
            factors.
    """

    def __init__(
        self,
        graph: Graph,
        fmt: BlockFormat,
        dtype: Float,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        seconds: float,
    ) -> None:
        self._graph, self._format, self._dtype, self._seconds = graph, fmt, dtype, seconds
        self._inputs = {field.name: field for field in inputs}
        self._outputs = {field.name: field for field in outputs}
        self._lanes = self._inputs["codes"].count
        self._definition = definition_of(fmt)
        if (bits := len(_joined(self._given(0)))) > LANE_BITS:
            try:
                check_factors(self._definition)
            except ValueError as error:
                raise ValueError(
                    f"a proof of a decoder tries all that a value depends on, of at most "
                    f"{LANE_BITS} bits, and that of {fmt} has {bits}; else {error}"
                ) from None

    def steps(self) -> Steps:
        """What is to be shown, by name."""
        return {
            "ready and valid pass through": lambda: show_passed(self._graph),
            "each value is that of its code and scales": self._show_values,
        }

    def _given(self, lane: int) -> list[list[int]]:
        """Bits that a lane's value depends on: its code, a zero point if the format has one, and
        its scales, coarse to fine."""
        names = [*outer_names(self._format), *scale_names(self._format)]
        names = ["codes", *({ZERO_POINT} & self._inputs.keys()), *names]
        fields = [self._inputs[name] for name in names]
        return [
            self._graph.bus(
                "i_payload",
                field.offset + lane * field.count // self._lanes * field.width,
                field.width,
            )
            for field in fields
        ]

    def _show_values(self) -> None:
        """Show each lane that differs from those before it."""
        first, shown = _joined(self._given(0)), set()
        for lane in range(self._lanes):
            value = self._value(lane)
            given = _joined(self._given(lane))
            if others := self._graph.leaves(value) - {bit >> 1 for bit in given}:
                raise NotShownError(f"the value of lane {lane} depends on {len(others)} other bits")
            moved = self._graph.cofactor(value, dict(zip(given, first, strict=True)))
            if tuple(moved) in shown:
                continue
            shown.add(tuple(moved))
            try:
                self._show_first(moved)
            except NotShownError as error:
                payload = None if error.payload is None else self._payload(error.payload)
                raise NotShownError(f"lane {lane}: {error}", payload) from None

    def _value(self, lane: int) -> list[int]:
        values = self._outputs["values"]
        return self._graph.bus("o_payload", values.offset + lane * values.width, values.width)

    def _show_first(self, value: Sequence[int]) -> None:
        """Show the value of a lane whose inputs have the names of the first lane's."""
        given = _joined(self._given(0))
        if len(given) > LANE_BITS:
            factors = self._factors
            ScaledLane(self._graph, value, factors, self._dtype, self._seconds).show()
            return
        found = np.zeros(1 << len(given), np.uint64)
        for place, words in enumerate(self._graph.values(value, counting(given))):
            found |= cases_of(words, len(given)).astype(np.uint64) << np.uint64(place)
        if (wrong := found != self._table).any():
            raise NotShownError(f"it is wrong for case {int(np.argmax(wrong)):#x}")

    def _payload(self, number: int) -> int:
        """An input with equal lanes, from the bits that the factors have."""
        bits = [bit for factor in self._factors for bit in factor.bits]
        ones = {bit for place, bit in enumerate(bits) if number >> place & 1}
        names = {bit: name for name, bit in self._graph.inputs.items()}
        first = _joined(self._given(0))
        found = {
            names[bit]
            for lane in range(self._lanes)
            for bit, own in zip(_joined(self._given(lane)), first, strict=True)
            if own in ones
        }
        return payload_of(found)

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        """Patterns of the values by the number of the bits given."""
        dtype = {"fp32": floats.FP32, "bf16": floats.BF16}[self._dtype.name]
        widths = [len(bits) for bits in self._given(0)]
        starts = np.cumsum([0, *widths]).tolist()
        zero = ZERO_POINT in self._inputs
        found = np.zeros(1 << starts[-1], np.uint64)
        for case in range(len(found)):
            code, *scales = (
                case >> start & (1 << width) - 1
                for start, width in zip(starts, widths, strict=False)
            )
            point = scales.pop(0) if zero else None
            if any(map(is_negative, scales, self._definition.levels[::-1])):
                found[case] = self._dtype.quiet_nan
                continue
            block = Block(tuple((each,) for each in scales), (code,), point)
            found[case] = decode_bits(block, 0, self._definition, dtype)
        return found

    @cached_property
    def _factors(self) -> list[Factor]:
        """The element and the scales of the first lane."""
        code, *scales = self._given(0)
        others = scales.pop(0) if ZERO_POINT in self._inputs else []
        if self._definition.second is not None:
            *scales[-1], selector = scales[-1]
            others = [selector]
        levels = self._definition.levels[::-1]
        return [
            element(self._graph, code, others, self._definition),
            *(scale(self._graph, bits, level) for bits, level in zip(scales, levels, strict=True)),
        ]


def _joined(words: Sequence[Sequence[int]]) -> list[int]:
    return [bit for word in words for bit in word]


def decoder_proof(of: Subject) -> Proof:
    """The proof about a design that is to be a decoder; see `Specification`."""
    settings = of.settings
    if settings["blocks"] != "dense":
        raise ValueError(f"a proof of a decoder is of dense blocks, not {settings['blocks']}")
    fmt, _ = block_format_of(settings["format"], settings["block"])
    return DecoderProof(
        of.graph, fmt, OUTPUT_DTYPES[settings["dtype"]], of.inputs, of.outputs, of.seconds
    )
