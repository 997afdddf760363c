import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import axs6
from axs6.golden.feedback import encode_with_feedback
from axs6.golden.lfsr import Lfsr
from axs6.torch import QuantisedGradients, convert

Same = Callable[[Tensor, Tensor], bool]


def model() -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3), nn.Linear(3, 2))
    return nn.Sequential(*layers)


def rows(x: Tensor) -> Tensor:
    return x.reshape(len(x), -1) if x.ndim > 1 else x


def backward(net: nn.Module, step: int) -> None:
    torch.manual_seed(step)
    net.zero_grad()
    net(torch.randn(4, 2, 6, 6)).square().sum().backward()


@pytest.mark.parametrize("feedback", [False, True], ids=["no feedback", "feedback"])
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_the_optimiser_sees_what_the_golden_model_gives(
    rounding: str, feedback: bool, same: Same
) -> None:
    net = model()
    # One parameter is not learnt, and one has no gradient.
    net[3].bias.requires_grad_(False)
    parameters = list(net.parameters())
    optimiser = torch.optim.SGD(parameters, 0.01)
    gradients = QuantisedGradients(
        parameters, "axs6", rounding, block=16, random_bits=8, feedback=feedback
    )
    optimiser.register_step_pre_hook(gradients)
    registers = Lfsr(16, bits=8)
    errors = [np.zeros(rows(p).shape, np.float32) for p in parameters]
    for step in range(3):
        backward(net, step)
        expected = []
        for index, parameter in enumerate(parameters):
            if parameter.grad is None:
                continue
            x = rows(parameter.grad).numpy().copy()
            words = None
            if rounding == "stochastic":
                n = -(-x.shape[-1] // 16)
                drawn = registers.draw(x[..., 0].size * n).reshape(*x.shape[:-1], n * 16)
                words = drawn[..., : x.shape[-1]]
            options = {"rounding": rounding, "random": words, "random_bits": 8}
            if feedback:
                blocks, errors[index] = encode_with_feedback(x, errors[index], 16, **options)
            else:
                blocks = axs6.encode(x, block=16, **options)
            expected.append(torch.from_numpy(axs6.decode(blocks)).view(parameter.shape))
        optimiser.step()
        found = [p.grad for p in parameters if p.grad is not None]
        assert len(found) == 5
        assert all(same(a, b) for a, b in zip(found, expected, strict=True))


def test_training_goes_on_from_a_checkpoint(tmp_path: Path, same: Same) -> None:
    def parts(net: nn.Module) -> tuple[nn.Module, torch.optim.Optimizer, QuantisedGradients]:
        optimiser = torch.optim.Adam(net.parameters(), 0.01)
        gradients = QuantisedGradients(net.parameters(), feedback=True)
        optimiser.register_step_pre_hook(gradients)
        return net, optimiser, gradients

    first = parts(convert(model()))
    for step in range(3):
        backward(first[0], step)
        first[1].step()
    torch.save([part.state_dict() for part in first], tmp_path / "checkpoint.pt")
    second = parts(convert(model()))
    for part, state in zip(second, torch.load(tmp_path / "checkpoint.pt"), strict=True):
        part.load_state_dict(state)
    for step in range(3, 5):
        for net, optimiser, _ in (first, second):
            backward(net, step)
            optimiser.step()
    states = [[copy.copy(run[k].state_dict()) for k in (0, 2)] for run in (first, second)]
    for ours, theirs in zip(*states, strict=True):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert len(first[2].state_dict()) == 1 + 6


def test_a_step_without_a_gradient_draws_nothing() -> None:
    net = nn.Linear(4, 2)
    gradients = QuantisedGradients(net.parameters())
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    optimiser.register_step_pre_hook(gradients)
    before = gradients.state_dict()["words.states"].clone()
    optimiser.step()
    assert torch.equal(gradients.state_dict()["words.states"], before)


def test_bad_arguments_are_refused() -> None:
    net = nn.Linear(4, 2)
    with pytest.raises(ValueError, match=r"^rounding must be one of nearest.*, not 'up'$"):
        QuantisedGradients(net.parameters(), rounding="up")
    with pytest.raises(ValueError, match=r"^block must be one of 8, 16, 32, not 12$"):
        QuantisedGradients(net.parameters(), block=12)
    with pytest.raises(ValueError, match=r"^parameters must not be empty$"):
        QuantisedGradients([])
    with pytest.raises(TypeError, match=r"^parameter 1 must be float32, not torch\.bfloat16$"):
        QuantisedGradients([net.weight, nn.Parameter(torch.zeros(3).bfloat16())])
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    optimiser.register_step_pre_hook(QuantisedGradients(net.parameters()))
    for arguments in (((lambda: 1.0),), ()):
        named = {} if arguments else {"closure": lambda: 1.0}
        with pytest.raises(ValueError, match=r"^step must have no closure"):
            optimiser.step(*arguments, **named)
    net(torch.full((1, 4), torch.inf)).sum().backward()
    with pytest.raises(ValueError, match=r"^gradient 0 must be finite: element \(0, 0\) is inf"):
        optimiser.step()
