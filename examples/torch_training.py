"""A perceptron learns handwritten digits in AXS-6, with its gradients or its weights rounded."""

from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from axs6.torch import ErrorFeedback, Lfsr, QuantisedGradients, convert, fake_quantise

digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)
torch.set_num_threads(1)
torch.manual_seed(0)
train, test = torch.randperm(len(labels)).split([1400, 397])
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

Store = Callable[[int, Tensor], Tensor]


def fit(name: str, model: nn.Module, store: Store | None = None, **gradients: object) -> None:
    """Train with gradients in AXS-6 where options are given, and weights as `store` leaves them."""
    parameters = list(model.parameters())
    optimiser = torch.optim.SGD(parameters, 0.2)
    if gradients:
        optimiser.register_step_pre_hook(QuantisedGradients(parameters, **gradients))
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(images[train]), labels[train])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if store is not None:
            with torch.no_grad():
                for index, parameter in enumerate(parameters):
                    parameter.copy_(store(index, parameter))
    with torch.inference_mode():
        right = (model(images[test]).argmax(1) == labels[test]).float().mean()
    print(f"{name:44} loss {loss:.3f}, {right:.1%}")


fit("FP32", convert(model, exclude=[""]))
fit("products in AXS-6", convert(model))
for rounding in ("nearest", "stochastic"):
    fit(f"gradients too, {rounding}", convert(model), rounding=rounding)
fit("gradients too, nearest with feedback", convert(model), rounding="nearest", feedback=True)

words = Lfsr()
errors = [ErrorFeedback(parameter.shape) for parameter in model.parameters()]
stores: dict[str, Store] = {
    "nearest": lambda index, x: fake_quantise(x),
    "stochastic": lambda index, x: fake_quantise(x, rounding="stochastic", random=words(x)),
    "nearest with feedback": lambda index, x: errors[index](x),
}
for rounding, store in stores.items():
    fit(f"weights kept in AXS-6, {rounding}", convert(model), store)
