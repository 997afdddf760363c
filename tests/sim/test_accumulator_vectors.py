"""The simulated hardware gives the dot products of `vectors/accumulators.txt`, accumulator by
accumulator."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from axs6.golden.blocks import Blocks
from axs6.golden.formats import block_format
from axs6.golden.vectors import SUBJECTS, Vector
from axs6.hw.dot.accumulated import dot_parts
from axs6.sim.tile import Tile

SUBJECT = SUBJECTS["accumulators"]
FORMAT = block_format(str(SUBJECT.of))
VECTORS = SUBJECT.read(
    (Path(__file__).parents[2] / "vectors" / SUBJECT.file_name).read_text(encoding="utf-8")
)
NAMES = list(dict.fromkeys(str(each.inputs["accumulator"]) for each in VECTORS))
LACKING = {"blackwell_fp4"}
"""What has no hardware for this format: its exact terms of 16 products would be too wide."""

QUICK = ("volta",)


def vectors_of(name: str) -> list[Vector]:
    """The vectors of an accumulator."""
    return [each for each in VECTORS if each.inputs["accumulator"] == name]


def operand(vectors: Sequence[Vector], side: str) -> Blocks:
    """One operand of all vectors, a product of one row for each."""
    count = len(vectors)
    scales = np.array([x.inputs[f"{side}_scales"] for x in vectors], np.uint8)
    codes = np.array([x.inputs[f"{side}_codes"] for x in vectors], np.uint8)
    shape = (count, 1, scales.shape[1])
    rows = codes.reshape(*shape, FORMAT.block)
    return Blocks(FORMAT, (scales.reshape(shape),), rows, (count, 1, codes.shape[1]))


def differing(tile: Tile, vectors: Sequence[Vector]) -> list[str]:
    """Names of the vectors whose dot products the hardware does not give."""
    found = []
    for length in sorted({len(each.inputs["a_scales"]) for each in vectors}):
        some = [each for each in vectors if len(each.inputs["a_scales"]) == length]
        values = tile.matmul(operand(some, "a"), operand(some, "b")).values
        results = values.view(np.uint32).ravel().tolist()
        pairs = zip(some, results, strict=True)
        found += [each.name for each, bits in pairs if each.outputs["fp32"] != bits]
    return found


def tile_of(name: str) -> Tile:
    """A tile of one dot product."""
    return Tile(format=SUBJECT.of, accumulator=name, rows=1, columns=1, stages=3, interleave=2)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK))
        for name in NAMES
        if name not in LACKING
    ],
)
def test_the_hardware_gives_the_dot_products(name: str) -> None:
    vectors = vectors_of(name)
    assert len(vectors) >= 12
    assert differing(tile_of(name), vectors) == []


def test_what_has_no_hardware_is_refused() -> None:
    for name in LACKING:
        with pytest.raises(ValueError, match=f"^{name} has no hardware for these formats"):
            dot_parts(str(SUBJECT.of), None, name)
    for name in set(NAMES) - LACKING:
        assert dot_parts(str(SUBJECT.of), None, name).lanes == FORMAT.block


def test_one_wrong_output_is_found() -> None:
    name = QUICK[0]
    first, *others = vectors_of(name)
    bits = first.outputs["fp32"]
    assert isinstance(bits, int)
    wrong = first._replace(name="wrong", outputs={"fp32": bits ^ 1})
    assert differing(tile_of(name), [wrong, *others]) == ["wrong"]


def test_another_accumulator_is_found() -> None:
    assert differing(tile_of(QUICK[0]), vectors_of("cdna3_fp8"))
