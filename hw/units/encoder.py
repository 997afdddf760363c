"""The encoders as units."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.encode import encode
from axs6.golden.feedback import encode_with_feedback
from axs6.golden.formats import FP32, BlockFormat, Float, Mode
from axs6.golden.spec import (
    BLOCK_SIZES,
    DETERMINISTIC,
    INPUT_DTYPES,
    Rounding,
)
from axs6.hw.core.parameters import VIEWS
from axs6.hw.encoder.encoder import Encoder
from axs6.hw.encoder.feedback import FeedbackEncoder
from axs6.hw.encoder.modes import MODES, encoder_mode, lane_codes
from axs6.hw.encoder.stochastic import StochasticEncoder
from axs6.hw.units.blocks import block_items
from axs6.hw.units.lfsr import RANDOM_SAMPLES, SEED_SAMPLES, golden_lfsr
from axs6.hw.units.unit import Choices, Fields, Items, Parameters, Unit


def encoder_items(items: Fields, parameters: Parameters) -> Items:
    """Blocks in the encoder's mode."""
    fmt = INPUT_DTYPES[parameters["dtype"]]
    bits = items["values"]
    dtype = {"fp32": np.float32, "fp16": np.float16, "bf16": np.uint16}[fmt.name]
    blocks = encode(
        bits.astype(f"u{fmt.width // 8}").view(dtype),
        block=parameters["block"],
        rounding=parameters["rounding"],
        mode=parameters["mode"],
        random=items.get("random"),
        random_bits=parameters["random_bits"],
        nonfinite="saturate",
    )
    special = (bits >> fmt.fraction_bits & fmt.exponent_special) == fmt.exponent_special
    return block_items(blocks, parameters["mode"]) | {"invalid": special.any(axis=1).view(np.uint8)}


def stochastic_encoder_items(items: Fields, parameters: Parameters) -> Items:
    """Blocks rounded by words that nothing restarts."""
    words = golden_lfsr(parameters).draw(len(items["values"]))
    rounding = {"rounding": Rounding.STOCHASTIC}
    return encoder_items({**items, "random": words}, {**parameters, **rounding})


def feedback_encoder_items(items: Fields, parameters: Parameters) -> Items:
    """Blocks, and what they leave of the values with their errors."""
    values, errors = (
        items[name].astype(np.uint32).view(np.float32) for name in ("values", "errors")
    )
    blocks, left = encode_with_feedback(
        values,
        errors,
        parameters["block"],
        rounding=parameters["rounding"],
        nonfinite="saturate",
    )
    with np.errstate(over="ignore", invalid="ignore"):
        invalid = ~np.isfinite(values + errors).all(axis=1)
    return {
        **block_items(blocks, Mode.DENSE.label),
        "invalid": invalid.view(np.uint8),
        "errors": left.view(np.uint32),
    }


def _special_patterns(fmt: Float) -> NDArray[np.int64]:
    """Each power of two with both neighbours, zeros, subnormals, infinities, NaN; both signs."""
    powers = np.arange(fmt.exponent_special) << fmt.fraction_bits
    subnormal_powers = 1 << np.arange(fmt.fraction_bits)
    near = np.concatenate([powers, subnormal_powers])[:, None] + np.array([-1, 0, 1])
    special = [0, fmt.max_finite, fmt.infinity, fmt.infinity + 1, fmt.quiet_nan]
    patterns = np.unique(np.concatenate([near.ravel(), special]))
    patterns = patterns[patterns >= 0]
    return np.concatenate([patterns, patterns | fmt.sign_bit])


def _threshold_patterns(fmt: Float, field: int, largest: int) -> NDArray[np.int64]:
    """Values around each half step k / (2 * largest) of a scale, for a maximum with `field`."""
    width = fmt.fraction_bits + 1
    scaled = (np.arange(1, 2 * largest + 1) << width) // (2 * largest)
    significand = (scaled[:, None] + np.array([-1, 0, 1, 2])).ravel()
    length = np.frompyfunc(int.bit_length, 1, 1)(significand).astype(np.int64)
    exponent = field + length - width
    normal = (exponent << fmt.fraction_bits) + (
        (significand << np.maximum(width - length, 0)) - (1 << fmt.fraction_bits)
    )
    return normal[(exponent > 0) & (length <= width)]


def encoder_corners(parameters: Parameters) -> Items:
    """Each special value as the maximum of a block and among larger ones, and all boundaries."""
    fmt, block = INPUT_DTYPES[parameters["dtype"]], parameters["block"]
    special = _special_patterns(fmt)
    alone = np.zeros((len(special), block), np.int64)
    alone[np.arange(len(special)), np.arange(len(special)) % block] = special
    windows = np.resize(special, (-(-len(special) // block), block))
    rows = [alone, windows, np.zeros((1, block), np.int64)]
    # Below the boundary of fp16's normal range nothing is left to round.
    fields = (8, fmt.exponent_special // 2, fmt.exponent_special - 1)
    for field, code in product(fields, lane_codes(encoder_mode(parameters["mode"]))):
        near = _threshold_patterns(fmt, field, code.largest_code)
        # An odd number of other lanes: each value comes to even ones and to odd ones.
        full = np.resize(near, (-(-2 * len(near) // (block - 1)), block - 1))
        top = np.full((len(full), 1), (field << fmt.fraction_bits) + 1)
        rows.append(np.concatenate([full, top], axis=1))
    values = np.concatenate(rows)
    return {"values": values, **_words(parameters, np.random.default_rng(7), len(values))}


def _words(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Random words for the encoder, if it takes some: many of them all zeros or all ones."""
    if parameters.get("rounding") != Rounding.STOCHASTIC:
        return {}
    shape, most = (count, parameters["block"]), (1 << parameters["random_bits"]) - 1
    words = rng.integers(0, most, shape, endpoint=True)
    return {"random": np.where(rng.random(shape) < 0.3, rng.choice([0, most], shape), words)}


def encoder_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Blocks with a spread of 0 to 12 binades anywhere in the range, or of any bits at all.

    Random words reach as many binades further as they have bits.
    """
    fmt, block = INPUT_DTYPES[parameters["dtype"]], parameters["block"]
    top = rng.integers(0, fmt.exponent_special, (count, 1))
    random = parameters.get("rounding", Rounding.STOCHASTIC) == Rounding.STOCHASTIC
    spread = rng.integers(1, 13 + random * parameters["random_bits"], (count, 1))
    field = np.maximum(top - rng.integers(0, spread, (count, block)), 0)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, (count, block))
    sign = rng.integers(0, 2, (count, block))
    values = sign << (fmt.width - 1) | field << fmt.fraction_bits | fraction
    anything = rng.integers(0, 1 << fmt.width, (count, block))
    values = np.where(rng.random((count, 1)) < 0.1, anything, values)
    values = np.where(rng.random((count, block)) < 0.02, 0, values)
    return {"values": values, **_words(parameters, rng, count)}


_FEEDBACK = {"dtype": "fp32", "mode": "dense", "random_bits": 0, "rounding": "nearest"}


def feedback_corners(parameters: Parameters) -> Items:
    """The encoder's corners with errors of 0, their own size, others, and six binades below."""
    values = encoder_corners({**_FEEDBACK, "block": parameters["block"]})["values"]
    sign = FP32.sign_bit
    below = np.maximum(values & (sign - 1), 6 << FP32.fraction_bits) - (6 << FP32.fraction_bits)
    others = [np.zeros_like(values), values, values ^ sign, np.roll(values, 1, axis=0)]
    turn = np.arange(len(values)) % 6
    errors = np.choose(turn[:, None], [*others, below, below | sign])
    return {"values": values, "errors": errors}


def feedback_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Random values, with errors within seven binades of them, or anything."""
    given = {**_FEEDBACK, "block": parameters["block"]}
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
    """What an encoder may be."""
    return {
        "block": BLOCK_SIZES,
        "dtype": tuple(INPUT_DTYPES),
        "rounding": tuple(map(str, Rounding)),
        "mode": tuple(MODES),
        "view": VIEWS,
    }


def _of(choices: Choices, *names: str) -> Choices:
    return {name: choices[name] for name in names}


ENCODER = Unit(
    name="encoder",
    summary="a block of floating-point values becomes an AXS-6 block",
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
    values=lambda formats: _of(encoder_choices(formats), "block", "dtype", "mode"),
    golden=stochastic_encoder_items,
    corners=encoder_corners,
    random=encoder_random,
    samples={**RANDOM_SAMPLES, **SEED_SAMPLES},
    operation="value",
    remembers=True,
)

FEEDBACK_ENCODER = Unit(
    name="feedback_encoder",
    summary="an encoder that adds to values what encoding took from the ones before",
    component=FeedbackEncoder,
    values=lambda formats: {
        "block": BLOCK_SIZES,
        "rounding": tuple(map(str, DETERMINISTIC)),
        "view": VIEWS,
    },
    golden=feedback_encoder_items,
    corners=feedback_corners,
    random=feedback_random,
    operation="value",
)
