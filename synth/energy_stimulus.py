"""Real and random data for energy: streams in the order in which a matrix product presents them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.decode import decode
from axs6.golden.encode import encode
from axs6.golden.formats import AXS6, FP32, TENSOR, BlockFormat, Exponent, Integer, Real, Scale
from axs6.golden.scaling import code_dtype, real_values
from axs6.hw.core.layouts import ZERO_POINT, outer_names, scale_names
from axs6.hw.registry import find
from axs6.hw.units.blocks import packed_items, special_codes
from axs6.hw.units.packed import packed_dense
from axs6.sim.cache import sources
from axs6.synth.reference import LARGEST, quantise

SEQUENCES, LENGTH = 64, 128
"""How many sequences of items a measurement has, and the items of each."""
SEED = 0

Items = dict[str, NDArray[Any]]
Floats = NDArray[np.float32]
Formats = tuple[BlockFormat, BlockFormat]

_RANDOM_ROWS, _RANDOM_BLOCKS = 128, 4
_RANDOM_EXPONENTS = (123, 131)


@dataclass(frozen=True)
class Stimulus:
    """Data on which energies are measured.

    Args:
        name: in reports.
        layers: gives the inputs (M, K) and weights (N, K) of each layer, float32; None for random
            codes. It is a function of a module, so that other processes find it.
        packages: distributions that it needs; their versions decide what it gives.
    """

    name: str
    layers: Callable[[], Iterable[tuple[Floats, Floats]]] | None = None
    packages: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [name for name in self.packages if not any(metadata.distributions(name=name))]

    def key(self) -> list[str]:
        """Sources and versions that decide the data, besides the golden model."""
        versions = [metadata.version(name) for name in self.packages]
        own = [] if self.layers is None else [sources(self.layers.__module__.rpartition(".")[0])]
        return [self.name, *own, *versions]


RANDOM = Stimulus("random")
"""Uniform codes, exponents and 8-bit integers; for encoders, normally distributed values."""


@dataclass(frozen=True, eq=False)
class StimulusMatrix:
    """A matrix as the units take it: blocks of shape (rows, K blocks, ...) along K.

    `values` is float32, `fields` are those of `axs6.hw.core.layouts.scaled_layout`, `outer` the
    products of the scales of tensors and channels, `int8` is the tensor in INT8.
    """

    values: Floats
    fields: Items
    outer: Floats
    int8: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Product:
    """A matrix product y[m, n] = sum over k of a[m, k] b[n, k]."""

    a: StimulusMatrix
    b: StimulusMatrix


def products(stimulus: Stimulus, block: int, formats: Formats = (AXS6, AXS6)) -> list[Product]:
    """Return the matrix products of a stimulus.

    Args:
        stimulus: the layers, each of which is a product, or `RANDOM`: one product of uniform codes,
            exponents and 8-bit integers, and of values with a standard normal distribution.
        block: values in a block.
        formats: of the two operands.
    """
    left, right = (fmt.with_block(block) if fmt.blocked else fmt for fmt in formats)
    if stimulus.layers is None:
        rng = np.random.default_rng(SEED)
        return [Product(_random_operand(rng, left, block), _random_operand(rng, right, block))]
    return [
        Product(_operand(x, left, block), _operand(weights, right, block))
        for x, weights in stimulus.layers()
    ]


def _operand(matrix: Floats, fmt: BlockFormat, block: int) -> StimulusMatrix:
    short = -matrix.shape[1] % block
    padded = np.pad(matrix, [(0, 0), (0, short)])
    values = padded.reshape(len(matrix), -1, block)
    blocks = encode(padded, fmt)
    outer, inner = blocks.scales[: len(fmt.outer)], blocks.scales[len(fmt.outer) :]
    fields = {
        **_of_blocks(dict(zip(outer_names(fmt), outer, strict=True)), values),
        **dict(zip(scale_names(fmt), inner, strict=True)),
        "codes": blocks.codes.reshape(values.shape),
    }
    if blocks.zero_points is not None:
        fields |= _of_blocks({ZERO_POINT: blocks.zero_points}, values)
    return StimulusMatrix(values, fields, _outer(fmt, fields, values), quantise(values))


def _of_blocks(codes: Items, values: Floats) -> Items:
    """Codes of tensors, rows or blocks, one for each block."""
    shape = values.shape[:2]
    return {
        name: np.broadcast_to(x.reshape(-1, 1) if x.size <= shape[0] else x.reshape(shape), shape)
        for name, x in codes.items()
    }


def _outer(fmt: BlockFormat, fields: Items, values: Floats) -> Floats:
    """The product of the scales of tensors and channels, for each block."""
    product = np.ones(values.shape[:2], np.float32)
    for name, level in zip(outer_names(fmt), fmt.outer[::-1], strict=True):
        if isinstance(level.scale, Real):
            product = product * real_values(level.scale.dtype, fields[name].copy())
        else:
            assert isinstance(level.scale, Exponent)
            exponent = fields[name].astype(np.int32) - level.scale.bias
            product = np.ldexp(product, exponent)
    return product


def _random_operand(rng: np.random.Generator, fmt: BlockFormat, block: int) -> StimulusMatrix:
    shape = (_RANDOM_ROWS, _RANDOM_BLOCKS, block)
    values = rng.standard_normal(shape, np.float32)
    fields: Items = {}
    for name, level in zip(outer_names(fmt), fmt.outer[::-1], strict=True):
        low, high = _random_scales(level.scale)
        count = 1 if level.group == TENSOR else shape[0]
        codes = rng.integers(low, high, count, code_dtype(level.scale.bits))
        fields |= _of_blocks({name: codes}, values)
    if not fmt.element.signed:
        codes = rng.integers(0, 1 << fmt.element.width, 1, np.uint8)
        fields |= _of_blocks({ZERO_POINT: codes}, values)
    for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
        groups = block // int(level.group)
        low, high = _random_scales(level.scale)
        each = shape[:2] if groups == 1 else (*shape[:2], groups)
        fields[name] = rng.integers(low, high, each, code_dtype(level.scale.bits))
    fields["codes"] = rng.integers(0, 1 << fmt.element.width, shape, np.uint8)
    special = special_codes(fmt)
    if special.size:
        fields["codes"][np.isin(fields["codes"], special)] = 0
    int8 = rng.integers(-LARGEST, LARGEST + 1, shape, np.int8)
    return StimulusMatrix(values, fields, _outer(fmt, fields, values), int8)


def _random_scales(scale: Scale) -> tuple[int, int]:
    """The range of codes for random scales, its end excluded: eight binades around 1, or all."""
    if isinstance(scale, Exponent):
        return scale.bias - 4, scale.bias + 4
    if isinstance(scale, Real):
        bias, fraction = scale.dtype.bias, scale.dtype.fraction_bits
        return (bias - 4) << fraction, (bias + 4) << fraction
    return int(isinstance(scale, Integer)), scale.largest_code + 1


@dataclass(frozen=True, eq=False)
class _Turns:
    """Which rows of A, rows of B and block along K each item of a sequence has.

    `a` has shape (sequences, items, rows of a tile), `b` likewise with columns, and `k`
    (sequences, items); `last` marks the last blocks of a tile.
    """

    product: Product
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    k: NDArray[np.int64]

    @property
    def last(self) -> NDArray[np.uint8]:
        return (self.k == self.product.a.values.shape[1] - 1).astype(np.uint8)


def _turns(
    work: Sequence[Product], rows: int = 1, columns: int = 1, interleave: int = 1
) -> list[_Turns]:
    """Return the sequences, of which each product has a share by its work.

    The stream is that of an output-stationary tile: the blocks of a tile along K one after the
    other, tiles row by row, `interleave` tiles in turn. Each sequence is a piece of it, LENGTH
    items that follow one another, from the first block of a tile on; the pieces are evenly spaced.
    """
    shapes = [
        (-(-len(p.a.values) // rows), -(-len(p.b.values) // columns), p.a.values.shape[1])
        for p in work
    ]
    lengths = np.array([m * n * k for m, n, k in shapes])
    ends = np.cumsum(lengths)
    places = ((np.arange(SEQUENCES) + 0.5) * ends[-1] / SEQUENCES).astype(np.int64)
    owners = np.searchsorted(ends, places, side="right")
    found = []
    for owner, (product, (m, n, k)) in enumerate(zip(work, shapes, strict=True)):
        starts = places[owners == owner] - (ends[owner] - lengths[owner])
        rounds = starts // (interleave * k) * interleave * k
        item = rounds[:, None] + np.arange(LENGTH)
        tile = item // (interleave * k) * interleave + item % interleave
        row, column = np.divmod(tile % (m * n), n)
        found.append(
            _Turns(
                product,
                (row[..., None] * rows + np.arange(rows)) % len(product.a.values),
                (column[..., None] * columns + np.arange(columns)) % len(product.b.values),
                item // interleave % k,
            )
        )
    return [each for each in found if len(each.k)]


def unit_items(unit: str, parameters: Mapping[str, Any], work: Sequence[Product]) -> Items:
    """Return the sequences of items for a unit: an array for each field, (sequences, items, ...).

    Successive items are those that follow one another in a matrix product, or, for encoder and
    decoder, in the matrices of all layers, row by row.
    """
    if find(unit).operation == "value":
        return _value_items(unit, parameters, work)
    tile = {name: parameters[name] for name in ("rows", "columns") if name in parameters}
    turns = _turns(work, **tile, interleave=parameters.get("interleave", 1))
    items: Items = {}
    dense = {"blocks": "dense"} if "blocks" in parameters else {}
    names = find(unit).inputs({**parameters, **dense})
    for name in names:
        side, _, field = name.partition(".")
        if field:
            chosen = np.concatenate([_chosen(each, side, field) for each in turns])
            items[name] = chosen if tile else chosen[:, :, 0]
    if parameters.get("blocks") == "packed":
        items = _packed(items, "a.") | _packed(items, "b.")
    if "outer" in names:
        outer = np.concatenate([_outer_products(each) for each in turns]).view(np.uint32)
        items["outer"] = outer if tile else outer[:, :, 0, 0]
    if unit != "block_dot":
        items["last"] = np.concatenate([each.last for each in turns])
    return items


def _outer_products(turns: _Turns) -> Floats:
    """Factors of the results of items: (sequences, items, rows, columns)."""
    k = turns.k[..., None]
    a, b = turns.product.a.outer[turns.a, k], turns.product.b.outer[turns.b, k]
    product: Floats = a[..., :, None] * b[..., None, :]
    return product


def _chosen(turns: _Turns, side: str, field: str) -> NDArray[Any]:
    operand: StimulusMatrix = getattr(turns.product, side)
    fields = {**operand.fields, "int8": operand.int8}
    # A tile has a scale for each row where a block has one.
    array = fields[field if field in fields else field.removesuffix("s")]
    return array[getattr(turns, side), turns.k[..., None]]


def reference_items(work: Sequence[Product]) -> Items:
    """Return the sequences of the same products for `axs6.synth.reference.Int8Dot`."""
    turns = _turns(work)
    return {
        side: np.concatenate([_chosen(each, side, "int8")[:, :, 0] for each in turns])
        for side in "ab"
    }


def _value_items(unit: str, parameters: Mapping[str, Any], work: Sequence[Product]) -> Items:
    """Return the values of all matrices, or their blocks in the form that the unit takes.

    A unit that takes neither runs freely.
    """
    fields = find(unit).inputs(parameters)
    if "restart" in fields:
        return {"restart": np.zeros((SEQUENCES, LENGTH), np.uint8)}
    block = parameters["block"]
    operands = [operand for product in work for operand in (product.a, product.b)]
    if "values" in fields:
        values = np.concatenate([each.values.reshape(-1, block) for each in operands])
        items = {"values": _patterns(values, parameters.get("dtype", FP32.name))}
        for name in outer_names(find(unit).formats(parameters)[0]):
            items[name] = np.concatenate([each.fields[name].reshape(-1) for each in operands])
        if "random" in fields:
            most = (1 << parameters["random_bits"]) - 1
            rng = np.random.default_rng(SEED)
            items["random"] = rng.integers(0, most, values.shape, endpoint=True)
        if "errors" in fields:
            fmt = find(unit).formats(parameters)[0].with_block(block)
            items["errors"] = _patterns(values - decode(encode(values, fmt)), FP32.name)
        return {name: _sequences(rows) for name, rows in items.items()}
    items = {
        name: _sequences(
            np.concatenate([x.fields[name].reshape(-1, *array.shape[2:]) for x in operands])
        )
        for name, array in operands[0].fields.items()
    }
    return items if "codes" in fields else _packed(items)


def _packed(items: Items, prefix: str = "") -> Items:
    """Return dense blocks as packed ones, sparse where that is allowed."""
    exponents, codes = items[f"{prefix}exponent"], items[f"{prefix}codes"]
    block = codes.shape[-1]
    rows = packed_dense(exponents.ravel(), codes.reshape(-1, block), np.ones(exponents.size, bool))
    return {
        name: array.reshape(*exponents.shape, *array.shape[1:])
        for name, array in packed_items(rows, prefix).items()
    }


def _sequences(rows: NDArray[Any]) -> NDArray[Any]:
    """Return evenly spaced pieces of a stream, around its end if it is too short for them."""
    starts = np.arange(SEQUENCES) * len(rows) // SEQUENCES
    return rows[(starts[:, None] + np.arange(LENGTH)) % len(rows)]


def _patterns(values: Floats, name: str) -> NDArray[Any]:
    """Return values as bit patterns of a format, rounded to nearest even."""
    bits = values.view(np.uint32)
    if name == "fp16":
        return values.astype(np.float16).view(np.uint16)
    if name == "bf16":
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return bits
