"""Faults in the last steps of a pipelined dot product: caught by items, or shown to be equal."""

from typing import Any

import pytest

from axs6.golden.formats import FP32
from axs6.hw.fp32 import add, divide
from axs6.hw.fp32.add import addition_steps
from axs6.hw.fp32.divide import Reciprocal, division_steps
from axs6.hw.units.dot import DOT
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.components import ComponentProof
from axs6.proof.cores import Core
from axs6.proof.solver import never
from axs6.proof.steps import NotShownError

from .test_wrong_dots import caught, faulty, no_limit

PIPELINED = {"block": 8, "stages": 5, "interleave": 2}

SECONDS = 60


def nan_off_by_one(i: Any, right: Any, o: Any) -> Any:
    """A NaN is 0x7fc00001."""
    return o.value.eq(right.value ^ i.nan)


def is_caught(given: dict[str, Any]) -> bool:
    """Whether a pipelined dot product as it is built now differs from the golden model."""
    settings = DOT.simulated({**PIPELINED, **given})
    return caught(DOT, DOT.build(**settings), settings)


@pytest.mark.parametrize("format", ["axs6", pytest.param("mxfp4", marks=pytest.mark.slow)])
def test_a_total_without_its_limit_to_infinity_is_caught(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add, "PackFp32", faulty(add.PackFp32, no_limit))
    assert is_caught({"format": format})


def other_balance(bit: int) -> property:
    """The balance of a division with one bit inverted."""
    right = Reciprocal.balance.fget
    assert right is not None
    return property(lambda self: right(self) ^ 1 << bit)


FRACTION = Reciprocal(5, 2).fraction


@pytest.mark.parametrize(
    "bit", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, FRACTION))]
)
def test_another_bit_of_the_balance_is_caught(bit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In products of AXS-6, which are divided by 31 * 31."""
    monkeypatch.setattr(divide.Reciprocal, "balance", other_balance(bit))
    assert is_caught({})


def is_right(format: str) -> bool:
    """Whether the division of totals of a format is proved."""
    try:
        for statement in ComponentProof("fp32_divide", {"format": format}).statements.values():
            statement.show()
    except NotShownError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("bit", range(5))
def test_low_bits_of_the_balance_are_equal_for_one_divisor(
    bit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Divided by 31, as AXS-6 times MXFP4 is, all significands come out right; not so by 961."""
    monkeypatch.setattr(divide.Reciprocal, "balance", other_balance(bit))
    assert is_right("axs6xmxfp4")
    assert not is_right("axs6")


def test_another_nan_of_the_accumulator_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is divided."""
    monkeypatch.setattr(add, "PackFp32", faulty(add.PackFp32, nan_off_by_one))
    assert is_caught({"format": "mxfp4"})


def pattern(number: int) -> list[int]:
    """The literals of a constant."""
    return [TRUE if number >> k & 1 else FALSE for k in range(FP32.width)]


NAN, OTHER = pattern(FP32.quiet_nan), pattern(FP32.quiet_nan + 1)


def unrelated(graph: Graph, right: list[int], wrong: list[int]) -> int:
    """Whether two totals are neither equal nor the two NaNs."""
    unlike = graph.any(map(graph.unlike, right, wrong))
    nans = [*map(graph.unlike, right, NAN), *map(graph.unlike, wrong, OTHER)]
    return graph.both(unlike, graph.any(nans))


def test_another_nan_of_the_accumulator_is_equal_behind_a_division(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By induction over the items of a vector: totals are equal, or the two NaNs.

    A vector begins with 0 in both. Behind the accumulator nothing but the division follows in
    AXS-6, in steps that the stages of a pipeline hold apart.
    """
    right, divided = Core(addition_steps(), SECONDS), Core(division_steps(), SECONDS)
    monkeypatch.setattr(add, "PackFp32", faulty(add.PackFp32, nan_off_by_one))
    wrong = Core(addition_steps(), SECONDS)
    graph = Graph(f"{side}[{k}]" for side in "ab" for k in range(FP32.width))
    total, term = (graph.bus(side, 0, FP32.width) for side in "ab")
    for one, other in ((total, total), (NAN, OTHER)):
        sums = [
            core.through(graph, {"a": held, "b": term})
            for core, held in ((right, one), (wrong, other))
        ]
        assert sums[0] != sums[1]
        assert never(graph, unrelated(graph, *sums), SECONDS)
        assert divided.through(graph, {"value": one}) == divided.through(graph, {"value": other})
    assert not never(graph, graph.any(map(graph.unlike, NAN, OTHER)), SECONDS)
    assert not is_caught({})
