"""A weight in another layout with the same values: its codes and scales, or why there are none."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.held import Coded, Held
from axs6.files.checkpoints.interleaved import InterleavedBlock
from axs6.files.checkpoints.layouts import ScalePart, WeightLayout
from axs6.files.checkpoints.numbers import code_of, element_table
from axs6.files.checkpoints.recognise import grid, ones
from axs6.files.checkpoints.weight import ScaleLevel, Weight
from axs6.golden.floats import bf16_bits

NEIGHBOURS = 4
"""Float32 numbers on each side of 1 / x that may stand for it, where a layout divides by x."""


class CannotHoldError(ValueError):
    """A layout that cannot hold a weight with its values."""


def recode(weight: Weight, layout: WeightLayout, exact: bool = True) -> Held:
    """A weight in another layout, with the same values.

    Args:
        weight: as it was found.
        layout: the other.
        exact: whether an inverse of a scale must give the same values, or is the nearest float32.

    Raises:
        CannotHoldError: the layout does not have the element, blocks of such scales, a scale, or
            the inverse of one.
    """
    weight.check()
    scales, dtypes, rounded = _recoded(weight, layout, exact)
    shared = tuple(len(level.codes) == 1 for level in scales)
    given = _input(weight, layout)
    weight.release()

    def load() -> Coded:
        table = _table(weight, layout)
        if table is None:
            return Coded(_recoded(weight, layout, exact)[0], weight.read, weight.raw)
        held = table
        return Coded(
            _recoded(weight, layout, exact)[0], lambda first, count: held[weight.read(first, count)]
        )

    return Held(
        name=weight.name,
        shape=weight.shape,
        layout=layout,
        dtypes=dtypes,
        shared=shared,
        load=load,
        input=given,
        rounded=rounded,
        encoded_again=not exact,
    )


def _recoded(
    weight: Weight, layout: WeightLayout, exact: bool
) -> tuple[tuple[ScaleLevel, ...], tuple[str, ...], bool]:
    """The scales in the layout, their dtypes, and whether values are the same in bfloat16 alone."""
    _table(weight, layout)
    _check_rows(weight, layout)
    scales, dtypes, rounded = [], [], False
    for number, (level, part) in enumerate(
        zip(_levels(weight, layout), layout.scales, strict=True)
    ):
        if level.inverse is part.inverse:
            codes = _tiled(weight, level, part, layout, level.codes)
            dtype, held = _moved(weight, layout, part, level, codes)
        else:
            factors = _tiled(weight, level, part, layout, level.factors)
            if exact:
                fine = np.unique(weight.scales[0].factors) if number else np.ones(1, np.float32)
                factors, in_bfloat16 = _inverses(weight, layout, factors, fine, level.inverse)
                rounded |= in_bfloat16
            else:
                factors = _nearest(factors)
            dtype, held = _held(weight, layout, part, factors)
        scales.append(held)
        dtypes.append(dtype)
    return tuple(scales), tuple(dtypes), rounded


def _check_rows(weight: Weight, layout: WeightLayout) -> None:
    """Raise CannotHoldError for rows that are no whole blocks, where the layout has no others."""
    whole = 2 if layout.packed else 1
    if layout.codes.block:
        whole = 2 * layout.codes.block
    if layout.interleaved:
        whole = InterleavedBlock(layout).values
    if weight.length % whole:
        raise _cannot(
            weight, layout, f"rows of {weight.length} values, but whole blocks of {whole}"
        )


def _cannot(weight: Weight, layout: WeightLayout, what: str) -> CannotHoldError:
    return CannotHoldError(f"tensor {weight.name!r}: {layout.name} does not have {what}")


def _table(weight: Weight, layout: WeightLayout) -> NDArray[np.uint8] | None:
    """The code that the layout has for each code of the weight."""
    if layout.element == weight.layout.element:
        return None
    table, found = code_of(element_table(layout.element), element_table(weight.layout.element))
    if not found.all():
        value = element_table(weight.layout.element)[~found][0]
        raise _cannot(weight, layout, f"the element {value:g} of {weight.layout.name}")
    return table


def _levels(weight: Weight, layout: WeightLayout) -> list[ScaleLevel]:
    """As many levels as the layout has: coarse ones are multiplied, or 1 is added."""
    levels = list(weight.scales)
    while len(levels) > len(layout.scales):
        coarse = levels.pop()
        if coarse.factors.size and (coarse.factors != 1).any():
            raise _cannot(
                weight, layout, f"a second level of scales, such as {coarse.factors.flat[0]:g}"
            )
    levels += [ones(part) for part in layout.scales[len(levels) :]]
    return levels


def _tiled(
    weight: Weight, level: ScaleLevel, part: ScalePart, layout: WeightLayout, held: NDArray[Any]
) -> NDArray[Any]:
    """Codes or factors of a level in the grid of a part.

    A tile of the part lies within one of the level; or all scales of a matrix are one number.
    """
    matrices, tall, wide = grid(weight.shape, part)
    if not held.size:
        return np.zeros((matrices, tall, wide), held.dtype)
    for axis, (tile, wanted) in enumerate(
        ((level.rows, part.rows), (level.values, part.values)), start=1
    ):
        if held.shape[axis] == 1 or wanted == tile:
            continue
        if wanted and tile % wanted == 0:
            where = np.arange((tall, wide)[axis - 1]) * wanted // tile
            held = held.take(where, axis)
        elif (held == held.take([0], axis)).all():
            held = held.take([0], axis)
        else:
            raise _cannot(
                weight, layout, f"scales of {level.rows or 'all'} x {level.values or 'all'} values"
            )
    if part.rows or part.values:
        return np.broadcast_to(held, (matrices, tall, wide))
    return held


def _inverses(
    weight: Weight,
    layout: WeightLayout,
    factors: NDArray[np.float32],
    fine: NDArray[np.float32],
    divided: bool,
) -> tuple[NDArray[np.float32], bool]:
    """Numbers by which to multiply in place of dividing, or the other way round.

    They give the same values in float32 where such numbers exist, otherwise in bfloat16. Returns
    whether it is bfloat16 for one of them.
    """
    elements = element_table(weight.layout.element)
    found = np.empty_like(factors)
    rounded = False
    for factor in np.unique(factors):
        number, in_bfloat16 = _inverse(factor, fine, elements, divided)
        if number is None:
            raise _cannot(weight, layout, f"an inverse of {factor:g} with the same values")
        found[factors == factor] = number
        rounded |= in_bfloat16
    return found, rounded


def _nearest(factors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest float32 numbers to inverses."""
    with np.errstate(all="ignore"):
        return np.float32(1) / factors


def _inverse(
    factor: np.float32, fine: NDArray[np.float32], elements: NDArray[np.float32], divided: bool
) -> tuple[np.float32 | None, bool]:
    with np.errstate(all="ignore"):
        nearest = np.float32(1) / factor
        if not np.isfinite(nearest) or not nearest:
            return None, False
        near = nearest.view(np.uint32).astype(np.int64) + np.arange(-NEIGHBOURS, NEIGHBOURS + 1)
        # The nearest number comes first, so that it is taken where several serve.
        order = np.argsort(np.abs(near - int(nearest.view(np.uint32))), kind="stable")
        candidates = np.maximum(near[order], 0).astype(np.uint32).view(np.float32)
        before = (fine / factor if divided else fine * factor)[:, None] * elements
        for rounded in (False, True):
            for candidate in candidates:
                scale = fine * candidate if divided else fine / candidate
                after = scale[:, None] * elements
                if same(before, after, rounded):
                    return candidate, rounded
    return None, False


def same(one: NDArray[np.float32], other: NDArray[np.float32], rounded: bool = False) -> bool:
    """Whether numbers have the same bits in float32, or in bfloat16; all NaN are the same."""
    if rounded:
        one_bits, other_bits = bf16_bits(one), bf16_bits(other)
    else:
        one_bits = np.ascontiguousarray(one).view(np.uint32)
        other_bits = np.ascontiguousarray(other).view(np.uint32)
    if np.array_equal(one_bits, other_bits):
        return True
    return bool(((one_bits == other_bits) | (np.isnan(one) & np.isnan(other))).all())


def _moved(
    weight: Weight, layout: WeightLayout, part: ScalePart, level: ScaleLevel, codes: NDArray[Any]
) -> tuple[str, ScaleLevel]:
    """The scales of codes of a level, in the dtype that they had, or one of the same numbers."""
    before = [dtype for dtype, number in part.numbers.items() if number == level.number]
    if weight.layout is layout:
        before = [dtype for dtype in before if dtype == level.dtype]
    for dtype in before[:1]:
        return dtype, ScaleLevel.of(level.number, codes, part)
    if level.number.dtype.itemsize > 1:
        return _held(weight, layout, part, level.number.values(codes))
    values = level.number.values(np.arange(256, dtype=np.uint8))
    for dtype, number in part.numbers.items():
        table, exact = number.codes(values)
        if exact[codes].all():
            return dtype, ScaleLevel.of(number, table[codes], part)
    raise _cannot(weight, layout, f"the scale {values[codes[~exact[codes]][0]]:g}")


def _held(
    weight: Weight, layout: WeightLayout, part: ScalePart, factors: NDArray[np.float32]
) -> tuple[str, ScaleLevel]:
    """The scales of factors, in the first dtype that holds them."""
    for dtype, number in part.numbers.items():
        codes, exact = number.codes(np.ascontiguousarray(factors))
        if exact.all():
            return dtype, ScaleLevel.of(number, codes, part)
    raise _cannot(weight, layout, f"the scale {factors[~exact].flat[0]:g}")


def _input(weight: Weight, layout: WeightLayout) -> tuple[ScaleLevel, str] | None:
    """The scale of activations as the layout has it: the nearest float32 where it is inverted."""
    if weight.input is None or layout.input is None:
        return None
    factors, part = weight.input.factors, layout.input
    if weight.input.inverse is part.inverse:
        dtype, held = _moved(weight, layout, part, weight.input, weight.input.codes)
    else:
        dtype, held = _held(weight, layout, part, _nearest(factors))
    return held, dtype


def differences(one: Weight, other: Weight, rounded: bool) -> Sequence[tuple[int, int]]:
    """Bands of rows, (first, count), in which the values of two weights differ."""
    return [
        (first, count)
        for first, count in one.bands()
        if not (
            _same_parts(one, other, first, count)
            or same(one.values(first, count), other.values(first, count), rounded)
        )
    ]


def _same_parts(one: Weight, other: Weight, first: int, count: int) -> bool:
    """Whether rows have the same elements under the same factors, and so the same values."""
    factors, size = one.factors(first, count)
    others, other_size = other.factors(first, count)
    if size != other_size or not same(factors, others):
        return False
    if one.layout.element != other.layout.element:
        return same(one.elements(first, count), other.elements(first, count))
    if one.raw and other.raw:
        return np.array_equal(one.raw(first, count), other.raw(first, count))
    return np.array_equal(one.read(first, count), other.read(first, count))
