"""What units have to give, by the formats' definitions, for `axs6.proof.prove`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axs6.golden.formats.floating import INPUT_DTYPES, OUTPUT_DTYPES
from axs6.hw.core.layouts import Field
from axs6.hw.core.parameters import block_format_of
from axs6.hw.units.block_dot import shape_of
from axs6.hw.units.encoder import encoded_format
from axs6.proof.aig import Graph
from axs6.proof.block_dot import BlockDotProof
from axs6.proof.decoder import DecoderProof
from axs6.proof.dot import DotProof
from axs6.proof.encoder import EncoderProof
from axs6.proof.expander import ExpanderProof
from axs6.proof.steps import Proof


@dataclass(frozen=True)
class Subject:
    """What is to be proved.

    Args:
        graph: of a unit without `stages`. settings: all its parameters. inputs, outputs: fields of
        its payloads. seconds: limit of each question to a solver.
    """

    graph: Graph
    settings: Mapping[str, Any]
    inputs: Sequence[Field]
    outputs: Sequence[Field]
    seconds: float


Specification = Callable[[Subject], Proof]
"""Gives the proof; it raises ValueError for a format that it does not cover, before it looks at
gates of the graph."""


def _block_dot(of: Subject) -> Proof:
    return BlockDotProof(of.graph, shape_of(of.settings), of.inputs, of.outputs, of.seconds)


def _decoder(of: Subject) -> Proof:
    settings = of.settings
    if settings["blocks"] != "dense":
        raise ValueError(f"a proof of a decoder is of dense blocks, not {settings['blocks']}")
    fmt, _ = block_format_of(settings["format"], settings["block"])
    return DecoderProof(of.graph, fmt, OUTPUT_DTYPES[settings["dtype"]], of.inputs, of.outputs)


def _dot(of: Subject) -> Proof:
    return DotProof(of.graph, of.settings, shape_of(of.settings), of.inputs, of.outputs, of.seconds)


def _encoder(of: Subject) -> Proof:
    settings = of.settings
    if settings["mode"] != "dense" or settings["rounding"] == "stochastic":
        raise ValueError(
            f"a proof of an encoder is of dense blocks, to nearest or toward zero, not "
            f"{settings['mode']} and {settings['rounding']}"
        )
    fmt, dtype = encoded_format(settings), INPUT_DTYPES[settings["dtype"]]
    return EncoderProof(of.graph, fmt, dtype, settings["rounding"], of.inputs, of.outputs)


def _expander(of: Subject) -> Proof:
    return ExpanderProof(of.graph, of.settings["block"], of.inputs, of.outputs, of.seconds)


SPECIFICATIONS: Mapping[str, Specification] = {
    "block_dot": _block_dot,
    "decoder": _decoder,
    "dot": _dot,
    "encoder": _encoder,
    "expander": _expander,
}
"""By name of the unit."""
