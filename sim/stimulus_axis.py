"""Beats for the benches of the units on AXI4-Stream, in packets of random lengths."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator

from axs6.hw.expected_axis import NO_WORDS, padding_bytes
from axs6.sim.stimulus import STIMULI, Items, Parameters, Stimulus

_PACKED = {"blocks": "packed"}
_CORNERS = 100
"""Corner cases that a bench of a bus has at most: those of the unit behind it has them all."""
_RARE = 0.02
"""Share of beats with a fault."""


def _encoder_beats(parameters: Parameters, items: Items, rng: Generator) -> Items:
    return {**items, **_marks(rng, len(items["values"]))}


def _decoder_beats(parameters: Parameters, items: Items, rng: Generator) -> Items:
    count = len(items["exponent"])
    return {**items, **_padding(parameters, rng, count), **_marks(rng, count)}


def _dot_beats(parameters: Parameters, items: Items, rng: Generator) -> Items:
    """Pairs as beats of two buses, some with `last` on one side alone."""
    last = items["last"].copy()
    last[-parameters["interleave"] :] = 1
    beats = {name: array for name, array in items.items() if name != "last"}
    for side in "ab":
        more = {**_padding(parameters, rng, len(last)), **_marks(rng, len(last))}
        more["last"] = last ^ _rarely(rng, len(last)) if side == "a" else last
        beats |= {f"{side}.{name}": array for name, array in more.items()}
    beats["a.last"][-1:] = 1
    return beats


def _marks(rng: Generator, count: int) -> Items:
    """Packets of 1 to about 30 beats, mostly short ones; the last beat ends one."""
    last = (rng.random(count) < rng.choice([0.1, 0.4, 1.0], count)).astype(np.uint8)
    last[-1:] = 1
    return {"last": last, "user": _rarely(rng, count)}


def _padding(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Padding, rarely with a bit that is not zero, if a beat has any."""
    length = padding_bytes(parameters)
    if not length:
        return {}
    padding = np.zeros((count, length), np.uint8)
    wrong = np.flatnonzero(_rarely(rng, count))
    bits = rng.integers(0, 8 * length, len(wrong))
    padding[wrong, bits // 8] = 1 << bits % 8
    return {"padding": padding}


def _rarely(rng: Generator, count: int) -> Any:
    return (rng.random(count) < _RARE).astype(np.uint8)


def _on_bus(
    unit: str, beats: Callable[[Parameters, Items, Generator], Items], **more: Any
) -> Stimulus:
    """The items of a unit, with the marks that beats have."""
    inner = STIMULI[unit]

    def corners(parameters: Parameters) -> Items:
        items = inner.corners({**parameters, **more})
        step = -(-len(next(iter(items.values()))) // _CORNERS)
        some = {name: array[::step] for name, array in items.items()}
        return beats(parameters, some, np.random.default_rng(7))

    def random(parameters: Parameters, rng: Generator, count: int) -> Items:
        return beats(parameters, inner.random({**parameters, **more}, rng, count), rng)

    return Stimulus(corners, random)


BUS_STIMULI: Mapping[str, Stimulus] = {
    "axis_encoder": _on_bus("encoder", _encoder_beats, **NO_WORDS),
    "axis_decoder": _on_bus("decoder", _decoder_beats, **_PACKED),
    "axis_dot": _on_bus("dot", _dot_beats, **_PACKED),
}
"""For each unit on AXI4-Stream in the registry."""
