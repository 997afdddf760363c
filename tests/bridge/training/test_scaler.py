import pytest
import torch
from torch import nn

from axs6.torch.training import GradScaler, saturated_share


class Parts:
    """A weight with gradients of chosen values."""

    def __init__(self, **options: float) -> None:
        self.weight = nn.Parameter(torch.zeros(100))
        self.optimiser = torch.optim.SGD([self.weight], 1.0)
        self.scaler = GradScaler("fp8_e5m2", init_scale=1024.0, growth_interval=2, **options)

    def step(self, gradient: torch.Tensor) -> None:
        self.optimiser.zero_grad()
        self.scaler.scale((self.weight * gradient).sum()).backward()
        self.scaler.step(self.optimiser)
        self.scaler.update()


def gradient(large: int, value: float) -> torch.Tensor:
    x = torch.full((100,), 1.0)
    x[:large] = value
    return x


def test_the_share_counts_the_largest_codes() -> None:
    x = torch.tensor([57344.0, -57344.0, 1e6, 49152.0, 1.0, 0.0, 0.0, 0.0])
    assert saturated_share(x, "fp8_e5m2", 1.0) == 3 / 8
    # The format's own scale brings the largest value to the largest code.
    assert saturated_share(x, "fp8_e5m2") == 1 / 8
    assert saturated_share(torch.tensor([[1.0, 0.97, 0.5], [0.3, 0.1, 0.0]]), "axs6") == 0
    assert saturated_share(torch.tensor([0.99, 0.97, 0.5, -0.99]), "axs6") == 2 / 4
    assert saturated_share(torch.zeros(0), "axs6") == 0


def test_the_optimiser_sees_unscaled_gradients() -> None:
    parts = Parts()
    parts.step(gradient(0, 0.0))
    assert torch.equal(parts.weight, torch.full((100,), -1.0))


def test_saturated_gradients_take_the_scale_back_and_the_step_is_taken() -> None:
    parts = Parts()
    parts.step(gradient(2, 1000.0))
    assert parts.scaler.get_scale() == 512
    assert parts.weight[0] == -1000
    # 1 % is not more than the limit.
    parts.step(gradient(1, 1000.0))
    assert parts.scaler.get_scale() == 512


def test_saturation_starts_the_count_of_good_steps_anew() -> None:
    parts = Parts()
    for each in (gradient(0, 0.0), gradient(5, 1000.0), gradient(0, 0.0)):
        parts.step(each)
    assert parts.scaler.get_scale() == 512
    parts.step(gradient(0, 0.0))
    assert parts.scaler.get_scale() == 1024


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_gradients_that_are_not_finite_skip_the_step(value: float) -> None:
    parts = Parts()
    parts.step(gradient(1, value))
    assert torch.equal(parts.weight, torch.zeros(100))
    assert parts.scaler.get_scale() == 512


def test_torchs_own_scaler_does_not_see_saturation() -> None:
    """Pitfall 6: with it, clipped gradients go on for ever."""
    parts = Parts()
    parts.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)  # type: ignore[assignment]
    parts.step(gradient(50, 1000.0))
    assert parts.scaler.get_scale() == 1024
    assert saturated_share(gradient(50, 1000.0) * 1024, "fp8_e5m2", 1.0) == 0.5


def test_gradients_may_be_unscaled_and_clipped_before_the_step() -> None:
    parts = Parts()
    parts.scaler.scale((parts.weight * gradient(5, 1000.0)).sum()).backward()
    parts.scaler.unscale_(parts.optimiser)
    nn.utils.clip_grad_norm_([parts.weight], 1.0)
    parts.scaler.step(parts.optimiser)
    parts.scaler.update()
    assert float(parts.weight.detach().norm()) == pytest.approx(1.0, rel=1e-3)
    assert parts.scaler.get_scale() == 512


def test_states_are_those_of_torch() -> None:
    parts, other = Parts(), Parts()
    parts.step(gradient(2, 1000.0))
    parts.step(gradient(0, 0.0))
    other.scaler.load_state_dict(parts.scaler.state_dict())
    torchs = torch.amp.GradScaler("cpu")
    torchs.load_state_dict(parts.scaler.state_dict())
    assert torchs.state_dict() == parts.scaler.state_dict()
    for each in (parts, other):
        each.step(gradient(0, 0.0))
        assert each.scaler.get_scale() == 1024


def test_a_scaler_can_be_off_or_set() -> None:
    off = Parts(enabled=False)
    off.step(gradient(50, 1e6))
    assert off.weight[0] == -1e6
    parts = Parts()
    parts.scaler.scale((parts.weight * gradient(50, 1000.0)).sum()).backward()
    parts.scaler.step(parts.optimiser)
    parts.scaler.update(64.0)
    assert parts.scaler.get_scale() == 64


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^limit must be from 0 to 1, not 2$"):
        GradScaler(limit=2)
    with pytest.raises(ValueError, match="'fp9'"):
        GradScaler("fp9")
