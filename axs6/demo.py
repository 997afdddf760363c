"""The demonstration: a digits classifier whose products the simulated hardware computes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import Blocks, decode, encode, matmul
from axs6.sim import simulate
from axs6.sim.tile import Tile

HIDDEN = 32
SEED = 0
TEST_SHARE = 0.25
ITERATIONS = 60

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Classifier:
    """A trained two-layer perceptron, and the images that it was not trained on.

    Args:
        layers: weights of shape (outputs, inputs) and biases of shape (outputs,).
        images: float32 of shape (M, 64), in 0 to 1.
        labels: the digits they show, shape (M,).
    """

    layers: tuple[tuple[Floats, Floats], ...]
    images: Floats
    labels: NDArray[np.int64]

    def classify(self, multiply: Callable[[Floats, Floats], Floats]) -> tuple[Floats, float]:
        """Outputs of the last layer and the share of right answers.

        `multiply(x, w)` gives x @ w.T; biases and ReLU are FP32.
        """
        x = self.images
        for index, (weights, bias) in enumerate(self.layers):
            x = multiply(x, weights) + bias
            if index < len(self.layers) - 1:
                x = np.maximum(x, np.float32(0))
        return x, float(np.mean(x.argmax(axis=1) == self.labels))


def train() -> Classifier:
    """Train on the handwritten digits that scikit-learn ships, always with the same outcome."""
    import warnings

    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=TEST_SHARE, random_state=SEED, stratify=digits.target
    )
    network = MLPClassifier((HIDDEN,), max_iter=ITERATIONS, random_state=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(train_x, train_y)
    layers = tuple(
        (np.ascontiguousarray(weights.T, np.float32), bias.astype(np.float32))
        for weights, bias in zip(network.coefs_, network.intercepts_, strict=True)
    )
    return Classifier(layers, test_x, test_y)


@dataclass
class Hardware:
    """The simulated encoder, decoder and tile, each result compared with the golden model.

    Args:
        tile: the matmul tile, in the batch simulator.
        progress: called with a line of text before each step.
    """

    tile: Tile
    progress: Callable[[str], None]
    cycles: dict[str, int] = field(default_factory=dict)
    bits: dict[str, int] = field(default_factory=dict)
    mismatches: dict[str, int] = field(default_factory=dict)

    def multiply(self, x: Floats, weights: Floats) -> Floats:
        """x @ weights.T, with both encoded and the products accumulated by the hardware."""
        a = self.encode("activations", x)
        b = self.encode("weights", weights)
        for name, blocks in (("activations", a), ("weights", b)):
            self.decode(name, blocks)
        (m, k), n = x.shape, len(weights)
        run = self.tile.matmul(a, b)
        self.progress(f"matmul: {m} x {k} by {k} x {n}, {run.utilisation:.0%} of the tile used")
        self._count("matmul", run.cycles, run.values.view(np.uint32), matmul(a, b).view(np.uint32))
        return run.values

    def encode(self, name: str, x: Floats) -> Blocks:
        """Encode values of shape (M, K) along K."""
        self.progress(f"encoder: {name} {x.shape[0]} x {x.shape[1]}")
        block = self.tile.parameters["block"]
        golden = encode(x, block=block)
        padded = np.zeros((len(x), golden.exponents.shape[1] * block), np.float32)
        padded[:, : x.shape[1]] = x
        values = padded.view(np.uint32).reshape(-1, block)
        run = simulate("encoder", {"values": values}, block=block)
        blocks = Blocks.with_modes(
            run.outputs["block.exponent"].reshape(golden.exponents.shape),
            np.zeros_like(golden.modes),
            run.outputs["block.codes"].reshape(golden.codes.shape),
            x.shape,
        )
        self._count("encoder", run.cycles, blocks.exponents, golden.exponents)
        self._count("encoder", 0, blocks.codes, golden.codes)
        return blocks

    def decode(self, name: str, blocks: Blocks) -> None:
        """Decode blocks to FP32."""
        self.progress(f"decoder: {name} {blocks.shape[0]} x {blocks.shape[1]}")
        block = self.tile.parameters["block"]
        codes = blocks.codes.reshape(-1, block)
        items = {"exponent": blocks.exponents.ravel(), "codes": codes}
        run = simulate("decoder", items, block=block)
        decoded = run.outputs["values"].reshape(len(blocks.codes), -1)[:, : blocks.shape[1]]
        self._count("decoder", run.cycles, decoded, decode(blocks).view(np.uint32))

    def _count(self, unit: str, cycles: int, came: NDArray[Any], needed: NDArray[Any]) -> None:
        """Add the cycles, and the bits that differ between the hardware and the golden model."""
        wrong = int(np.bitwise_count(came ^ needed).sum())
        self.cycles[unit] = self.cycles.get(unit, 0) + cycles
        self.bits[unit] = self.bits.get(unit, 0) + came.size * came.itemsize * 8
        self.mismatches[unit] = self.mismatches.get(unit, 0) + wrong
