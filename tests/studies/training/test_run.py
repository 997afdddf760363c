import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from axs6.studies.training import run
from axs6.studies.training.request import Recipe
from axs6.studies.training.run import Plan, train
from axs6.studies.training.tasks import Task


def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randn(64, 40, generator=generator)
    return x, x[:, :4].argmax(1)


def task() -> Task:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(40, 16), nn.ReLU(), nn.Linear(16, 4))

    tests = (batch(torch.Generator().manual_seed(1)),)
    return Task(make, batch, tests, "accuracy", 1e-2)


RANDOM = Recipe("axs6", "axs6", "fp32", "stochastic", "stochastic", 16)
PLAN = Plan("small", RANDOM, 3, 12, 1e-2)


def same_models(a: nn.Module, b: nn.Module) -> bool:
    return all(map(torch.equal, a.state_dict().values(), b.state_dict().values()))


class StoppedError(Exception):
    pass


def stop_after(step: int) -> Callable[[int], None]:
    def progress(done: int) -> None:
        if done == step:
            raise StoppedError

    return progress


@pytest.mark.parametrize("stopped", [4, 7, 12])
def test_a_stopped_run_goes_on_with_the_same_bits(
    stopped: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "SAVED_EVERY", 4)
    whole = train(task(), PLAN)
    file = tmp_path / "runs" / "run.pt"
    with pytest.raises(StoppedError):
        train(task(), PLAN, checkpoint=file, progress=stop_after(stopped))
    steps: list[int] = []
    resumed = train(task(), PLAN, checkpoint=file, progress=steps.append)
    assert steps == list(range(1 + stopped // 4 * 4, 13))
    assert resumed.losses == whole.losses
    assert same_models(resumed.model, whole.model)


@pytest.mark.parametrize("part", ["model", "optimiser", "schedule", "gradients"])
def test_a_checkpoint_needs_all_of_its_parts(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "SAVED_EVERY", 4)
    file = tmp_path / "run.pt"
    with pytest.raises(StoppedError):
        train(task(), PLAN, checkpoint=file, progress=stop_after(4))
    fresh = run._Run(task(), PLAN, task().make())
    kept = run._read(file)
    kept[part] = fresh._parts[part].state_dict()
    run._write(file, kept)
    assert not same_models(train(task(), PLAN, checkpoint=file).model, train(task(), PLAN).model)


def test_recipes_share_weights_and_batches_and_differ_in_bits() -> None:
    plans = [replace(PLAN, recipe=Recipe(*each)) for each in ((), ("axs6",))]
    losses = [train(task(), plan).losses for plan in plans]
    assert losses[0] != losses[1]
    assert abs(losses[0][0] - losses[1][0]) < 0.05
    assert train(task(), replace(PLAN, seed=4)).losses[0] != losses[0][0]


def test_a_model_learns_and_is_judged() -> None:
    plan = replace(PLAN, steps=100)
    found = train(task(), plan)
    assert found.losses[-1] < 0.5 * found.losses[0]
    assert task().judge(found.model) > 0.8
    assert replace(task(), metric="loss").judge(found.model) < 0.7


def test_every_step_of_every_seed_has_a_batch_of_its_own() -> None:
    drawn = {
        float(batch(run.generator_of(seed, step))[0][0, 0])
        for seed in (0, 1, 2, 1 << 16)
        for step in range(25)
    }
    assert len(drawn) == 100


def test_fine_tuning_starts_from_the_weights_that_are_given() -> None:
    start = task().make()
    before = copy.deepcopy(start)
    plan = replace(PLAN, steps=2, rate=0.0, constant=True)
    found = train(task(), plan, start)
    assert same_models(found.model, before)
    assert same_models(start, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, "checkpoint must have seed 4, not 3"),
        ({"recipe": Recipe()}, "checkpoint must have recipe .* not .*'axs6'"),
    ],
)
def test_checkpoints_of_another_run_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.pt"
    train(task(), PLAN, checkpoint=file)
    with pytest.raises(ValueError, match=message):
        train(task(), replace(PLAN, **change), checkpoint=file)


def test_files_that_are_no_checkpoint_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.pt"
    file.write_bytes(b"text")
    with pytest.raises(ValueError, match=r"run\.pt: not a checkpoint of a training run$"):
        train(task(), PLAN, checkpoint=file)
    torch.save({"losses": []}, file)
    with pytest.raises(ValueError, match="not a checkpoint of a training run"):
        train(task(), PLAN, checkpoint=file)


def flip(content: bytearray) -> None:
    content[len(content) // 2] ^= 1


def flip_the_last(content: bytearray) -> None:
    content[-1] ^= 128


def flip_the_digest(content: bytearray) -> None:
    content[content.index(b"\n") - 1] ^= 1


def cut(content: bytearray) -> None:
    del content[-1:]


def lengthen(content: bytearray) -> None:
    content += b"\0"


def empty_rest(content: bytearray) -> None:
    del content[content.index(b"\n") :]


@pytest.mark.parametrize(
    "change", [flip, flip_the_last, flip_the_digest, cut, lengthen, empty_rest]
)
def test_a_checkpoint_that_was_changed_is_refused(
    change: Callable[[bytearray], None], tmp_path: Path
) -> None:
    file = tmp_path / "run.pt"
    train(task(), PLAN, checkpoint=file)
    content = bytearray(file.read_bytes())
    change(content)
    file.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"run\.pt: the checkpoint was changed after it was written"
    ):
        train(task(), PLAN, checkpoint=file)
    assert file.read_bytes() == content
