"""The units on AXI4-Stream: those behind a bus, in beats.

A beat's fields are those of its data, `last` and `user`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from axs6.golden.formats import AXS6, BlockFormat, Mode
from axs6.golden.rounding import DETERMINISTIC, RANDOM_BITS
from axs6.golden.rows import write_rows
from axs6.hw.axi_stream import beat_layout
from axs6.hw.axis import AxisDecoder, AxisDot, AxisEncoder
from axs6.hw.core.layouts import PADDING, UNUSED, fields
from axs6.hw.core.parameters import block_format_of
from axs6.hw.units.block_dot import BLOCK_DOT
from axs6.hw.units.blocks import dense_blocks, packed_items
from axs6.hw.units.decoder import DECODER, decoder_items
from axs6.hw.units.dot import DOT, INTERLEAVE_SAMPLES, packed_dot_items
from axs6.hw.units.encoder import ENCODER, encoder_items
from axs6.hw.units.packed_dot import formats_of
from axs6.hw.units.unit import Fields, Items, Parameters, Unit

NO_WORDS = {"random_bits": RANDOM_BITS}
"""A parameter of the encoder that is of no use where nothing is rounded by random words."""


def axis_encoder_items(items: Fields, parameters: Parameters) -> Items:
    """Blocks as packed bytes; `user` is set if it was set or the encoder marks a value as
    invalid."""
    given = encoder_items(items, {**parameters, **NO_WORDS})
    user = items["user"] | given.pop("invalid", np.zeros_like(items["user"]))
    packed = {name.removeprefix("block."): array for name, array in given.items()}
    fmt, block = block_format_of(parameters.get("format", AXS6), parameters["block"])
    if fmt.has_modes and parameters["mode"] == Mode.DENSE.label:
        packed = packed_items(write_rows(dense_blocks(packed["exponent"], packed["codes"])))
    for field in fields(beat_layout(block, fmt, parameters["align"])):
        if field.name in (UNUSED, PADDING):
            packed[field.name] = np.zeros((len(user), *field.shape), np.uint8)
    return {**packed, "last": items["last"], "user": user}


def axis_decoder_items(items: Fields, parameters: Parameters) -> Items:
    """Values; `user` where it was set or the beat could not be read."""
    if _format(parameters).has_modes:
        beats = _read(items)
    else:
        beats = {name: items[name] for name in items if name not in ("last", "user")}
    given = decoder_items(beats, {**parameters, "blocks": "packed"})
    user = items["user"] | given["error"]
    return {"values": given["values"], "last": items["last"], "user": user}


def _format(parameters: Parameters) -> BlockFormat:
    fmt, _ = block_format_of(parameters.get("format", AXS6), parameters["block"])
    return fmt


def axis_dot_items(items: Fields, parameters: Parameters) -> Items:
    """Results, `last` always set; `user` is set if a beat of the vector was invalid."""
    a_last, b_last = items["a.last"], items["b.last"]
    wrong = (items["a.user"] | items["b.user"] | a_last ^ b_last).astype(bool)
    pairs = {"last": a_last | b_last}
    for name, array in items.items():
        if name.endswith(f".{PADDING}"):
            wrong |= array.any(axis=1)
        elif name.partition(".")[2] not in ("last", "user"):
            pairs[name] = array
    given = packed_dot_items(pairs, parameters, wrong)
    user = given["error"]
    return {"value": given["value"], "last": np.ones_like(user), "user": user}


def padding_bytes(parameters: Parameters, fmt: BlockFormat) -> int:
    """Bytes that follow a packed block in its beat."""
    layout = beat_layout(parameters["block"], fmt, parameters["align"])
    return next((field.count for field in fields(layout) if field.name == PADDING), 0)


def _read(items: Fields) -> Items:
    """The packed blocks of beats; those whose padding is wrong cannot be read."""
    names = ("mode", "exponent", "payload")
    reserved = items["reserved"]
    if PADDING in items:
        reserved = reserved | items[PADDING].any(axis=1)
    return {**{name: items[name] for name in names}, "reserved": reserved}


def _no_words(parameters: Parameters) -> Parameters:
    return {**parameters, **NO_WORDS}


def _packed(parameters: Parameters) -> Parameters:
    return {**parameters, "blocks": "packed"}


_CORNERS = 100
"""Corner cases that a bench of a bus has at most: those of the unit behind it has them all."""


_RARE = 0.02
"""Share of beats with a fault."""

Beats = Callable[[Parameters, Items, Generator], Items]
"""Makes beats of items."""

Inner = Callable[[Parameters], Parameters]
"""Gives the parameters of the unit behind a bus."""


def _encoder_beats(parameters: Parameters, items: Items, rng: Generator) -> Items:
    return {**items, **_marks(rng, len(items["values"]))}


def _decoder_beats(parameters: Parameters, items: Items, rng: Generator) -> Items:
    """Packed blocks as beats, padded in formats without modes."""
    count = len(next(iter(items.values())))
    fmt = _format(parameters)
    padding = _padding(parameters, fmt, rng, count) if fmt.has_modes else {}
    return {**items, **padding, **_marks(rng, count)}


def _dot_beats(parameters: Parameters, items: Items, rng: Generator) -> Items:
    """Pairs as beats of two buses, some with `last` on one side alone."""
    last = items["last"].copy()
    last[-parameters["interleave"] :] = 1
    beats = {name: array for name, array in items.items() if name != "last"}
    for side, fmt in zip("ab", formats_of(parameters), strict=True):
        more = _marks(rng, len(last)) | _padding(parameters, fmt, rng, len(last))
        more["last"] = last ^ _rarely(rng, len(last)) if side == "a" else last
        beats |= {f"{side}.{name}": array for name, array in more.items()}
    beats["a.last"][-1:] = 1
    return beats


def _marks(rng: Generator, count: int) -> Items:
    """Packets of 1 to about 30 beats, mostly short; the last beat ends a packet."""
    last = (rng.random(count) < rng.choice([0.1, 0.4, 1.0], count)).astype(np.uint8)
    last[-1:] = 1
    return {"last": last, "user": _rarely(rng, count)}


def _padding(parameters: Parameters, fmt: BlockFormat, rng: Generator, count: int) -> Items:
    """Padding, if a beat has any; rarely a bit of it is 1."""
    length = padding_bytes(parameters, fmt)
    if not length:
        return {}
    padding = np.zeros((count, length), np.uint8)
    wrong = np.flatnonzero(_rarely(rng, count))
    bits = rng.integers(0, 8 * length, len(wrong))
    padding[wrong, bits // 8] = 1 << bits % 8
    return {PADDING: padding}


def _rarely(rng: Generator, count: int) -> Any:
    return (rng.random(count) < _RARE).astype(np.uint8)


def _corners(inner: Unit, beats: Beats, of: Inner) -> Callable[[Parameters], Items]:
    """Some of the corners of the unit behind a bus, with the marks that beats have."""

    def corners(parameters: Parameters) -> Items:
        items = inner.corners(of(parameters))
        step = -(-len(next(iter(items.values()))) // _CORNERS)
        some = {name: array[::step] for name, array in items.items()}
        return beats(parameters, some, np.random.default_rng(7))

    return corners


def _random(inner: Unit, beats: Beats, of: Inner) -> Callable[[Parameters, Generator, int], Items]:
    """Random items of the unit behind a bus, with the marks that beats have."""

    def random(parameters: Parameters, rng: Generator, count: int) -> Items:
        return beats(parameters, inner.random(of(parameters), rng, count), rng)

    return random


ALIGN_SAMPLES = {"align": (1, 32)}
"""Sizes of beats that tests use."""

AXIS_ENCODER = Unit(
    name="axis_encoder",
    summary="the encoder on AXI4-Stream, blocks as packed bytes",
    component=AxisEncoder,
    values=lambda formats: {
        **ENCODER.values(formats),
        "rounding": tuple(map(str, DETERMINISTIC)),
    },
    golden=axis_encoder_items,
    corners=_corners(ENCODER, _encoder_beats, _no_words),
    random=_random(ENCODER, _encoder_beats, _no_words),
    samples=ALIGN_SAMPLES,
    operation="value",
    bus=True,
)

AXIS_DECODER = Unit(
    name="axis_decoder",
    summary="the decoder on AXI4-Stream, blocks as packed bytes",
    component=AxisDecoder,
    values=lambda formats: {
        name: values for name, values in DECODER.values(formats).items() if name != "blocks"
    },
    golden=axis_decoder_items,
    corners=_corners(DECODER, _decoder_beats, _packed),
    random=_random(DECODER, _decoder_beats, _packed),
    samples=ALIGN_SAMPLES,
    operation="value",
    bus=True,
)

AXIS_DOT = Unit(
    name="axis_dot",
    summary="the dot product on AXI4-Stream, blocks as packed bytes, packets as vectors",
    component=AxisDot,
    values=BLOCK_DOT.values,
    golden=axis_dot_items,
    corners=_corners(DOT, _dot_beats, _packed),
    random=_random(DOT, _dot_beats, _packed),
    samples={**INTERLEAVE_SAMPLES, **ALIGN_SAMPLES},
    bus=True,
)
