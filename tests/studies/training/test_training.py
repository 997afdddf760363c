from pathlib import Path

import pytest
import torch
from torch import nn

from axs6.studies.training import study, tasks
from axs6.studies.training.figure import picture
from axs6.studies.training.request import RECIPES, TASKS, Recipe, check_request, check_task
from axs6.studies.training.study import RecipeRow, TrainingStudy, mean_and_deviation, study_training
from axs6.studies.training.tasks import CONTEXT, characters
from axs6.studies.training.transformer import CharacterModel


def test_text_is_split_into_two_parts_that_share_nothing() -> None:
    text, test, count = characters()
    assert len(text) > 8 * len(test) > 100_000
    assert int(torch.cat([text, test]).max()) == count - 1
    inputs, targets = tasks.gpt().batch(torch.Generator().manual_seed(0))
    assert inputs.shape == targets.shape == (16, CONTEXT)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_a_character_model_does_not_see_what_follows() -> None:
    torch.manual_seed(0)
    model = CharacterModel(9, 6)
    x = torch.randint(9, (2, 6))
    y = x.clone()
    y[:, 4:] = (y[:, 4:] + 1) % 9
    before, after = model(x), model(y)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.equal(before[:, 4:], after[:, 4:])


@pytest.mark.slow  # one run of a recipe and its tuning are in every run
def test_a_study_has_every_recipe_and_seed(tmp_path: Path) -> None:
    lines: list[str] = []
    found = study_training("vit", ["axs6"], 2, 8, checkpoints=tmp_path, progress=lines.append)
    assert (found.task, found.metric, found.steps) == ("vit", "accuracy", 8)
    fp32, axs6 = found.rows
    assert (fp32.recipe, fp32.cast, fp32.tuned) == ("fp32", [], [])
    assert {len(x) for x in (fp32.trained, axs6.trained, axs6.cast, axs6.tuned)} == {2}
    assert [len(x) for x in axs6.losses] == [8, 8]
    assert fp32.losses != axs6.losses
    assert {path.name for path in tmp_path.iterdir()} == {
        f"vit-{run}-{seed}{end}.pt"
        for seed in (0, 1)
        for run, end in (("fp32", ""), ("axs6", ""), ("axs6", "-tuned"))
    }
    assert "vit-axs6-1-tuned: step 2 of 2" in lines
    # All of it comes from the checkpoints now, at a fraction of the time.
    lines.clear()
    again = study_training("vit", ["axs6"], 2, 8, checkpoints=tmp_path, progress=lines.append)
    assert again == found
    assert all("step 0 of" in line for line in lines)


@pytest.mark.slow
def test_runs_in_other_processes_have_the_same_bits() -> None:
    expected = study_training("vit", ["axs6"], 2, 8)
    assert study_training("vit", ["axs6"], 2, 8, jobs=2) == expected


def test_a_run_leaves_its_checkpoint(tmp_path: Path) -> None:
    runs = [study.RunTask("vit", "axs6", 0, 8, tmp_path, tuned) for tuned in (False, True)]
    assert [run.outcome() for run in runs] == [8, 2]
    lines: list[str] = []
    study_training("vit", ["axs6"], 1, 8, checkpoints=tmp_path, progress=lines.append)
    assert all("step 0 of" in line for line in lines)
    other = study.RunTask("vit", "axs6", 0, 9, tmp_path)
    assert "checkpoint must have steps 9, not 8" in str(other.outcome())


def test_the_larger_task_has_its_own_size_and_steps() -> None:
    assert TASKS == {"gpt": 150, "vit": 150, "gpt_1m": 2000}
    assert TASKS.keys() == tasks.TASKS.keys()
    model = tasks.TASKS["gpt_1m"]().make()
    assert 1e6 < sum(each.numel() for each in model.parameters()) < 3e6


def test_fine_tuning_starts_from_the_fp32_model_with_fp32_backward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[study.Plan, nn.Module | None]] = []
    right = study.train

    def spy(task: object, plan: study.Plan, start: nn.Module | None, *rest: object) -> object:
        seen.append((plan, start))
        return right(task, plan, start, *rest)

    monkeypatch.setattr(study, "train", spy)
    study_training("vit", ["axs6"], 1, 8)
    (_, none), _, (tuned, start) = seen
    assert none is None
    assert isinstance(start, nn.Module)
    assert tuned.recipe == Recipe("axs6")
    assert (tuned.constant, tuned.momentum, tuned.rate < seen[0][0].rate) == (True, False, True)


def test_pictures_are_valid_and_repeatable() -> None:
    losses = [[1.0 / (step + 1) for step in range(45)]]
    rows = [
        RecipeRow("fp32", losses=losses),
        RecipeRow("axs6", losses=[[x + 0.1 for x in losses[0]]]),
    ]
    found = TrainingStudy("gpt", "loss", 10, 45, rows)
    assert picture(found).startswith(b"<?xml")
    assert picture(found) == picture(found)
    assert picture(found, "png").startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="kind must be one of svg, png, not 'gif'"):
        picture(found, "gif")


def test_means_and_deviations() -> None:
    assert mean_and_deviation([1.0, 3.0]) == (2.0, 2.0**0.5)
    assert mean_and_deviation([1.5]) == (1.5, 0.0)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="NAME must be one of gpt, vit, gpt_1m, not 'bert'"):
        check_task("bert")
    with pytest.raises(ValueError, match=f"recipe must be one of {', '.join(RECIPES)}, not 'x'"):
        check_request(["x"], 1, 10)
    with pytest.raises(ValueError, match="seeds must be an integer of at least 1, not 0"):
        study_training("vit", [], 0)
    with pytest.raises(ValueError, match="steps must be an integer of at least 2, not 1"):
        study_training("vit", [], 1, 1)
    with pytest.raises(ValueError, match="'mx10'"):
        Recipe("mx10")
    with pytest.raises(ValueError, match="accumulator"):
        Recipe(accumulator="fp33")
    with pytest.raises(ValueError, match="rounding must be one of"):
        Recipe(rounding="up")
    with pytest.raises(ValueError, match="rotation must be one of 8, 16, 32, 64, 128, not 5"):
        Recipe("axs6", "axs6", rotation=5)
    with pytest.raises(ValueError, match="rounding and rotation need a format of gradients"):
        Recipe("axs6", backward_rounding="stochastic")
