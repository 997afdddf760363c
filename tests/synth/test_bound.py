"""The bound of dot products: no compressor tree has fewer full adders."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.golden.formats import block_format
from axs6.hw.core.compressor import Bit, Tree
from axs6.hw.dot.block_dot import heaps
from axs6.hw.dot.lanes import Code, Multiplier, lane_plan
from axs6.hw.dot.shape import DotShape
from axs6.synth import sky130
from axs6.synth.bound import Bound, Needs, Signs, dot_bound, needs
from axs6.synth.cells import CellLibrary, cell_library, read_cells

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def library() -> CellLibrary:
    return cell_library(sky130.liberty(), "sky130")


def full_adders(tree: Tree) -> int:
    return sum(len(adder.operands) == 3 for adder in tree.adders)


@pytest.mark.parametrize(
    ("lanes", "bits_a", "bits_b"), [(1, 5, 5), (3, 2, 7), (8, 4, 4), (32, 1, 1), (32, 7, 3)]
)
def test_a_tree_of_unsigned_products_has_as_many(lanes: int, bits_a: int, bits_b: int) -> None:
    tree = Tree([0] * (lanes * bits_a * bits_b))
    largest = lanes * ((1 << bits_a) - 1) * ((1 << bits_b) - 1)
    columns: list[list[Bit]] = [[] for _ in range(largest.bit_length())]
    for index, bit in enumerate(tree.inputs):
        columns[index % bits_a + index // bits_a % bits_b].append(bit)
    left = tree.compress(columns, rows=1)
    assert sum(map(len, left)) == largest.bit_length()
    least = needs(lanes, bits_a, bits_b, Signs.NONE)
    assert least == Needs(lanes * bits_a * bits_b, full_adders(tree), 0)


def test_block_dot_has_a_few_more_than_needed() -> None:
    """Its own plan: the trees, the adder at the end, and each bit of a product inverted."""
    shape, lanes = DotShape.of("axs6", 32), 32
    element = shape.a.element
    (heap,) = heaps(shape, lane_plan(element, element, False))
    plan, multiplier = heap.plan, Multiplier(Code.of(element), Code.of(element), 2)
    rows = sum(len(column) == 2 for column in plan.rows)
    built = lanes * full_adders(multiplier.tree) + full_adders(plan.tree) + rows
    least = needs(lanes, 5, 5, Signs.BESIDE)
    assert least == Needs(800, 816, 448)
    assert least.xors == lanes * (len(multiplier.bits) + 1)
    assert least.full_adders <= built < 1.05 * least.full_adders


def test_kinds_of_signs() -> None:
    assert needs(32, 8, 8, Signs.TWOS_COMPLEMENT) == Needs(2048, 2048 - 21, 0)
    assert needs(16, 7, 7, Signs.BESIDE, shift=2).full_adders == 16 * 50 - 21
    assert needs(1, 1, 1, Signs.NONE) == Needs(1, 0, 0)


def test_formats(library: CellLibrary, tiny: Path) -> None:
    prefix = sky130.PREFIX
    axs6 = dot_bound((block_format("axs6"),), 32, library)
    assert axs6 == Bound(
        pytest.approx(800 * 3.7536 + 816 * 20.02 + 448 * 8.7584, rel=1e-3),
        {f"{prefix}nand2_1": 800, f"{prefix}fa_1": 816, f"{prefix}xnor2_1": 448},
    )
    mxint8 = dot_bound((block_format("mxint8"),), 32, library)
    assert mxint8 is not None
    assert mxint8.cells == {f"{prefix}nand2_1": 2048, f"{prefix}fa_1": 2027}
    assert dot_bound((block_format("mxfp4"),), 32, library) is None
    assert dot_bound((block_format("mxint8"), block_format("mx9")), 16, library) is None
    assert dot_bound((block_format("axs6"),), 32, read_cells(tiny)) is None


def test_command(main: Cli, tmp_path: Path) -> None:
    area = ("area", "block_dot", "--block", "8", "--json", "figures.json")
    shown = main(*area, "--target", "sky130").succeeded()
    (report,) = json.loads((tmp_path / "figures.json").read_text())
    bound = report["bound"]
    assert bound["ratio"] == pytest.approx(report["total"]["figures"]["area"] / bound["area"])
    said = f"bound: {bound['ratio']:.2f} times the {bound['area']:,.0f} µm² of products and full"
    assert said in shown
    assert "bound" not in main(*area).succeeded()
