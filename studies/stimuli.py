"""Stimuli for measuring the energy of units: layers of a real model, or random codes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from axs6.install import install_command
from axs6.synth.energy_stimulus import RANDOM, Stimulus
from axs6.synth.errors import SynthesisError


def digit_layers() -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Yield the inputs (M, K) and weights (N, K) of each layer of the trained perceptron."""
    import torch
    from torch import nn

    from axs6.studies.models import mlp

    workload = mlp()
    x = workload.tensors[0]
    with torch.no_grad():
        for layer in workload.model.children():
            if isinstance(layer, nn.Linear):
                yield x.numpy(), layer.weight.numpy()
            x = layer(x)


DIGITS = Stimulus("digits", digit_layers, ("torch", "scikit-learn"))
"""Layers of the built-in perceptron on test images."""

STIMULI = {stimulus.name: stimulus for stimulus in (DIGITS, RANDOM)}


def find_stimulus(name: str) -> Stimulus:
    """The stimulus called `name`.

    Raises:
        SynthesisError: there is none, or packages that it needs are not installed.
    """
    if name not in STIMULI:
        raise SynthesisError(f"stimulus must be one of {', '.join(STIMULI)}, not {name!r}")
    if missing := STIMULI[name].missing():
        raise SynthesisError(
            f"the stimulus {name} needs {' and '.join(missing)}: {install_command('study')}"
        )
    return STIMULI[name]
