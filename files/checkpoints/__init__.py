"""Checkpoints of other tools: weights as element codes and scales, each in tensors of their own.

`layouts` has the layouts as data, `kinds` the kinds of checkpoints. `source` opens one, `recognise`
finds its weights, `recode` gives a weight in another layout, and `convert` writes a checkpoint.
"""

from axs6.files.checkpoints.convert import Row, convert_checkpoint
from axs6.files.checkpoints.decode import decode_checkpoint
from axs6.files.checkpoints.doctor import Finding, examine
from axs6.files.checkpoints.encode_file import Chosen, encode_checkpoint
from axs6.files.checkpoints.kinds import KINDS, Kind, kind_of
from axs6.files.checkpoints.source import Checkpoint, is_checkpoint, open_checkpoint
from axs6.files.checkpoints.swizzle import swizzled, unswizzled

__all__ = [
    "KINDS",
    "Checkpoint",
    "Chosen",
    "Finding",
    "Kind",
    "Row",
    "convert_checkpoint",
    "decode_checkpoint",
    "encode_checkpoint",
    "examine",
    "is_checkpoint",
    "kind_of",
    "open_checkpoint",
    "swizzled",
    "unswizzled",
]
