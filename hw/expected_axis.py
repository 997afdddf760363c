"""What the golden model expects of the units on AXI4-Stream, for arrays of beats.

A beat's fields are those of its data, `last` and `user`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from axs6.golden.formats import Mode
from axs6.golden.pack import packed_bytes
from axs6.golden.rows import write_rows
from axs6.golden.spec import RANDOM_BITS
from axs6.hw.expected import (
    Arrays,
    Outputs,
    decoder_items,
    dense_blocks,
    dot_items,
    encoder_items,
    packed_items,
)

NO_WORDS = {"random_bits": RANDOM_BITS}
"""A parameter of the encoder that is of no use where nothing is rounded by random words."""


def axis_encoder_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Blocks as packed bytes; `user` where it was set or a value was NaN or infinite."""
    given = encoder_items(items, {**parameters, **NO_WORDS})
    invalid = given.pop("invalid")
    packed = {name.removeprefix("block."): array for name, array in given.items()}
    if parameters["mode"] == Mode.DENSE.label:
        packed = packed_items(write_rows(dense_blocks(packed["exponent"], packed["codes"])))
    padding = padding_bytes(parameters)
    zeros = {"padding": np.zeros((len(invalid), padding), np.uint8)} if padding else {}
    return {**packed, **zeros, "last": items["last"], "user": items["user"] | invalid}


def axis_decoder_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Values; `user` where it was set or the beat could not be read."""
    given = decoder_items(_read(items, "", False), {**parameters, "blocks": "packed"})
    user = items["user"] | given["error"]
    return {"values": given["values"], "last": items["last"], "user": user}


def axis_dot_items(items: Arrays, parameters: Mapping[str, Any]) -> Outputs:
    """Results, `last` always set; `user` where a beat of the vector was not as it must be."""
    a_last, b_last = items["a.last"], items["b.last"]
    wrong = items["a.user"] | items["b.user"] | a_last ^ b_last
    pairs = {**_read(items, "a.", wrong), **_read(items, "b.", wrong), "last": a_last | b_last}
    given = dot_items(pairs, {**parameters, "blocks": "packed"})
    last = np.ones_like(given["error"])
    return {"value": given["value"], "last": last, "user": given["error"]}


def padding_bytes(parameters: Mapping[str, Any]) -> int:
    """Bytes that follow a packed block in its beat."""
    block = parameters["block"]
    return packed_bytes(block=block, align=parameters["align"]) - packed_bytes(block=block)


def _read(items: Arrays, prefix: str, wrong: Any) -> Outputs:
    """The packed blocks of beats; those that are wrong, or whose padding is, cannot be read."""
    if f"{prefix}padding" in items:
        wrong = wrong | items[f"{prefix}padding"].any(axis=1)
    names = (f"{prefix}{name}" for name in ("mode", "exponent", "payload"))
    reserved = f"{prefix}reserved"
    return {**{name: items[name] for name in names}, reserved: items[reserved] | wrong}
