"""Codes of a few bits each as bytes, least significant bit first."""

import numpy as np
from numpy.typing import NDArray

GROUP = 8
"""Codes of a word of 64 bits, a byte each."""

Steps = list[tuple[np.uint64, np.uint64, np.uint64]]


def pack_codes(codes: NDArray[np.uint8], even: int, odd: int) -> NDArray[np.uint8]:
    """Codes (n, count) as bytes (n, ceil(bits / 8)).

    Args:
        codes: the codes.
        even: bits of a code at an even index.
        odd: bits of a code at an odd index.
    """
    count, width = codes.shape[1], (even + odd) // 2
    if count % GROUP:
        codes = np.pad(codes, ((0, 0), (0, -count % GROUP)))
    codes = np.ascontiguousarray(codes)
    if even == odd == 8:
        return codes[:, :count]
    words = codes.view("<u8")
    for low, high, gap in _steps(even, odd):
        words = words & low | (words & high) >> gap
    part = width & -width
    packed = np.empty((*words.shape, width // part), f"<u{part}")
    for i in range(width // part):
        packed[..., i] = words >> np.uint64(8 * part * i)
    data = packed.reshape(len(codes), words.shape[1] * (width // part)).view(np.uint8)
    return data[:, : -(-count * width // 8)]


def unpack_codes(packed: NDArray[np.uint8], count: int, even: int, odd: int) -> NDArray[np.uint8]:
    """Codes (n, count) from their bytes (n, ceil(bits / 8)): the inverse of `pack_codes`."""
    width = (even + odd) // 2
    if even == odd == 8:
        return packed
    if packed.shape[1] % width:
        packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % width)))
    part = width & -width
    parts = np.ascontiguousarray(packed).view(f"<u{part}")
    parts = parts.reshape(len(packed), packed.shape[1] // width, width // part)
    words = parts[..., 0].astype("<u8")
    for i in range(1, width // part):
        words |= parts[..., i].astype(np.uint64) << np.uint64(8 * part * i)
    for low, high, gap in reversed(_steps(even, odd)):
        words = words & low | words << gap & high
    return words.view(np.uint8)[:, :count]


def _steps(even: int, odd: int) -> Steps:
    """The steps that join codes in bytes to neighbours in a word: in pairs, fours, and all eight.

    Each is the bits of the lower codes, those of the upper ones, and how far these are apart.
    """
    lower, upper = even, odd
    half, steps = 8, []
    while half < 64:
        lanes = sum(1 << lane for lane in range(0, 64, 2 * half))
        low, high = ((1 << lower) - 1) * lanes, ((1 << upper) - 1 << half) * lanes
        steps.append((np.uint64(low), np.uint64(high), np.uint64(half - lower)))
        lower = upper = lower + upper
        half *= 2
    return steps


def put(
    packed: NDArray[np.uint8], bit: int, width: int, codes: NDArray[np.unsignedinteger]
) -> None:
    """Add codes (n,) of `width` bits to rows of bytes (n, length), from this bit on."""
    value = codes.astype(np.uint64) << np.uint64(bit % 8)
    for place in range(bit // 8, (bit + width + 7) // 8):
        packed[:, place] |= value.astype(np.uint8)
        value >>= np.uint64(8)


def take(packed: NDArray[np.uint8], bit: int, width: int) -> NDArray[np.uint64]:
    """Codes (n,) of `width` bits in rows of bytes (n, length), from this bit on."""
    value = np.zeros(len(packed), np.uint64)
    for number, place in enumerate(range(bit // 8, (bit + width + 7) // 8)):
        value |= packed[:, place].astype(np.uint64) << np.uint64(8 * number)
    return value >> np.uint64(bit % 8) & np.uint64((1 << width) - 1)


def shift_up(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Rows of bytes moved up by 0 to 7 bits, one byte longer unless by 0."""
    if not bits:
        return packed
    moved = np.zeros((len(packed), packed.shape[1] + 1), np.uint8)
    moved[:, :-1] = packed << np.uint8(bits)
    moved[:, 1:] |= packed >> np.uint8(8 - bits)
    return moved


def shift_down(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Rows of bytes moved down by 0 to 7 bits, zeros coming in at the top."""
    if not bits:
        return packed
    moved = packed >> np.uint8(bits)
    moved[:, :-1] |= packed[:, 1:] << np.uint8(8 - bits)
    return moved
