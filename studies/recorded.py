"""Weights, activations and gradients of models, as the matrices that a product encodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from axs6.golden import BlockFormat, decode, encode
from axs6.golden.metrics import ErrorSums
from axs6.studies.models import repeatable
from axs6.studies.workload import Workload

KINDS = ("weights", "activations", "gradients")
"""What is recorded of a model."""

LAYERS = (nn.Linear, nn.Conv2d, nn.MultiheadAttention)
"""Layers of which it is recorded."""

Matrices = list[NDArray[np.float32]]


def record(workload: Workload, samples: int = 256) -> dict[str, Matrices]:
    """Record what the layers of a model work on, in FP32.

    weights: (outputs, inputs) of each layer. activations: what a layer takes, a row for each
    sample and place, of convolutions the values below the kernel. gradients: of the mean
    cross-entropy with respect to what a layer gives, a row for each sample and place.

    Args:
        workload: a trained classifier with `LAYERS`.
        samples: how many of the first ones.

    Returns:
        The matrices by `KINDS`; those that are all zero are left out.
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
    """What a layer takes, with the values that it adds up along the last axis."""
    if not isinstance(layer, nn.Conv2d):
        return x
    sizes: Any = (layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    below: Tensor = nn.functional.unfold(x, *sizes)
    return below.mT


def _rows(x: Tensor) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = x.detach().reshape(-1, x.shape[-1]).numpy()
    return rows


def recorded_qsnr(fmt: BlockFormat, matrices: Matrices) -> float:
    """QSNR of a format on matrices, each of which counts alike, in dB.

    Of each matrix, encoded row by row, the squares of its errors are taken over those of its
    values; the mean of these shares is the noise. Infinite where there is none.
    """
    shares = ErrorSums()
    for x in matrices:
        exact = x.astype(np.float64)
        norm = np.linalg.norm(exact)
        shares.add(exact / norm, decode(encode(x, fmt), np.float64) / norm)
    return shares.qsnr
