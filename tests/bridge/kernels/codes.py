"""Matrices of codes that are hard for accumulators."""

import numpy as np

from axs6.golden.blocks import Blocks
from axs6.golden.formats import BlockFormat

FP32_ONE = 0x3F800000


def operand_of_codes(fmt: BlockFormat, rows: int, sign: int) -> Blocks:
    """Rows of codes under scales that are near, far and tiny.

    Some rows have zeros of both signs; some have steps of magnitudes that are alike; some have the
    largest and the smallest magnitude alone. Some cancel with those of the other `sign`, and some
    have what is no number. The first three are an infinity beside a large number, a tiny product
    beside zeros of the other sign, and a number 2^26 below the one of the next step.
    """
    element, rng = fmt.element, np.random.default_rng(0)
    shape, top = (rows, 8, fmt.block), element.sign_bit - 1
    kind, numbers = np.arange(rows)[:, None, None] % 4, element.nan_codes | element.infinite_codes
    most = int(np.flatnonzero(numbers[: top + 1] == 0)[-1])
    codes = rng.integers(0, most + 1, shape)
    alike = rng.integers(0, most + 1, (rows, 8, fmt.block // 16)).repeat(16, axis=-1)
    codes = np.where(kind == 1, np.maximum(alike - codes % 4, 0), codes)
    codes = np.where((kind == 2) & (rng.random(shape) < 0.7), 0, codes)
    codes = np.where(kind == 3, rng.choice([1, most], shape), codes)
    codes |= rng.choice([0, element.sign_bit], shape)
    for apart in (1, 2):
        here = np.arange(rows) % 3 == apart
        codes[here, :, apart::4] = codes[here, :, ::4] ^ sign
    few = (np.arange(rows)[:, None, None] % 5 == 4) & (rng.random(shape) < 0.003)
    special = np.flatnonzero(numbers)
    codes = np.where(few, rng.choice(special, shape), codes) if special.size else codes
    if element.has_infinity:
        infinity = int(np.flatnonzero(element.infinite_codes == 1)[0])
        codes[0] = 0
        codes[0, 0, :2] = infinity & ~sign, most | sign
    codes[1] = 1 | sign if sign else element.sign_bit
    codes[1, 0, 0] = 1 | sign
    powers = [np.flatnonzero(element.integers == 1 << power) for power in (16, 29)]
    if all(x.size for x in powers):
        low, high = (int(x[0]) for x in powers)
        codes[2] = 0
        codes[2, 0, 0], codes[2, 0, 16] = low | sign, high
    middle = np.array([190, 60, 64, 120, 30])[np.arange(rows) % 5, None]
    near = (middle + rng.integers(-8, 9, (rows, 8))).astype(np.uint8)
    one = np.array(FP32_ONE, np.uint32)
    scales = tuple(near if level.blocked else one for level in fmt.levels[::-1])
    return Blocks(fmt, scales, codes.astype(np.uint8), (rows, 8 * fmt.block))
