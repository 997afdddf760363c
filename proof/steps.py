"""Steps of a proof: what they raise, and the one that units without registers share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from axs6.hw.core.layouts import Field
from axs6.proof.aig import Graph

Steps = Mapping[str, Callable[[], None]]
"""What is to be shown, by the statement, in order; a step raises `NotShownError`."""


class Proof(Protocol):
    """That a graph is what a unit has to be."""

    def steps(self) -> Steps:
        """What is to be shown, by name."""


@dataclass(frozen=True)
class Subject:
    """What is to be proved.

    Args:
        graph: of a unit without `stages`. settings: all its parameters. inputs, outputs: fields of
        its payloads. seconds: limit of each question to a solver.
    """

    graph: Graph
    settings: Mapping[str, Any]
    inputs: Sequence[Field]
    outputs: Sequence[Field]
    seconds: float


Specification = Callable[[Subject], Proof]
"""Gives the proof; it raises ValueError for a format that it does not cover, before it looks at
gates of the graph."""


class NotShownError(Exception):
    """A step that does not succeed: what was not shown.

    Args:
        said: that. payload: an input which is said to show the contrary, if there is one.
    """

    def __init__(self, said: str, payload: int | None = None) -> None:
        super().__init__(said)
        self.payload = payload


def show_passed(graph: Graph) -> None:
    """Show that `ready` and `valid` pass through.

    Raises:
        NotShownError: one does not.
    """
    for out, name in (("i_ready[0]", "o_ready[0]"), ("o_valid[0]", "i_valid[0]")):
        if graph.outputs[out] != graph.inputs[name]:
            raise NotShownError(f"{out.partition('[')[0]} is not {name.partition('[')[0]}")
