"""The product of two FP32 significands, from the adders of its graph."""

from collections import defaultdict

import numpy as np

from axs6.golden.formats import FP32
from axs6.proof.adders import Adders, Form
from axs6.proof.aig import Graph
from axs6.proof.cores import Core
from axs6.proof.solver import never
from axs6.proof.steps import NotShownError

CASES = 4
"""Words of random cases by which bits are told apart before a solver is asked."""


def show_product(core: Core, seconds: float) -> None:
    """Show that the field `magnitude` is the product of the significands of the inputs.

    Adders take its bits apart until the products of single bits are left.

    Raises:
        NotShownError: it is not, or the adders are not found.
    """
    graph = core.graph
    magnitude = core.result("magnitude")
    adders = Adders(graph)
    adders.search(magnitude)
    found, wanted = Form(len(magnitude), magnitude), Form(len(magnitude))
    found.expand(adders)
    a, b = (_significand(graph, field.offset) for field in core.inputs)
    for place, x in enumerate(a):
        for more, y in enumerate(b):
            wanted.add(graph.both(x, y), 1 << place + more)
    if found.constant or not _same(graph, found, wanted, seconds):
        raise NotShownError("its adders do not end in the products of single bits")


def _significand(graph: Graph, offset: int) -> list[int]:
    field = graph.bus("i_payload", offset + FP32.fraction_bits, FP32.exponent_bits)
    return [*graph.bus("i_payload", offset, FP32.fraction_bits), graph.any(field)]


def _same(graph: Graph, found: Form, wanted: Form, seconds: float) -> bool:
    """Whether forms are one sum: for each node of one there is an equal one in the other."""
    rng = np.random.default_rng(0)
    inputs = graph.inputs.values()
    given = {bit: rng.integers(0, 1 << 64, CASES, np.uint64) for bit in inputs}
    left: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    nodes = [*found.of, *wanted.of]
    words = graph.values([2 * node for node in nodes], given)
    values = {node: each.tobytes() for node, each in zip(nodes, words, strict=True)}
    for node, times in found.of.items():
        left[times, values[node]].append(node)
    for node, times in wanted.of.items():
        alike = left[times, values[node]]
        if not alike or not _equal(graph, alike.pop(), node, seconds):
            return False
    return len(found.of) == len(wanted.of)


def _equal(graph: Graph, one: int, other: int, seconds: float) -> bool:
    return never(graph, graph.unlike(2 * one, 2 * other), seconds)
