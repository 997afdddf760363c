"""Training of one model in one recipe, with checkpoints to resume from."""

import hashlib
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from axs6.replacing import make_folder, replacing
from axs6.studies.models import repeatable
from axs6.studies.training.request import Recipe
from axs6.studies.training.tasks import Task
from axs6.torch import QuantisedGradients, convert

SAVED_EVERY = 50
"""Steps between two checkpoints."""

WARM_UP = 0.1
"""Share of the steps in which the learning rate rises."""

_KIND = b"axs6 checkpoint 1 sha256 "

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Plan:
    """A run, with everything that decides its bits, except the machine.

    Args:
        task: name of the task.
        recipe: formats of the products. seed: of the weights and the batches. steps: their number.
        rate: maximum learning rate of AdamW. constant: whether the rate is constant, instead of one
        cycle of warm-up and cosine decay. momentum: whether AdamW keeps a mean of the gradients.
    """

    task: str
    recipe: Recipe
    seed: int
    steps: int
    rate: float
    constant: bool = False
    momentum: bool = True

    def identity(self) -> dict[str, Any]:
        """The data that a checkpoint must match."""
        return {**asdict(self), "torch": str(torch.__version__)}


@dataclass(eq=False)
class Trained:
    """A trained model.

    Args:
        model: the model, converted if the recipe has a format.
        losses: of the batch of each step, in nats.
    """

    model: nn.Module
    losses: list[float] = field(default_factory=list)


def converted(model: nn.Module, recipe: Recipe) -> nn.Module:
    """The model converted for a recipe: a copy, or the model itself for FP32."""
    if recipe.format is None:
        return model
    return convert(model, **recipe.options)


def train(
    task: Task,
    plan: Plan,
    start: nn.Module | None = None,
    checkpoint: Path | None = None,
    progress: Progress = lambda step: None,
) -> Trained:
    """Train a model on one thread, so that the result is deterministic.

    Args:
        task: the task. plan: the run. start: a model whose weights it starts from, with a new
        optimiser; random weights if None. checkpoint: file of the run; if it exists, the run
        resumes from it, bit for bit. progress: called with the number of finished steps, after
        each.

    Raises:
        ValueError: the checkpoint is none, belongs to another plan, or was changed.
        OSError: it cannot be read or written.
    """
    with repeatable(plan.seed):
        run = _Run(task, plan, task.make() if start is None else start)
        if checkpoint is not None and checkpoint.exists():
            run.load(checkpoint)
        for step in range(len(run.losses), plan.steps):
            run.step(step)
            last = step + 1 == plan.steps
            if checkpoint is not None and (last or (step + 1) % SAVED_EVERY == 0):
                run.save(checkpoint)
            progress(step + 1)
        return Trained(run.model, run.losses)


def generator_of(seed: int, step: int) -> torch.Generator:
    """The generator for the batch of a step: separate for each step, so that a run can resume
    anywhere."""
    return torch.Generator().manual_seed(_mixed(seed, step))


def _mixed(*numbers: int) -> int:
    """A seed from several: generators on the CPU take 32 bits."""
    (mixed,) = np.random.SeedSequence(numbers).generate_state(1)
    return int(mixed)


class _Run:
    """A model with its optimiser and progress."""

    def __init__(self, task: Task, plan: Plan, model: nn.Module) -> None:
        self.task, self.plan, self.losses = task, plan, list[float]()
        self.model = converted(model, plan.recipe)
        parameters = list(self.model.parameters())
        betas = (0.9 if plan.momentum else 0.0, 0.99)
        self._optimiser = torch.optim.AdamW(parameters, plan.rate, betas)
        self._parts: dict[str, Any] = {"model": self.model, "optimiser": self._optimiser}
        if plan.constant:
            self._schedule: Any = torch.optim.lr_scheduler.ConstantLR(self._optimiser, factor=1.0)
        else:
            self._schedule = torch.optim.lr_scheduler.OneCycleLR(
                self._optimiser,
                plan.rate,
                total_steps=plan.steps,
                pct_start=WARM_UP,
                cycle_momentum=False,
            )
        self._parts["schedule"] = self._schedule
        recipe = plan.recipe
        if recipe.gradients is not None and recipe.rounding is not None:
            gradients = QuantisedGradients(parameters, recipe.gradients, recipe.rounding)
            self._optimiser.register_step_pre_hook(gradients)
            self._parts["gradients"] = gradients

    def step(self, number: int) -> None:
        """One step on the batch of this number."""
        loss = self.task.loss(self.model, self.task.batch(generator_of(self.plan.seed, number)))
        # For random bits in backward products.
        torch.manual_seed(_mixed(self.plan.seed, number, 1))
        self._optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimiser.step()
        self._schedule.step()
        self.losses.append(loss.item())

    def save(self, path: Path) -> None:
        """Write the checkpoint."""
        states = {name: part.state_dict() for name, part in self._parts.items()}
        _write(path, {"plan": self.plan.identity(), "losses": self.losses, **states})

    def load(self, path: Path) -> None:
        """Resume from a checkpoint."""
        kept = _read(path)
        plan = kept["plan"]
        wanted = self.plan.identity()
        if plan != wanted:
            name = next(x for x in {**wanted, **plan} if plan.get(x) != wanted.get(x))
            raise ValueError(
                f"{path}: checkpoint must have {name} {wanted.get(name)!r}, not {plan.get(name)!r}"
            )
        for name, part in self._parts.items():
            part.load_state_dict(kept[name])
        self.losses = kept["losses"]


def _write(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint: a line with the digest of the rest, which is torch's file."""
    content = io.BytesIO()
    torch.save(state, content)
    make_folder(path.resolve().parent)
    with replacing(path) as file:
        file.write(_heading(content.getbuffer()))
        file.write(content.getbuffer())


def _read(path: Path) -> dict[str, Any]:
    """Read a checkpoint. Raises as `train`."""
    with path.open("rb") as file:
        heading, content = file.readline(), file.read()
    if not heading.startswith(_KIND):
        raise ValueError(f"{path}: not a checkpoint of a training run")
    if heading != _heading(content):
        raise ValueError(
            f"{path}: the checkpoint was changed after it was written: its digest differs: "
            "delete it to begin anew"
        )
    state: dict[str, Any] = torch.load(io.BytesIO(content))
    return state


def _heading(content: bytes | memoryview) -> bytes:
    return b"%s%s\n" % (_KIND, hashlib.sha256(content).hexdigest().encode())
