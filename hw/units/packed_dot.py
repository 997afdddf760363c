"""Pairs of packed blocks as items of dot products: reading them, and making them of dense ones."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat
from axs6.golden.scale_factor import ScaleFactor
from axs6.hw.core.layouts import fields as layout_fields
from axs6.hw.core.layouts import filled_layout, outer_names
from axs6.hw.core.parameters import formats_of_operands
from axs6.hw.units.blocks import blocks_of, expanded, random_outer
from axs6.hw.units.decoder import filled, read_filled
from axs6.hw.units.packed import packed_vectors
from axs6.hw.units.unit import Fields, Items, Parameters

FAULTS = 0.05
"""Share of the blocks of corners, on their second way through, with a fault in a field."""


def formats_of(parameters: Parameters) -> tuple[BlockFormat, BlockFormat]:
    """The formats of both operands, with the blocks of a unit."""
    parts = formats_of_operands(parameters.get("format", "axs6"))
    first, second = (
        fmt.with_block(parameters["block"]) if fmt.blocked else fmt for fmt in (parts[0], parts[-1])
    )
    return first, second


def read_pairs(
    items: Fields, formats: Sequence[BlockFormat], marked: NDArray[np.bool_]
) -> tuple[Items, NDArray[np.bool_]]:
    """Pairs as dense blocks beside the product of their outer scales, and which are errors.

    Marked pairs are errors too. Both blocks of one are zeros under scales of zeros; in formats with
    modes only those that cannot be read.
    """
    if formats[0].has_modes:
        return _expanded_pairs(items, formats[0].block, marked)
    wrong = marked.astype(bool)
    sides: dict[str, Items] = {}
    for side, fmt in zip("ab", formats, strict=True):
        sides[side], error = read_filled(_side(items, side), fmt)
        wrong = wrong | error
    for fields in sides.values():
        for name, array in fields.items():
            fields[name] = np.where(wrong.reshape(-1, *[1] * (array.ndim - 1)), 0, array)
    pairs = {
        f"{side}.{name}": array
        for (side, fields), fmt in zip(sides.items(), formats, strict=True)
        for name, array in fields.items()
        if name not in outer_names(fmt)
    }
    if any(fmt.outer for fmt in formats):
        first, second = (
            ScaleFactor.of(blocks_of(sides[side], fmt))
            for side, fmt in zip("ab", formats, strict=True)
        )
        pairs["outer"] = _products(first, second, len(wrong))
    return pairs, wrong


def _expanded_pairs(
    items: Fields, block: int, marked: NDArray[np.bool_]
) -> tuple[Items, NDArray[np.bool_]]:
    wrong = np.zeros(len(marked), bool)
    pairs: Items = {}
    for side in "ab":
        own = {**_side(items, side)}
        own["reserved"] = own["reserved"] | marked
        blocks, error = expanded(own, "", block)
        wrong |= error
        pairs |= {f"{side}.exponent": blocks.exponents[:, 0], f"{side}.codes": blocks.codes[:, 0]}
    return pairs, wrong


def _side(items: Fields, side: str) -> Items:
    """The fields of one operand."""
    prefix = f"{side}."
    return {name[2:]: array for name, array in items.items() if name.startswith(prefix)}


def _products(first: ScaleFactor, second: ScaleFactor, count: int) -> NDArray[np.uint32]:
    """FP32 patterns of first[n] * second[n], as `ScaleFactor.product` has a row of one column."""
    row = replace(
        second,
        significand=second.significand.T,
        exponent=second.exponent.T,
        nan=second.nan.T,
    )
    every = slice(None)
    return np.broadcast_to(first.product(row, every, every)[:, 0], count)


def filled_pairs(
    items: Fields, formats: Sequence[BlockFormat], rng: Generator, share: float = 0.0
) -> Items:
    """Dense pairs as packed ones with random outer scales; a share has a fault in each field."""
    found: Items = {}
    for side, fmt in zip("ab", formats, strict=True):
        own = _side(items, side)
        count, lanes = own["codes"].shape
        own |= random_outer(rng, fmt, count)
        packed = filled(own, fmt, {"block": lanes}, rng, share)
        found |= {f"{side}.{name}": array for name, array in packed.items()}
    return found


def packed_pairs(items: Items, formats: Sequence[BlockFormat], rng: Generator) -> Items:
    """Dense vectors as packed ones, followed by vectors with errors."""
    if formats[0].has_modes:
        return packed_vectors(items, formats[0].block)
    right, wrong = (filled_pairs(items, formats, rng, share) for share in (0.0, FAULTS))
    flipped = _flipped(right, formats)
    count = len(next(iter(flipped.values())))
    last = [items["last"], items["last"], np.ones(count, np.int64)]
    pairs = {name: np.concatenate([right[name], wrong[name], flipped[name]]) for name in right}
    return {**pairs, "last": np.concatenate(last)}


def _flipped(pairs: Fields, formats: Sequence[BlockFormat]) -> Items:
    """The first pair once for each bit that is not of a code, with that bit inverted."""
    bits = [
        (f"{side}.{field.name}", element, bit)
        for side, fmt in zip("ab", formats, strict=True)
        for field in layout_fields(filled_layout(pairs[f"{side}.codes"].shape[1], fmt))
        for element in range(field.count if field.name != "codes" else 0)
        for bit in range(field.width)
    ]
    found = {name: np.repeat(array[:1], len(bits), axis=0) for name, array in pairs.items()}
    for row, (name, element, bit) in enumerate(bits):
        found[name].reshape(len(bits), -1)[row, element] ^= 1 << bit
    return found
