"""Targets that are wrong, each in its own way: the fuzzer must catch them."""

import os

import numpy as np
from blocks import layout, unpacked

from axs6.golden import pack, unpack


def lenient(data: bytes) -> bool:
    """Accepts header bits that must be zero and are not."""
    size, align, count, packed = layout(data)
    if len(packed) < 2:
        return unpacked(data)
    try:
        found = unpack(
            packed[:1] + bytes([packed[1] & 3]) + packed[2:], (count, size), block=size, align=align
        )
    except ValueError:
        return False
    assert pack(found, align) == packed, "other bytes are the same blocks"
    return True


def endless(data: bytes) -> bool:
    """Loops for ever on blocks of length 0."""
    while data[:1] == b"\2":
        pass
    return unpacked(data)


def boundless(data: bytes) -> bool:
    """Allocates as many values as a header says, without a check."""
    return np.zeros(int.from_bytes(data[:5], "big")).size > 0


def dying(data: bytes) -> bool:
    """Ends the process."""
    if data[:1] == b"\2":
        os.abort()
    return unpacked(data)


WRONG = {function.__name__: function for function in (lenient, endless, boundless, dying)}
