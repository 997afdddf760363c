"""Decoder and expander as units."""

import numpy as np
from numpy.random import Generator

from axs6.golden.decode import decode
from axs6.golden.formats import AXS6
from axs6.golden.spec import (
    BLOCK_SIZES,
    CODE_BITS,
    EXPONENT_MAX,
    OUTPUT_DTYPES,
)
from axs6.hw.core.parameters import BLOCK_FORMS, VIEWS
from axs6.hw.decoder.decoder import Decoder
from axs6.hw.decoder.expander import Expander
from axs6.hw.units.blocks import blocks_of, expanded, packed_items, random_codes, read_packed
from axs6.hw.units.packed import packed_corners, packed_random
from axs6.hw.units.unit import Fields, Items, Parameters, Unit


def expander_items(items: Fields, parameters: Parameters) -> Items:
    """Dense blocks, zeros for errors."""
    blocks, error = expanded(items, "", parameters["block"])
    return {
        "exponent": blocks.exponents[:, 0],
        "codes": blocks.codes[:, 0],
        "error": error.view(np.uint8),
    }


def decoder_items(items: Fields, parameters: Parameters) -> Items:
    """Values, zeros for errors."""
    fmt = OUTPUT_DTYPES[parameters["dtype"]]
    dtype = {"fp32": np.float32, "bf16": "bfloat16"}[fmt.name]
    errors = {}
    if parameters["blocks"] == "packed":
        blocks, error = read_packed(items, "", parameters["block"])
        errors["error"] = error.view(np.uint8)
    else:
        blocks = blocks_of(items, AXS6.with_block(parameters["block"]))
    return {"values": decode(blocks, dtype).view(f"u{fmt.width // 8}"), **errors}


def _expander_corners(parameters: Parameters) -> Items:
    return packed_items(packed_corners(parameters["block"]))


def _expander_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    exponents = rng.integers(0, EXPONENT_MAX + 1, count)
    return packed_items(packed_random(rng, exponents, parameters["block"]))


def _decoder_corners(parameters: Parameters) -> Items:
    """Every code with every exponent."""
    if parameters["blocks"] == "packed":
        return _expander_corners(parameters)
    block = parameters["block"]
    codes = np.arange(1 << CODE_BITS).reshape(-1, block)
    exponents = np.arange(EXPONENT_MAX + 1)
    return {
        "exponent": np.repeat(exponents, len(codes)),
        "codes": np.tile(codes, (len(exponents), 1)),
    }


def _decoder_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    if parameters["blocks"] == "packed":
        return _expander_random(parameters, rng, count)
    return {
        "exponent": rng.integers(0, EXPONENT_MAX + 1, count),
        "codes": random_codes(rng, (count, parameters["block"])),
    }


DECODER = Unit(
    name="decoder",
    summary="an AXS-6 block becomes floating-point values",
    component=Decoder,
    values=lambda formats: {
        "block": BLOCK_SIZES,
        "dtype": tuple(OUTPUT_DTYPES),
        "blocks": BLOCK_FORMS,
        "view": VIEWS,
    },
    golden=decoder_items,
    corners=_decoder_corners,
    random=_decoder_random,
    operation="value",
)

EXPANDER = Unit(
    name="expander",
    summary="a packed block, dense or sparse, becomes a dense one",
    component=Expander,
    values=lambda formats: {"block": BLOCK_SIZES},
    golden=expander_items,
    corners=_expander_corners,
    random=_expander_random,
    operation="value",
)
