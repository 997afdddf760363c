"""Matrices of codes that are hard for accumulators."""

import numpy as np

from axs6.golden.blocks import Blocks
from axs6.golden.formats import BlockFormat

FP32_ONE = 0x3F800000


def operand_of_scales(fmt: BlockFormat, rows: int, seed: int) -> Blocks:
    """Rows of numbers under FP32 scales of blocks with all their bits, near, far and tiny.

    In every other row, lanes cancel to 0 or to one of them. In the last rows of seeds 0 and 1,
    large scales meet scales of 0.
    """
    element, rng = fmt.element, np.random.default_rng(seed)
    shape = (rows, 8, fmt.block)
    numbers = np.flatnonzero(~element.nan_codes & (element.infinite_codes == 0))
    codes = numbers[rng.integers(0, numbers.size, shape)]
    largest = np.abs(element.integers[numbers]) == element.largest_integer
    ends = [*numbers[largest], element.zero_code]
    few = rng.choice(np.array(ends), shape)
    codes = np.where(np.arange(rows)[:, None, None] % 2, few, codes)
    middle = np.array([127, 120, 60, 130, 3])[np.arange(rows) % 5, None]
    exponents = np.maximum(middle + rng.integers(-12, 13, (rows, 8)), 0)
    scales = (exponents.astype(np.uint32) << 23) | rng.integers(1, 1 << 23, (rows, 8), np.uint32)
    scales = np.where((np.arange(rows)[:, None] % 7 == 6), scales & np.uint32(0xFF800001), scales)
    ends_of_range = [(0, 0x0D800000), (0x7F000000, FP32_ONE)][seed]
    scales[-1] = np.tile(np.array(ends_of_range, np.uint32), 4)
    return Blocks(fmt, (scales,), codes.astype(np.uint8), (rows, 8 * fmt.block))


def operands_near_ties(fmt: BlockFormat) -> tuple[Blocks, Blocks]:
    """Operands of one lane each, of which row i and column i have a product that float64 rounds.

    Under FP32 scales of blocks, it becomes a number of 24 bits, or one in the middle of two of them
    that is rounded to the wrong one. The last block is 0.
    """
    element, rng = fmt.element, np.random.default_rng(0)
    ends = np.where(element.nan_codes | (element.infinite_codes != 0), 1, element.integers)
    significands = np.abs(ends) // (ends & -ends).clip(1)
    lane = int(significands.argmax())
    square = int(significands[lane]) ** 2
    a, b = (rng.integers(1 << 22, 1 << 23, 1 << 19) * 2 + 1 for _ in range(2))
    inverse = a * square
    for _ in range(5):  # bits of the inverse modulo 2^24 double
        inverse = inverse * (2 - a * square * inverse) % (1 << 24)
    bits = square.bit_length() + 47
    b = (rng.integers(-(1 << bits - 54) + 1, 1 << bits - 54, a.size) * inverse) % (1 << 24)
    product = a * b * square
    half = 1 << bits - 25
    rest, last = product & (2 * half - 1), product >> bits - 24 & 1
    off = np.where(last == 0, rest - half, half - rest)
    tie = (off > 0) & (off < 1 << bits - 54)
    whole = rest > 2 * half - (1 << bits - 54)
    found = np.flatnonzero((b >= 1 << 23) & (product >> bits - 1 == 1) & (tie | whole))[:40]
    assert tie[found].any()
    assert whole[found].any()
    codes = np.full((found.size, 2, fmt.block), element.zero_code, np.uint8)
    codes[:, 0, 0] = lane
    scales = np.full((2, found.size, 2), FP32_ONE, np.uint32)
    scales[:, :, 0] |= ((a[found], b[found]) & np.int64(0x7FFFFF)).astype(np.uint32)
    left, right = (Blocks(fmt, (x,), codes, (found.size, 2 * fmt.block)) for x in scales)
    return left, right


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
