"""Statements about parts that are the same in many units, shown once for their gates and code."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from axs6.proof.aig import Graph, write_aiger
from axs6.proof.cores import Statement
from axs6.proof.fp32 import addition
from axs6.proof.steps import Steps
from axs6.sim.cache import kept, recalled
from axs6.sim.imports import code_digest
from axs6.sim.process import temporary_folder

FP32_PARTS = ("addition", "multiplication")
"""Parts that no parameter of a unit changes. The proof of an addition takes more than a minute."""

Parts = Mapping[str, Mapping[str, Statement]]
"""Statements by their text, of each part."""


def part_steps(parts: Parts) -> Steps:
    """What is to be shown of parts, by name.

    What was shown of FP32 arithmetic in an earlier run holds as long as its gates stay, and the
    code that showed it; its name says so.

    Raises:
        OSError: the cache cannot be read, or when a step is shown, written.
    """
    found: dict[str, Steps] = {}
    for part, statements in parts.items():
        each = {text: statement.show for text, statement in statements.items()}
        found[part] = _once(each, statements.values()) if part in FP32_PARTS else each
    return {
        f"{part}: {text}": step for part, steps in found.items() for text, step in steps.items()
    }


def _once(steps: Steps, statements: Iterable[Statement]) -> Steps:
    """Steps that are kept under the gates of all their statements: one may compare several."""
    gates = [_gates(core.graph) for core in dict.fromkeys(each.core for each in statements)]
    code = code_digest((addition.__module__,), ("axs6.golden", "axs6.proof"))
    return dict(_step(text, step, [text, code, *gates]) for text, step in steps.items())


def _step(
    text: str, step: Callable[[], None], key: Sequence[str]
) -> tuple[str, Callable[[], None]]:
    def shown() -> bool:
        step()
        return True

    def show() -> None:
        kept("proof", key, bool, shown)

    if recalled("proof", key, bool):
        return f"{text}, as an earlier run has shown", lambda: None
    return text, show


def _gates(graph: Graph) -> str:
    """Digest of a graph: its gates, and the names of what goes in and out."""
    names = "\n".join([*graph.inputs, "", *graph.outputs])
    with temporary_folder("axs6-proof-") as folder:
        path = folder / "gates.aig"
        write_aiger(path, graph, [*graph.inputs.values()], [*graph.outputs.values()])
        return hashlib.sha256(names.encode() + b"\n" + path.read_bytes()).hexdigest()
