"""Training over two processes on one machine, by gloo."""

import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import axs6
from axs6.torch import QuantisedGradients, convert
from axs6.torch.kernels import library
from axs6.torch.training import Compression, check_same_options, compression_hook

RANKS = 2
STEPS = 3


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(40, 16), nn.ReLU(), nn.Linear(16, 4))


def batch(rank: int, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(10 * step + rank)
    return torch.randn(8, 40, generator=generator)


def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))


def train(rank: int, hook: Compression | None) -> dict[str, Any]:
    """The recipe: products in AXS-6 both ways, and gradients rounded stochastically."""
    model = convert(small(), gradients="axs6")
    check_same_options(model)
    parallel = DistributedDataParallel(model)
    if hook is not None:
        parallel.register_comm_hook(hook, compression_hook)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    optimiser.register_step_pre_hook(QuantisedGradients(model.parameters()))
    gradients = []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss(parallel, batch(rank, step)).backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        optimiser.step()
    return {"weights": model.state_dict(), "gradients": gradients}


def refusal(rank: int) -> str:
    model = convert(small(), format=("axs6", "mx9")[rank])
    try:
        check_same_options(model)
    except ValueError as error:
        return str(error)
    return ""


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=RANKS)
    try:
        hooks = {
            "plain": None,
            "compressed": Compression(feedback=False),
            "feedback": Compression(),
        }
        found: dict[str, Any] = {name: train(rank, hook) for name, hook in hooks.items()}
        found["sent"] = {name: hook.sent_bytes for name, hook in hooks.items() if hook is not None}
        assert hooks["feedback"] is not None
        found["errors"] = hooks["feedback"].state_dict()
        found["refusal"] = refusal(rank)
        torch.save(found, f"{folder}/{rank}.pt")
    finally:
        dist.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("ranks")
    subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=300)
    return [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]


def local_gradients(rank: int, model: nn.Module, step: int) -> list[torch.Tensor]:
    model.zero_grad()
    loss(model, batch(rank, step)).backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("how", ["plain", "compressed", "feedback"])
def test_all_ranks_have_the_same_bits(ranks: list[dict[str, Any]], how: str) -> None:
    first, second = (rank[how]["weights"] for rank in ranks)
    assert all(map(torch.equal, first.values(), second.values()))
    assert not torch.equal(first["0.weight"], small().state_dict()["0.weight"])


def test_gradients_are_the_mean_of_the_ranks(ranks: list[dict[str, Any]]) -> None:
    model = convert(small(), gradients="axs6")
    both = [local_gradients(rank, model, 0) for rank in range(RANKS)]
    for found, a, b in zip(ranks[0]["plain"]["gradients"][0], *both, strict=True):
        assert torch.equal(found, (a + b) / 2)


def test_compressed_gradients_are_the_mean_of_decoded_ones(ranks: list[dict[str, Any]]) -> None:
    model = convert(small(), gradients="axs6")

    def decoded(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(axs6.decode(axs6.encode(x.numpy())))

    # In the first step, DDP lays its one bucket out in the order of the parameters.
    flat = [
        torch.cat([x.flatten() for x in local_gradients(rank, model, 0)]) for rank in range(RANKS)
    ]
    expected = (decoded(flat[0]) + decoded(flat[1])) / 2
    for how in ("compressed", "feedback"):
        found = torch.cat([x.flatten() for x in ranks[1][how]["gradients"][0]])
        assert torch.equal(found, expected)
    plain, fed = (ranks[0][how]["gradients"][1][0] for how in ("compressed", "feedback"))
    assert not torch.equal(plain, fed)


def test_packed_bytes_travel(ranks: list[dict[str, Any]]) -> None:
    count = sum(p.numel() for p in small().parameters())
    expected = STEPS * len(axs6.pack(axs6.encode(torch.zeros(count).numpy())))
    assert ranks[0]["sent"] == {"compressed": expected, "feedback": expected}
    assert expected < STEPS * 4 * count / 4


def test_ranks_that_compute_in_different_ways_are_refused_in_one_line(
    ranks: list[dict[str, Any]],
) -> None:
    first, second = (rank["refusal"] for rank in ranks)
    assert first == second
    assert "\n" not in first
    assert first.startswith("all ranks must compute alike: 0 has ")
    assert "format=axs6 on rank 0 and " in first
    assert first.endswith("format=mx9 on rank 1")


class Alone:
    """A group of one process, in which the hook runs bucket after bucket."""

    def __init__(self, folder: Path) -> None:
        dist.init_process_group("gloo", f"file://{folder}/store", rank=0, world_size=1)

    def mean(self, hook: Compression, x: torch.Tensor) -> torch.Tensor:
        model = DistributedDataParallel(Product(x.numel()))
        model.register_comm_hook(hook, compression_hook)
        model(x).backward()
        assert model.module.weight.grad is not None
        return model.module.weight.grad


class Product(nn.Module):
    """A product whose gradient is its input."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.weight * x).sum()


@pytest.fixture
def alone(tmp_path: Path) -> Any:
    yield Alone(tmp_path)
    dist.destroy_process_group()


def test_with_feedback_nothing_is_lost_in_the_long_run(alone: Alone) -> None:
    x = torch.full((64,), 0.003)
    x[::32] = 1.0
    totals = {}
    for feedback in (False, True):
        hook = Compression("axs6", feedback)
        totals[feedback] = sum(float(alone.mean(hook, x)[1]) for _ in range(40))
    assert totals[False] == 0
    assert abs(totals[True] - 40 * 0.003) < 1 / 31


def test_a_hook_goes_on_from_its_state(alone: Alone) -> None:
    torch.manual_seed(0)
    first, second = Compression("mx6"), Compression("mx6")
    x, y = torch.randn(2, 70)
    alone.mean(first, x)
    second.load_state_dict(first.state_dict())
    assert torch.equal(alone.mean(first, y), alone.mean(second, y))
    assert not torch.equal(alone.mean(Compression("mx6"), y), alone.mean(first, y))


def test_gradients_that_are_not_finite_are_refused(alone: Alone) -> None:
    with pytest.raises(ValueError, match=r"^values must be finite"):
        alone.mean(Compression(), torch.tensor([1.0, torch.nan]))
    with pytest.raises(ValueError, match="'axs7'"):
        Compression("axs7")


def fork_ranks(folder: str) -> int:
    """Ranks as processes that share one import of torch; the number of those that failed.

    Their kernels are soon compiled, as those of quick tests are.
    """
    library.OPTIONS = ("-O1", "-pthread")
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=work, args=(rank, folder)) for rank in range(RANKS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return sum(process.exitcode != 0 for process in processes)


if __name__ == "__main__":
    sys.exit(fork_ranks(sys.argv[1]))
