"""The simulated hardware gives the outputs of the test vectors, one configuration of each unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from axs6.golden.vectors import SUBJECTS, Vector
from axs6.sim import simulate

FOLDER = Path(__file__).parents[2] / "vectors"
BLOCK, STAGES = 8, 2
"""As `test_simulate` has them, so that the cache serves both."""


@dataclass(frozen=True)
class Link:
    """How the vectors of a subject are items of a unit.

    Args:
        subject: name of the subject.
        inputs, outputs: the field of the vectors behind each field of the unit's payloads.
        chosen: values of fields that a vector must have to be one for this configuration.
        interleave: how many vectors take turns, where the unit has `last`.
    """

    subject: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    chosen: Mapping[str, Any] = field(default_factory=dict)
    interleave: int | None = None


LINKS = {
    "encoder": Link(
        "encode",
        {"values": "values"},
        {"block.exponent": "exponent", "block.codes": "codes", "invalid": "invalid"},
        {"format": "fp32", "rounding": "nearest", "mode": "dense"},
    ),
    "decoder": Link(
        "decode", {"exponent": "exponent", "codes": "codes"}, {"values": "fp32"}, {"config": 0}
    ),
    "block_dot": Link(
        "block_dot",
        {f"{side}.{part}": f"{side}_{part}" for side in "ab" for part in ("exponent", "codes")},
        {"sum": "sum", "exponent": "exponent"},
    ),
    "dot": Link(
        "dot",
        {
            f"{side}.{part}": f"{side}_{part}{plural}"
            for side in "ab"
            for part, plural in (("exponent", "s"), ("codes", ""))
        },
        {"value": "fp32"},
        interleave=3,
    ),
}


def values(vector: Vector) -> dict[str, Any]:
    return {**vector.inputs, **vector.outputs}


def chosen(link: Link) -> list[Vector]:
    """The vectors of blocks of the unit's size."""
    subject = SUBJECTS[link.subject]
    wanted = {"size": BLOCK, **link.chosen}
    found = subject.read((FOLDER / subject.file_name).read_text())
    return [each for each in found if wanted.items() <= values(each).items()]


def stacked(vectors: Sequence[Vector], fields: Mapping[str, str], turns: int) -> dict[str, NDArray]:
    """Items of all vectors after each other, each as often as there are turns."""
    items = {}
    for name, source in fields.items():
        whole = name.endswith(("codes", "values"))
        shape = (-1, BLOCK) if whole else (-1,)
        each = [np.reshape(values(vector)[source], shape) for vector in vectors]
        items[name] = np.concatenate(each).repeat(turns, axis=0)
    return items


def differing(unit: str, link: Link, vectors: Sequence[Vector]) -> list[str]:
    """Names of the vectors whose outputs the unit does not give."""
    turns = link.interleave or 1
    items, extra = stacked(vectors, link.inputs, turns), {}
    if link.interleave:
        ends = np.cumsum([len(vector.inputs["a_exponents"]) for vector in vectors]) - 1
        last = np.zeros(ends[-1] + 1, np.uint8)
        last[ends] = 1
        items["last"] = last.repeat(turns)
        extra["interleave"] = turns
    done = simulate(unit, items, block=BLOCK, stages=STAGES, **extra).outputs
    same = np.ones(len(vectors), bool)
    for name, expected in stacked(vectors, link.outputs, turns).items():
        assert done[name].shape == expected.shape
        same &= (done[name] == expected).reshape(len(vectors), -1).all(axis=1)
    return [vector.name for vector, equal in zip(vectors, same, strict=True) if not equal]


@pytest.mark.parametrize("unit", LINKS)
def test_the_hardware_gives_the_outputs(unit: str) -> None:
    vectors = chosen(LINKS[unit])
    assert len(vectors) >= 8
    assert differing(unit, LINKS[unit], vectors) == []


@pytest.mark.parametrize("unit", LINKS)
def test_one_wrong_output_is_found(unit: str) -> None:
    vectors = chosen(LINKS[unit])
    wrong = vectors[len(vectors) // 2]
    for source in LINKS[unit].outputs.values():
        fields = wrong.inputs if source in wrong.inputs else wrong.outputs
        value = fields[source]
        changed = [*value[:-1], value[-1] ^ 1] if isinstance(value, list) else value ^ 1
        bad = wrong._replace(name="wrong", outputs={**wrong.outputs, source: changed})
        others = [bad if each is wrong else each for each in vectors]
        assert differing(unit, LINKS[unit], others) == ["wrong"]
