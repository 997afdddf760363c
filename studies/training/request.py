"""Arguments of a training study, checked without importing torch, so that a command refuses at
once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from axs6.golden.accumulator import accumulator
from axs6.golden.arguments import check_integer
from axs6.golden.formats import block_format
from axs6.golden.hadamard import check_size
from axs6.golden.rounding import check_rounding

TASKS: Mapping[str, int] = {"gpt": 150, "vit": 150, "gpt_1m": 2000}
"""The tasks of `axs6.studies.training.tasks`, and the steps of a run unless others are given."""

SEEDS = 3


@dataclass(frozen=True)
class Recipe:
    """Formats of a model's products in training.

    Args:
        format: of weights and activations, a name or a string; None for FP32.
        gradients: format of the gradients in the two backward products; None for FP32 products of
            the decoded operands.
        accumulator: a name or a string.
        rounding: of the gradients of weights, in that format too, before the step; None keeps them
        in FP32.
        backward_rounding: of the gradients in the backward products. rotation: block of the
        Hadamard transform in the products that give the gradients of weights; 0 for none.

    Raises:
        ValueError: a format, the accumulator or the rounding is unknown, or a rounding has no
            format.
    """

    format: str | None = None
    gradients: str | None = None
    accumulator: str = "fp32"
    rounding: str | None = None
    backward_rounding: str = "nearest"
    rotation: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """Options of `axs6.torch.convert`."""
        return {
            "format": self.format,
            "gradients": self.gradients,
            "accumulator": self.accumulator,
            "gradient_rounding": self.backward_rounding,
            "gradient_rotation": self.rotation,
        }

    def __post_init__(self) -> None:
        for fmt in (self.format, self.gradients):
            if fmt is not None:
                block_format(fmt)
        accumulator(self.accumulator)
        if self.rounding is not None:
            check_rounding(self.rounding)
        check_rounding(self.backward_rounding)
        if self.rotation != 0:
            check_size(self.rotation, "rotation")
        plain = (self.rounding, self.backward_rounding, self.rotation) == (None, "nearest", 0)
        if self.gradients is None and not plain:
            raise ValueError("rounding and rotation need a format of gradients")


RECIPES: Mapping[str, Recipe] = {
    "fp32": Recipe(),
    "mx9": Recipe("mx9", "mx9"),
    "mx6": Recipe("mx6", "mx6"),
    "mxfp8": Recipe("mxfp8_e4m3", "mxfp8_e5m2"),
    "mxfp4": Recipe("mxfp4", "mxfp4"),
    "nvfp4": Recipe("nvfp4", "nvfp4"),
    "mxfp4_rotated": Recipe("mxfp4", "mxfp4", backward_rounding="stochastic", rotation=16),
    "nvfp4_rotated": Recipe("nvfp4", "nvfp4", backward_rounding="stochastic", rotation=16),
    "axs6": Recipe("axs6", "axs6", rounding="nearest"),
    "axs6_stochastic": Recipe("axs6", "axs6", rounding="stochastic"),
    "mxfp8_hopper": Recipe("mxfp8_e4m3", "mxfp8_e5m2", "hopper_fp8"),
    "mxfp8_promoted": Recipe("mxfp8_e4m3", "mxfp8_e5m2", "hopper_fp8,promote=4"),
}
"""Recipes by their names, the baseline first."""

COMPARED = tuple(name for name, recipe in RECIPES.items() if recipe.accumulator == "fp32")
"""Default recipes of a study."""

BASELINE = next(iter(RECIPES))


def check_request(recipes: Iterable[str], seeds: int, steps: int, jobs: int = 1) -> None:
    """Raise ValueError unless `study_training` takes these arguments."""
    for recipe in recipes:
        if recipe not in RECIPES:
            raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, not {recipe!r}")
    check_integer("seeds", seeds, 1)
    check_integer("steps", steps, 2)
    check_integer("jobs", jobs, 1)


def check_task(task: str) -> None:
    """Raise ValueError unless the task exists."""
    if task not in TASKS:
        raise ValueError(f"NAME must be one of {', '.join(TASKS)}, not {task!r}")
