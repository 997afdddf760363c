"""Delayed scales of a model's operands: the golden model gives the same bits under them."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import axs6
from axs6.golden.formats import BlockFormat, block_format
from axs6.torch import convert, profile
from axs6.torch.training import DelayedScales, FormatSchedule


def product(a: Tensor, b: Tensor, formats: Any, scales: Any) -> Tensor:
    """A golden product under scales that are known; None for those of the operands themselves."""
    left, right = (
        axs6.encode(x.detach().contiguous().numpy(), fmt, scale=scale)
        for x, fmt, scale in zip((a, b), formats, scales, strict=True)
    )
    return torch.from_numpy(axs6.matmul(left, right))


@pytest.mark.parametrize(
    ("names", "backend"),
    [
        (("fp8_e4m3", "fp8_e5m2"), "emulated"),
        (("int8", "int8"), "emulated"),
        (("int8", "fp8_e5m2"), "golden"),
    ],
)
def test_a_model_learns_under_delayed_scales(names: tuple[str, str], backend: str) -> None:
    torch.manual_seed(0)
    model = convert(nn.Linear(40, 7, bias=False), backend, format=names[0], gradients=names[1])
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    optimiser.register_step_post_hook(DelayedScales(model, history=2, margin=1))
    own, backward = map(block_format, names)
    maxima: dict[str, list[float]] = {"x": [], "w": [], "g": []}

    def scale(operand: str, fmt: BlockFormat) -> float | None:
        latest = maxima[operand][-2:]
        return max(latest) * 2 / float(fmt.element.largest) if latest else None

    for factor in (1.0, 8.0, 0.1, 0.1, 0.1):
        x = (factor * torch.randn(9, 40)).requires_grad_()
        weight, g = model.weight.detach().clone(), factor * torch.randn(9, 7)
        y = model(x)
        optimiser.zero_grad()
        y.backward(g)
        of_x, of_w, of_g = (scale("x", own), scale("w", own), scale("g", backward))
        assert torch.equal(y, product(x, weight, (own, own), (of_x, of_w)))
        formats = (backward, own)
        assert torch.equal(x.grad, product(g, weight.mT, formats, (of_g, of_w)))
        assert torch.equal(model.weight.grad, product(g.mT, x.mT, formats, (of_g, of_x)))
        for operand, values in (("x", x), ("w", weight), ("g", g)):
            maxima[operand].append(float(values.detach().abs().max()))
        optimiser.step()


class Model(nn.Module):
    """A product with a weight, one of activations, and one in FP32 backward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) @ x.mT


def step(model: nn.Module, optimiser: torch.optim.Optimizer, x: Tensor) -> Tensor:
    optimiser.zero_grad()
    y = model(x)
    y.square().sum().backward()
    optimiser.step()
    return y.detach()


def made(format: str = "int8") -> tuple[nn.Module, torch.optim.Optimizer, DelayedScales]:
    torch.manual_seed(0)
    model = convert(Model(), format=format)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    scales = DelayedScales(model, history=3)
    optimiser.register_step_post_hook(scales)
    return model, optimiser, scales


def test_every_place_is_scaled_and_other_backends_agree() -> None:
    model, optimiser, scales = made()
    x = torch.randn(5, 8)
    step(model, optimiser, x)
    places = ("linear.left", "linear.right", "matmul0.left", "matmul0.right")
    assert set(scales.state_dict()) == set(places)
    assert scales.scale("linear", "left", block_format("int8")) == float(x.abs().max()) / 127
    wide = 4 * x
    with profile(compare="golden") as report:
        clipped = model(wide)
    assert report.total.bits_different == 0
    assert not torch.equal(clipped, convert(model, format="int8")(wide))
    # FP32 backward products have the values that stand for the operands.
    inputs = wide.clone().requires_grad_()
    model.linear(inputs).sum().backward()
    right = scales.scale("linear", "right", block_format("int8"))
    weight = axs6.decode(axs6.encode(model.linear.weight.detach().numpy(), "int8", scale=right))
    assert torch.equal(inputs.grad, torch.ones(5, 8) @ torch.from_numpy(weight))


def test_evaluation_does_not_count() -> None:
    model, optimiser, scales = made()
    x = torch.randn(5, 8)
    step(model, optimiser, x)
    before = scales.scale("linear", "left", block_format("int8"))
    model.eval()(100 * x)
    scales.step()
    assert scales.scale("linear", "left", block_format("int8")) == before
    assert list(scales.state_dict()["linear.left"][1:]) == [0, 0]


def test_a_checkpoint_goes_on_with_the_same_bits() -> None:
    model, optimiser, scales = made()
    inputs = [torch.randn(5, 8) * factor for factor in (1.0, 3.0, 0.2, 1.0)]
    for x in inputs[:2]:
        step(model, optimiser, x)
    again, other, loaded = made()
    again.load_state_dict(model.state_dict())
    loaded.load_state_dict(scales.state_dict())
    for x in inputs[2:]:
        assert torch.equal(step(again, other, x), step(model, optimiser, x))
    with pytest.raises(ValueError, match=r"^maxima of linear.right must have shape \(4,\), as "):
        DelayedScales(model, history=4).load_state_dict(scales.state_dict())


def test_a_schedule_of_formats_keeps_the_maxima() -> None:
    model, optimiser, scales = made("fp8_e4m3")
    schedule = FormatSchedule(model, [(0, {}), (1, {"format": "int8"}), (2, {"format": "mx9"})])
    x = torch.randn(5, 8)
    step(model, optimiser, x)
    schedule.step()
    with profile() as narrow:
        step(model, optimiser, 0.01 * x)
    assert narrow.rows[0].qsnr < 15
    schedule.step()
    with profile() as own:
        step(model, optimiser, 0.01 * x)
    assert own.rows[0].qsnr > 40
    assert scales.scale("linear", "left", block_format("mx9")) is None


def test_what_does_not_fit_is_refused() -> None:
    wanted = r"^model must have a format with one real scale of the tensor$"
    for model in (nn.Linear(4, 3), convert(nn.Linear(4, 3), format="mx9")):
        with pytest.raises(ValueError, match=wanted):
            DelayedScales(model)
    model = convert(nn.Linear(4, 3), format="int8")
    with pytest.raises(ValueError, match=r"^history must be an integer of at least 1, not 0$"):
        DelayedScales(model, history=0)
    with pytest.raises(ValueError, match=r"^margin must be an integer of at least 0, not -1$"):
        DelayedScales(model, margin=-1)
