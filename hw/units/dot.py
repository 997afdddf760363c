"""Block dot product, dot product and matrix product tile as units."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from axs6.golden.blocks import Blocks
from axs6.golden.dot import block_dot
from axs6.golden.formats import AXS6, BlockFormat
from axs6.golden.spec import (
    BLOCK_SIZES,
    MAGNITUDE_MAX,
    SIGN_BIT,
)
from axs6.hw.core.parameters import BLOCK_FORMS, VIEWS
from axs6.hw.dot.dot import Dot
from axs6.hw.dot.matmul import Matmul
from axs6.hw.fp32.accumulator import MOST_INTERLEAVED
from axs6.hw.units.accumulate import (
    accumulated,
    accumulated_corners,
    accumulated_random,
    is_default,
)
from axs6.hw.units.block_dot import block_dot_items
from axs6.hw.units.blocks import expanded, random_codes
from axs6.hw.units.packed import packed_vectors, random_pairs
from axs6.hw.units.unit import Choices, Fields, Items, Parameters, Unit
from axs6.hw.units.vectors import (
    Vector,
    any_in_vector,
    hard_quotients,
    in_turns,
    pair_items,
    random_exponents,
    random_turns,
    reduce_vectors,
    significand_vector,
    vector_items,
)


def _products(a: Blocks, b: Blocks) -> Items:
    sums, exponents = block_dot(a, b)
    return {"sum": sums[:, 0], "exponent": exponents[:, 0]}


def dot_items(items: Fields, parameters: Parameters) -> Items:
    """Results of vectors; an error in any block of a vector is one of its result."""
    last, turns = items["last"], parameters["interleave"]
    if not is_default(parameters):
        return {"value": accumulated(items, parameters)}
    if parameters["blocks"] == "dense":
        products = block_dot_items(items, {**parameters, "format": "axs6"})
        return {"value": reduce_vectors(products["sum"], products["exponent"], last, turns)}
    (a, wrong_a), (b, wrong_b) = (expanded(items, f"{x}.", parameters["block"]) for x in "ab")
    products = _products(a, b)
    return {
        "value": reduce_vectors(products["sum"], products["exponent"], last, turns),
        "error": any_in_vector(wrong_a | wrong_b, last, turns).view(np.uint8),
    }


def matmul_items(items: Fields, parameters: Parameters) -> Items:
    """Results of tiles of dense blocks."""
    sides = []
    for name, axis in (("a", 2), ("b", 1)):
        codes = np.expand_dims(items[f"{name}.codes"].astype(np.uint8), axis)
        exponents = np.expand_dims(items[f"{name}.exponents"].astype(np.uint8), axis)
        shape = (*codes.shape[:-2], codes.shape[-2] * codes.shape[-1])
        sides.append(Blocks.with_modes(exponents, np.zeros_like(exponents), codes, shape))
    sums, scales = block_dot(*sides)
    return {"values": reduce_vectors(sums, scales, items["last"], parameters["interleave"])}


def _dot_corners(parameters: Parameters) -> Items:
    """Vectors that overflow, cancel, underflow, meet infinities, and round at every distance.

    Two equal blocks with opposite signs cancel; the largest sums at the highest exponents give
    infinities of either sign and NaN; exponent sums near 115 end among the subnormals; and the
    quotients that are hardest to round end the list.
    """
    if not is_default(parameters):
        return accumulated_corners(parameters)
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
    shape = (count, parameters["block"])
    last, vector = random_turns(rng, count, parameters["interleave"])
    exponents = np.concatenate([random_exponents(rng, vector, 1) for _ in "ab"], axis=1)
    if parameters["blocks"] == "packed":
        items = random_pairs(rng, exponents, parameters["block"])
    else:
        items = pair_items(random_codes(rng, shape), random_codes(rng, shape), exponents)
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
    last, vector = random_turns(rng, count, parameters["interleave"])
    items: Items = {"last": last.astype(np.int64)}
    for side, width in (("a", parameters["rows"]), ("b", parameters["columns"])):
        items[f"{side}.exponents"] = random_exponents(rng, vector, width)
        items[f"{side}.codes"] = random_codes(rng, (count, width, parameters["block"]))
    return items


INTERLEAVE_SAMPLES = {"interleave": (1, MOST_INTERLEAVED, 4, 3)}
"""Numbers of vectors in turn that tests use."""


def dot_choices(formats: Sequence[BlockFormat]) -> Choices:
    """What a dot product of dense blocks may be."""
    return {"block": BLOCK_SIZES, "view": VIEWS}


def dot_values(formats: Sequence[BlockFormat]) -> Choices:
    """What a dot product may be: blocks of AXS-6 may be packed."""
    if {*formats} == {AXS6}:
        return {"block": BLOCK_SIZES, "blocks": BLOCK_FORMS, "view": VIEWS}
    return {"block": (formats[0].block,), "blocks": BLOCK_FORMS[:1], "view": VIEWS}


DOT = Unit(
    name="dot",
    summary="a stream of block pairs becomes one FP32 result for each vector",
    component=Dot,
    values=dot_values,
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
    values=dot_choices,
    golden=matmul_items,
    corners=_matmul_corners,
    random=_matmul_random,
    samples={
        "rows": (4, 1, 3, 2),
        "columns": (4, 2, 1, 2),
        "interleave": (4, MOST_INTERLEAVED, 1, 3),
    },
)
