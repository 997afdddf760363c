"""Questions in parts have the answer of the whole question."""

from collections.abc import Sequence

import numpy as np
import pytest

from axs6.hw.core.layouts import Field
from axs6.proof import split
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.solver import solve
from axs6.proof.split import Split, by_highest

LANES = 3
NUMBER = Field("number", 0, 5, False, ())
CODES = Field("codes", 5, 2, False, (LANES,))
VALUES = Field("values", 0, 2, False, (LANES,))


@pytest.fixture
def graph() -> Graph:
    return Graph(f"i_payload[{k}]" for k in range(NUMBER.width + LANES * CODES.width))


@pytest.fixture(params=[1, 4, 30], ids="tried up to {} bits".format)
def asked(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """The questions to a solver, which does not answer while all cases of fewer bits are left."""
    found: list[int] = []

    def answer(graph: Graph, literals: Sequence[int], seconds: float) -> set[int] | None:
        found.append(len(graph.leaves(literals)))
        return solve(graph, literals, seconds) if found[-1] < NUMBER.width else None

    monkeypatch.setattr(split, "solve", answer)
    monkeypatch.setattr(split, "TRIED", request.param)
    monkeypatch.setattr(split, "AT_ONCE", 3)
    return found


def ask(graph: Graph, lanes: Sequence[Sequence[int]]) -> set[int] | None:
    """Ask whether a bit of the lanes can be 1."""
    bits = [bit for lane in lanes for bit in lane]
    outputs = {f"o_payload[{k}]": bit for k, bit in enumerate(bits)}
    return Split(graph, [NUMBER, CODES], [VALUES], ["number"], 10).solve(outputs)


def rare(graph: Graph, lane: int, number: int, code: int) -> int:
    """Whether the number and the code of a lane are those."""
    bits = [*graph.bus("i_payload", 0, 5), *graph.bus("i_payload", 5 + 2 * lane, 2)]
    wanted = number | code << NUMBER.width
    return graph.all(bit ^ 1 ^ (wanted >> k & 1) for k, bit in enumerate(bits))


@pytest.mark.parametrize("number", [0, 1, 13, 31])
@pytest.mark.parametrize("lane", range(LANES))
def test_the_only_case_is_found(graph: Graph, asked: list[int], number: int, lane: int) -> None:
    only = rare(graph, lane, number, 2)
    lanes = [[only if each == lane else FALSE, FALSE] for each in range(LANES)]
    found = ask(graph, lanes)
    assert found
    ones = np.full(1, (1 << 64) - 1, np.uint64)
    given = {bit: ones * (bit >> 1 in found) for bit in graph.inputs.values()}
    assert graph.values([only], given)[0][0] == ones[0]


def test_no_case_is_found_where_there_is_none_and_equal_lanes_are_asked_once(
    graph: Graph, asked: list[int]
) -> None:
    def never(lane: int) -> int:
        """The carry of number + number out of the highest bit, unless that bit is 1."""
        bits, code = graph.bus("i_payload", 0, 5), graph.bus("i_payload", 5 + 2 * lane, 2)
        low = [graph.both(bit, code[0]) for bit in bits]
        total = graph.sum(low, low, 6)
        return graph.all([total[5], bits[4] ^ 1, code[1]])

    assert ask(graph, [[never(0), FALSE]]) == set()
    once = len(asked)
    asked.clear()
    assert ask(graph, [[never(k), FALSE] for k in range(LANES)]) == set()
    assert len(asked) <= once


def test_there_is_no_answer_about_several_lanes_together(graph: Graph, asked: list[int]) -> None:
    both = graph.both(rare(graph, 0, 3, 1), rare(graph, 1, 3, 1))
    assert ask(graph, [[both]]) is None


def test_the_highest_1_divides_all_numbers() -> None:
    bits = [2, 4, 6]
    seen = []
    for case in by_highest(bits):
        free = [bit for bit in bits if bit not in case]
        base = sum((case.get(bit, 0) == TRUE) << k for k, bit in enumerate(bits))
        seen += [base + low for low in range(1 << len(free))]
    assert sorted(seen) == list(range(8))
