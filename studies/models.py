"""The built-in models, small enough to be trained at the start of a study."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from axs6.studies.data import digits
from axs6.studies.request import BUILT_IN
from axs6.studies.workload import Workload

SEED = 0
BATCH = 64
WIDTH, HEADS, INNER, LAYERS = 64, 4, 128, 2


def mlp() -> Workload:
    """A perceptron of 64-128-64-10 units on the digits, judged by its accuracy."""
    return _trained(
        lambda: nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        ),
        epochs=40,
        rate=2e-3,
    )


def cnn() -> Workload:
    """Two convolutions of 16 and 32 channels and a linear layer on the digits."""
    return _trained(
        lambda: nn.Sequential(
            nn.Unflatten(1, (1, 8)),
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(128, 10),
        ),
        epochs=20,
        rate=5e-3,
    )


def transformer() -> Workload:
    """`RowTransformer` on the digits, judged by its accuracy."""
    return _trained(RowTransformer, epochs=25, rate=2e-3)


MODELS: Mapping[str, Callable[[], Workload]] = dict(
    zip(BUILT_IN, (mlp, cnn, transformer), strict=True)
)
"""Functions that train each built-in model on `axs6.studies.data.digits`, deterministically."""


class RowTransformer(nn.Module):
    """A transformer that reads an image row by row: 8 tokens of 8 pixels.

    Two encoder layers, 64 wide with 4 heads of 16 and 128 inner units, on embedded rows with
    learnt positions; a linear layer classifies the mean of the tokens.
    """

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(8, WIDTH)
        self.positions = nn.Parameter(0.1 * torch.randn(8, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(N, 8, 8) to (N, 10)."""
        tokens: Tensor = self.encoder(self.embedding(images) + self.positions)
        scores: Tensor = self.head(tokens.mean(1))
        return scores


def _trained(make: Callable[[], nn.Module], epochs: int, rate: float) -> Workload:
    """A model trained with AdamW and a one-cycle schedule on the digits' training half."""
    data = digits()
    with repeatable(SEED):
        model = make()
        steps = epochs * -(-len(data.labels) // BATCH)
        optimiser = torch.optim.AdamW(model.parameters(), rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
        for _ in range(epochs):
            for chosen in torch.randperm(len(data.labels)).split(BATCH):
                scores = model(data.images[chosen])
                loss = nn.functional.cross_entropy(scores, data.labels[chosen])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
    return Workload(model, data.test_images, data.test_labels)


@contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """A context with a fixed seed and one thread: the number of threads changes the rounding of
    sums."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
