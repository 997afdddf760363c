"""The golden model: NumPy integer arithmetic that defines every bit."""

from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.dot import accumulate, block_dot, matmul
from axs6.golden.encode import encode
from axs6.golden.encode_as import encode_as
from axs6.golden.formats import BlockFormat, block_format
from axs6.golden.metrics import errors_by_binade, qsnr
from axs6.golden.pack import pack, packed_bytes
from axs6.golden.planar import Planar, checkpoint_pair, from_checkpoint, from_planar, planar
from axs6.golden.unpack import unpack

__all__ = [
    "BlockFormat",
    "Blocks",
    "Planar",
    "accumulate",
    "block_dot",
    "block_format",
    "checkpoint_pair",
    "decode",
    "encode",
    "encode_as",
    "errors_by_binade",
    "from_checkpoint",
    "from_planar",
    "matmul",
    "pack",
    "packed_bytes",
    "planar",
    "qsnr",
    "unpack",
]
