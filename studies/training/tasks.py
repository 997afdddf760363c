"""Tasks of training: a model, its batches and its metric."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pydoc_data.topics import topics

import torch
from torch import Tensor, nn

from axs6.studies.data import digits
from axs6.studies.training.transformer import (
    MIDDLE,
    SMALL,
    CharacterModel,
    TransformerSize,
    VisionTransformer,
)

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Task:
    """A model that is trained from random weights.

    Args:
        make: returns a model with random weights. batch: inputs and targets of a step, drawn with a
        generator. tests: test batches. metric: "loss", cross-entropy in nats, or "accuracy", a
        share. rate: largest learning rate of AdamW.
    """

    make: Callable[[], nn.Module]
    batch: Callable[[torch.Generator], Batch]
    tests: tuple[Batch, ...]
    metric: str
    rate: float

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean cross-entropy of a batch, a scalar."""
        scores, targets = model(batch[0]), batch[1]
        return nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), targets.flatten())

    @torch.inference_mode()
    def judge(self, model: nn.Module) -> float:
        """The metric of a model on the tests, which are of one size; NaN where it has diverged."""
        was_training = model.training
        model.eval()
        found = [self._judged(model, batch) for batch in self.tests]
        model.train(was_training)
        return math.fsum(found) / len(found)

    def _judged(self, model: nn.Module, batch: Batch) -> float:
        if self.metric == "loss":
            return float(self.loss(model, batch))
        return float((model(batch[0]).argmax(-1) == batch[1]).double().mean())


CONTEXT = 64
BATCH = 16
TEST_SHARE = 0.1


@cache
def characters() -> tuple[Tensor, Tensor, int]:
    """Python's own documentation, which every Python ships as `pydoc_data.topics`, as characters.

    Returns:
        Training text and test text (the last tenth), int64, and the number of characters.
    """
    text = "".join(body for _, body in sorted(topics.items()))
    numbers = {character: number for number, character in enumerate(sorted(set(text)))}
    data = torch.tensor([numbers[character] for character in text])
    split = round(len(data) * (1 - TEST_SHARE))
    return data[:split], data[split:], len(numbers)


def _passages(text: Tensor, starts: Tensor) -> Batch:
    """Passages of `CONTEXT` characters, and the next character of each."""
    found = text[starts.unsqueeze(1) + torch.arange(CONTEXT + 1)]
    return found[:, :-1], found[:, 1:]


def gpt(size: TransformerSize = SMALL, rate: float = 6e-3) -> Task:
    """A character model of Python's documentation; its metric is the loss on test pages."""
    text, test, count = characters()

    def batch(generator: torch.Generator) -> Batch:
        return _passages(text, torch.randint(len(text) - CONTEXT, (BATCH,), generator=generator))

    starts = torch.arange(0, len(test) - CONTEXT, 4 * CONTEXT)[: 8 * BATCH]
    tests = tuple(_passages(test, part) for part in starts.split(BATCH))
    return Task(lambda: CharacterModel(count, CONTEXT, size), batch, tests, "loss", rate)


def vit() -> Task:
    """A vision transformer on the handwritten digits, judged by its accuracy on the other half."""
    data = digits()

    def batch(generator: torch.Generator) -> Batch:
        chosen = torch.randint(len(data.labels), (64,), generator=generator)
        return data.images[chosen], data.labels[chosen]

    tests = ((data.test_images, data.test_labels),)
    return Task(VisionTransformer, batch, tests, "accuracy", rate=3e-3)


TASKS: Mapping[str, Callable[[], Task]] = {
    "gpt": gpt,
    "vit": vit,
    "gpt_1m": partial(gpt, MIDDLE, 3e-3),
}
"""Functions that make each task."""
