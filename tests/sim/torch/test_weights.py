"""Weights of converted layers: encoded once, never stale, and shared where they were."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.sim.torch import convert, profile
from axs6.sim.torch.site import Site

Same = Callable[[Tensor, Tensor], bool]


def count_encodings(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names under which the weight of a place is encoded from now on."""
    found = []
    backend = site.backend
    original = backend.prepare

    def counted(x: Tensor, fmt: Any, name: str, scale: float | None = None) -> Any:
        if name == f"{site.name}: weight":
            found.append(name)
        return original(x, fmt, name, scale)

    monkeypatch.setattr(backend, "prepare", counted)
    return found


def test_weights_are_encoded_once_and_again_when_they_change(
    monkeypatch: pytest.MonkeyPatch, same: Same
) -> None:
    layer = convert(nn.Sequential(nn.Linear(40, 3)))[0]
    x = torch.randn(2, 40)
    found = count_encodings(layer.axs6_site, monkeypatch)
    for _ in range(3):
        layer(x)
        with torch.inference_mode():
            layer(x)
    assert len(found) == 1
    changes: list[Callable[[], object]] = [
        lambda: layer.weight.mul_(2),
        lambda: setattr(layer, "weight", nn.Parameter(torch.randn(3, 40))),
        lambda: setattr(layer.weight, "data", torch.randn(3, 40)),
        lambda: torch.optim.SGD([layer.weight], 1.0).step(),
    ]
    for number, change in enumerate(changes):
        layer.weight.grad = torch.ones(3, 40)
        with torch.no_grad():
            change()
        y = layer(x)
        layer(x)
        assert len(found) == 2 + number
        fresh = nn.Linear(40, 3)
        fresh.load_state_dict(layer.state_dict())
        assert same(y, convert(fresh)(x))
    layer.half()
    assert layer(x.half()).dtype == torch.float16


def test_weights_made_in_inference_mode_are_never_stale(same: Same) -> None:
    with torch.inference_mode():
        layer = convert(nn.Linear(40, 3))
        x = torch.randn(2, 40)
        first = layer(x)
        layer.weight.mul_(2)
        assert same(layer(x) - layer.bias, 2 * (first - layer.bias))


def test_parametrised_layers(same: Same) -> None:
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(40, 3))
    plain = nn.Linear(40, 3)
    plain.load_state_dict({"weight": layer.weight, "bias": layer.bias})
    x = torch.randn(2, 40)
    converted = convert(layer)
    assert same(converted(x), convert(plain)(x))
    assert list(converted.state_dict()) == list(layer.state_dict())


def test_shared_layers_stay_shared() -> None:
    layer = nn.Linear(24, 24)
    converted = convert(nn.Sequential(layer, nn.ReLU(), layer))
    assert converted[0] is converted[2]
    with profile() as report:
        converted(torch.randn(2, 24))
    assert [(row.name, row.calls) for row in report.rows] == [("0", 2)]
