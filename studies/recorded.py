"""Weights, activations and gradients of models, as the operands of products."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from axs6.golden import BlockFormat, decode, encode
from axs6.golden.metrics import ErrorSums
from axs6.studies.models import repeatable
from axs6.studies.workload import Workload

KINDS = ("weights", "activations", "gradients")
"""Kinds of recorded matrices."""

LAYERS = (nn.Linear, nn.Conv2d, nn.MultiheadAttention)
"""Recorded layers."""

Matrices = list[NDArray[np.float32]]


def record(workload: Workload, samples: int = 256) -> dict[str, Matrices]:
    """Record the operands of a model's layers, in FP32.

    weights: (outputs, inputs) of each layer. activations: inputs of a layer, a row for each sample
    and place; for convolutions the values below the kernel. gradients: of the mean cross-entropy
    with respect to a layer's outputs, a row for each sample and place.

    Args:
        workload: a trained classifier with `LAYERS`.
        samples: number of samples to run, from the first.

    Returns:
        The matrices by `KINDS`, without matrices of zeros.
    """
    found: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}

    def keep(layer: nn.Module, inputs: tuple[Tensor, ...], outputs: Any) -> None:
        gives: Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
        found["activations"].append(_below(layer, inputs[0]))
        axis = 1 if isinstance(layer, nn.Conv2d) else -1
        gives.register_hook(lambda slope: found["gradients"].append(slope.movedim(axis, -1)))

    part = workload.first(min(samples, workload.samples))
    layers = [layer for layer in part.model.modules() if isinstance(layer, LAYERS)]
    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        with repeatable(0):
            part.model.eval()
            scores = part.model(*part.tensors)
            nn.functional.cross_entropy(scores, part.targets).backward()
    finally:
        for hook in hooks:
            hook.remove()
        part.model.zero_grad()
    for layer in layers:
        own = [x for x in layer.parameters(recurse=False) if x.ndim > 1]
        found["weights"] += [x.flatten(1) for x in own]
    matrices = {kind: list(map(_rows, tensors)) for kind, tensors in found.items()}
    return {kind: [x for x in each if x.any()] for kind, each in matrices.items()}


def _below(layer: nn.Module, x: Tensor) -> Tensor:
    """The inputs of a layer, with the summed values along the last axis."""
    if not isinstance(layer, nn.Conv2d):
        return x
    sizes: Any = (layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    below: Tensor = nn.functional.unfold(x, *sizes)
    return below.mT


def _rows(x: Tensor) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = x.detach().reshape(-1, x.shape[-1]).numpy()
    return rows


def recorded_qsnr(fmt: BlockFormat, matrices: Matrices) -> float:
    """QSNR of a format on matrices of equal weight, in dB.

    The noise is the mean, over the matrices, of the power of the errors over the power of the
    values; each matrix is encoded row by row. Infinite without noise.
    """
    shares = ErrorSums()
    for x in matrices:
        exact = x.astype(np.float64)
        norm = np.linalg.norm(exact)
        shares.add(exact / norm, decode(encode(x, fmt), np.float64) / norm)
    return shares.qsnr
