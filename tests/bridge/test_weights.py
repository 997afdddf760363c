"""Weights of converted layers: encoded once, never stale, and shared where they were."""

import copy
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import prune

from axs6.torch import (
    convert,
    decode,
    encode,
    freeze,
    kernels,
    load_packed,
    profile,
    save_packed,
    unfreeze,
)
from axs6.torch.site import Site

Same = Callable[[Tensor, Tensor], bool]


class Users(nn.Module):
    """Products of torch's layers, and of a `forward`'s own with a weight, its data and its view."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.conv = nn.Conv1d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose1d(8, 8, 1)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.hidden = nn.GRU(8, 8, batch_first=True)
        self.w = nn.Parameter(torch.randn(8, 8) / 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(self.conv(self.linear(x).mT)).mT
        y = functional.linear(y, self.w) + functional.linear(y, self.w.data.mT)
        y = y + self.attention(y, y, y)[0]
        return self.hidden(y)[0] @ self.w


class Weighted(nn.Module):
    """Products with weights alone."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.conv = nn.Conv1d(8, 8, 3, padding=1)
        self.w = nn.Parameter(torch.randn(8, 8) / 3)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(self.conv(self.linear(x).mT).mT, self.w)


@pytest.fixture(params=["kernels", "torch"])
def compared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Weights compared by digests, and with copies."""
    with kernels.use(None) if request.param == "torch" else nullcontext():
        yield


def is_fresh(model: nn.Module, x: Tensor, same: Same) -> bool:
    """Whether a model gives what one does that has encoded nothing yet."""
    fresh = copy.deepcopy(model)
    found = [same(model(x), fresh(x))]
    with torch.no_grad():
        found.append(same(model(x), fresh(x)))
    return all(found)


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


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_optimisers(name: str, same: Same) -> None:
    model, x = convert(Users()), torch.randn(2, 5, 8)
    optimiser = getattr(torch.optim, name)(model.parameters(), 0.1, fused=True)
    for _ in range(2):
        model(x).square().sum().backward()
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        optimiser.step()
        assert not any(same(p, before[name]) for name, p in model.named_parameters() if p.ndim > 1)
        assert is_fresh(model, x, same)


def _numpy(x: Tensor) -> None:
    x.detach().numpy()[0] *= -3


def _dlpack(x: Tensor) -> None:
    torch.from_dlpack(x.detach()).mul_(-3)


def _storage(x: Tensor) -> None:
    x.untyped_storage().copy_((x.detach() * -3).clone().untyped_storage())


def _one_value(x: Tensor) -> None:
    x.data[-1, -1] += 5


def _exchanged(x: Tensor) -> None:
    x.data.copy_(x.data.flip(0))


def _sign(x: Tensor) -> None:
    x.data.neg_()


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize("write", [_numpy, _dlpack, _storage, _one_value, _exchanged, _sign])
@pytest.mark.parametrize("training", [True, False])
def test_writes_that_torch_does_not_count(
    write: Callable[[Tensor], None], training: bool, same: Same
) -> None:
    model, x = convert(Users(), format="mx9").train(training), torch.randn(2, 5, 8)
    assert is_fresh(model, x, same)
    versions = {name: p._version for name, p in model.named_parameters()}
    write(model.linear.weight)
    write(model.w)
    write(model.conv.weight)
    write(model.up.weight)
    write(model.attention.in_proj_weight)
    write(model.hidden.weight_hh_l0)
    uncounted = {name: p._version for name, p in model.named_parameters()} == versions
    assert uncounted or write is _dlpack
    assert is_fresh(model, x, same)


def test_flat_buffers_behind_parameters(same: Same) -> None:
    model, x = convert(Users()), torch.randn(2, 5, 8)
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    for p, part in zip(
        model.parameters(), flat.split([p.numel() for p in model.parameters()]), strict=True
    ):
        p.data = part.view(p.shape)
    assert is_fresh(model, x, same)
    flat.mul_(-2)
    assert is_fresh(model, x, same)


def test_memory_that_another_process_writes(tmp_path: Path, same: Same) -> None:
    path = str(tmp_path / "weight")
    ours, theirs = (torch.from_file(path, shared=True, size=64) for _ in range(2))
    theirs.normal_()
    model, x = convert(nn.Linear(8, 8)), torch.randn(5, 8)
    model.weight.data = ours.view(8, 8)
    assert is_fresh(model, x, same)
    theirs.mul_(-2)
    assert is_fresh(model, x, same)


OTHER_PROCESS = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method=sys.argv[1], rank=1, world_size=2)
dist.broadcast(torch.full((8, 8), 0.5), 1)
dist.all_reduce(torch.full((8, 8), 0.25))
dist.send(torch.full((8, 8), 3.0), 0)
dist.destroy_process_group()
"""


@pytest.mark.skipif(not dist.is_available(), reason="torch has no distributed part")
def test_collectives(tmp_path: Path, same: Same) -> None:
    where = f"file://{tmp_path / 'group'}"
    model, x = convert(nn.Linear(8, 8)), torch.randn(5, 8)
    with subprocess.Popen([sys.executable, "-c", OTHER_PROCESS, where]) as other:
        dist.init_process_group("gloo", init_method=where, rank=0, world_size=2)
        try:
            steps: list[Callable[[Tensor], object]] = [
                lambda w: dist.broadcast(w, 1),
                dist.all_reduce,
                lambda w: dist.recv(w, 1),
            ]
            for step, value in zip(steps, (0.5, 0.75, 3.0), strict=True):
                model(x)
                step(model.weight.detach())
                assert (model.weight == value).all()
                assert is_fresh(model, x, same)
        finally:
            dist.destroy_process_group()
    assert other.returncode == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_models(backend: str, same: Same) -> None:
    model, x = (
        convert(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))),
        torch.randn(5, 8),
    )
    compiled: Any = torch.compile(model, backend=backend, fullgraph=True)
    optimiser = torch.optim.AdamW(model.parameters(), 0.1, fused=True)
    for _ in range(2):
        compiled(x).sum().backward()
        optimiser.step()
        model[0].weight.data.mul_(-1)
        assert same(compiled(x), copy.deepcopy(model)(x))
        with torch.no_grad():
            assert same(compiled(x), copy.deepcopy(model)(x))


def test_a_saved_model_has_the_weights_of_the_products(tmp_path: Path, same: Same) -> None:
    x, path = torch.randn(3, 5, 8), tmp_path / "x.safetensors"
    model = convert(Users()).eval()
    for change in (lambda: None, lambda: freeze(model)):
        model(x)
        change()
        model(x)
        for p in model.parameters():
            p.data.mul_(-1)
        save_packed(model, path)
        again = convert(Users())
        load_packed(again, path)
        assert same(again(x), model(x))


def test_equal_weights_elsewhere_are_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = convert(nn.Linear(40, 3)), torch.randn(2, 40)
    found = count_encodings(layer.axs6_site, monkeypatch)
    with torch.no_grad():
        for _ in range(3):
            layer(x)
            layer.weight.mul_(1)
            layer.weight = nn.Parameter(layer.weight.clone())
    assert len(found) == 1
    # The same bits, but of other values.
    layer.weight = nn.Parameter(layer.weight.detach().view(torch.bfloat16)[:, :40].contiguous())
    layer(x.bfloat16()[:, :40])
    assert len(found) == 2


@pytest.mark.parametrize("undo", [unfreeze, lambda model: model.train().eval(), copy.deepcopy])
def test_frozen_models_take_the_users_word(undo: Callable[..., Any], same: Same) -> None:
    model, x = convert(Weighted()).eval(), torch.randn(2, 5, 8)
    with torch.no_grad():
        freeze(model)
        before = model(x)
        for p in model.parameters():
            if p.ndim > 1:
                p.data.mul_(-1)
        assert same(model(x), before)
        after = undo(model) or model
        assert not same(after(x), before)
        assert is_fresh(after, x, same)


def test_frozen_models_see_the_changes_that_torch_counts(same: Same) -> None:
    model, x = convert(Weighted()).eval(), torch.randn(2, 5, 8)
    freeze(model)
    changes: list[Callable[[], object]] = [
        lambda: model.load_state_dict(Weighted().state_dict()),
        lambda: model.linear.weight.mul_(2),
        lambda: setattr(model.linear.weight, "data", torch.randn(8, 8)),
        lambda: setattr(model, "w", nn.Parameter(torch.randn(8, 8))),
        lambda: model.load_state_dict(Weighted().state_dict(), assign=True),
    ]
    with torch.no_grad():
        for change in changes:
            assert is_fresh(model, x, same)
            change()
            assert is_fresh(model, x, same)


def test_a_frozen_weight_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from axs6.torch import site

    found = []
    original = site.bits_of
    monkeypatch.setattr(site, "bits_of", lambda x: found.append(x) or original(x))
    layer, x = convert(nn.Linear(40, 3)).eval(), torch.randn(2, 40)
    layer(x)
    freeze(layer)
    for grad in (True, False, True):
        with torch.set_grad_enabled(grad):
            layer(x)
    assert len(found) == 2


def test_what_cannot_be_frozen() -> None:
    with pytest.raises(ValueError, match="must be converted"):
        freeze(nn.Linear(3, 3).eval())
    model = convert(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))).eval()
    model[1].train()
    with pytest.raises(ValueError, match="1 must be in evaluation mode: call eval"):
        freeze(model)


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


def test_weights_that_hooks_compute(same: Same) -> None:
    x = torch.randn(2, 8)
    layers = [nn.Linear(8, 3), nn.Linear(8, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        nn.utils.weight_norm(layers[0])
    prune.l1_unstructured(layers[1], "weight", 0.5)
    for layer in layers:
        layer(x)
        converted = convert(layer)
        plain = nn.Linear(8, 3)
        plain.load_state_dict({"weight": layer.weight, "bias": layer.bias})
        assert same(converted(x), convert(plain)(x))
        converted(x).sum().backward()
        assert all(p.grad is not None for p in converted.parameters())
        assert all(p.grad is None for p in layer.parameters())


class OneRow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(8))

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        return functional.linear(x, self.w, bias)


@pytest.mark.parametrize("shape", [(8,), (3, 8), (2, 3, 8)])
def test_a_weight_of_one_axis(shape: tuple[int, ...], same: Same) -> None:
    model, x = convert(OneRow()), torch.randn(shape)
    row = convert(nn.Linear(8, 1, bias=False))
    row.weight.data = model.w.data.unsqueeze(0)
    assert same(model(x), row(x).squeeze(-1))
    with pytest.raises(ValueError, match="a weight of one axis must have no bias"):
        model(x, torch.ones(1))


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize("format", ["axs6", "mx9", "int8", "mxfp4"])
def test_views_with_negative_bits(format: str, same: Same) -> None:
    x, layer = torch.randn(4, 8), convert(nn.Linear(8, 3), format=format)
    negative = torch._neg_view(x)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            assert same(layer(negative), layer(-x))
            layer.weight.data = torch._neg_view(layer.weight.data)
            assert is_fresh(layer, x, same)
    assert same(decode(encode(negative, format)), decode(encode(-x, format)))


@pytest.mark.parametrize("excluded", [["0"], ["1"], []])
def test_autocast_with_excluded_layers(excluded: list[str], same: Same) -> None:
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), torch.randn(2, 8)
    converted = convert(model, exclude=excluded)
    for grad in (True, False):
        with torch.set_grad_enabled(grad), torch.autocast("cpu", torch.bfloat16):
            y = converted(x)
            inner = converted[0](x)
            assert same(y, converted[1](inner))
        assert y.dtype == (torch.bfloat16 if excluded == ["1"] else torch.float32)
    # Without it two dtypes are refused, as by torch.
    with pytest.raises(TypeError, match="must have one dtype"):
        convert(model)(x.bfloat16())


class WithState(nn.Linear):
    def get_extra_state(self) -> dict[str, int]:
        return {"steps": 1}

    def set_extra_state(self, state: object) -> None: ...


def test_what_files_do_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(TypeError, match="_extra_state is of type dict, not a tensor"):
        save_packed(convert(WithState(8, 3)), path)
    meta = convert(nn.Linear(8, 3, device="meta"))
    with pytest.raises(ValueError, match="weight is on meta and has no values"):
        save_packed(meta, path)
    assert not path.exists()
    save_packed(convert(nn.Linear(8, 3)), path)
    with pytest.raises(ValueError, match="'weight' of the model is on meta and takes no values"):
        load_packed(meta, path)
    load_packed(meta.to_empty(device="cpu"), path)


class Tied(nn.Module):
    """A layer whose weight another product takes too, along the same axis or the other one."""

    def __init__(self, transposed: bool) -> None:
        super().__init__()
        self.a, self.transposed = nn.Linear(8, 8), transposed

    def forward(self, x: Tensor) -> Tensor:
        y = self.a(x)
        return y @ self.a.weight if self.transposed else nn.functional.linear(y, self.a.weight)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_loaded_weight_in_another_product(
    transposed: bool, tmp_path: Path, same: Same, recwarn: pytest.WarningsRecorder
) -> None:
    x, path = torch.randn(2, 8), tmp_path / "x.safetensors"
    model = convert(Tied(transposed), format="mxfp4")
    save_packed(model, path)
    model(x)
    assert not recwarn
    again = convert(Tied(transposed), format="mxfp4")
    load_packed(again, path)
    with pytest.warns(UserWarning, match=r"multiplies by a\.weight, which was loaded from the bl"):
        again(x)
    again(x)
    assert not recwarn
    load_packed(again, path)
    with torch.no_grad():
        again.a.weight.mul_(2)
    assert is_fresh(again, x, same)
    assert not recwarn


@pytest.mark.parametrize("formats", [("mxfp4", "mx9"), ("mxfp4", "mxfp4")])
def test_layers_that_share_a_weight(formats: tuple[str, str], tmp_path: Path, same: Same) -> None:
    def model(count: int = 3) -> nn.Module:
        layers = nn.Sequential(*[nn.Linear(8, 8) for _ in range(count)])
        layers[1].weight = layers[0].weight
        return convert(
            layers, policy=lambda name, _: dict(zip("01", formats, strict=True)).get(name)
        )

    x, path = torch.randn(2, 8), tmp_path / "x.safetensors"
    first, again = model(), model()
    save_packed(first, path)
    load_packed(again, path)
    assert same(again(x), first(x))
    assert is_fresh(again, x, same)
    if formats[0] != formats[1]:
        with pytest.raises(
            ValueError, match="no weight to pack: each is shared by several modules"
        ):
            save_packed(model(2), path)
