"""Every figure in README and docs that is kept in a file: its commands and what it depends on."""

from collections.abc import Sequence
from typing import Any

from figure import Figure, Run

TORCH_BITS = tuple(
    f"sim/torch/{name}.py"
    for name in ("emulated", "feedback", "ieee", "lfsr", "quantise", "quantised_gradients")
)
"""What decides the bits of the torch bridge."""


def printed(runs: Sequence[Run]) -> dict[str, Any]:
    """All that the commands printed."""
    return {"output": [run.lines for run in runs]}


FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "torch-training",
            ("python examples/torch_training.py",),
            printed,
            sources=("examples/torch_training.py", "golden/lfsr.py", *TORCH_BITS),
            packages=("scikit-learn", "torch"),
        ),
        Figure(
            "torch-digits",
            ("python examples/torch_digits.py",),
            printed,
            sources=("examples/torch_digits.py", *TORCH_BITS),
            packages=("scikit-learn", "torch"),
        ),
    )
}
