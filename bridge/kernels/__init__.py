"""Compiled kernels: encoding, and products of block formats, with the bits of the golden model.

A kernel is C++ code that g++ compiles for the current processor at first use; the cache keeps it.
Without g++ there are no kernels, and `chosen` returns None.
"""

from axs6.torch.kernels.library import FORMS, chosen, digest, load, name_of, use
from axs6.torch.kernels.packed import Packed, pack
from axs6.torch.kernels.products import (
    encode,
    encode_matmul,
    encodes,
    fake_quantise,
    fuses,
    matmul,
    multiplies,
    takes,
)

__all__ = [
    "FORMS",
    "Packed",
    "chosen",
    "digest",
    "encode",
    "encode_matmul",
    "encodes",
    "fake_quantise",
    "fuses",
    "load",
    "matmul",
    "multiplies",
    "name_of",
    "pack",
    "takes",
    "use",
]
