"""Finding the weights of a checkpoint: by names, dtypes and shapes of tensors."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.interleaved import Interleaving
from axs6.files.checkpoints.layouts import LAYOUTS, ScalePart, WeightLayout
from axs6.files.checkpoints.swizzle import padded, unswizzled
from axs6.files.checkpoints.weight import ScaleLevel, Weight
from axs6.files.tensors import Tensor
from axs6.golden.planar import codes_of

MODULE = ".weight"
"""End of a weight's name after the name of its module."""


@dataclass(frozen=True)
class Problem:
    """A tensor that looks like a part of a weight and is none: its name, and what is wrong."""

    tensor: str
    what: str

    def __str__(self) -> str:
        return f"tensor {self.tensor!r}: {self.what}"


@dataclass(frozen=True)
class Found:
    """The contents of a checkpoint: weights, tensors of other kinds, and what fits nowhere."""

    weights: list[Weight]
    plain: list[Tensor]
    problems: list[Problem]


def part_name(template: str, name: str) -> str:
    """The name of a part of a weight."""
    return template.format(name, module=name.removesuffix(MODULE))


def recognise(tensors: Sequence[Tensor], layouts: Sequence[WeightLayout] = LAYOUTS) -> Found:
    """Find the weights among tensors; layouts that come first take precedence.

    A weight whose name another tensor has, that is no part of one, is a problem.
    """
    held = {tensor.name: tensor for tensor in tensors}
    weights: dict[str, Weight] = {}
    used: set[str] = set()
    problems: dict[str, Problem] = {}
    # Whether a tensor is a part is known when its name is looked for: a weight's name is shorter.
    for tensor in sorted(held.values(), key=lambda each: len(each.name)):
        for layout, name, alternative in _candidates(tensor, layouts):
            found = _weight(name, tensor, layout, alternative, held)
            if found and name in held and name not in used and name != tensor.name:
                found = Problem(tensor.name, f"the weight {name!r} has the name of another tensor")
            if isinstance(found, Problem):
                problems.setdefault(tensor.name, found)
            elif found and name not in weights:
                weights[name] = found
                used |= set(found.files)
                problems.pop(tensor.name, None)
                break
    plain = [tensor for tensor in tensors if tensor.name not in used]
    left = [problem for name, problem in problems.items() if name not in used]
    order = {tensor.name: number for number, tensor in enumerate(tensors)}
    ordered = sorted(weights.values(), key=lambda each: order[each.files[0]])
    return Found(ordered, plain, left)


def _candidates(
    tensor: Tensor, layouts: Sequence[WeightLayout]
) -> Iterator[tuple[WeightLayout, str, int]]:
    """Layouts whose codes a tensor may be, the weight's name, and which of the names it has."""
    for layout in layouts:
        if layout.codes.dtype != tensor.dtype:
            continue
        for number, template in enumerate(layout.codes.names):
            after = template.removeprefix("{}")
            if tensor.name.endswith(after):
                yield layout, tensor.name.removesuffix(after), number


def _weight(
    name: str, codes: Tensor, layout: WeightLayout, number: int, held: Mapping[str, Tensor]
) -> Weight | Problem | None:
    """The weight of these codes; None if tensors that the layout has are missing or others."""
    wanted = {part_name(part.names[number], name): part for part in layout.parts}
    said = any(not template.endswith("{}") for template in layout.codes.names)
    parts = []
    for scales_name, part in wanted.items():
        tensor = held.get(scales_name)
        if tensor is None and part.optional:
            continue
        if tensor is None or tensor.dtype not in part.numbers:
            # Names tell codes: their own, or those of scales that they have.
            known = said or any(each in held for each in wanted)
            return _missing(codes, layout, scales_name, tensor) if known else None
        parts.append((part, tensor))
    shape = _shape(codes, layout)
    if shape is None:
        return Problem(codes.name, f"its shape {codes.shape} is not one of {layout.name}")
    scales = []
    for part, tensor in parts:
        tiles = grid(shape, part)
        if not _fits(tensor.shape, tiles, shape, part):
            return Problem(
                tensor.name,
                f"{layout.name} needs scales of shape {stored_shape(shape, part)} for a weight of "
                f"shape {shape}, not {tensor.shape}",
            )
        scales.append(_scales(tensor, tiles, part))
    tensors, given = [tensor for _, tensor in parts], None
    if layout.input:
        tensor = held.get(part_name(layout.input.names[0], name))
        if tensor is not None and tensor.dtype in layout.input.numbers:
            given = _scales(tensor, (1, 1, tensor.stored.size), layout.input)
            tensors.append(tensor)
    return assembled(name, codes, layout, shape, scales, tensors, given)


def _missing(codes: Tensor, layout: WeightLayout, wanted: str, found: Tensor | None) -> Problem:
    """What to say of codes without scales, or with those of another dtype."""
    if found is None:
        return Problem(codes.name, f"{layout.name} needs a tensor {wanted!r}, which is missing")
    return Problem(found.name, f"{layout.name} has no scales of dtype {found.dtype}")


def _shape(codes: Tensor, layout: WeightLayout) -> tuple[int, ...] | None:
    """The shape of the values whose codes have the shape of a tensor, if there is one."""
    if not codes.shape:
        return None
    if not layout.pairs:
        return codes.shape
    if layout.codes.block:
        if len(codes.shape) < 2 or codes.shape[-1] != layout.codes.block:
            return None
        return (*codes.shape[:-2], codes.shape[-2] * codes.shape[-1] * 2)
    return (*codes.shape[:-1], codes.shape[-1] * 2)


def grid(shape: tuple[int, ...], part: ScalePart) -> tuple[int, int, int]:
    """Matrices, tiles of rows and tiles of values of a weight of a shape."""
    height = shape[-2] if len(shape) > 1 else 1
    tall = -(-height // part.rows) if part.rows else 1
    wide = -(-shape[-1] // part.values) if part.values else 1
    return math.prod(shape[:-2]), tall, wide


def stored_shape(shape: tuple[int, ...], part: ScalePart) -> tuple[int, ...]:
    """The shape of the tensor of scales that is written, where all matrices have their own."""
    _, tall, wide = grid(shape, part)
    if part.swizzled:
        return (*shape[:-2], *padded(tall, wide))
    if not part.rows and not part.values:
        each = shape[:-2]
        return (*each, 1) if part.axes and not each else each
    rows = (tall,) if len(shape) > 1 else ()
    values = (wide,) if part.values or part.axes else ()
    return (*shape[:-2], *rows, *values)


def _fits(
    found: tuple[int, ...], wanted: tuple[int, int, int], shape: tuple[int, ...], part: ScalePart
) -> bool:
    """Whether scales of a tensor's shape are those of a weight: axes of length 1 do not count."""
    if not part.rows and not part.values:
        outer, inner = found[: len(shape) - 2], found[len(shape) - 2 :]
        return math.prod(found) == 1 or (outer == shape[:-2] and set(inner) <= {1})
    full = stored_shape(shape, part)
    if part.swizzled and found == (math.prod(full),):
        return True
    if part.values:
        return found == full
    return tuple(n for n in found if n != 1) == tuple(n for n in full if n != 1)


def _scales(tensor: Tensor, wanted: tuple[int, int, int], part: ScalePart) -> ScaleLevel:
    number, shape = part.numbers[tensor.dtype], wanted
    if tensor.stored.size == 1 or tensor.stored.nbytes == number.dtype.itemsize:
        shape = (1, 1, 1)

    def load() -> NDArray[Any]:
        codes = np.ascontiguousarray(tensor.stored.all()).view(number.dtype)
        return unswizzled(codes, shape) if part.swizzled else codes.reshape(shape)

    return ScaleLevel(number, load, part.rows, part.values, part.inverse, tensor.dtype)


def ones(part: ScalePart) -> ScaleLevel:
    """Scales of 1, one for all."""
    number = part.numbers[next(iter(part.numbers))]
    codes, _ = number.codes(np.ones((1, 1, 1), np.float32))
    return ScaleLevel(number, lambda: codes, 0, 0, part.inverse)


def assembled(
    name: str,
    codes: Tensor,
    layout: WeightLayout,
    shape: tuple[int, ...],
    scales: list[ScaleLevel],
    parts: list[Tensor],
    given: ScaleLevel | None,
) -> Weight:
    """A weight of its parts, which fit each other.

    Args:
        name: of it.
        codes, layout, shape: its codes, how they are held, and the shape of its values.
        scales: of the levels that have tensors of their own, fine to coarse.
        parts: these tensors, and that of the scale of activations.
        given: the scale of activations.
    """
    files = (codes.name, *(tensor.name for tensor in parts))
    nbytes = codes.nbytes + sum(tensor.nbytes for tensor in parts)
    if layout.interleaved:
        blocks = Interleaving(name, layout, shape, codes.stored)
        if len(scales) < len(layout.parts):
            scales = [ones(part) for part in layout.parts]
        levels = (blocks.scales(), *scales)
        return Weight(name, layout, shape, levels, blocks.codes, None, nbytes, files, given)
    length = shape[-1]
    each = 2 if layout.packed else 1

    def raw(first: int, count: int) -> NDArray[np.uint8]:
        held = codes.stored.items(first * length // each, count * length // each)
        return held.view(np.uint8).reshape(count, length // each)

    def read(first: int, count: int) -> NDArray[np.uint8]:
        if not layout.packed:
            return raw(first, count)
        # A byte may have codes of two rows.
        start, end = first * length, (first + count) * length
        held = codes.stored.items(start // 2, -(-end // 2) - start // 2)
        return codes_of(held)[start % 2 :][: end - start].reshape(count, length)

    whole = None if length % each else raw
    return Weight(name, layout, shape, tuple(scales), read, whole, nbytes, files, given)
