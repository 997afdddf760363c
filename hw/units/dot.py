"""Block dot product, dot product and matrix product tile as units."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat, Exponent
from axs6.golden.spec import MAGNITUDE_MAX, SIGN_BIT
from axs6.hw.core.layouts import plural, scale_names
from axs6.hw.core.parameters import BLOCK_FORMS, VIEWS
from axs6.hw.dot.dot import Dot
from axs6.hw.dot.matmul import Matmul
from axs6.hw.dot.shape import Shape
from axs6.hw.fp32.accumulator import MOST_INTERLEAVED
from axs6.hw.units.accumulate import (
    accumulated,
    accumulated_corners,
    accumulated_random,
    is_default,
)
from axs6.hw.units.block_dot import (
    BLOCK_DOT,
    block_choices,
    block_dot_items,
    products,
    shape_of,
)
from axs6.hw.units.blocks import expanded, random_blocks, random_codes
from axs6.hw.units.dot_corners import format_corners, outer_scales
from axs6.hw.units.packed import packed_vectors, random_pairs
from axs6.hw.units.unit import Fields, Items, Parameters, Unit
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
    """Results of vectors; an error in any block of a vector is one of its result."""
    if not is_default(parameters):
        return {"value": accumulated(items, parameters)}
    shape, last, turns = shape_of(parameters), items["last"], parameters["interleave"]
    outer = items.get("outer")
    if parameters.get("blocks", "dense") == "dense":
        summed = block_dot_items(items, parameters)
        return {"value": reduce_vectors(summed, shape, last, turns, outer)}
    (a, wrong_a), (b, wrong_b) = (expanded(items, f"{x}.", parameters["block"]) for x in "ab")
    return {
        "value": reduce_vectors(products(a, b, shape), shape, last, turns, outer),
        "error": any_in_vector(wrong_a | wrong_b, last, turns).view(np.uint8),
    }


def matmul_items(items: Fields, parameters: Parameters) -> Items:
    """Results of tiles of dense blocks."""
    shape, turns = shape_of(parameters), parameters["interleave"]
    rows, columns = parameters["rows"], parameters["columns"]
    sides = [
        (side, index, {name: plural(name) for name, _ in shape.operand(index)})
        for index, side in enumerate("ab")
    ]
    values = np.zeros((int(items["last"].sum()), rows, columns), np.uint32)
    for place in np.ndindex(rows, columns):
        pair = {
            f"{side}.{name}": items[f"{side}.{many}"][:, place[index]]
            for side, index, names in sides
            for name, many in names.items()
        }
        outer = items["outer"][(..., *place)] if shape.scaled else None
        summed = block_dot_items(pair, parameters)
        values[(..., *place)] = reduce_vectors(summed, shape, items["last"], turns, outer)
    return {"values": values}


def _dot_corners(parameters: Parameters) -> Items:
    """Vectors that overflow, cancel, underflow, meet infinities, and round at every distance.

    Two equal blocks with opposite signs cancel; the largest sums at the highest exponents give
    infinities of either sign and NaN; exponent sums near 115 end among the subnormals; and the
    quotients that are hardest to round end the list.
    """
    if not is_default(parameters):
        return accumulated_corners(parameters)
    block, shape = parameters["block"], shape_of(parameters)
    if not (shape.a.has_modes and shape.b.has_modes):
        return in_turns(format_corners(shape), parameters["interleave"])
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
        codes = random_codes(rng, (length, 2, block))
        steps = rng.integers(0, 30, length)
        vectors.append([(c[0], c[1], base + int(s)) for c, s in zip(codes, steps, strict=True)])
    vectors += [significand_vector(x, block, 264) for x in hard_quotients()]
    items = vector_items(vectors)
    if parameters.get("blocks") == "packed":
        items = packed_vectors(items, block)
    return in_turns(items, parameters["interleave"])


def _dot_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    if not is_default(parameters):
        return accumulated_random(parameters, rng, count)
    shape = shape_of(parameters)
    last, vector = random_turns(rng, count, parameters["interleave"])
    if parameters.get("blocks", "dense") == "packed":
        exponents = np.concatenate([random_exponents(rng, vector, 1) for _ in "ab"], axis=1)
        items = random_pairs(rng, exponents, shape.block)
    else:
        items = _random_pair(shape, rng, vector)
    if shape.scaled:
        items["outer"] = outer_scales(rng, count)
    return {**items, "last": last.astype(np.int64)}


def _random_pair(shape: Shape, rng: Generator, vector: NDArray[Any]) -> Items:
    """Random blocks whose exponents are near each other within a vector."""
    items: Items = {}
    for side, fmt in zip("ab", shape.formats, strict=True):
        blocks = random_blocks(rng, fmt, shape.block, len(vector))
        blocks |= near_exponents(fmt, random_exponents(rng, vector, 1)[:, 0])
        items |= {f"{side}.{name}": array for name, array in blocks.items()}
    return items


def near_exponents(fmt: BlockFormat, given: NDArray[np.int64]) -> Items:
    """The fields of exponent scales of blocks, with these exponents as far as there are such."""
    return {
        name: given % (level.scale.largest_code + 1)
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True)
        if isinstance(level.scale, Exponent)
    }


def _matmul_corners(parameters: Parameters) -> Items:
    """The corners of the dot product, in every row and column at once."""
    items = _dot_corners(parameters)
    rows, columns = parameters["rows"], parameters["columns"]
    tile = _tile([items] * max(rows, columns), rows, columns)
    if "outer" in items:
        outer = [np.roll(items["outer"], k) for k in range(rows * columns)]
        tile["outer"] = np.stack(outer, axis=1).reshape(-1, rows, columns)
    return {**tile, "last": items["last"]}


def _matmul_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    shape, rows, columns = shape_of(parameters), parameters["rows"], parameters["columns"]
    last, vector = random_turns(rng, count, parameters["interleave"])
    pairs = [_random_pair(shape, rng, vector) for _ in range(max(rows, columns))]
    items = {"last": last.astype(np.int64), **_tile(pairs, rows, columns)}
    if shape.scaled:
        items["outer"] = outer_scales(rng, count * rows * columns).reshape(-1, rows, columns)
    return items


def _tile(pairs: Sequence[Items], rows: int, columns: int) -> Items:
    """Rows of the first operands of pairs and columns of the second ones, side by side."""
    tile: Items = {}
    for side, lanes in (("a", rows), ("b", columns)):
        names = [name for name in pairs[0] if name.startswith(f"{side}.")]
        for name in names:
            field = f"{side}.{plural(name[2:])}"
            tile[field] = np.stack([pair[name] for pair in pairs[:lanes]], axis=1)
    return tile


INTERLEAVE_SAMPLES = {"interleave": (1, MOST_INTERLEAVED, 4, 3)}
"""Numbers of vectors in turn that tests use."""


DOT = Unit(
    name="dot",
    summary="a stream of block pairs becomes one FP32 result for each vector",
    component=Dot,
    values=lambda formats: {
        "block": block_choices(formats),
        "blocks": BLOCK_FORMS if all(x.has_modes for x in formats) else BLOCK_FORMS[:1],
        "view": VIEWS,
    },
    golden=dot_items,
    corners=_dot_corners,
    random=_dot_random,
    samples=INTERLEAVE_SAMPLES,
    needs={"accumulator": ("blocks", "dense"), "format": ("blocks", "dense")},
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
