from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.golden.formats import AXS6
from axs6.torch import bmm, convert, profile

Same = Callable[[Tensor, Tensor], bool]

TILE = {"rows": 2, "columns": 2}

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(70, 9), (5, 70)),
    "conv": (lambda: nn.Conv2d(4, 6, 3, groups=2, padding=1), (2, 4, 5, 5)),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0), (5, 2, 16)),
}


@pytest.mark.parametrize("block", [8, pytest.param(32, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x == "conv")) for x in MODELS]
)
def test_the_hardware_gives_the_emulated_bits(name: str, block: int, same: Same) -> None:
    make, shape = MODELS[name]
    model = make()
    x = torch.randn(shape)
    emulated = convert(model, block=block)
    simulated = convert(model, "rtl", block=block, tile=TILE)
    with profile(compare="emulated") as report:
        y = simulated(x)
    assert same(y, emulated(x))
    assert report.total.bits_different == 0
    for row in report.rows:
        assert row.cycles > 0
        assert 0 < row.utilisation <= 1


SMALLEST = {"rows": 1, "columns": 1, "interleave": 1}
CHOSEN: dict[str, dict[str, Any]] = {
    "tensor": {"format": "int4"},
    "two formats and NaN": {
        "format": "mxfp8_e5m2",
        "weights": "mxfp4",
        "block": 8,
        "accumulator": "volta",
        "nonfinite": "propagate",
    },
    "backward": {"gradients": "axs6", "block": 8, "tile": TILE},
    "two scales": {"format": "nvfp4", "accumulator": "blackwell_fp4"},
    "integer scales": {"format": "vsq4", "weights": "vsq6"},
    "aligned": {"format": "mx9", "accumulator": "paper"},
}
SLOW = ("two scales", "integer scales", "aligned")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CHOSEN],
)
def test_other_formats_and_accumulators(name: str, same: Same) -> None:
    chosen, layer = CHOSEN[name], nn.Conv1d(6, 4, 7, groups=2)
    how = {key: value for key, value in chosen.items() if key != "tile"}
    x = torch.randn(2, 6, 10)
    if chosen.get("nonfinite") == "propagate":
        x[0, 1, 2], x[1, 5, 0] = torch.nan, torch.inf
    models = [convert(layer, "rtl", **{"tile": SMALLEST, **chosen}), convert(layer, **how)]
    inputs = [x.clone().requires_grad_() for _ in models]
    results = [model(each) for model, each in zip(models, inputs, strict=True)]
    assert same(*results)
    if "gradients" in chosen:
        for y in results:
            y.square().sum().backward()
        assert same(*(each.grad for each in inputs))
        assert same(*(model.weight.grad for model in models))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"format": "uint8"}, "uint8 has zero points, for which dot products have no hardware"),
        ({"block": 8, "tile": {"block": 16}}, "tile must not have block: it follows from .*"),
        ({"tile": {"rows": 0}}, "rows must be an integer from 1 to 64, not 0"),
        ({"accumulator": "fp32,output=e6m10"}, "fp32,output=e6m10 has no hardware: .*"),
    ],
)
def test_what_has_no_hardware_is_refused(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{message}$"):
        convert(nn.Linear(4, 3), "rtl", **chosen)


@pytest.mark.slow
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
    assert same(bmm(a, b, backend="rtl", tile=TILE, **options), bmm(a, b, **options))


def test_empty_products_need_no_cycles() -> None:
    layer = convert(nn.Linear(70, 9), "rtl")
    assert layer(torch.zeros(0, 70)).shape == (0, 9)


def test_gradients_are_those_of_the_emulation() -> None:
    layers = [convert(nn.Linear(40, 3), "rtl", block=8, tile=TILE)]
    layers.append(convert(layers[0], block=8))
    for layer in layers:
        layer(torch.ones(2, 40)).sum().backward()
    assert torch.equal(layers[0].weight.grad, layers[1].weight.grad)


def test_other_devices_are_refused() -> None:
    model = convert(nn.Sequential(nn.Linear(4, 3)), "rtl")
    weight = model[0].weight
    with pytest.raises(ValueError, match=r"0: input must be on the CPU.* not on meta"):
        model[0].axs6_site.backend.prepare(weight.to("meta"), AXS6, "0: input")
