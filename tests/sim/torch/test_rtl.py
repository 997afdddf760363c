from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.golden.formats import AXS6
from axs6.sim.torch import bmm, convert, profile

Same = Callable[[Tensor, Tensor], bool]

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(70, 9), (5, 70)),
    "conv": (lambda: nn.Conv2d(4, 6, 3, groups=2, padding=1), (2, 4, 5, 5)),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0), (5, 2, 16)),
}


@pytest.mark.parametrize("block", [8, 32])
@pytest.mark.parametrize("name", MODELS)
def test_the_hardware_gives_the_emulated_bits(name: str, block: int, same: Same) -> None:
    make, shape = MODELS[name]
    model = make()
    x = torch.randn(shape)
    emulated = convert(model, block=block)
    simulated = convert(model, "rtl", block=block, tile={"rows": 2, "columns": 2})
    with profile(compare="emulated") as report:
        y = simulated(x)
    assert same(y, emulated(x))
    assert report.total.bits_different == 0
    for row in report.rows:
        assert row.cycles > 0
        assert 0 < row.utilisation <= 1


def test_the_emulation_is_compared_with_the_hardware() -> None:
    converted = convert(nn.Linear(70, 9), block=8)
    with profile(compare="rtl") as report:
        converted(torch.randn(5, 70))
    assert report.total.bits_different == 0


def test_special_values(same: Same) -> None:
    a = torch.randn(2, 3, 64) * torch.logspace(-38, 38, 64)
    b = torch.randn(2, 64, 4) * torch.logspace(38, -38, 64)[:, None]
    a[0, 0, 0], a[1, 1, 3] = torch.nan, -torch.inf
    options: dict[str, Any] = {"nonfinite": "saturate", "block": 8}
    assert same(bmm(a, b, backend="rtl", **options), bmm(a, b, **options))


def test_empty_products_need_no_cycles() -> None:
    layer = convert(nn.Linear(70, 9), "rtl")
    assert layer(torch.zeros(0, 70)).shape == (0, 9)


def test_gradients_are_those_of_the_emulation() -> None:
    layers = [convert(nn.Linear(40, 3), backend, block=8) for backend in ("rtl", "emulated")]
    layers[1].load_state_dict(layers[0].state_dict())
    for layer in layers:
        layer(torch.ones(2, 40)).sum().backward()
    assert torch.equal(layers[0].weight.grad, layers[1].weight.grad)


def test_other_devices_are_refused() -> None:
    model = convert(nn.Sequential(nn.Linear(4, 3)), "rtl")
    weight = model[0].weight
    with pytest.raises(ValueError, match=r"0: input must be on the CPU.* not on meta"):
        model[0].axs6_site.backend.prepare(weight.to("meta"), AXS6, "0: input")
