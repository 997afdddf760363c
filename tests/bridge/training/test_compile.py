import copy

import pytest
import torch
from torch import nn

from axs6.torch import QuantisedGradients, convert
from axs6.torch.training import FormatSchedule

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


def test_the_recipe_learns_the_same_bits_when_compiled() -> None:
    """With gradients in a format, rounded stochastically, and formats that change by the step."""
    torch.compiler.reset()
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(40, 16), nn.ReLU(), nn.Linear(16, 3))
    eager = convert(layers, format="mx9", gradients="mx9")
    model = copy.deepcopy(eager)
    runs = []
    for each in (eager, model):
        optimiser = torch.optim.SGD(each.parameters(), 0.1)
        optimiser.register_step_pre_hook(QuantisedGradients(each.parameters()))
        phases = [(0, {"format": "mx9"}), (2, {"format": "axs6", "gradients": "axs6"})]
        run = torch.compile(each, backend="aot_eager") if each is model else each
        runs.append((run, optimiser, FormatSchedule(each, phases)))
    x = torch.randn(8, 40)
    for _ in range(4):
        outputs = []
        for run, optimiser, schedule in runs:
            optimiser.zero_grad()
            y = run(x)
            y.square().sum().backward()
            optimiser.step()
            schedule.step()
            outputs.append(y)
        assert torch.equal(*outputs)
        assert all(map(torch.equal, eager.parameters(), model.parameters()))
    torch.compiler.reset()
