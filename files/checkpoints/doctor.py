"""Examining checkpoints: what in one is wrong, or looks so, and in which tensor."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.claims import contradictions
from axs6.files.checkpoints.encode import Rows, rows_of
from axs6.files.checkpoints.numbers import element_table
from axs6.files.checkpoints.recognise import MODULE
from axs6.files.checkpoints.source import Checkpoint, open_checkpoint
from axs6.files.checkpoints.statistics import Statistics
from axs6.files.checkpoints.swizzle import ROWS, SCALES, unswizzled
from axs6.files.checkpoints.weight import ScaleLevel, Weight
from axs6.files.tensors import FLOATS

SMALLEST_SPREAD, LARGEST_SPREAD = 2.0**-20, 2.0**4
"""Root mean squares that weights of networks have."""

SATURATED = 0.01
"""Share of blocks that are saturated, from which it is a finding."""

ENOUGH = 256
"""Values for each code of an element, from which unused codes are a finding."""

FEW = 16
"""Magnitudes of an element, all of which weights use."""

SEPARABLE = 0.15
"""Gain in the variance of scales that rows and columns explain, from which it is a finding."""

CLOSER = 0.25
"""Share of the error that a finding leaves, beside a reference."""

NEAR = 6.0
"""QSNR in dB beside a reference, below which a weight differs."""


@dataclass(frozen=True)
class Finding:
    """What is wrong.

    Args:
        tensor: the tensor or weight; the file's name where it is all of it.
        check: name of the check.
        what: a sentence.
    """

    tensor: str
    check: str
    what: str


Check = Callable[[Weight, Statistics], Iterator[str]]


def examine(path: Path, against: Path | None = None) -> Iterator[Finding]:
    """What is wrong in a checkpoint, tensor by tensor.

    Args:
        path: the checkpoint.
        against: a checkpoint or model with the values that it should have, or close ones.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is damaged.
    """
    with open_checkpoint(path) as checkpoint:
        for problem in checkpoint.found.problems:
            yield Finding(problem.tensor, "tensors", problem.what)
        yield from _without_scales(checkpoint)
        for tensor, what in contradictions(checkpoint):
            yield Finding(tensor, "configuration", what)
        for weight in checkpoint.found.weights:
            try:
                statistics = Statistics.of(weight)
            except ValueError as error:
                yield Finding(weight.name, "scales", str(error))
                continue
            for name, check in CHECKS.items():
                for what in check(weight, statistics):
                    yield Finding(weight.name, name, what)
            weight.release()
        if against:
            with open_checkpoint(against) as reference:
                yield from _beside(checkpoint, reference)


def _without_scales(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Matrices with the dtype of codes of a checkpoint's weights."""
    dtypes = {weight.layout.codes.dtype for weight in checkpoint.found.weights}
    said = [problem.tensor for problem in checkpoint.found.problems]
    for tensor in checkpoint.found.plain:
        matrix = len(tensor.shape) > 1 and tensor.name.endswith(MODULE)
        if matrix and tensor.dtype in dtypes and not any(x.startswith(tensor.name) for x in said):
            yield Finding(
                tensor.name,
                "tensors",
                f"its dtype, {tensor.dtype}, is that of other weights' codes, and it has no scales",
            )


def _nan_scales(weight: Weight, _: Statistics) -> Iterator[str]:
    for level in weight.scales:
        factors = level.factors
        for what, found in (("NaN", np.isnan(factors)), ("infinite", np.isinf(factors))):
            if count := int(found.sum()):
                yield f"{count:,} of {factors.size:,} scales are {what}, the first {_at(found)}"


def _zero_scales(weight: Weight, statistics: Statistics) -> Iterator[str]:
    for level in weight.scales if statistics.largest.size else ():
        factors = level.factors
        zero, negative = (factors == 0) & (statistics.under(level) > 0), factors < 0
        if count := int(zero.sum()):
            yield f"{count:,} of {factors.size:,} scales are 0, the first {_at(zero)}"
        if count := int(negative.sum()):
            yield f"{count:,} of {factors.size:,} scales are negative, the first {_at(negative)}"


def _zero_blocks(weight: Weight, statistics: Statistics) -> Iterator[str]:
    if not statistics.largest.size:
        return
    factors, largest = weight.scales[0].factors, statistics.under(weight.scales[0])
    used = factors[(largest > 0) & np.isfinite(factors)]
    if not used.size:
        return
    # Encoders write 1 where all values are 0.
    odd = (largest == 0) & np.isfinite(factors) & (factors > used.max()) & (factors != 1)
    if count := int(odd.sum()):
        yield (
            f"{count:,} blocks of zeros have larger scales than all others, up to "
            f"{factors[odd].max():g}, the first {_at(odd)}"
        )


def _inverted(weight: Weight, statistics: Statistics) -> Iterator[str]:
    """A scale of the tensor whose inverse gives values as weights have them."""
    if not statistics.spread or len(weight.scales) < 2:
        return
    if SMALLEST_SPREAD <= statistics.spread <= LARGEST_SPREAD:
        return
    other = Statistics.of(inverted(weight)).spread
    if SMALLEST_SPREAD <= other <= LARGEST_SPREAD:
        scale = weight.scales[-1].factors.flat[0]
        yield (
            f"the scale of the tensor, {scale:g}, looks inverted: values have a root mean square "
            f"of {statistics.spread:.3g}, and of {other:.3g} with its inverse"
        )


def _spread(weight: Weight, statistics: Statistics) -> Iterator[str]:
    if statistics.spread and not SMALLEST_SPREAD <= statistics.spread <= LARGEST_SPREAD:
        yield f"values have a root mean square of {statistics.spread:.3g}, as no weights have"


def _swizzled(weight: Weight, _: Statistics) -> Iterator[str]:
    other = in_rows(weight)
    if other is None:
        return
    before, after = separable(weight.scales[0]), separable(other.scales[0])
    if after > before + SEPARABLE:
        yield (
            "scales look swizzled in tiles of 128 x 4: rows and columns explain "
            f"{100 * before:.0f} % of their variance, and {100 * after:.0f} % in the order of rows"
        )


def _saturated(weight: Weight, statistics: Statistics) -> Iterator[str]:
    if statistics.saturated > SATURATED:
        yield (
            f"{100 * statistics.saturated:.1f} % of blocks have two thirds of their elements at "
            "the largest code"
        )


def _unused(weight: Weight, statistics: Statistics) -> Iterator[str]:
    values = element_table(weight.layout.element)
    # The lowest integer has no magnitude that encoders take.
    table, finite = np.abs(values), np.unique(values[np.isfinite(values) & (values >= 0)])
    enough = ENOUGH * len(table)
    if statistics.codes.sum() < enough or not statistics.spread:
        return
    used = np.unique(table[(statistics.codes > 0) & np.isfinite(table)])
    if used.max() < finite.max() / 2:
        yield f"the largest element is {used.max():g}, of {finite.max():g} that there are"
    elif (
        len(finite) <= FEW
        and statistics.below >= enough
        and (left := np.setdiff1d(finite, used)).size
    ):
        yield f"no element is {', '.join(f'{x:g}' for x in left)}"


CHECKS: dict[str, Check] = {
    "NaN": _nan_scales,
    "zero scales": _zero_scales,
    "blocks of zeros": _zero_blocks,
    "inverted": _inverted,
    "spread": _spread,
    "swizzled": _swizzled,
    "saturated": _saturated,
    "unused codes": _unused,
}
"""What is looked for in each weight."""


def _at(found: NDArray[np.bool_]) -> str:
    matrix, row, column = (int(n) for n in np.unravel_index(int(found.argmax()), found.shape))
    place = f"at row {row}, scale {column}"
    return f"in matrix {matrix} {place}" if found.shape[0] > 1 else place


def inverted(weight: Weight) -> Weight:
    """A weight that is divided by the scale of the tensor in place of multiplied, or inversely."""
    coarse = weight.scales[-1]
    return replace(
        weight, scales=(*weight.scales[:-1], replace(coarse, inverse=not coarse.inverse))
    )


def in_rows(weight: Weight) -> Weight | None:
    """A weight whose scales of blocks are taken as swizzled; None if their grid has no tiles."""
    fine = weight.scales[0]
    if fine.rows != 1 or not fine.values:
        return None
    codes = fine.codes
    if codes.shape[1] % ROWS or codes.shape[2] % SCALES or not codes.size:
        return None
    other = unswizzled(codes, codes.shape)
    return replace(weight, scales=(replace(fine, load=lambda: other), *weight.scales[1:]))


def exchanged(weight: Weight) -> Weight | None:
    """A weight whose bytes have the first code in the high bits; None if they have one code."""
    if not weight.layout.packed:
        return None

    def read(first: int, count: int) -> NDArray[np.uint8]:
        codes = weight.read(first, count)
        return codes.reshape(count, -1, 2)[..., ::-1].reshape(count, -1)

    return replace(weight, read=read, raw=None)


def separable(level: ScaleLevel) -> float:
    """Share of the variance of the logarithms of scales that means of rows and columns explain."""
    with np.errstate(all="ignore"):
        logs = np.log2(level.factors.astype(np.float64))
    logs[~np.isfinite(logs)] = 0
    logs -= logs.mean(axis=(1, 2), keepdims=True)
    whole = float((logs**2).sum())
    if not whole:
        return 1.0
    left = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=2, keepdims=True)
    return 1 - float((left**2).sum()) / whole


WAYS: dict[str, Callable[[Weight], Weight | None]] = {
    "the scale of the tensor is inverted": lambda weight: (
        inverted(weight) if len(weight.scales) > 1 else None
    ),
    "scales are swizzled in tiles of 128 x 4": in_rows,
    "the first code of a byte is in the high bits": exchanged,
}
"""Other readings of a weight, and what is wrong in the file where one of them fits."""


def _beside(checkpoint: Checkpoint, reference: Checkpoint) -> Iterator[Finding]:
    """What differs from a reference, and the reading with which it does not."""
    values: dict[str, tuple[tuple[int, ...], Rows]] = {
        weight.name: (weight.shape, weight.values) for weight in reference.found.weights
    }
    for tensor in reference.found.plain:
        if tensor.dtype in FLOATS and tensor.shape:
            values[tensor.name] = tensor.shape, rows_of(tensor)
    for weight in checkpoint.found.weights:
        if weight.name not in values:
            yield Finding(weight.name, "reference", "it is not in the reference")
            continue
        shape, read = values[weight.name]
        if shape != weight.shape:
            yield Finding(
                weight.name, "reference", f"its shape is {weight.shape}, and {shape} there"
            )
            continue
        yield from _compared(weight, read)
        weight.release()


def _compared(weight: Weight, read: Rows) -> Iterator[Finding]:
    signal, error = _errors(weight, read)
    if not error:
        return
    ratio = 10 * np.log10(max(signal, 1e-300) / error)
    if ratio >= NEAR:
        return
    for what, other in WAYS.items():
        changed = other(weight)
        if changed is not None and _errors(changed, read)[1] < CLOSER * error:
            yield Finding(weight.name, "reference", f"{what}: then it is the reference's weight")
            return
    yield Finding(weight.name, "reference", f"its values differ: QSNR {ratio:.2f} dB")


def _errors(weight: Weight, read: Rows) -> tuple[float, float]:
    """Sums of the squares of the reference's values and of the differences."""
    signal = error = 0.0
    for first, count in weight.bands():
        expected = read(first, count).astype(np.float64)
        with np.errstate(all="ignore"):
            difference = weight.values(first, count) - expected
        known = np.isfinite(expected)
        difference[~np.isfinite(difference)] = np.finfo(np.float32).max
        signal += float((expected[known] ** 2).sum())
        error += float((difference[known] ** 2).sum())
    return signal, error
