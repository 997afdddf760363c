"""Inputs for the units' benches: corner cases, and random items from a seeded generator."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import FP32, Float
from axs6.golden.spec import (
    CODE_BITS,
    EXPONENT_MAX,
    INPUT_DTYPES,
    MAGNITUDE_MAX,
    SIGN_BIT,
    Rounding,
)
from axs6.hw.encoder.modes import encoder_mode, lane_codes
from axs6.hw.expected import packed_items
from axs6.sim.stimulus_packed import packed_corners, packed_random, packed_vectors, random_pairs

Items = dict[str, NDArray[Any]]
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Stimulus:
    """Generators of input items for a unit.

    Args:
        corners: every special case that the format names, always the same items.
        random: a number of random items.
    """

    corners: Callable[[Parameters], Items]
    random: Callable[[Parameters, Generator, int], Items]


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


def _encoder_corners(parameters: Parameters) -> Items:
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


def _encoder_random(parameters: Parameters, rng: Generator, count: int) -> Items:
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


def _feedback_corners(parameters: Parameters) -> Items:
    """The encoder's corners with errors of 0, their own size, others, and six binades below."""
    values = _encoder_corners({**_FEEDBACK, "block": parameters["block"]})["values"]
    sign = FP32.sign_bit
    below = np.maximum(values & (sign - 1), 6 << FP32.fraction_bits) - (6 << FP32.fraction_bits)
    others = [np.zeros_like(values), values, values ^ sign, np.roll(values, 1, axis=0)]
    turn = np.arange(len(values)) % 6
    errors = np.choose(turn[:, None], [*others, below, below | sign])
    return {"values": values, "errors": errors}


def _feedback_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Random values, with errors within seven binades of them, or anything."""
    given = {**_FEEDBACK, "block": parameters["block"]}
    values = _encoder_random(given, rng, count)["values"]
    others = _encoder_random(given, rng, count)["values"]
    field = values >> FP32.fraction_bits & FP32.exponent_special
    near = np.maximum(field - rng.integers(0, 8, values.shape), 0) << FP32.fraction_bits
    kept = others & (FP32.sign_bit | (1 << FP32.fraction_bits) - 1)
    return {
        "values": values,
        "errors": np.where(rng.random((count, 1)) < 0.8, kept | near, others),
    }


def _lfsr_corners(parameters: Parameters) -> Items:
    """Restarts after each number of words up to 8, and none for long."""
    gaps = np.concatenate([np.arange(9), [1000]])
    restart = np.zeros(gaps.sum() + len(gaps) + 1, np.int64)
    restart[np.cumsum(gaps + 1)] = 1
    return {"restart": restart}


def _lfsr_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    return {"restart": (rng.random(count) < 0.01).astype(np.int64)}


def _random_codes(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Codes, some of them (and some whole rows) at the ends of their range."""
    codes = rng.integers(0, 1 << CODE_BITS, shape)
    extreme = rng.choice([0, SIGN_BIT, MAGNITUDE_MAX, SIGN_BIT | MAGNITUDE_MAX], shape)
    often = rng.random((*shape[:-1], 1)) ** 8
    return np.where(rng.random(shape) < often, extreme, codes)


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
        "codes": _random_codes(rng, (count, parameters["block"])),
    }


def _pair(a: NDArray[Any], b: NDArray[Any], exponents: NDArray[Any]) -> Items:
    return {
        "a.exponent": exponents[:, 0],
        "a.codes": a,
        "b.exponent": exponents[:, 1],
        "b.codes": b,
    }


def _block_dot_corners(parameters: Parameters) -> Items:
    """Every pair of codes, in every lane; largest sums of both signs; exponents at their ends."""
    block = parameters["block"]
    codes = np.arange(1 << CODE_BITS)
    a = np.repeat(codes, len(codes))
    b = np.tile(codes, len(codes))
    lanes = np.arange(block)
    spread_a = a[(np.arange(len(a))[:, None] + lanes) % len(a)]
    spread_b = b[(np.arange(len(b))[:, None] + lanes) % len(b)]
    ends = np.array([MAGNITUDE_MAX, SIGN_BIT | MAGNITUDE_MAX, 0, SIGN_BIT])
    full_a = np.repeat(np.repeat(ends, len(ends))[:, None], block, axis=1)
    full_b = np.repeat(np.tile(ends, len(ends))[:, None], block, axis=1)
    count = len(spread_a) + len(full_a)
    exponents = np.array([[0, 0], [0, EXPONENT_MAX], [EXPONENT_MAX, EXPONENT_MAX], [127, 128]])
    return _pair(
        np.concatenate([spread_a, full_a]),
        np.concatenate([spread_b, full_b]),
        np.resize(exponents, (count, 2)),
    )


def _block_dot_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    shape = (count, parameters["block"])
    exponents = rng.integers(0, EXPONENT_MAX + 1, (count, 2))
    return _pair(_random_codes(rng, shape), _random_codes(rng, shape), exponents)


Vector = list[tuple[NDArray[Any], NDArray[Any], int]]
"""Operands and exponent sums of the block pairs of one vector."""


def significand_vector(significand: int, block: int, total: int) -> Vector:
    """Two block pairs whose FP32 accumulator is `significand` * 2^(total - 276), exactly."""
    high, low = significand >> 12, significand & 0xFFF
    return [(*_operands(high, block), total), (*_operands(low, block), total - 12)]


def _operands(product: int, block: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes whose block dot product is a number of up to 12 bits."""
    whole, rest = divmod(product, MAGNITUDE_MAX**2)
    a, b = np.zeros((2, block), np.int64)
    a[: whole + 1] = MAGNITUDE_MAX
    b[:whole] = MAGNITUDE_MAX
    b[whole], a[whole + 1] = divmod(rest, MAGNITUDE_MAX)
    b[whole + 1] = 1
    return a, b


def hard_quotients() -> Iterator[int]:
    """Significands whose quotient by 961/1024 lies nearest above a rounding boundary.

    That is 1/1922 above one where the quotient has 24 bits, 1/961 where it has 25.
    """
    divisor = MAGNITUDE_MAX**2
    for scale, low, high in ((1024, 1 << 23, 15 << 20), (512, 0xF10000, 1 << 24)):
        first = (divisor + 1) // 2 * pow(scale, -1, divisor) % divisor
        steps = np.linspace(-(-(low - first) // divisor), (high - 1 - first) // divisor, 24)
        yield from (first + divisor * int(step) for step in steps)


def _dot_corners(parameters: Parameters) -> Items:
    """Vectors that overflow, cancel, underflow, meet infinities, and round at every distance.

    Two equal blocks with opposite signs cancel; the largest sums at the highest exponents give
    infinities of either sign and NaN; exponent sums near 115 end among the subnormals; and the
    quotients that are hardest to round end the list.
    """
    block = parameters["block"]
    rng = np.random.default_rng(6)
    plus = np.full(block, MAGNITUDE_MAX)
    minus = plus | SIGN_BIT
    one = np.zeros(block, np.int64)
    one[0] = 1
    operands = [plus, minus, one, one | SIGN_BIT, np.zeros(block, np.int64)]
    vectors: list[Vector] = []
    for total in (0, 90, 98, 100, 103, 107, 111, 114, 115, 116, 118, 264, 372, 376, 390, 510):
        vectors += [[(x, one, total)] for x in operands]
        vectors += [[(x, plus, total), (y, plus, total)] for x in operands for y in operands]
        vectors += [[(plus, plus, total), (one, one, max(total - d, 0))] for d in range(45)]
        vectors += [[(plus, plus, total), (minus, one, max(total - d, 0))] for d in range(45)]
    for _ in range(256):
        base = int(rng.integers(60, 400))
        length = int(rng.integers(1, 9))
        codes = _random_codes(rng, (length, 2, block))
        steps = rng.integers(0, 30, length)
        vectors.append([(c[0], c[1], base + int(s)) for c, s in zip(codes, steps, strict=True)])
    vectors += [significand_vector(x, block, 264) for x in hard_quotients()]
    items = vector_items(vectors)
    if parameters.get("blocks") == "packed":
        items = packed_vectors(items, block)
    return in_turns(items, parameters["interleave"])


def vector_items(vectors: Sequence[Vector]) -> Items:
    """Items of the dot product for vectors, one after the other."""
    pairs = [pair for vector in vectors for pair in vector]
    totals = np.array([total for _, _, total in pairs])
    first = np.minimum(totals, EXPONENT_MAX)
    return {
        **_pair(
            np.array([a for a, _, _ in pairs]),
            np.array([b for _, b, _ in pairs]),
            np.stack([first, totals - first], axis=1),
        ),
        "last": np.concatenate([[0] * (len(vector) - 1) + [1] for vector in vectors]),
    }


def in_turns(items: Items, turns: int) -> Items:
    """The vectors of a stream shared out among `turns` streams, whose items then take turns.

    Streams that are too short get vectors of one item, a copy of the first one.
    """
    ends = np.flatnonzero(items["last"]) + 1
    bounds = np.concatenate([[0], ends[np.arange(1, turns) * len(ends) // turns - 1], ends[-1:]])
    lengths = np.diff(bounds)
    index = np.zeros((lengths.max(), turns), np.int64)
    last = np.ones(index.shape, np.int64)
    for turn, (start, length) in enumerate(zip(bounds, lengths, strict=False)):
        index[:length, turn] = np.arange(start, start + length)
        last[:length, turn] = items["last"][start : start + length]
    return {**{name: array[index.ravel()] for name, array in items.items()}, "last": last.ravel()}


def _random_turns(rng: Generator, count: int, turns: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """`last` of items whose vectors of 1 to 16 blocks take turns, and the vector of each item."""
    last = rng.random(count) < rng.choice([0.06, 0.3, 1.0], count, p=[0.8, 0.15, 0.05])
    last[-turns:] = True
    vector = np.zeros(count, np.int64)
    vectors = 0
    for turn in range(min(turns, count)):
        ends = last[turn::turns]
        vector[turn::turns] = vectors + np.cumsum(ends) - ends
        vectors += int(ends.sum())
    return last, vector


def _random_exponents(rng: Generator, vector: NDArray[Any], width: int) -> NDArray[Any]:
    """Exponents of `width` blocks in each item, within 20 binades of each other in a vector."""
    vectors = int(vector.max()) + 1
    top = rng.integers(0, EXPONENT_MAX + 1, (vectors, 1))
    top = np.where(rng.random((vectors, 1)) < 0.5, rng.integers(100, 156, (vectors, 1)), top)
    spread = rng.integers(1, 21, (vectors, 1))[vector]
    return np.maximum(top[vector] - rng.integers(0, spread, (len(vector), width)), 0)


def _dot_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    shape = (count, parameters["block"])
    last, vector = _random_turns(rng, count, parameters["interleave"])
    exponents = np.concatenate([_random_exponents(rng, vector, 1) for _ in "ab"], axis=1)
    if parameters["blocks"] == "packed":
        items = random_pairs(rng, exponents, parameters["block"])
    else:
        items = _pair(_random_codes(rng, shape), _random_codes(rng, shape), exponents)
    return {**items, "last": last.astype(np.int64)}


def _matmul_corners(parameters: Parameters) -> Items:
    """The corners of the dot product, in every row and column at once."""
    items = _dot_corners(parameters)
    tile: Items = {"last": items["last"]}
    for side, count in (("a", parameters["rows"]), ("b", parameters["columns"])):
        tile[f"{side}.exponents"] = np.repeat(items[f"{side}.exponent"][:, None], count, axis=1)
        tile[f"{side}.codes"] = np.repeat(items[f"{side}.codes"][:, None], count, axis=1)
    return tile


def _matmul_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    last, vector = _random_turns(rng, count, parameters["interleave"])
    items: Items = {"last": last.astype(np.int64)}
    for side, width in (("a", parameters["rows"]), ("b", parameters["columns"])):
        items[f"{side}.exponents"] = _random_exponents(rng, vector, width)
        items[f"{side}.codes"] = _random_codes(rng, (count, width, parameters["block"]))
    return items


STIMULI: Mapping[str, Stimulus] = {
    "encoder": Stimulus(_encoder_corners, _encoder_random),
    "stochastic_encoder": Stimulus(_encoder_corners, _encoder_random),
    "feedback_encoder": Stimulus(_feedback_corners, _feedback_random),
    "lfsr": Stimulus(_lfsr_corners, _lfsr_random),
    "decoder": Stimulus(_decoder_corners, _decoder_random),
    "expander": Stimulus(_expander_corners, _expander_random),
    "block_dot": Stimulus(_block_dot_corners, _block_dot_random),
    "dot": Stimulus(_dot_corners, _dot_random),
    "matmul": Stimulus(_matmul_corners, _matmul_random),
}
"""For each unit in the registry."""
