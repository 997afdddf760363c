"""A task trained in several recipes, cast into their formats, and fine-tuned in them."""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from torch import nn

from axs6.sim.process import temporary_folder
from axs6.studies.training import request
from axs6.studies.training.request import (
    BASELINE,
    COMPARED,
    RECIPES,
    SEEDS,
    Recipe,
    check_request,
    check_task,
)
from axs6.studies.training.run import Plan, Trained, converted, train
from axs6.studies.training.tasks import TASKS, Task
from axs6.synth.sweep.pools import outcomes
from axs6.synth.sweep.tasks import PoolTask
from axs6.tables import Column, Table, Tabular, table_of, words

TUNED_SHARE = 8
"""Training steps per step of fine-tuning."""

TUNED_RATE = 0.1
"""Learning rate of fine-tuning relative to the maximum of training."""


@dataclass(frozen=True)
class RecipeRow:
    """Results of a recipe, one number for each seed; empty if not applicable.

    Args:
        recipe: its name.
        trained: metric of the models trained in it.
        cast: metric of the models trained in FP32 and converted.
        tuned: metric of these after fine-tuning: products in the format forward, in FP32 backward,
            with a new optimiser without momentum, and a constant learning rate.
        losses: of the batch of each step of training, in nats, a list for each seed.
    """

    recipe: str
    trained: list[float] = field(default_factory=list)
    cast: list[float] = field(default_factory=list)
    tuned: list[float] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True)
class TrainingStudy(Tabular):
    """The rows of a task, FP32 first.

    Args:
        task: its name.
        metric: "loss", cross-entropy in nats on test text, or "accuracy".
        parameters: of the model.
        steps: of training.
        rows: one for each recipe.
    """

    task: str
    metric: str
    parameters: int
    steps: int
    rows: list[RecipeRow]

    def table(self) -> Table:
        """A row for each recipe: means over the seeds, and their standard deviations."""
        form = ".2%" if self.metric == "accuracy" else ".4f"
        titles = {
            "trained": f"{self.metric}, trained",
            "cast": "direct cast",
            "tuned": "fine-tuned",
        }
        columns = [words("recipe")]
        for name, title in titles.items():
            columns += [Column(name, title, form), Column(f"{name}_deviation", "+-", form)]
        rows = []
        for row in self.rows:
            figures: dict[str, Any] = {"recipe": row.recipe}
            for name in titles:
                if values := getattr(row, name):
                    figures[name], figures[f"{name}_deviation"] = mean_and_deviation(values)
            rows.append(figures)
        return table_of(columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON, with the conditions of its bits."""
        machine = {
            "torch": str(torch.__version__),
            "instructions": torch.backends.cpu.get_cpu_capability(),
        }
        return {"study": "training", **asdict(self), "machine": machine}


def mean_and_deviation(values: list[float]) -> tuple[float, float]:
    """Mean of the seeds and their standard deviation, 0 for a single one."""
    return fmean(values), stdev(values) if len(values) > 1 else 0.0


def study_training(
    name: str,
    recipes: Iterable[str] = COMPARED,
    seeds: int = SEEDS,
    steps: int | None = None,
    *,
    checkpoints: Path | None = None,
    jobs: int = 1,
    progress: Callable[[str], None] = lambda line: None,
) -> TrainingStudy:
    """Train a task's model in FP32 and in each recipe, from the same weights on the same batches.

    Args:
        name: of a task of `axs6.studies.training.tasks`.
        recipes: names of recipes; FP32 is always added. seeds: number of seeds, from 0. steps: of a
        run; those of the task if None. checkpoints: folder of the runs' checkpoints; a stopped
        study resumes from them with the same bits. jobs: number of runs at a time, each in a
        process of its own where there are several; the bits do not depend on it. progress: called
        with a line of text at every step, and at the end of every run of another process.

    Raises:
        ValueError: an argument is refused, or a checkpoint is that of another run.
        OSError: a checkpoint cannot be read or written.
        RuntimeError: a process is lost.
    """
    chosen = list(recipes)
    check_task(name)
    steps = request.TASKS[name] if steps is None else steps
    check_request(chosen, seeds, steps, jobs)
    names = [x for x in RECIPES if x in {BASELINE, *chosen}]
    with contextlib.ExitStack() as stack:
        if jobs > 1:
            folder = checkpoints or stack.enter_context(temporary_folder("axs6-training-"))
            _run_ahead(name, names, seeds, steps, folder, jobs, progress)
            checkpoints = folder
        runs = _Runs(name, TASKS[name](), steps, checkpoints, progress)
        return _study(runs, names, seeds)


def _study(runs: "_Runs", names: Iterable[str], seeds: int) -> TrainingStudy:
    """The study of recipes, whose runs are trained where they have no checkpoint."""
    rows = {x: RecipeRow(x) for x in names}
    for seed in range(seeds):
        baseline = runs.trained(BASELINE, seed)
        for each, row in rows.items():
            found = baseline if each == BASELINE else runs.trained(each, seed)
            row.losses.append(found.losses)
            row.trained.append(runs.task.judge(found.model))
            recipe = RECIPES[each]
            if not _is_cast(recipe):
                continue
            row.cast.append(runs.task.judge(converted(baseline.model, recipe)))
            row.tuned.append(runs.task.judge(runs.tuned(each, seed, baseline.model).model))
    parameters = sum(x.numel() for x in baseline.model.parameters())
    return TrainingStudy(runs.name, runs.task.metric, parameters, runs.steps, list(rows.values()))


def _is_cast(recipe: Recipe) -> bool:
    """Whether a trained FP32 model is cast into a recipe, and tuned in it.

    Rounded gradients change neither, so the recipes with stochastic rounding are left out.
    """
    return recipe.format is not None and "stochastic" not in (
        recipe.rounding,
        recipe.backward_rounding,
    )


@dataclass(frozen=True, eq=False)
class _Runs:
    """The runs of a task, each with its file."""

    name: str
    task: Task
    steps: int
    checkpoints: Path | None
    progress: Callable[[str], None]

    def trained(self, recipe: str, seed: int) -> Trained:
        """A model trained in a recipe."""
        plan = Plan(self.name, RECIPES[recipe], seed, self.steps, self.task.rate)
        return self._run(f"{self.name}-{recipe}-{seed}", plan)

    def tuned(self, recipe: str, seed: int, start: nn.Module) -> Trained:
        """A trained model fine-tuned: the format forward, FP32 backward and for the gradients."""
        forward = RECIPES[recipe]
        plan = Plan(
            self.name,
            Recipe(forward.format, None, forward.accumulator),
            # Other batches than those of the training.
            seed + (1 << 16),
            max(2, self.steps // TUNED_SHARE),
            self.task.rate * TUNED_RATE,
            constant=True,
            momentum=False,
        )
        return self._run(f"{self.name}-{recipe}-{seed}-tuned", plan, start)

    def _run(self, name: str, plan: Plan, start: nn.Module | None = None) -> Trained:
        file = None if self.checkpoints is None else self.checkpoints / f"{name}.pt"

        def show(step: int) -> None:
            self.progress(f"{name}: step {step} of {plan.steps}")

        show(0)
        return train(self.task, plan, start, file, show)


@dataclass(frozen=True)
class RunTask(PoolTask[int]):
    """A run in another process, which leaves its checkpoint.

    Args:
        name: of the task. recipe: name of a recipe. seed: of the run. steps: of training.
        checkpoints: folder. tuned: whether the FP32 model of the seed, whose checkpoint is there,
        is fine-tuned in the recipe.
    """

    name: str
    recipe: str
    seed: int
    steps: int
    checkpoints: Path
    tuned: bool = False

    def __str__(self) -> str:
        return f"{self.name}-{self.recipe}-{self.seed}{'-tuned' * self.tuned}"

    def outcome(self) -> int | str:
        """Number of steps of the run."""
        runs = _Runs(self.name, TASKS[self.name](), self.steps, self.checkpoints, lambda line: None)
        try:
            if not self.tuned:
                return len(runs.trained(self.recipe, self.seed).losses)
            start = runs.trained(BASELINE, self.seed).model
            return len(runs.tuned(self.recipe, self.seed, start).losses)
        except ValueError as error:
            return str(error)


def _run_ahead(
    name: str,
    names: Iterable[str],
    seeds: int,
    steps: int,
    folder: Path,
    jobs: int,
    progress: Callable[[str], None],
) -> None:
    """Leave the checkpoints of all runs, several at a time: those of tuning after the others."""
    runs = [RunTask(name, x, seed, steps, folder) for seed, x in product(range(seeds), names)]
    cast = [replace(run, tuned=True) for run in runs if _is_cast(RECIPES[run.recipe])]
    for some in (runs, cast):
        with contextlib.closing(outcomes(some, jobs, None)) as ended:
            for run, found in ended:
                if isinstance(found, str):
                    raise ValueError(found)
                progress(f"{run}: step {found} of {found}")
