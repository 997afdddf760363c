"""Functional coverage: which values, gaps, stalls and resets the items of a regression had.

What there is to meet follows from the fields of the payloads and the formats' scales. A group has
bins, each with the number of times that it was met.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat, Exponent, Float, Real
from axs6.hw.core.layouts import Field, float_format, scale_names
from axs6.hw.registry import find

Coverage = Mapping[str, Mapping[str, int]]
"""For each group its bins, and how often each was met."""

Items = Mapping[str, NDArray[Any]]

MOST_VALUES = 8
"""Bits of a field all of whose values are bins; of wider ones each bit is to be 0 and 1."""

MOST_CYCLES = 16
"""Stalls of this many cycles and more are one bin, and so are vectors of this many items."""

CLASSES = ("zero", "subnormal", "normal", "infinite")


def merged(parts: Iterable[Coverage]) -> dict[str, dict[str, int]]:
    """The sums of several coverages, whose groups and bins may differ."""

    def add(total: dict[str, dict[str, int]], part: Coverage) -> dict[str, dict[str, int]]:
        for group, bins in part.items():
            own = total.setdefault(group, {})
            for name, count in bins.items():
                own[name] = own.get(name, 0) + count
        return total

    return reduce(add, parts, {})


def field_coverage(
    items: Items, fields: Sequence[Field], stream: str, parameters: Mapping[str, Any]
) -> Coverage:
    """What the fields of a stream's items have met.

    Every value of a field of few bits, every class of a floating-point number, and both values of
    each bit of others.

    Args:
        items: an array for each field.
        fields: of the payload.
        stream: its name, for the groups.
        parameters: of the unit.
    """
    found: dict[str, Mapping[str, int]] = {}
    for field in fields:
        patterns = items[field.name].astype(np.int64).ravel() & (1 << field.width) - 1
        name = f"{stream}.{field.name}"
        fmt = float_format(field.name, parameters)
        if field.width <= MOST_VALUES:
            counts = np.bincount(patterns, minlength=1 << field.width)
            found[f"{name}, values"] = {str(k): int(n) for k, n in enumerate(counts)}
        elif fmt is not None:
            found[f"{name}, classes"] = _classes(patterns, fmt)
        else:
            ones = [int(np.count_nonzero(patterns >> k & 1)) for k in range(field.width)]
            bins = {f"bit {k} is 1": n for k, n in enumerate(ones)}
            found[f"{name}, bits"] = bins | {
                f"bit {k} is 0": patterns.size - n for k, n in enumerate(ones)
            }
    return found


def _classes(patterns: NDArray[np.int64], fmt: Float) -> dict[str, int]:
    """Floating-point numbers by class and sign."""
    fraction = patterns & (1 << fmt.fraction_bits) - 1
    exponent = _exponents(patterns, fmt)
    top = (1 << fmt.exponent_bits) - 1
    kinds = np.select([exponent == top, exponent > 0, fraction > 0], [3, 2, 1], 0)
    nan = (exponent == top) & (fraction > 0)
    signs = patterns >> fmt.magnitude_bits
    bins = {
        f"{'-' if sign else '+'}{name}": int(
            np.count_nonzero((kinds == kind) & (signs == sign) & ~nan)
        )
        for kind, name in enumerate(CLASSES)
        for sign in (0, 1)
    }
    return {**bins, "NaN": int(np.count_nonzero(nan))}


def _exponents(patterns: NDArray[np.int64], fmt: Float) -> NDArray[np.int64]:
    return patterns >> fmt.fraction_bits & (1 << fmt.exponent_bits) - 1


def gap_coverage(unit: str, items: Items, parameters: Mapping[str, Any]) -> Coverage:
    """Gaps between exponents, within blocks of values and from product to product; and vectors.

    Args:
        unit: its name in the registry.
        items: an array for each input field.
        parameters: of the unit.
    """
    found: dict[str, Mapping[str, int]] = {}
    for name, array in items.items():
        fmt = float_format(name, parameters)
        if fmt is not None and array.ndim > 1:
            group = f"i.{name}, gaps to the largest exponent of the block"
            found[group] = _block_gaps(array.astype(np.int64), fmt)
    if "last" in items:
        last = items["last"].astype(bool)
        turns = parameters.get("interleave", 1)
        lengths = [np.diff(np.flatnonzero(last[turn::turns]), prepend=-1) for turn in range(turns)]
        before = np.concatenate(lengths) - 1
        found["items of a vector before its last"] = _ranges(before, MOST_CYCLES)
        exponents, most = _product_exponents(items, find(unit).formats(parameters))
        if most:
            gaps = (exponents[turns:] - exponents[:-turns])[~last[:-turns]]
            group = "gaps between exponents of a vector's products"
            found[group] = _ranges(gaps.ravel(), most, signed=True)
    return found


def _block_gaps(values: NDArray[np.int64], fmt: Float) -> dict[str, int]:
    """Gaps of the finite values other than 0."""
    exponents = _exponents(values, fmt)
    special = (1 << fmt.exponent_bits) - 1
    magnitudes = values & (1 << fmt.magnitude_bits) - 1
    counted = (exponents < special) & (magnitudes > 0)
    largest = np.where(counted, exponents, 0).max(axis=-1, keepdims=True)
    return _ranges((largest - exponents)[counted], special - 1)


def _product_exponents(
    items: Items, formats: Sequence[BlockFormat]
) -> tuple[NDArray[np.int64], int]:
    """The exponents of products of blocks, (items, rows x columns), and the largest there can be.

    An exponent of a product is the sum of those of its blocks' scales.
    """
    sides = [np.zeros((len(items["last"]), 1), np.int64) for _ in "ab"]
    most = 0
    for k, (side, fmt) in enumerate(zip("ab", (formats[0], formats[-1]), strict=True)):
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            array = items.get(f"{side}.{name}", items.get(f"{side}.{name}s"))
            if array is None or level.group != fmt.block:
                continue
            codes = array.astype(np.int64).reshape(len(array), -1)
            if isinstance(level.scale, Real):
                sides[k] = sides[k] + _exponents(codes, level.scale.dtype)
                most += (1 << level.scale.dtype.exponent_bits) - 1
            elif isinstance(level.scale, Exponent):
                sides[k] = sides[k] + codes
                most += level.scale.largest_code
    a, b = sides
    return (a[:, :, None] + b[:, None, :]).reshape(len(a), -1), most


def cycle_coverage(group: str, cycles: Sequence[int]) -> Coverage:
    """How many cycles something took, each time."""
    return {group: _ranges(np.array(cycles, np.int64), MOST_CYCLES)}


def reset_coverage(
    inputs: Sequence[Field], waits: bool | None = None, unfinished: bool = False
) -> Coverage:
    """A reset in flight.

    Args:
        inputs: fields of the input payload.
        waits: whether an output waits to be taken; None where there was no reset.
        unfinished: whether the last vector is not complete.
    """
    bins = {"while an output waits": waits is True, "while none waits": waits is False}
    if any(field.name == "last" for field in inputs):
        bins["in the middle of a vector"] = unfinished
    return {"reset": {name: int(met) for name, met in bins.items()}}


def _ranges(values: NDArray[np.int64], most: int, *, signed: bool = False) -> dict[str, int]:
    """Counts of 0, 1, 2 to 3, 4 to 7 and so on; the last range has what is beyond `most` too."""
    last = most.bit_length()
    lengths = np.minimum(np.frexp(np.abs(values))[1], last)
    counts = np.bincount(last + np.sign(values) * lengths, minlength=2 * last + 1)
    first = -last if signed else 0
    return {_range(k, last): int(counts[last + k]) for k in range(first, last + 1)}


def _range(length: int, last: int) -> str:
    """The name of the bin of numbers with `length` bits; a negative length has negative numbers."""
    sign, bits = "-" if length < 0 else "", abs(length)
    low, high = 1 << bits >> 1, (1 << bits) - 1
    if bits == last:
        return f"{sign}{low} and beyond"
    return f"{sign}{low}" if low == high else f"{sign}{low} to {sign}{high}"
