"""Digests of memory, by which a change is noticed."""

import ctypes

from axs6.torch.kernels.library import library

WORDS = 32
PART = 1 << 20
"""Bytes with a digest of their own, of so many words of 64 bits."""


def digest(address: int, size: int, threads: int = 1) -> bytes:
    """A digest of all bytes from an address on, in which each has its place.

    A change of one aligned word of 64 bits always changes it, one of several words does but
    about once in 2^64. It is quick, and no defence against those who want two equal ones.

    Args:
        address: of the first byte.
        size: how many bytes there are.
        threads: threads that share the work.

    Returns:
        256 bytes for each MiB that has begun: the same for every form of the kernels.
    """
    found = ctypes.create_string_buffer(8 * WORDS * -(-size // PART))
    library().axs6_digest(address, size, threads, found)
    return found.raw
