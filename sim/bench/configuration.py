"""Communication of the launcher and the tests inside the simulator."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from axs6.hw.core.layouts import Field
from axs6.hw.verilog import stream_fields

VARIABLE = "AXS6_BENCH"
"""Environment variable with the path of the configuration file."""

INPUTS, OUTPUTS = "inputs.npz", "outputs.npz"
"""Files of the arrays that a transfer reads and writes."""

CYCLES = "cycles"
"""Name in the outputs file of the number of cycles from the first input to the last output."""


TESTS = (
    "corners",
    "full_rate",
    "random_stalls",
    "valid_first",
    "one_at_a_time",
    "reset_in_flight",
)
"""Tests of a unit's bench, in order."""

LEAST_STALLED = 400
"""Items that are sent with random stalls at least: stalls of every share on both sides meet."""


def stalled_items(items: int) -> int:
    """Items that are sent with random stalls: a quarter of `items`, but always enough."""
    return max(items // 4, LEAST_STALLED)


@dataclass(frozen=True)
class Configuration:
    """One run of a bench.

    Args:
        manifest: of the generated unit.
        seed: of the random items and stalls.
        items: number of random items at full rate.
        folder: where the run reads and writes its files.
        coverage: whether tests report what their items have met.
    """

    manifest: dict[str, Any]
    seed: int
    items: int
    folder: str
    coverage: bool = False

    def save(self) -> Path:
        """Write the configuration into its folder and return the file's path."""
        path = Path(self.folder) / "bench.json"
        path.write_text(json.dumps(asdict(self)))
        return path

    @classmethod
    def load(cls) -> "Configuration":
        """The configuration of this process."""
        return cls(**json.loads(Path(os.environ[VARIABLE]).read_text()))

    @property
    def unit(self) -> str:
        """Name of the unit in the registry."""
        return str(self.manifest["unit"])

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the unit."""
        return dict(self.manifest["parameters"])

    @property
    def inputs(self) -> list[Field]:
        """Fields of the unit's input payload."""
        return stream_fields(self.manifest, "i")

    @property
    def outputs(self) -> list[Field]:
        """Fields of the unit's output payload."""
        return stream_fields(self.manifest, "o")

    @property
    def figures_file(self) -> Path:
        """The file in which tests leave their figures, one JSON object a line."""
        return Path(self.folder) / "figures.jsonl"

    def report(self, **figures: Any) -> None:
        """Add a line of figures."""
        with self.figures_file.open("a") as file:
            file.write(json.dumps(figures) + "\n")

    def figures(self) -> list[dict[str, Any]]:
        """The lines of figures that the tests have left."""
        if not self.figures_file.exists():
            return []
        return [json.loads(line) for line in self.figures_file.read_text().splitlines()]
