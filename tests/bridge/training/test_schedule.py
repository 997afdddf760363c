import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.golden import qsnr
from axs6.golden.formats import block_format
from axs6.torch import convert
from axs6.torch.training import FormatSchedule, choose_blocks, reset_optimiser, set_options
from axs6.torch.training.blocks import with_block
from axs6.torch.training.options import options_of


class Model(nn.Module):
    """Layers, attention, and products in a method of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.norm = nn.BatchNorm1d(64)
        self.attention = nn.MultiheadAttention(64, 2, batch_first=True)
        self.last = nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.first(x)).unsqueeze(0)
        y = self.attention(y, y, y)[0].squeeze(0)
        return self.last((y @ y.mT).softmax(-1) @ y)


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return Model()


def gradients(model: nn.Module, x: Tensor) -> list[Tensor]:
    model.zero_grad()
    model(x).square().sum().backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def alike(a: nn.Module, b: nn.Module, x: Tensor) -> bool:
    return torch.equal(a(x), b(x)) and all(map(torch.equal, gradients(a, x), gradients(b, x)))


def test_changed_options_give_the_bits_of_a_model_converted_so(model: nn.Module) -> None:
    x = torch.randn(6, 64)
    changed = convert(model.eval(), format="mx9")
    parameters = list(changed.parameters())
    changed(x)
    narrow = convert(model, format="mx6", gradients="mx9", accumulator="exact")
    options = narrow.first.axs6_site.options
    set_options(changed, lambda name, before: options)
    assert alike(changed, narrow, x)
    assert all(a is b for a, b in zip(changed.parameters(), parameters, strict=True))
    assert set(options_of(changed).values()) == {options}
    assert not torch.equal(changed(x), convert(model, format="mx9")(x))


def test_options_of_single_places(model: nn.Module) -> None:
    x = torch.randn(6, 64)
    changed = convert(model.eval())
    eight = block_format("axs6").with_block(8)

    def change(name: str, options: Any) -> Any:
        return with_block(options, 8) if name == "attention.scores" else options

    set_options(changed, change)
    found = options_of(changed)
    assert found["attention.scores"].weights == eight
    assert found["attention.values"].weights != eight
    assert not torch.equal(changed(x), convert(model)(x))


def test_a_schedule_changes_formats_at_its_steps(model: nn.Module) -> None:
    x = torch.randn(6, 64)
    scheduled = convert(model.eval(), format="mxfp4")
    phases: list[tuple[int, dict[str, Any]]] = [
        (0, {"format": "mx9"}),
        (2, {"format": "mx6", "gradients": "mx9"}),
        (3, {"activations": "mx4", "gradients": None, "accumulator": "exact"}),
    ]
    schedule = FormatSchedule(scheduled, phases)
    expected = [
        convert(model, format="mx9"),
        convert(model, format="mx9"),
        convert(model, format="mx6", gradients="mx9"),
        convert(model, weights="mx6", activations="mx4", accumulator="exact"),
    ]
    for each in expected:
        assert alike(scheduled, each, x)
        schedule.step()
    other = convert(model)
    resumed = FormatSchedule(other, phases)
    resumed.load_state_dict({"step": 2})
    assert alike(other, expected[2], x)
    assert resumed.state_dict() == {"step": 2}


def test_an_optimiser_goes_on_over_a_change_of_formats() -> None:
    torch.manual_seed(0)
    model = convert(nn.Sequential(nn.Linear(40, 16), nn.ReLU(), nn.Linear(16, 4)), format="mx9")
    schedule = FormatSchedule(model, [(0, {"format": "mx9"}), (20, {"format": "mx4"})])
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    x = torch.randn(64, 40)
    losses = []
    for _ in range(40):
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    assert losses[39] < losses[19] < losses[0]


def test_bad_phases_are_refused() -> None:
    model = convert(nn.Linear(4, 3))
    for starts in ([], [1], [0, 2, 2], [0, 3, 2]):
        with pytest.raises(ValueError, match=r"^phases must begin at rising steps from 0, not \["):
            FormatSchedule(model, [(start, {}) for start in starts])
    with pytest.raises(ValueError, match=r"^a phase must change format, .*, not block$"):
        FormatSchedule(model, [(0, {"block": 8})])
    with pytest.raises(ValueError, match="'mx10'"):
        FormatSchedule(model, [(0, {"format": "mx10"})])
    with pytest.raises(ValueError, match=r"^model must be converted"):
        FormatSchedule(nn.Linear(4, 3), [(0, {"format": "mx9"})])


def test_each_layer_has_the_largest_blocks_that_are_good_enough(model: nn.Module) -> None:
    with torch.no_grad():
        model.first.weight[:, ::64] *= 100
    converted = convert(model)
    x = torch.randn(32, 64)
    state = copy.deepcopy(converted.state_dict())
    found = choose_blocks(converted, (x,), 29.0, sizes=(8, 16, 32))
    weight = model.first.weight.detach().numpy()
    worst = {n: min(qsnr(x.numpy(), block=n), qsnr(weight, block=n)) for n in (8, 16, 32)}
    assert found["first"] == max(n for n, value in worst.items() if value >= 29)
    assert len(set(found.values())) > 1
    assert {name: options.weights.block for name, options in options_of(converted).items()} == {
        **{name: found[name] for name in found if "matmul" not in name},
        "": min(size for name, size in found.items() if "matmul" in name),
    }
    assert converted.training
    assert all(map(torch.equal, state.values(), converted.state_dict().values()))
    assert set(choose_blocks(converted, (x,), 0.0, sizes=(8, 32)).values()) == {32}
    assert set(choose_blocks(converted, (x,), 99.0, sizes=(8, 32)).values()) == {8}
    with pytest.raises(ValueError, match=r"^sizes must not be empty$"):
        choose_blocks(converted, (x,), 30.0, sizes=())


def test_blocks_adapt_to_weights_that_change() -> None:
    torch.manual_seed(0)
    model = convert(nn.Sequential(nn.Linear(64, 8)))
    x = torch.randn(16, 64)
    even = choose_blocks(model, (x,), 27.0, sizes=(8, 32))
    with torch.no_grad():
        model[0].weight[:, ::32] *= 100
    assert (even, choose_blocks(model, (x,), 27.0, sizes=(8, 32))) == ({"0": 32}, {"0": 8})


def test_an_optimiser_is_reset() -> None:
    weight = nn.Parameter(torch.ones(3))
    optimiser = torch.optim.Adam([weight], 0.1)
    for reset in (False, True):
        if reset:
            reset_optimiser(optimiser, lr=0.01, betas=(0.0, 0.99))
        assert bool(optimiser.state) is False
        weight.sum().backward()
        optimiser.step()
    # The first step of a new Adam is one learning rate.
    assert weight.tolist() == pytest.approx([1 - 0.1 - 0.01] * 3)
    assert optimiser.param_groups[0]["betas"] == (0.0, 0.99)
    with pytest.raises(ValueError, match=r"^Adam has no option 'momentum'$"):
        reset_optimiser(optimiser, momentum=0.0)
