"""HiF4 by its published conversion (arXiv 2602.11287, Algorithm 1), restated in NumPy.

Blocks of 64 values have a scale E6M2, a bit for each 8 values and a bit for each 4; elements are a
sign and q / 4. All products are in FP32, and rounded to BF16 where the publication says so.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from axs6 import decode, encode

Values = NDArray[np.float32]

E6M2 = np.array([(1 + (k & 3) / 4) * 2.0 ** ((k >> 2) - 48) for k in range(255)])
"""The numbers of the scale, by their codes; 255 is NaN."""

BLOCKS = 1 << 14


def bf16(x: Values) -> Values:
    """The nearest BF16 numbers, ties to even."""
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def away(x: Values) -> Values:
    """The nearest integers, ties away from 0."""
    return np.trunc(x) + (x - np.trunc(x) >= 0.5)


class Steps(NamedTuple):
    """Steps of the conversion, of which wrong ones may be given."""

    to_bf16: Callable[[Values], Values] = bf16
    nearest: Callable[[Values], Values] = away
    reach: float = 4
    least: int = 0


STEPS = Steps()


def published(x: Values, steps: Steps = STEPS) -> tuple[NDArray[Any], ...]:
    """Codes of scales (n,), bits (n, 8) and (n, 16), and signed integers q (n, 64)."""
    groups = [np.abs(x).reshape(len(x), -1, size).max(axis=2) for size in (64, 8, 4)]
    seventh = bf16(np.float32(1 / 7))
    factor = steps.to_bf16(groups[0][:, 0] * seventh).astype(np.float64).clip(2.0**-48, 49152)
    high = np.searchsorted(E6M2, factor).clip(1, 254)
    below, above = factor - E6M2[high - 1], E6M2[high] - factor
    codes = high - ((below < above) | ((below == above) & (high % 2 == 1)))
    codes = np.maximum(codes, steps.least)
    reciprocal = steps.to_bf16(np.float32(1) / E6M2[codes].astype(np.float32))[:, None]
    with np.errstate(over="ignore"):  # an infinity is above all thresholds
        e8 = groups[1] * reciprocal >= steps.reach
        e4 = groups[2] * reciprocal / np.repeat(1 << e8, 2, axis=1) >= 2
        scaled = np.abs(x) * reciprocal
    shared = np.repeat(1 << (np.repeat(e8, 2, axis=1).astype(int) + e4), 4, axis=1)
    counts = np.minimum(scaled / shared.astype(np.float32) * 4, np.float32(8))
    q = np.minimum(steps.nearest(counts), 7)
    return codes, e8, e4, np.where(np.signbit(x), -q, q)


@pytest.fixture(scope="module")
def x() -> Values:
    """2^20 values: of every magnitude, in BF16 and FP32, near ties, at the ends, and of zeros."""
    rng = np.random.default_rng(4)
    sizes = np.exp2(rng.integers(-150, 127, (BLOCKS, 1)).astype(np.float64))
    values = rng.standard_normal((BLOCKS, 64)) * np.where(rng.random((BLOCKS, 1)) < 0.7, 1, sizes)
    values[:, ::9] *= np.exp2(rng.integers(-9, 9, (BLOCKS, 8)))
    ties = BLOCKS // 4
    values[:ties] = rng.integers(-57, 58, (ties, 64)) / 8 * sizes[:ties]
    found = values.clip(-3.3e38, 3.3e38).astype(np.float32)
    found[::2] = bf16(found[::2])
    found[:8] = 0
    found[8:16, 5] = np.float32(3.4028235e38)
    found[16:24, 6:] = 0
    found[24:32] = np.float32(1e-45)
    return found


def differing(x: Values, steps: Steps = STEPS) -> int:
    """How many codes of the published conversion the encoder does not give."""
    codes, e8, e4, q = published(x, steps)
    blocks = encode(x, "hif4")
    scales = [found.reshape(len(x), -1) for found in blocks.scales]
    signed = blocks.format.element.integers[blocks.codes].reshape(x.shape)
    ours = (scales[0][:, 0], 1 - scales[1], 1 - scales[2], signed)
    return sum(int((a != b).sum()) for a, b in zip(ours, (codes, e8, e4, q), strict=True))


def test_codes_are_those_of_the_published_conversion(x: Values) -> None:
    assert x.size == 1 << 20
    assert differing(x) == 0


def test_values_are_those_of_the_published_conversion(x: Values) -> None:
    codes, e8, e4, q = published(x)
    powers = np.repeat(np.repeat(e8, 2, axis=1) + e4.astype(int), 4, axis=1)
    values = q / 4 * np.exp2(powers) * E6M2[codes][:, None]
    assert (decode(encode(x, "hif4"), np.float64) == values).all()


@pytest.mark.parametrize(
    "wrong",
    [
        Steps(to_bf16=lambda x: x),
        Steps(nearest=np.rint),
        Steps(reach=np.nextafter(np.float32(4), np.float32(5))),
        Steps(least=1),
    ],
    ids=["FP32", "ties to even", "threshold", "subnormal scales"],
)
def test_another_conversion_is_found(x: Values, wrong: Steps) -> None:
    assert differing(x, wrong) > 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinities_make_the_block_nan(x: Values, value: float) -> None:
    given = x[100:104].copy()
    given[2, 7] = value
    blocks = encode(given, "hif4", nonfinite="propagate")
    assert (blocks.scales[0][:, 0] == 255).tolist() == [False, False, True, False]
    assert np.isnan(decode(blocks)[2]).all()
