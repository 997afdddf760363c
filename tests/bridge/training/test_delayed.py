import numpy as np
import pytest
import torch

import axs6
from axs6.torch.training import DelayedScaling


def reference(x: torch.Tensor, fmt: str, scale: float | None) -> torch.Tensor:
    options = {} if scale is None else {"scale": scale}
    return torch.from_numpy(axs6.decode(axs6.encode(x.numpy(), fmt, **options)))


@pytest.mark.parametrize(("fmt", "largest"), [("fp8_e4m3", 448.0), ("int8", 127.0)])
def test_the_scale_is_that_of_the_largest_of_the_last_maxima(fmt: str, largest: float) -> None:
    torch.manual_seed(0)
    scaling = DelayedScaling(fmt, history=2)
    x = torch.randn(6, 40)
    assert scaling.scale is None
    assert torch.equal(scaling(x), reference(x, fmt, None))
    maxima = [float(x.abs().max())]
    for factor in (4.0, 0.5, 0.25, 0.25):
        scale = max(maxima[-2:]) / largest
        assert scaling.scale == scale
        y = x * factor
        assert torch.equal(scaling(y), reference(y, fmt, scale))
        maxima.append(float(y.abs().max()))


def test_the_margin_leaves_room_above() -> None:
    x = torch.tensor([[100.0, -3.0]])
    plain, wide = DelayedScaling("int8"), DelayedScaling("int8", margin=1)
    for scaling in (plain, wide):
        scaling(x)
    assert float(plain(2 * x)[0, 0]) == 100
    assert float(wide(2 * x)[0, 0]) == pytest.approx(200, rel=1e-6)


def test_clipped_values_have_no_gradient() -> None:
    scaling = DelayedScaling("int8")
    scaling(torch.tensor([[1.0, -1.0]]))
    x = torch.tensor([[0.5, 1.0, 3.0, -3.0]], requires_grad=True)
    y = scaling(x)
    assert float(y[0, 2].detach()) == pytest.approx(1.0, rel=1e-6)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 1.0, 0.0, 0.0]]


def test_evaluation_leaves_the_maxima_and_states_are_kept() -> None:
    scaling = DelayedScaling("int8", history=3)
    scaling(torch.ones(1, 2))
    scaling.eval()
    scaling(torch.full((1, 2), 9.0))
    assert scaling.maxima.tolist() == [1, 0, 0]
    other = DelayedScaling("int8", history=3)
    other.load_state_dict(scaling.state_dict())
    assert other.scale == scaling.scale


def test_values_that_are_not_finite_leave_the_maxima() -> None:
    scaling = DelayedScaling("fp8_e4m3")
    scaling(torch.ones(1, 2))
    with pytest.raises(ValueError, match="finite"):
        scaling(torch.tensor([[np.inf, 1.0]]))
    assert float(scaling.maxima.max()) == 1


@pytest.mark.parametrize("fmt", ["mx9", "axs6", "nvfp4", "uint8"])
def test_other_formats_are_refused(fmt: str) -> None:
    with pytest.raises(ValueError, match=r"^format must have one real scale of the tensor, not "):
        DelayedScaling(fmt)


def test_bad_counts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^history must be an integer of at least 1, not 0$"):
        DelayedScaling(history=0)
    with pytest.raises(ValueError, match=r"^margin must be an integer of at least 0, not -1$"):
        DelayedScaling(margin=-1)
