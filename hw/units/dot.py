"""Block dot product, dot product and matrix product tile as units."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import FP32, BlockFormat, Exponent
from axs6.golden.formats.catalog import AXS6_ELEMENT
from axs6.hw.core.layouts import plural, scale_names
from axs6.hw.core.parameters import DEFAULT_ACCUMULATOR
from axs6.hw.dot.accumulated import dot_parts
from axs6.hw.dot.dot import Dot
from axs6.hw.dot.matmul import Matmul
from axs6.hw.dot.packed import BLOCK_FORMS, block_forms
from axs6.hw.dot.parts import Parts
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.accumulator import MOST_INTERLEAVED
from axs6.hw.units.accumulate import (
    accumulated,
    accumulated_random,
    is_default,
)
from axs6.hw.units.accumulate_corners import accumulated_corners
from axs6.hw.units.block_dot import BLOCK_DOT, block_dot_items, shape_of, some_corners
from axs6.hw.units.blocks import random_blocks, random_codes
from axs6.hw.units.dot_corners import format_corners, with_hard_sums
from axs6.hw.units.long_vectors import length_needed
from axs6.hw.units.outer_scales import aimed_scales, outer_scales
from axs6.hw.units.packed import random_pairs
from axs6.hw.units.packed_dot import filled_pairs, formats_of, packed_pairs, read_pairs
from axs6.hw.units.unit import Choices, Fields, Items, Parameters, Unit
from axs6.hw.units.vectors import (
    Vector,
    any_in_vector,
    hard_quotients,
    in_turns,
    random_exponents,
    random_turns,
    reduce_vectors,
    significand_vector,
    vector_items,
)


def dot_items(items: Fields, parameters: Parameters) -> Items:
    """Results of vectors; an error in any block of a vector is an error of its result."""
    if parameters.get("blocks", "dense") == "dense":
        return {"value": _results(items, parameters)}
    return packed_dot_items(items, parameters, np.zeros(len(items["last"]), bool))


def packed_dot_items(items: Fields, parameters: Parameters, marked: NDArray[np.bool_]) -> Items:
    """Results of vectors of packed blocks; marked pairs are errors too."""
    pairs, wrong = read_pairs(items, formats_of(parameters), marked)
    last, turns = items["last"], parameters["interleave"]
    return {
        "value": _results({**pairs, "last": last}, parameters),
        "error": any_in_vector(wrong, last, turns).view(np.uint8),
    }


def _results(items: Fields, parameters: Parameters) -> NDArray[np.uint32]:
    """FP32 results of vectors of dense blocks."""
    if not is_default(parameters):
        return accumulated(items, parameters)
    shape, summed = shape_of(parameters), block_dot_items(items, parameters)
    turns, outer = parameters["interleave"], items.get("outer")
    return reduce_vectors(summed, shape, items["last"], turns, outer)


def matmul_items(items: Fields, parameters: Parameters) -> Items:
    """Results of tiles of dense blocks."""
    rows, columns = parameters["rows"], parameters["columns"]
    parts = parts_of(parameters)
    fields = [
        (f"{side}.{name}", f"{side}.{plural(name)}", index)
        for index, side in enumerate("ab")
        for name in parts.pair[side].shape.members
    ]
    values = np.zeros((int(items["last"].sum()), rows, columns), np.uint32)
    for place in np.ndindex(rows, columns):
        pair = {name: items[many][:, place[index]] for name, many, index in fields}
        if "outer" in items:
            pair["outer"] = items["outer"][(..., *place)]
        values[(..., *place)] = _results({**pair, "last": items["last"]}, parameters)
    return {"values": values}


def parts_of(parameters: Parameters) -> Parts:
    """The parts of a dot product with these parameters."""
    format = parameters.get("format", "axs6")
    accumulator = parameters.get("accumulator", DEFAULT_ACCUMULATOR)
    return dot_parts(format, parameters["block"], accumulator)


def _dot_corners(parameters: Parameters) -> Items:
    """Vectors that overflow, cancel, underflow, meet infinities, and round at every distance.

    Two equal blocks with opposite signs cancel; the largest sums at the highest exponents give
    infinities of either sign and NaN; exponents from 376 on give sums that are finite, and too
    large together; exponent sums near 115 end among the subnormals; then come the quotients that
    are hardest to round, and other hard sums.
    """
    items = _corner_vectors(parameters)
    if parts_of(parameters).scaled:
        if is_default(parameters) and length_needed(shape_of(parameters)):
            items = {name: np.concatenate([x] * REPEATS) for name, x in items.items()}
        items["outer"] = _aimed(items, parameters, 1)[:, 0]
    if parameters.get("blocks") == "packed":
        items = packed_pairs(items, formats_of(parameters), np.random.default_rng(9))
    return in_turns(items, parameters["interleave"])


REPEATS = 6
"""How often vectors come, each time with other outer scales, where only long ones are rounded."""


def _aimed(items: Items, parameters: Parameters, count: int) -> NDArray[np.int64]:
    """Outer scales of vectors one after the other that are chosen for their totals, of shape
    (items, count).

    Those of items that end no vector, which do not count, are of the vector before.
    """
    alone = {**parameters, "interleave": 1, "blocks": "dense"}
    ones = np.full(len(items["last"]), FP32.bias << FP32.fraction_bits)
    totals = _results({**items, "outer": ones}, alone)
    scales = aimed_scales(np.random.default_rng(8), np.repeat(totals, count))
    return scales.reshape(-1, count)[np.cumsum(items["last"]) - 1]


def _corner_vectors(parameters: Parameters) -> Items:
    """Dense vectors one after the other, behind them corners of a block's sum, each a vector."""
    if not is_default(parameters):
        return accumulated_corners(parameters)
    items, blocks = _hard_vectors(parameters), some_corners(parameters, SINGLE)
    blocks["last"] = np.ones(len(blocks["a.codes"]), np.int64)
    return {name: np.concatenate([array, blocks[name]]) for name, array in items.items()}


def _hard_vectors(parameters: Parameters) -> Items:
    """Vectors whose totals are hard."""
    block, shape = parameters["block"], shape_of(parameters)
    if not (shape.a.has_modes and shape.b.has_modes):
        return format_corners(shape)
    rng = np.random.default_rng(6)
    plus = np.full(block, AXS6_ELEMENT.largest_code)
    minus = plus | AXS6_ELEMENT.sign_bit
    one = np.zeros(block, np.int64)
    one[0] = 1
    operands = [plus, minus, one, one | AXS6_ELEMENT.sign_bit, np.zeros(block, np.int64)]
    vectors: list[Vector] = []
    for total in (
        0,
        90,
        98,
        100,
        103,
        107,
        111,
        114,
        115,
        116,
        118,
        264,
        372,
        *range(376, 381),
        390,
        510,
    ):
        vectors += [[(x, one, total)] for x in operands]
        vectors += [[(x, plus, total), (y, plus, total)] for x in operands for y in operands]
        vectors += [[(plus, plus, total), (one, one, max(total - d, 0))] for d in range(45)]
        vectors += [[(plus, plus, total), (minus, one, max(total - d, 0))] for d in range(45)]
    for _ in range(256):
        base = int(rng.integers(60, 400))
        length = int(rng.integers(1, 9))
        codes = random_codes(rng, (length, 2, block))
        steps = rng.integers(0, 30, length)
        vectors.append([(c[0], c[1], base + int(s)) for c, s in zip(codes, steps, strict=True)])
    vectors += [significand_vector(x, block, 264) for x in hard_quotients()]
    return with_hard_sums(vector_items(vectors), shape)


def _dot_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    last, vector = random_turns(rng, count, parameters["interleave"])
    if parameters.get("blocks", "dense") == "dense":
        items = _random_items(parameters, rng, vector)
        if parts_of(parameters).scaled:
            items["outer"] = outer_scales(rng, count)
    elif (formats := formats_of(parameters))[0].has_modes:
        exponents = np.concatenate([random_exponents(rng, vector, 1) for _ in "ab"], axis=1)
        items = random_pairs(rng, exponents, formats[0].block)
    else:
        items = filled_pairs(_random_items(parameters, rng, vector), formats, rng, RARE)
    return {**items, "last": last.astype(np.int64)}


SINGLE = 4096
"""Corners of a block's sum of each kind among those of vectors, at most."""

ZEROS = 0.2
"""Share of vectors of zeros among those that take turns."""

RARE = 0.02
"""Share of random packed blocks with a fault in a field."""


def _random_items(parameters: Parameters, rng: Generator, vector: NDArray[Any]) -> Items:
    """Random dense items that belong to some vectors.

    Where vectors take turns, some are zeros: a turn that is skipped must leave its total as it is,
    and most changes of a total are too small to be seen in a large one.
    """
    if is_default(parameters):
        items = _random_pair(shape_of(parameters), rng, vector)
    else:
        items = accumulated_random(parameters, rng, vector)
    if parameters["interleave"] > 1:
        zeros = rng.random(int(vector.max()) + 1)[vector] < ZEROS
        items["a.codes"][zeros] = formats_of(parameters)[0].element.zero_code
    return items


def _random_pair(shape: DotShape, rng: Generator, vector: NDArray[Any]) -> Items:
    """Random blocks whose exponents are near each other within a vector."""
    items: Items = {}
    for side, fmt in zip("ab", shape.formats, strict=True):
        blocks = random_blocks(rng, fmt, shape.block, len(vector))
        blocks |= near_exponents(fmt, random_exponents(rng, vector, 1)[:, 0])
        items |= {f"{side}.{name}": array for name, array in blocks.items()}
    return items


def near_exponents(fmt: BlockFormat, given: NDArray[np.int64]) -> Items:
    """The fields of exponent scales of blocks with these exponents, held to their range."""
    return {
        name: given % (level.scale.largest_code + 1)
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True)
        if isinstance(level.scale, Exponent)
    }


def _matmul_corners(parameters: Parameters) -> Items:
    """The corners of the dot product, in all rows and columns at once."""
    items = _corner_vectors(parameters)
    rows, columns = parameters["rows"], parameters["columns"]
    if parts_of(parameters).scaled:
        items["outer"] = _aimed(items, parameters, rows * columns)
    items = in_turns(items, parameters["interleave"])
    tile = _tile([items] * max(rows, columns), rows, columns)
    if "outer" in items:
        tile["outer"] = items["outer"].reshape(-1, rows, columns)
    return {**tile, "last": items["last"]}


def _matmul_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    rows, columns = parameters["rows"], parameters["columns"]
    last, vector = random_turns(rng, count, parameters["interleave"])
    pairs = [_random_items(parameters, rng, vector) for _ in range(max(rows, columns))]
    items = {"last": last.astype(np.int64), **_tile(pairs, rows, columns)}
    if parts_of(parameters).scaled:
        items["outer"] = outer_scales(rng, count * rows * columns).reshape(-1, rows, columns)
    return items


def _tile(pairs: Sequence[Items], rows: int, columns: int) -> Items:
    """First operands of pairs as rows, second operands as columns."""
    tile: Items = {}
    for side, lanes in (("a", rows), ("b", columns)):
        names = [name for name in pairs[0] if name.startswith(f"{side}.")]
        for name in names:
            field = f"{side}.{plural(name[2:])}"
            tile[field] = np.stack([pair[name] for pair in pairs[:lanes]], axis=1)
    return tile


INTERLEAVE_SAMPLES = {"interleave": (1, MOST_INTERLEAVED, 4, 3)}
"""Numbers of vectors in turn that tests use."""


class DotUnit(Unit):
    """A dot product, which takes packed blocks where a step of its accumulator is one block."""

    def choices(self, given: Parameters) -> Choices:
        """The values of each parameter with a fixed set of them, beside the given ones.

        Where there is no hardware, blocks are dense; building the unit says why there is none.
        """
        parameters = self.parameters(given)
        try:
            blocks = block_forms(parts_of(parameters))
        except ValueError:
            blocks = BLOCK_FORMS[:1]
        return {**super().choices(given), "blocks": blocks}


DOT = DotUnit(
    name="dot",
    summary="a stream of block pairs becomes one FP32 result for each vector",
    component=Dot,
    values=BLOCK_DOT.values,
    golden=dot_items,
    corners=_dot_corners,
    random=_dot_random,
    samples=INTERLEAVE_SAMPLES,
)

MATMUL = Unit(
    name="matmul",
    summary="streams of R rows and C columns of blocks become an R x C tile of FP32 results",
    component=Matmul,
    values=BLOCK_DOT.values,
    golden=matmul_items,
    corners=_matmul_corners,
    random=_matmul_random,
    samples={
        "rows": (4, 1, 3, 2),
        "columns": (4, 2, 1, 2),
        "interleave": (4, MOST_INTERLEAVED, 1, 3),
    },
)
