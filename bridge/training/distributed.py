"""Training with `torch.nn.parallel.DistributedDataParallel`."""

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from axs6.golden import decode, encode, pack, unpack
from axs6.golden.formats import BlockFormat, block_format
from axs6.torch.training.options import options_of


def check_same_options(model: nn.Module, group: dist.ProcessGroup | None = None) -> None:
    """Raise an error if processes compute the products of a model in different ways.

    Every process calls it, before `DistributedDataParallel` takes the model.

    Args:
        model: a converted model, or a model in FP32.
        group: the processes; None for all.

    Raises:
        ValueError: two processes differ; every one of them raises it, naming the first place.
    """
    own = {name: str(options) for name, options in options_of(model).items()}
    every: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(every, own, group)
    for rank, other in enumerate(every):
        for name in {**every[0], **other}:
            pair = [each.get(name, "FP32") for each in (every[0], other)]
            if pair[0] != pair[1]:
                raise ValueError(
                    f"all ranks must compute alike: {name or 'the model'} has {pair[0]} on rank 0 "
                    f"and {pair[1]} on rank {rank}"
                )


class Compression:
    """Compression of gradients to packed bytes: the state of `compression_hook`.

    Args:
        format: a name, a string or a BlockFormat.
        feedback: whether the rounding error of a gradient is added to the next one.
        group: the processes; None for all.

    Raises:
        ValueError: the format is unknown; in a step, a gradient is not finite.
    """

    def __init__(
        self,
        format: str | BlockFormat = "axs6",
        feedback: bool = True,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        self._format, self._feedback, self.group = block_format(format), feedback, group
        self._errors: dict[int, Tensor] = {}
        self.sent_bytes = 0
        """Number of bytes that this process has sent to each other process."""

    def state_dict(self) -> dict[str, Any]:
        """The errors of each bucket."""
        return {"errors": {index: error.clone() for index, error in self._errors.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the errors of a checkpoint."""
        self._errors = {index: error.clone() for index, error in state["errors"].items()}

    def packed(self, index: int, gradients: Tensor) -> Tensor:
        """Bytes of the gradients of a bucket, uint8; keeps their error for the next step."""
        error = self._errors.get(index)
        if error is None or error.shape != gradients.shape:
            # The buckets are laid out anew after the first step.
            error = torch.zeros_like(gradients)
        corrected = gradients + error if self._feedback else gradients
        blocks = encode(corrected.cpu().numpy(), self._format)
        if self._feedback:
            values = torch.from_numpy(decode(blocks)).to(corrected)
            self._errors[index] = corrected - values
        data = torch.from_numpy(np.frombuffer(pack(blocks), np.uint8).copy())
        self.sent_bytes += len(data)
        return data.to(gradients.device)

    def decoded(self, data: Tensor, count: int) -> Tensor:
        """The float32 gradients of packed bytes."""
        blocks = unpack(data.cpu().numpy().tobytes(), shape=(count,), format=self._format)
        return torch.from_numpy(decode(blocks))


def compression_hook(state: Compression, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """A communication hook: `model.register_comm_hook(Compression("axs6"), compression_hook)`.

    Each process encodes its bucket of gradients and gathers the bytes of all processes. It decodes
    and averages them in the order of the ranks, in FP32, so that all processes have the same bits.
    """
    gradients, size = bucket.buffer(), dist.get_world_size(state.group)
    data = state.packed(bucket.index(), gradients)
    received = [torch.empty_like(data) for _ in range(size)]
    work = dist.all_gather(received, data, state.group, async_op=True)

    def mean(future: torch.futures.Future[Any]) -> Tensor:
        total = torch.zeros_like(gradients)
        for each in received:
            total += state.decoded(each, len(gradients)).to(total)
        return total / size

    return work.get_future().then(mean)
