"""What is recorded of models."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from axs6.golden import block_format, qsnr
from axs6.studies.recorded import record, recorded_qsnr
from axs6.studies.workload import Workload


class Small(nn.Module):
    """A convolution, attention over its 4 places, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 3, stride=2, padding=1)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.linear = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        places = self.conv(x).flatten(2).mT
        return self.linear(self.attention(places, places, places)[0].mean(1))


@pytest.fixture(scope="module")
def workload() -> Workload:
    torch.manual_seed(0)
    return Workload(Small(), torch.randn(5, 2, 4, 4), torch.arange(5) % 3)


def test_matrices_are_those_of_the_layers(workload: Workload) -> None:
    found = record(workload, samples=4)
    model = workload.model
    assert [x.shape for x in found["weights"]] == [(8, 18), (24, 8), (8, 8), (3, 8)]
    assert np.array_equal(found["weights"][0], model.conv.weight.detach().flatten(1).numpy())
    assert [x.shape for x in found["activations"]] == [(16, 18), (16, 8), (4, 8)]
    products = torch.tensor(found["activations"][0]) @ model.conv.weight.flatten(1).T
    outputs = model.conv(workload.tensors[0][:4]).movedim(1, -1).reshape(-1, 8)
    assert torch.allclose(products + model.conv.bias, outputs, atol=1e-5)
    assert sorted(x.shape for x in found["gradients"]) == [(4, 3), (16, 8), (16, 8)]
    scores = model(workload.tensors[0][:4])
    slope = (scores.softmax(-1) - nn.functional.one_hot(workload.targets[:4], 3)) / 4
    assert np.allclose(found["gradients"][0], slope.detach().numpy(), atol=1e-6)
    assert all(x.grad is None for x in model.parameters())


def test_every_matrix_counts_alike() -> None:
    rng = np.random.default_rng(0)
    small, large = (np.float32(k * rng.standard_normal((4, 64))) for k in (1e-3, 1e3))
    noise = [10 ** (-qsnr(x, "mx6") / 10) for x in (small, large)]
    fmt = block_format("mx6")
    assert recorded_qsnr(fmt, [small, large]) == pytest.approx(-10 * np.log10(np.mean(noise)))
    assert recorded_qsnr(fmt, [np.ones((2, 16), np.float32)]) == np.inf
