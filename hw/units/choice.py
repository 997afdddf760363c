"""The encoder that chooses the scale of a block, as a unit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat, Float
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.hw.core.layouts import outer_names
from axs6.hw.core.parameters import BLOCKS
from axs6.hw.encoder.choice import ChoiceEncoder
from axs6.hw.units.encoder import encoded_format, encoder_corners, encoder_items, encoder_random
from axs6.hw.units.quotient_corners import patterns_near
from axs6.hw.units.selected_corners import nearly_equal_rows
from axs6.hw.units.unit import Choices, Fields, Items, Parameters, Unit

PLAIN = {"rounding": "nearest", "mode": "dense", "random_bits": 1}
"""Parameters of an encoder that chooses no scale."""


BESIDE = 1 << 14
"""Blocks beside ties."""

FRACTION_BITS, BINADES = 10, 4
"""Bits of the fractions of values each of which occurs, at most, and the binades they lie in."""

TIMES = 2
"""How often each value comes in each lane: in some blocks the maximum is there instead."""


def choice_items(items: Fields, parameters: Parameters) -> Items:
    """The blocks of an encoder whose format has a choice."""
    return encoder_items(items, {**parameters, **PLAIN})


def choice_corners(parameters: Parameters) -> Items:
    """The encoder's corners; blocks of one magnitude and around it, in which errors are equal or
    nearly so; blocks next to which another scale is the best; blocks beside ties; and each value of
    few bits below a maximum beside a tie."""
    corners = encoder_corners({**parameters, **PLAIN})
    fmt = encoded_format(parameters)
    dtype, lanes = INPUT_DTYPES[parameters["dtype"]], parameters["block"]
    tops = (np.arange(64) << dtype.fraction_bits - 5) + (dtype.bias << dtype.fraction_bits)
    rows = np.repeat(tops[:, None], lanes, axis=1)
    rows[:, 1::3] -= 1 << dtype.fraction_bits
    rows[:, 2::5] -= 3 << dtype.fraction_bits
    kinds = [np.repeat(tops[:, None], lanes, axis=1), rows]
    kinds += [kind(fmt, dtype, lanes) for kind in (nearly_equal_rows, beside_ties, each_value)]
    more = {"values": np.concatenate(kinds)}
    one = np.float32(1).view(np.uint32)
    for name in outer_names(fmt):
        more[name] = np.full(len(more["values"]), one, np.int64)
    return {name: np.concatenate([x, more[name]]) for name, x in corners.items()}


def beside_ties(fmt: BlockFormat, dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Blocks of elements under a power of two, with ties among them, and a single 1 above or below.

    Such a bit decides where the scale that is taken drops it. Half of the blocks have a value just
    below a power of two, which is beyond the largest element under the scale before.
    """
    rng = np.random.default_rng(23)
    shape, element = (BESIDE, lanes), fmt.element
    values = np.unique(np.abs(np.asarray(element.integers))).astype(np.float64)
    ties = (values[1:] + values[:-1]) / 2
    bits = rng.choice([-1, 0, 1, 1], shape) * 2.0 ** -rng.integers(2, dtype.fraction_bits, shape)
    often = rng.choice([0.125, 0.25, 0.75], (BESIDE, 1))
    numbers = np.where(
        rng.random(shape) < often, rng.choice(ties, shape) + bits, rng.choice(values, shape)
    )
    below = 2.0**element.emax / float(element.unit) - np.abs(bits[::2, 0])
    numbers[np.arange(0, BESIDE, 2), rng.integers(lanes, size=len(below))] = below
    scales = 2.0 ** rng.integers(-6, 6, (BESIDE, 1)) * float(element.unit)
    signs = rng.integers(2, size=shape) << dtype.width - 1
    return patterns_near(dtype, numbers * scales) | signs


def each_value(fmt: BlockFormat, dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Blocks with each value of few bits in each lane, in the binades of the largest elements.

    The maximum is half a step above the largest element, or next to that.
    """
    rng = np.random.default_rng(26)
    values = np.unique(np.abs(np.asarray(fmt.element.integers))).astype(np.float64)
    tie = patterns_near(dtype, values[-1:] + (values[-1:] - values[-2:-1]) / 2)
    bits = min(dtype.fraction_bits, FRACTION_BITS)
    each = (tie >> dtype.fraction_bits << bits) + np.arange(-(BINADES - 1) << bits, 1 << bits)
    each <<= dtype.fraction_bits - bits
    rows = []
    for top in (tie - 1, tie, tie + 1):
        for _ in range(TIMES):
            order = np.argsort(rng.random((len(each), lanes)), axis=0)
            block = np.minimum(each[order], top)
            block[np.arange(len(each)), rng.integers(lanes, size=len(each))] = top
            rows.append(block)
    found = np.concatenate(rows)
    return found | rng.integers(2, size=found.shape) << dtype.width - 1


def choice_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    """The encoder's random items, half of them within few binades, as values of models are."""
    dtype: Any = INPUT_DTYPES[parameters["dtype"]]
    items = encoder_random({**parameters, **PLAIN}, rng, count)
    near = items["values"] & ~(dtype.exponent_special << dtype.fraction_bits)
    binades = np.minimum(rng.geometric(0.5, near.shape), 8)
    near |= (dtype.bias - binades) << dtype.fraction_bits
    often = rng.random((count, 1)) < 0.5
    for name in outer_names(encoded_format(parameters)):
        scales = np.float32(2.0) ** rng.uniform(-9, -3, count).astype(np.float32)
        items[name] = np.where(often[:, 0], scales.view(np.uint32), items[name])
    return {**items, "values": np.where(often, near, items["values"])}


def choice_values(formats: Sequence[BlockFormat]) -> Choices:
    """Blocks and dtypes."""
    return {"block": BLOCKS, "dtype": tuple(INPUT_DTYPES)}


CHOICE_ENCODER = Unit(
    name="choice_encoder",
    summary="an encoder that takes the best of several scales of a block",
    component=ChoiceEncoder,
    values=choice_values,
    golden=choice_items,
    corners=choice_corners,
    random=choice_random,
    operation="value",
)
