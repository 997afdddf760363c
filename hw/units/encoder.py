"""The encoders as units."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.encode import encode
from axs6.golden.feedback import encode_with_feedback
from axs6.golden.formats import AXS6, CHANNEL, FP32, BlockFormat, Level, Mode, Real, block_format
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.rounding import DETERMINISTIC, Rounding
from axs6.hw.core.layouts import outer_names, scale_names
from axs6.hw.core.parameters import BLOCKS, STRUCTURE, VIEWS
from axs6.hw.encoder.encoder import Encoder, compares_codes
from axs6.hw.encoder.feedback import FeedbackEncoder
from axs6.hw.encoder.modes import MODES, encoder_mode, lane_codes
from axs6.hw.encoder.stochastic import StochasticEncoder
from axs6.hw.units.addition_corners import addition_corners, special_pairs
from axs6.hw.units.blocks import block_items
from axs6.hw.units.encoder_corners import (
    as_values,
    beside_specials,
    boundary_rows,
    exponent_rows,
    lane_rows,
    repeated_rows,
    scale_rows,
    search_rows,
    special_patterns,
    subnormal_rows,
    subnormal_search_rows,
    subnormal_tie_rows,
    two_bit_rows,
)
from axs6.hw.units.lfsr import RANDOM_SAMPLES, SEED_SAMPLES, golden_lfsr
from axs6.hw.units.scaled_corners import random_outer_scales, scaled_corners
from axs6.hw.units.unit import Choices, Fields, Items, Parameters, Unit


def encoded_format(parameters: Parameters) -> BlockFormat:
    """The format of an encoder's blocks."""
    fmt = block_format(parameters.get("format", AXS6))
    return fmt.with_block(parameters["block"]) if fmt.blocked else fmt


def encoder_items(items: Fields, parameters: Parameters) -> Items:
    """Blocks in the encoder's mode; NaN and infinities are kept where the format can.

    Each item is a tensor of its own. An outer scale that is no positive finite number becomes NaN,
    as the innermost scale does that can, and all codes that of 0.
    """
    dtype, fmt = INPUT_DTYPES[parameters["dtype"]], encoded_format(parameters)
    blocks, bad = _encoded(items, parameters)
    bits = items["values"]
    special = (bits >> dtype.fraction_bits & dtype.exponent_special) == dtype.exponent_special
    invalid = special.any(axis=1) | bad
    found = block_items(blocks, parameters["mode"])
    for name, level, codes in zip(outer_names(fmt), fmt.outer, blocks.scales, strict=False):
        assert isinstance(level.scale, Real)
        found[f"block.{name}"] = np.where(bad, np.uint32(level.scale.dtype.quiet_nan), codes)
    if bad.any():
        _forget(found, fmt, bad)
    return {**found, "invalid": invalid.view(np.uint8)}


def _encoded(items: Fields, parameters: Parameters) -> tuple[Blocks, NDArray[np.bool_]]:
    """Blocks, and of which the outer scale is no positive finite number."""
    dtype, fmt = INPUT_DTYPES[parameters["dtype"]], encoded_format(parameters)
    bits, given, bad = items["values"], None, np.zeros(len(items["values"]), bool)
    for name in outer_names(fmt):
        given = items[name].astype(np.uint32).view(np.float32)
        bad = ~(np.isfinite(given) & (given > 0))
        given = np.where(bad, np.float32(1), given)
        fmt = replace(fmt, levels=(*fmt.blocked, Level(fmt.outer[0].scale, CHANNEL)))
    blocks = encode(
        as_values(dtype, np.where(bad[:, None], 0, bits)),
        fmt,
        rounding=parameters["rounding"],
        mode=parameters["mode"],
        random=items.get("random"),
        random_bits=parameters["random_bits"],
        nonfinite="propagate" if fmt.has_nan else "saturate",
        scale=given,
    )
    return blocks, bad


def _forget(found: Items, fmt: BlockFormat, bad: NDArray[np.bool_]) -> None:
    """Write the result of blocks whose outer scale is no number."""
    zero = np.uint8(fmt.element.zero_code)
    found["block.codes"] = np.where(bad[:, None], zero, found["block.codes"])
    for name, level in zip(scale_names(fmt)[::-1], fmt.blocked, strict=True):
        if level.scale.nan_code is not None:
            found[f"block.{name}"] = np.where(bad, level.scale.nan_code, found[f"block.{name}"])
            return


def stochastic_encoder_items(items: Fields, parameters: Parameters) -> Items:
    """Blocks rounded by random words since reset."""
    words = golden_lfsr(parameters).draw(len(items["values"]))
    rounding = {"rounding": Rounding.STOCHASTIC}
    return encoder_items({**items, "random": words}, {**parameters, **rounding})


def feedback_encoder_items(items: Fields, parameters: Parameters) -> Items:
    """Blocks, and the errors they leave."""
    values, errors = (
        items[name].astype(np.uint32).view(np.float32) for name in ("values", "errors")
    )
    fmt = encoded_format(parameters)
    blocks, left = encode_with_feedback(
        values,
        errors,
        format=fmt,
        rounding=parameters["rounding"],
        nonfinite="propagate" if fmt.has_nan else "saturate",
    )
    with np.errstate(over="ignore", invalid="ignore"):
        invalid = ~np.isfinite(values + errors).all(axis=1)
    return {
        **block_items(blocks, Mode.DENSE.label),
        "invalid": invalid.view(np.uint8),
        "errors": left.view(np.uint32),
    }


def encoder_corners(parameters: Parameters) -> Items:
    """Each special value as the maximum of a block and among larger ones, and all boundaries."""
    dtype, fmt = INPUT_DTYPES[parameters["dtype"]], encoded_format(parameters)
    block = parameters["block"]
    if fmt.exponent is None:
        return _with_words(scaled_corners(fmt, dtype, block), parameters)
    # Else a NaN is the scale, and no other value counts beside it; shifts are those of the others.
    others_count = fmt.element.has_nan or not fmt.has_nan or bool(fmt.shifts)
    special = special_patterns(dtype)
    alone = np.zeros((len(special), block), np.int64)
    alone[np.arange(len(special)), np.arange(len(special)) % block] = special
    windows = np.resize(special, (-(-len(special) // block), block))
    elements = lane_codes(encoder_mode(parameters["mode"])) if fmt.has_modes else [fmt.element]
    rows = [
        *(alone, windows, np.zeros((1, block), np.int64)),
        *lane_rows(dtype, block),
        *exponent_rows(dtype, block, nan=others_count),
        *search_rows(dtype, block),
        *subnormal_rows(dtype, block),
        *subnormal_search_rows(dtype, block),
        *chain.from_iterable(
            repeated_rows(dtype, block, x.divisor.bit_length()) for x in elements if x.divisor > 1
        ),
        *chain.from_iterable(two_bit_rows(element, dtype, block) for element in elements),
        *(subnormal_tie_rows(element, dtype, block) for element in elements),
        *(scale_rows(fmt, element, dtype) for element in elements),
        *boundary_rows(fmt, elements, dtype),
    ]
    values = np.concatenate(rows)
    values = np.concatenate([values, beside_specials(values, dtype)])
    return _with_words({"values": values}, parameters)


THRESHOLDS = 1 << 10
"""Items of which the random words are found at which a code changes."""


def _with_words(items: Items, parameters: Parameters) -> Items:
    """Items with random words, if the encoder takes them.

    Behind them are some with words at the threshold of each lane: the largest word that leaves the
    code as with the word 0, and the next one, which changes it.
    """
    words = _words(parameters, np.random.default_rng(7), len(items["values"]))
    if not words:
        return items
    items = items | words
    step = -(-len(items["values"]) // THRESHOLDS)
    some = {name: array[::step] for name, array in items.items()}
    most = (1 << parameters["random_bits"]) - 1
    found = _largest_alike(some, "random", np.full_like(some["random"], most), parameters)
    last, following = ({**some, "random": x} for x in (found, np.minimum(found + 1, most)))
    return {x: np.concatenate([items[x], last[x], following[x]]) for x in items}


def _largest_alike(
    items: Items, name: str, free: NDArray[np.int64], parameters: Parameters
) -> NDArray[np.int64]:
    """The largest numbers of an input that leave the codes as with zeros in their free bits."""

    def codes(numbers: NDArray[np.int64]) -> NDArray[Any]:
        blocks, _ = _encoded({**items, name: numbers}, parameters)
        return blocks.codes.reshape(len(numbers), -1)[:, : numbers.shape[1]]

    found = items[name] & ~free
    kept = codes(found)
    for bit in reversed(range(int(free.max()).bit_length())):
        more = found | free & 1 << bit
        found = np.where(codes(more) == kept, more, found)
    return found


def _words(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Random words, if the encoder takes them; many are all zeros or all ones."""
    if parameters.get("rounding") != Rounding.STOCHASTIC:
        return {}
    shape, most = (count, parameters["block"]), (1 << parameters["random_bits"]) - 1
    words = rng.integers(0, most, shape, endpoint=True)
    return {"random": np.where(rng.random(shape) < 0.3, rng.choice([0, most], shape), words)}


def encoder_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Blocks spread over some binades anywhere in the range, and blocks of arbitrary bits.

    They reach from the largest value to eight binades below the smallest element, and further by
    the bits of random words.
    """
    fmt, block = INPUT_DTYPES[parameters["dtype"]], parameters["block"]
    reach = encoded_format(parameters).element.integer_bits + 8
    top = rng.integers(0, fmt.exponent_special, (count, 1))
    random = parameters.get("rounding", Rounding.STOCHASTIC) == Rounding.STOCHASTIC
    spread = rng.integers(1, reach + random * parameters["random_bits"], (count, 1))
    field = np.maximum(top - rng.integers(0, spread, (count, block)), 0)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, (count, block))
    sign = rng.integers(0, 2, (count, block))
    values = sign << (fmt.width - 1) | field << fmt.fraction_bits | fraction
    anything = rng.integers(0, 1 << fmt.width, (count, block))
    values = np.where(rng.random((count, 1)) < 0.1, anything, values)
    values = np.where(rng.random((count, block)) < 0.02, 0, values)
    outer = random_outer_scales(rng, encoded_format(parameters), fmt, values)
    return {**outer, "values": values, **_words(parameters, rng, count)}


NEAR_WORDS = 1 << 12
"""Items whose values are at the thresholds of words that are known."""


def stochastic_corners(parameters: Parameters) -> Items:
    """The encoder's corners, and blocks of values at the threshold of the words that they get.

    They are the largest values that have their code, or the ones above them; a quarter has the code
    of zero, or just not.
    """
    items = encoder_corners(parameters)
    count, rng = len(items["values"]), np.random.default_rng(17)
    step = -(-count // NEAR_WORDS)
    some = {name: np.repeat(array[::step], 2, axis=0) for name, array in items.items()}
    words = golden_lfsr(parameters).draw(count + len(some["values"]))[count:]
    near = _near_words(rng, some, words, parameters)
    return {name: np.concatenate([items[name], near[name]]) for name in items}


def _near_words(rng: Generator, items: Items, words: NDArray[Any], parameters: Parameters) -> Items:
    """Items whose values are the largest with their code under these words, or just above."""
    dtype, values = INPUT_DTYPES[parameters["dtype"]], items["values"]
    places = rng.integers(0, dtype.fraction_bits, values.shape, endpoint=True)
    free = (1 << np.where(rng.random(values.shape) < 0.25, dtype.width - 1, places)) - 1
    given = {**parameters, "rounding": Rounding.STOCHASTIC}
    found = _largest_alike({**items, "random": words}, "values", free, given)
    found += (found & free != free) & (rng.random(found.shape) < 0.5)
    return {**items, "values": found}


RARE = 1 << 6
"""Random items for each one that is at the threshold of its words."""


def stochastic_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Random blocks, and values at the threshold of words that are nearly 0 or nearly the largest.

    The words are those of items since reset.
    """
    items = encoder_random(parameters, rng, count)
    words = golden_lfsr(parameters).draw(count)
    distance = np.minimum(words, (1 << parameters["random_bits"]) - 1 - words).min(axis=1)
    rows = np.argsort(distance, kind="stable")[: count // RARE]
    if len(rows):
        some = {name: array[rows] for name, array in items.items()}
        items["values"][rows] = _near_words(rng, some, words[rows], parameters)["values"]
    return items


_FEEDBACK = {"dtype": "fp32", "mode": "dense", "random_bits": 0, "rounding": "nearest"}


def feedback_corners(parameters: Parameters) -> Items:
    """The encoder's corners with errors of 0, and of equal and other sizes, and 6 binades below.

    And values and errors whose sums are hard, or of which one is no number, each pair in every
    lane.
    """
    values = encoder_corners({**parameters, **_FEEDBACK})["values"]
    sign = FP32.sign_bit
    below = np.maximum(values & (sign - 1), 6 << FP32.fraction_bits) - (6 << FP32.fraction_bits)
    others = [values, values ^ sign, np.roll(values, 1, axis=0), below, below | sign]
    turn = np.arange(len(values)) % len(others)
    pairs, special, block = addition_corners(), special_pairs(), parameters["block"]
    lane = np.arange(block) * (len(pairs) // block)
    hard = pairs[(np.arange(len(pairs))[:, None] + lane) % len(pairs)]
    beside = np.resize(hard, (block, *special.shape[:1], *hard.shape[1:]))
    beside[np.arange(block), :, np.arange(block)] = special
    hard = np.concatenate([hard, *beside])
    return {
        "values": np.concatenate([values, values, hard[..., 0]]),
        "errors": np.concatenate(
            [np.zeros_like(values), np.choose(turn[:, None], others), hard[..., 1]]
        ),
    }


def feedback_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Random values with errors within seven binades of them, or of any size."""
    given = {**parameters, **_FEEDBACK}
    values = encoder_random(given, rng, count)["values"]
    others = encoder_random(given, rng, count)["values"]
    field = values >> FP32.fraction_bits & FP32.exponent_special
    near = np.maximum(field - rng.integers(0, 8, values.shape), 0) << FP32.fraction_bits
    kept = others & (FP32.sign_bit | (1 << FP32.fraction_bits) - 1)
    return {
        "values": values,
        "errors": np.where(rng.random((count, 1)) < 0.8, kept | near, others),
    }


def encoder_choices(formats: Sequence[BlockFormat]) -> Choices:
    """Choices of an encoder; lanes that compare codes have two views."""
    fmt, *_ = formats
    return {
        "block": MODE_BLOCKS if fmt.has_modes else BLOCKS,
        "dtype": tuple(INPUT_DTYPES),
        "rounding": tuple(map(str, Rounding)),
        "mode": tuple(MODES) if fmt.has_modes else (Mode.DENSE.label,),
        "view": VIEWS if compares_codes(fmt) else (STRUCTURE,),
    }


def _of(choices: Choices, *names: str) -> Choices:
    return {name: choices[name] for name in names}


ENCODER = Unit(
    name="encoder",
    summary="a block of floating-point values becomes a block of a format",
    component=Encoder,
    values=encoder_choices,
    golden=encoder_items,
    corners=encoder_corners,
    random=encoder_random,
    samples=RANDOM_SAMPLES,
    operation="value",
    needs={"random_bits": ("rounding", str(Rounding.STOCHASTIC))},
)

STOCHASTIC_ENCODER = Unit(
    name="stochastic_encoder",
    summary="an encoder with stochastic rounding and random words of its own",
    component=StochasticEncoder,
    values=lambda formats: {
        "block": MODE_BLOCKS,
        **_of(encoder_choices(formats), "dtype", "mode"),
    },
    golden=stochastic_encoder_items,
    corners=stochastic_corners,
    random=stochastic_random,
    samples={**RANDOM_SAMPLES, **SEED_SAMPLES},
    operation="value",
    remembers=True,
)

FEEDBACK_ENCODER = Unit(
    name="feedback_encoder",
    summary="an encoder that adds to values what encoding took from the ones before",
    component=FeedbackEncoder,
    values=lambda formats: {
        **_of(encoder_choices(formats), "block"),
        "rounding": tuple(map(str, DETERMINISTIC)),
        **_of(encoder_choices(formats), "view"),
    },
    golden=feedback_encoder_items,
    corners=feedback_corners,
    random=feedback_random,
    operation="value",
)
