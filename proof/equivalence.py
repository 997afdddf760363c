"""Whether two graphs have the same outputs for all inputs.

ABC is asked in two ways, then a SAT solver; what one of them shows is shown. Where outputs
differ, the inputs are found by random values or by the solver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from axs6.proof.abc import run_abc
from axs6.proof.aig import Graph, write_aiger
from axs6.proof.solver import solve
from axs6.sim.process import temporary_folder
from axs6.synth.process import Limit

WORDS = 256
"""Words of 64 random cases, which are tried first."""

WAYS = ("&cec -x", "&cec")
"""ABC's commands, in the order in which they are tried."""


@dataclass(frozen=True)
class Comparison:
    """What is known of two graphs.

    Args:
        equal: None if it is not known.
        by: what showed it: "structure", "random values", a command of ABC, or "SAT".
        inputs: names of the inputs that are 1 where outputs differ, if they do.
        outputs: names of outputs that differ there.
    """

    equal: bool | None
    by: str
    inputs: frozenset[str] = frozenset()
    outputs: tuple[str, ...] = ()


def compare(
    first: Graph, second: Graph, *, seconds: float, ways: Sequence[str] = WAYS
) -> Comparison:
    """Compare all outputs of two graphs, by name.

    An input that one of them does not have has no influence there.

    Args:
        first, second: without registers.
        seconds: limit. ways: commands of ABC; they and the solver have equal shares of the time.

    Raises:
        ValueError: their outputs have other names.
        SynthesisError: pyosys is missing.
    """
    if unlike := sorted(set(first.outputs) ^ set(second.outputs)):
        raise ValueError(f"two designs must have the same outputs, and one has no {unlike[0]}")
    names = sorted(set(first.inputs) | set(second.inputs))
    both = Graph(names)
    pairs = [each.copied(both, both.inputs) for each in (first, second)]
    differences = {
        name: both.unlike(pairs[0][name], pairs[1][name])
        for name in first.outputs
        if pairs[0][name] != pairs[1][name]
    }
    if not differences:
        return Comparison(True, "structure")
    if found := _by_random_values(both, differences):
        return found
    limit = Limit(seconds)
    with temporary_folder("axs6-proof-") as folder:
        inputs = [both.inputs[name] for name in names]
        for index, outputs in enumerate(pairs):
            write_aiger(folder / f"{index}.aig", both, inputs, [outputs[x] for x in differences])
        for way in ways:
            share = min(limit.left, seconds / (len(ways) + 1))
            said = run_abc(folder, [f"{way} -C 100000 -T {max(1, int(share))} 0.aig 1.aig"], share)
            if said and "Networks are equivalent" in said:
                return Comparison(True, f"ABC {way}")
            if said and "NOT EQUIVALENT" in said:
                break
    return _by_solver(both, differences, limit.left)


def _by_random_values(graph: Graph, differences: Mapping[str, int]) -> Comparison | None:
    rng = np.random.default_rng(0)
    given = {
        bit: rng.integers(0, 1 << 64, WORDS, np.uint64, endpoint=False)
        for bit in graph.inputs.values()
    }
    words = np.stack(graph.values(list(differences.values()), given))
    if not words.any():
        return None
    word = int(np.argmax(words.any(axis=0)))
    case = int(np.bitwise_or.reduce(words[:, word]))
    place = (case & -case).bit_length() - 1
    ones = {node >> 1 for node, each in given.items() if int(each[word]) >> place & 1}
    outputs = [
        name
        for name, each in zip(differences, words[:, word], strict=True)
        if int(each) >> place & 1
    ]
    return Comparison(False, "random values", _names(graph, ones), tuple(outputs))


def _by_solver(graph: Graph, differences: Mapping[str, int], seconds: float) -> Comparison:
    nodes = solve(graph, [graph.any(differences.values())], seconds)
    if nodes is None:
        return Comparison(None, "time is over")
    if not nodes:
        return Comparison(True, "SAT")
    given = {
        bit: np.full(1, (1 << 64) - 1 if bit >> 1 in nodes else 0, np.uint64)
        for bit in graph.inputs.values()
    }
    words = graph.values(list(differences.values()), given)
    outputs = [name for name, each in zip(differences, words, strict=True) if each.any()]
    return Comparison(False, "SAT", _names(graph, nodes), tuple(outputs))


def _names(graph: Graph, nodes: set[int]) -> frozenset[str]:
    return frozenset(name for name, bit in graph.inputs.items() if bit >> 1 in nodes)
