"""The simulated hardware gives the outputs of the test vectors, one configuration of each unit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from axs6.golden import packed_bytes, unpack
from axs6.golden.vectors import SUBJECTS, Vector
from axs6.hw.units.blocks import packed_items
from axs6.sim import simulate

FOLDER = Path(__file__).parents[2] / "vectors"
BLOCK, STAGES = 8, 2
"""As `test_simulate` has them, so that the cache serves both."""


@dataclass(frozen=True)
class Link:
    """How the vectors of a subject are items of a unit.

    Args:
        unit: name of the unit.
        subject: name of the subject.
        inputs, outputs: the field of the vectors behind each field of the unit's payloads.
        chosen: values of fields that a vector must have to be one for this configuration.
        interleave: how many vectors take turns, where the unit has `last`.
        parameters: of the unit, beside block size, stages and `interleave`.
    """

    unit: str
    subject: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    chosen: Mapping[str, Any] = field(default_factory=dict)
    interleave: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


DENSE = {"block.exponent": "exponent", "block.codes": "codes"}
PACKED = {name: f"row.{name}" for name in ("mode", "exponent", "reserved", "payload")}
LINKS = {
    "encoder": Link(
        "encoder",
        "encode",
        {"values": "values"},
        {**DENSE, "invalid": "invalid"},
        {"dtype": "fp32", "rounding": "nearest", "mode": "dense"},
    ),
    "high-precision encoder": Link(
        "encoder",
        "encode",
        {"values": "values"},
        {f"block.{name}": source for name, source in PACKED.items()},
        {"dtype": "fp32", "rounding": "nearest", "mode": "high_precision"},
        parameters={"mode": "high_precision"},
    ),
    "encoder with words": Link(
        "encoder",
        "encode_stochastic",
        {"values": "values", "random": "random"},
        {**DENSE, "invalid": "invalid"},
        {"dtype": "fp32", "bits": 4, "mode": "dense"},
        parameters={"rounding": "stochastic", "random_bits": 4},
    ),
    "feedback_encoder": Link(
        "feedback_encoder",
        "feedback",
        {"values": "x", "errors": "error"},
        {**DENSE, "errors": "new_error"},
        {"rounding": "nearest", "mode": "dense"},
    ),
    "decoder": Link(
        "decoder",
        "decode",
        {"exponent": "exponent", "codes": "codes"},
        {"values": "fp32"},
        {"config": 0},
    ),
    "decoder of packed blocks": Link(
        "decoder", "decode", PACKED, {"values": "fp32"}, parameters={"blocks": "packed"}
    ),
    "block_dot": Link(
        "block_dot",
        "block_dot",
        {f"{side}.{part}": f"{side}_{part}" for side in "ab" for part in ("exponent", "codes")},
        {"sum": "sum", "exponent": "exponent"},
    ),
    "dot": Link(
        "dot",
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
    """All fields, and those of the one packed block in hardware, its bytes in a row."""
    given = {**vector.inputs, **vector.outputs}
    if isinstance(given.get("packed"), bytes) and "block" in given:
        length = packed_bytes(block=given["block"])
        row = given["packed"].ljust(length, b"\0")[:length]
        fields = packed_items(np.frombuffer(row, np.uint8)[None], "row.")
        given = {**{name: array[0] for name, array in fields.items()}, **given}
        block = unpack(row, (given["block"],), block=given["block"], align=length)
        given = {"exponent": int(block.exponents[0]), "codes": block.codes[0].tolist(), **given}
    return given


def chosen(link: Link) -> list[Vector]:
    """The vectors of blocks of the unit's size."""
    subject = SUBJECTS[link.subject]
    wanted = {"block": BLOCK, **link.chosen}
    found = subject.read((FOLDER / subject.file_name).read_text())
    return [each for each in found if wanted.items() <= values(each).items()]


WIDE = ("codes", "values", "random", "errors")
"""Fields with an element for each value of a block."""


def stacked(vectors: Sequence[Vector], fields: Mapping[str, str], turns: int) -> dict[str, NDArray]:
    """Items of all vectors after each other, each as often as there are turns."""
    items = {}
    for name, source in fields.items():
        shape = (-1, BLOCK) if name.endswith(WIDE) else (-1,)
        if name.endswith("payload"):
            shape = (-1, packed_bytes(block=BLOCK) - 2)
        each = [np.reshape(values(vector)[source], shape) for vector in vectors]
        items[name] = np.concatenate(each).repeat(turns, axis=0)
    return items


def differing(link: Link, vectors: Sequence[Vector]) -> list[str]:
    """Names of the vectors whose outputs the unit does not give."""
    turns = link.interleave or 1
    items, extra = stacked(vectors, link.inputs, turns), dict(link.parameters)
    if link.interleave:
        ends = np.cumsum([len(vector.inputs["a_exponents"]) for vector in vectors]) - 1
        last = np.zeros(ends[-1] + 1, np.uint8)
        last[ends] = 1
        items["last"] = last.repeat(turns)
        extra["interleave"] = turns
    done = simulate(link.unit, items, block=BLOCK, stages=STAGES, **extra).outputs
    same = np.ones(len(vectors), bool)
    for name, expected in stacked(vectors, link.outputs, turns).items():
        assert done[name].shape == expected.shape
        same &= (done[name] == expected).reshape(len(vectors), -1).all(axis=1)
    return [vector.name for vector, equal in zip(vectors, same, strict=True) if not equal]


FEW = ("encoder", "decoder", "block_dot", "dot")
"""Links that every run has; the others are slow, as others of the same kind."""


def links(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in FEW)) for name in names]


@pytest.mark.parametrize("name", links(LINKS))
def test_the_hardware_gives_the_outputs(name: str) -> None:
    vectors = chosen(LINKS[name])
    assert len(vectors) >= 6
    assert differing(LINKS[name], vectors) == []


@pytest.mark.parametrize("name", links(name for name, link in LINKS.items() if not link.parameters))
def test_one_wrong_output_is_found(name: str) -> None:
    link = LINKS[name]
    vectors = chosen(link)
    wrong = vectors[len(vectors) // 2]
    for source in link.outputs.values():
        value = values(wrong)[source]
        changed = [*value[:-1], value[-1] ^ 1] if isinstance(value, list) else value ^ 1
        bad = wrong._replace(name="wrong", outputs={**wrong.outputs, source: changed})
        others = [bad if each is wrong else each for each in vectors]
        assert differing(link, others) == ["wrong"]
