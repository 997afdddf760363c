"""Targets of fuzzing: each target takes an input, and raises unless it was treated as documented.

A target returns whether the input was accepted; one that was refused with the error that the
documentation says, in one line, is as good.
"""

from collections.abc import Callable
from dataclasses import dataclass

import blocks
import checkpoints
import command
import tensors
import wrong

Function = Callable[[bytes], bool]


@dataclass(frozen=True)
class Target:
    """A function to be fuzzed.

    Args:
        function: what an input goes to.
        seeds: inputs to begin with, of every kind that there is.
        share: of all inputs, in percent; 0 for a target that runs only where it is named.
    """

    function: Function
    seeds: Callable[[], list[bytes]]
    share: int = 0


TARGETS = {
    "unpack": Target(blocks.unpacked, blocks.seeds, 60),
    "container": Target(tensors.container, tensors.container_seeds, 15),
    "checkpoint": Target(checkpoints.checkpoint, checkpoints.seeds, 5),
    "gguf": Target(checkpoints.gguf, checkpoints.gguf_seeds, 4),
    "onnx": Target(checkpoints.onnx, checkpoints.onnx_seeds, 2),
    "npy": Target(tensors.npy, tensors.npy_seeds, 6),
    "npz": Target(tensors.npz, tensors.npz_seeds, 7),
    "command": Target(command.command, command.seeds, 1),
    **{f"wrong-{name}": Target(function, blocks.seeds) for name, function in wrong.WRONG.items()},
}
