"""Recurrent layers and cells: torch's own results where all is exact, else the golden bits."""

import copy
import pickle
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence

from axs6.torch import convert, load_packed, profile, save_packed

FAR = 1024.0
"""A gate so far from 0 is exactly open, shut, 1 or -1."""


def exact(module: Any) -> Any:
    """A module whose gates and states are few and short numbers, which MXINT8 holds.

    Each row of the weights of hidden states has one value, so that nothing cancels. The cells of an
    LSTM, far from 0, are never forgotten.
    """
    generator = torch.Generator().manual_seed(0)
    linear = getattr(module, "nonlinearity", "") == "relu"
    for name, parameter in module.named_parameters():
        signs = torch.randint(-1, 2, parameter.shape, generator=generator).float()
        if "_hh" in name or "_hr" in name:
            places = torch.randint(parameter.shape[-1], parameter.shape[:1], generator=generator)
            signs = torch.zeros_like(signs)
            if parameter.ndim > 1:
                signs[torch.arange(len(signs)), places] = 1
        if isinstance(module, nn.LSTM | nn.LSTMCell) and "_hr" not in name:
            signs[module.hidden_size : 2 * module.hidden_size] = "bias" in name
        parameter.data = signs * (1 if linear or "_hr" in name else FAR)
    return module


def numbers(*shape: int, far: float = 1) -> Tensor:
    return (2 * torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(1)) - 1) * far


def outputs(found: Any) -> list[Tensor]:
    """All tensors of a result."""
    if isinstance(found, Tensor):
        return [found]
    if isinstance(found, PackedSequence):
        return [found.data]
    return list(chain.from_iterable(map(outputs, found)))


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "LSTM": lambda: nn.LSTM(5, 6, 2, bidirectional=True, batch_first=True),
    "LSTM, projected": lambda: nn.LSTM(5, 6, 2, proj_size=3, bidirectional=True),
    "GRU": lambda: nn.GRU(5, 6, bidirectional=True),
    "GRU, no bias": lambda: nn.GRU(5, 6, 2, bias=False, batch_first=True),
    "RNN": lambda: nn.RNN(5, 6, 2),
    "RNN, relu": lambda: nn.RNN(5, 6, nonlinearity="relu", bidirectional=True),
}

INPUTS: dict[str, Callable[[], Any]] = {
    "batch": lambda: numbers(4, 3, 5).float(),
    "one": lambda: numbers(4, 5).float(),
    "packed": lambda: pack_sequence(
        [numbers(length, 5).float() for length in (1, 4, 2)], enforce_sorted=False
    ),
}


def states(layer: Any, shape: str) -> Any:
    """First states; those of the cells of an LSTM are far from 0."""
    count = layer.num_layers * (1 + layer.bidirectional)
    batch = {"batch": [4 if layer.batch_first else 3], "one": [], "packed": [3]}[shape]
    width = getattr(layer, "proj_size", 0) or layer.hidden_size
    hidden = numbers(count, *batch, width).float()
    if not isinstance(layer, nn.LSTM):
        return hidden
    return hidden, numbers(count, *batch, layer.hidden_size, far=FAR)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("shape", INPUTS)
@pytest.mark.parametrize("name", LAYERS)
def test_exact_layers_are_torchs(name: str, shape: str) -> None:
    layer = exact(LAYERS[name]())
    model = convert(layer, format="mxint8", unconverted="error")
    x, state = INPUTS[shape](), states(layer, shape)
    with profile(compare="golden") as report:
        found = outputs(model(x, state))
    assert not report.unconverted
    assert report.total.bits_different == 0
    expected = outputs(layer(x, state))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)
    assert len(set(found[0].flatten().tolist())) > 1


@pytest.mark.parametrize(
    "cell", [nn.LSTMCell(5, 6), nn.GRUCell(5, 6, bias=False), nn.RNNCell(5, 6)]
)
def test_exact_cells_are_torchs(cell: Any) -> None:
    cell = exact(cell)
    model = convert(cell, format="mxint8", unconverted="error")
    for batch in ([3], []):
        state: Any = numbers(*batch, 6).float()
        if isinstance(cell, nn.LSTMCell):
            state = state, numbers(*batch, 6, far=FAR)
        x = numbers(*batch, 5).float()
        found, expected = outputs(model(x, state)), outputs(cell(x, state))
        assert all(map(torch.equal, found, expected))


def test_gradients_and_dropout_are_torchs() -> None:
    layer = exact(nn.RNN(5, 6, 2, nonlinearity="relu", dropout=0.5))
    model = convert(layer, format="mxint8")
    found = []
    for each in (layer, model):
        x = numbers(3, 2, 5).float().requires_grad_()
        torch.manual_seed(0)
        y = each(x)[0]
        y.sum().backward()
        found.append([y, x.grad, *(p.grad for p in each.parameters())])
    assert all(map(torch.equal, *found))
    assert all(x.any() for x in found[0])


def test_layers_are_their_cells_step_by_step() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(40, 33)
    cell = nn.LSTMCell(40, 33)
    cell.load_state_dict({name.removesuffix("_l0"): x for name, x in layer.state_dict().items()})
    x = torch.randn(5, 2, 40)
    options: dict[str, Any] = {"format": "mx9", "gradients": "mx6"}
    for dtype in (torch.float32, torch.bfloat16):
        y, (_, c) = convert(layer, **options).to(dtype)(x.to(dtype))
        step = convert(cell, **options).to(dtype)
        state, found = None, []
        for part in x.to(dtype):
            state = step(part, state)
            found.append(state[0])
        assert torch.equal(y, torch.stack(found))
        assert torch.equal(c[0], state[1])


class Uses(nn.Module):
    """Calls torch's function in its `forward`, and has a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(4, 4)
        self.weight = nn.Parameter(torch.randn(12, 4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.gru_cell(self.layer(x)[0][-1], x[0], self.weight, self.weight)


def names(model: nn.Module, *inputs: Any) -> list[str]:
    with profile(compare="golden") as report:
        model(*inputs)
    assert report.total.bits_different == 0
    return [row.name for row in report.rows]


def test_functions_layers_and_copies() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 2, 4)
    model = convert(Uses(), unconverted="error")
    expected = ["layer.weight_ih_l0", "layer.weight_hh_l0", "input0", "hidden1"]
    y = model(x)
    for other in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), convert(model)):
        assert names(other, x) == expected
        assert torch.equal(other(x), y)
    assert "format=axs6" in str(model.layer)
    assert names(convert(model, exclude=["layer"]), x) == ["input0", "hidden1"]
    mixed = convert(
        Uses(), policy={"format": "mx9", "layers": [{"name": "layer", "weights": "mx6"}]}
    )
    assert "weights=mx6, activations=mx9" in str(mixed.layer)


def test_bad_inputs_are_refused() -> None:
    model = convert(nn.Sequential(nn.GRU(4, 4)))
    with pytest.raises(ValueError, match="sequences must have at least one step"):
        model(torch.ones(0, 2, 4))
    with pytest.raises(
        ValueError, match=r"0\.weight_ih_l0: input must be finite: element \(0, 1, 2\)"
    ):
        model(torch.full((1, 2, 4), torch.nan).where(torch.arange(8).view(1, 2, 4) == 6, 0))


def test_saved_models_load(tmp_path: Any) -> None:
    model = convert(nn.Sequential(nn.LSTM(4, 4)), format="mx9")
    save_packed(model, tmp_path / "model.safetensors")
    loaded = convert(nn.Sequential(nn.LSTM(4, 4)), format="mx9")
    load_packed(loaded, tmp_path / "model.safetensors")
    x = torch.randn(3, 2, 4)
    assert all(map(torch.equal, outputs(loaded(x)), outputs(model(x))))
    padded = pack_padded_sequence(x, [3, 1])
    assert all(map(torch.equal, outputs(loaded(padded)), outputs(model(padded))))
