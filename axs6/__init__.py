"""AXS-6 in Python: `import axs6` gives the golden model and needs NumPy alone.

Hardware (`axs6.hw`), simulation (`axs6.sim`) and synthesis (`axs6.synth`) are sub-packages that
load what they need when they are imported.
"""

from axs6.golden import (
    Blocks,
    accumulate,
    block_dot,
    decode,
    encode,
    matmul,
    pack,
    packed_bytes,
    unpack,
)

__version__ = "0.1.0"

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
