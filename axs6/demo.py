"""The demonstration: a digits classifier whose arithmetic the simulated hardware does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import Blocks, decode, encode, matmul
from axs6.sim import simulate

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
    """The simulated encoder, decoder and dot product, each result compared with the golden model.

    Args:
        engine: simulator, as in `axs6.sim.simulate`.
        block: block size.
        progress: called with a line of text before each step.
    """

    engine: str
    block: int
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
        shape = (len(x), len(weights), a.exponents.shape[1])
        self.progress(f"dot: {shape[0]} x {shape[1]} outputs of {shape[2]} blocks each")
        m, n, k = (index.ravel() for index in np.indices(shape))
        outputs = self._run(
            "dot",
            {
                "a.exponent": a.exponents[m, k],
                "a.codes": a.codes[m, k],
                "b.exponent": b.exponents[n, k],
                "b.codes": b.codes[n, k],
                "last": (k == shape[2] - 1).astype(np.uint8),
            },
        )
        y = outputs["value"].astype(np.uint32).reshape(shape[:2])
        self._compare("dot", y, matmul(a, b).view(np.uint32))
        return y.view(np.float32)

    def encode(self, name: str, x: Floats) -> Blocks:
        """Encode values of shape (M, K) along K."""
        self.progress(f"encoder: {name} {x.shape[0]} x {x.shape[1]}")
        golden = encode(x, self.block)
        padded = np.zeros((len(x), golden.exponents.shape[1] * self.block), np.float32)
        padded[:, : x.shape[1]] = x
        values = padded.view(np.uint32).reshape(-1, self.block)
        outputs = self._run("encoder", {"values": values})
        blocks = Blocks(
            outputs["block.exponent"].astype(np.uint8).reshape(golden.exponents.shape),
            np.zeros_like(golden.modes),
            outputs["block.codes"].astype(np.uint8).reshape(golden.codes.shape),
            x.shape,
        )
        self._compare("encoder", blocks.exponents, golden.exponents)
        self._compare("encoder", blocks.codes, golden.codes)
        return blocks

    def decode(self, name: str, blocks: Blocks) -> None:
        """Decode blocks to FP32."""
        self.progress(f"decoder: {name} {blocks.shape[0]} x {blocks.shape[1]}")
        codes = blocks.codes.reshape(-1, self.block)
        outputs = self._run("decoder", {"exponent": blocks.exponents.ravel(), "codes": codes})
        values = outputs["values"].astype(np.uint32)
        decoded = values.reshape(len(blocks.codes), -1)[:, : blocks.shape[1]]
        self._compare("decoder", decoded, decode(blocks).view(np.uint32))

    def _run(self, unit: str, items: dict[str, NDArray[Any]]) -> dict[str, NDArray[np.int64]]:
        done = simulate(unit, items, engine=self.engine, block=self.block)
        self.cycles[unit] = self.cycles.get(unit, 0) + done.cycles
        return done.outputs

    def _compare(self, unit: str, came: NDArray[Any], needed: NDArray[Any]) -> None:
        """Count the bits that differ between what the hardware gave and the golden model."""
        wrong = int(np.bitwise_count(came ^ needed).sum())
        self.bits[unit] = self.bits.get(unit, 0) + came.size * came.itemsize * 8
        self.mismatches[unit] = self.mismatches.get(unit, 0) + wrong
