"""The golden model: NumPy integer arithmetic that says what every bit must be."""

from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.dot import accumulate, block_dot, matmul
from axs6.golden.encode import encode
from axs6.golden.pack import pack, packed_bytes, unpack

__all__ = [
    "Blocks",
    "accumulate",
    "block_dot",
    "decode",
    "encode",
    "matmul",
    "pack",
    "packed_bytes",
    "unpack",
]
