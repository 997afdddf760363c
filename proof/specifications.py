"""What units have to give, by the formats' definitions, for `axs6.proof.prove`."""

from collections.abc import Callable, Mapping, Sequence
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

Specification = Callable[
    [Graph, Mapping[str, Any], Sequence[Field], Sequence[Field], float],
    Proof,
]
"""Gives the proof for the graph of a unit without `stages`, its parameters, and its fields.

The last argument is the limit of each question to a solver, in seconds. It raises ValueError for a
format that it does not cover, before it looks at gates of the graph."""


def _block_dot(
    graph: Graph,
    settings: Mapping[str, Any],
    inputs: Sequence[Field],
    outputs: Sequence[Field],
    seconds: float,
) -> Proof:
    return BlockDotProof(graph, shape_of(settings), inputs, outputs, seconds)


def _decoder(
    graph: Graph,
    settings: Mapping[str, Any],
    inputs: Sequence[Field],
    outputs: Sequence[Field],
    seconds: float,
) -> Proof:
    if settings["blocks"] != "dense":
        raise ValueError(f"a proof of a decoder is of dense blocks, not {settings['blocks']}")
    fmt, _ = block_format_of(settings["format"], settings["block"])
    return DecoderProof(graph, fmt, OUTPUT_DTYPES[settings["dtype"]], inputs, outputs)


def _dot(
    graph: Graph,
    settings: Mapping[str, Any],
    inputs: Sequence[Field],
    outputs: Sequence[Field],
    seconds: float,
) -> Proof:
    return DotProof(graph, settings, shape_of(settings), inputs, outputs, seconds)


def _encoder(
    graph: Graph,
    settings: Mapping[str, Any],
    inputs: Sequence[Field],
    outputs: Sequence[Field],
    seconds: float,
) -> Proof:
    if settings["mode"] != "dense" or settings["rounding"] == "stochastic":
        raise ValueError(
            f"a proof of an encoder is of dense blocks, to nearest or toward zero, not "
            f"{settings['mode']} and {settings['rounding']}"
        )
    fmt, dtype = encoded_format(settings), INPUT_DTYPES[settings["dtype"]]
    return EncoderProof(graph, fmt, dtype, settings["rounding"], inputs, outputs)


def _expander(
    graph: Graph,
    settings: Mapping[str, Any],
    inputs: Sequence[Field],
    outputs: Sequence[Field],
    seconds: float,
) -> Proof:
    return ExpanderProof(graph, settings["block"], inputs, outputs, seconds)


SPECIFICATIONS: Mapping[str, Specification] = {
    "block_dot": _block_dot,
    "decoder": _decoder,
    "dot": _dot,
    "encoder": _encoder,
    "expander": _expander,
}
"""By name of the unit."""
