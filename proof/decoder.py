"""The decoder held against the definitions of its formats, for all blocks.

A value depends on its code and on the scales of its groups alone. That the netlist depends on no
more is read from its graph; then every code under all scales is tried in every lane, and compared
with the exact model's value, rounded once to the output type.

Source: docs/formats.md, "Decoding".
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from axs6.golden.check.exact import floats
from axs6.golden.check.exact.blocks import Block, decode_bits
from axs6.golden.check.subjects import definition_of
from axs6.golden.formats import BlockFormat, Float, Real
from axs6.golden.formats.floating import OUTPUT_DTYPES
from axs6.hw.core.layouts import Field, scale_names
from axs6.hw.core.parameters import block_format_of
from axs6.proof.aig import Graph
from axs6.proof.cases import cases_of, counting
from axs6.proof.steps import NotShownError, Proof, Steps, Subject, show_passed

LANE_BITS = 20
"""Bits that a lane depends on, at most, of which all values are tried."""


class DecoderProof:
    """Holds the graph of a decoder of dense blocks without registers against the definition.

    Args:
        graph: of the design. fmt: the format, with blocks of the right size. dtype: of the values.
        inputs, outputs: fields of the payloads.

    Raises:
        ValueError: blocks have scales of channels or tensors or a zero point, or a lane depends on
            too many bits to try all their values.
    """

    def __init__(
        self,
        graph: Graph,
        fmt: BlockFormat,
        dtype: Float,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
    ) -> None:
        self._graph, self._format, self._dtype = graph, fmt, dtype
        self._inputs = {field.name: field for field in inputs}
        self._outputs = {field.name: field for field in outputs}
        self._lanes = self._inputs["codes"].count
        if fmt.outer:
            raise ValueError(
                f"a proof of a decoder tries all scales, and those of channels and tensors, which "
                f"{fmt} has, are too many"
            )
        if (bits := len(self._given(0))) > LANE_BITS:
            raise ValueError(
                f"a proof of a decoder tries all that a value depends on, of at most {LANE_BITS} "
                f"bits, and that of {fmt} has {bits}"
            )

    def steps(self) -> Steps:
        """What is to be shown, by name."""
        return {
            "ready and valid pass through": lambda: show_passed(self._graph),
            "each value is that of its code and scales": self._show_values,
        }

    def _scales(self) -> Iterator[tuple[Field, int, bool]]:
        """Scales of blocks, coarse to fine: field, lanes of a group, whether codes have a sign."""
        levels = self._format.blocked[::-1]
        for name, level in zip(scale_names(self._format), levels, strict=True):
            scale = level.scale
            signed = isinstance(scale, Real) and scale.dtype.signed and not scale.selector
            yield self._inputs[name], int(level.group), signed

    def _given(self, lane: int) -> list[int]:
        """Bits that a lane's value depends on: its code, then its scales, coarse to fine."""
        numbers = [(self._inputs["codes"], lane)]
        numbers += [(field, lane // group) for field, group, _ in self._scales()]
        return [
            bit
            for field, index in numbers
            for bit in self._graph.bus("i_payload", field.offset + index * field.width, field.width)
        ]

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Patterns of the values by the number of those bits, and which scales are not negative."""
        definition = definition_of(self._format)
        dtype = {"fp32": floats.FP32, "bf16": floats.BF16}[self._dtype.name]
        scales = [*self._scales()]
        widths = [self._inputs["codes"].width, *(field.width for field, _, _ in scales)]
        starts = np.cumsum([0, *widths]).tolist()
        count = 1 << starts.pop()
        found, valid = np.zeros(count, np.uint64), np.ones(count, np.bool_)
        for (field, _, signed), start in zip(scales, starts[1:], strict=True):
            valid &= ~(signed & np.arange(count) >> start + field.width - 1).astype(np.bool_)
        for case in np.flatnonzero(valid).tolist():
            code, *others = (
                case >> start & (1 << width) - 1
                for start, width in zip(starts, widths, strict=True)
            )
            block = Block(tuple((each,) for each in others), (code,))
            found[case] = decode_bits(block, 0, definition, dtype)
        return found, valid

    def _show_values(self) -> None:
        values, (table, valid) = self._outputs["values"], self._table
        for lane in range(self._lanes):
            start = values.offset + lane * values.width
            bits = self._graph.bus("o_payload", start, values.width)
            given = self._given(lane)
            others = self._graph.leaves(bits) - {bit >> 1 for bit in given}
            if others:
                raise NotShownError(f"the value of lane {lane} depends on {len(others)} other bits")
            found = np.zeros(1 << len(given), np.uint64)
            for place, words in enumerate(self._graph.values(bits, counting(given))):
                found |= cases_of(words, len(given)).astype(np.uint64) << np.uint64(place)
            if (wrong := (found != table) & valid).any():
                raise NotShownError(f"lane {lane} is wrong for case {int(np.argmax(wrong)):#x}")


def decoder_proof(of: Subject) -> Proof:
    """The proof about a design that is to be a decoder; see `Specification`."""
    settings = of.settings
    if settings["blocks"] != "dense":
        raise ValueError(f"a proof of a decoder is of dense blocks, not {settings['blocks']}")
    fmt, _ = block_format_of(settings["format"], settings["block"])
    return DecoderProof(of.graph, fmt, OUTPUT_DTYPES[settings["dtype"]], of.inputs, of.outputs)
