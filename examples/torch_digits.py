"""A classifier of handwritten digits in torch: trained in FP32, run in AXS-6, and tuned there."""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from axs6.torch import convert, profile

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
train, test = torch.randperm(len(labels)).split([1400, 397])


def accuracy(model: nn.Module) -> float:
    with torch.inference_mode():
        return (model(images[test]).argmax(1) == labels[test]).float().mean().item()


def fit(model: nn.Module, rate: float, steps: int) -> Tensor:
    optimiser = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(images[train]), labels[train])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return loss.detach()


model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(256, 10),
)
fit(model, 0.01, 30)
print(f"FP32: {accuracy(model):.1%}")

hardware = convert(model)
with profile(compare="golden") as report:
    print(f"AXS-6: {accuracy(hardware):.1%}")
print(report)

before = nn.functional.cross_entropy(hardware(images[train]), labels[train])
after = fit(hardware, 0.002, 15)
print(f"tuned in AXS-6: loss {before:.3f} to {after:.3f}, {accuracy(hardware):.1%}")
