"""A lower bound for the area of a dot product: the cells that its products and their sum need.

A sum of products has a gate for each pair of bits. A full adder turns three bits into two, so the
sum needs one full adder for each bit by which its input exceeds the result. With signs beside
magnitudes, the bits that a product leaves are inverted where it is negative, and the negative ones
are counted.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from axs6.golden.formats import BlockFormat
from axs6.golden.formats.element import Codes, SignMagnitude, TwosComplement
from axs6.hw.core.compressor import Bit, Tree
from axs6.hw.registry import find
from axs6.synth.adders import adder_cell
from axs6.synth.cells import Cell, CellLibrary
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import flow
from axs6.synth.report import AreaReport
from axs6.synth.sweep.points import Point


class Signs(StrEnum):
    """Sign representation of a product's factors."""

    NONE = "none"
    BESIDE = "beside the magnitude"
    TWOS_COMPLEMENT = "two's complement"


@dataclass(frozen=True)
class Needs:
    """Cells that a sum of products needs: gates of two inputs, full adders and exclusive ors."""

    products: int
    full_adders: int
    xors: int


@dataclass(frozen=True)
class Bound:
    """The lower bound in units of a library, and its cells."""

    area: float
    cells: dict[str, int]

    def ratio(self, report: AreaReport) -> float:
        """The area of a unit over the bound."""
        return report.total.figures["area"] / self.area

    def text(self, report: AreaReport) -> str:
        """One line that compares the area of a unit with the bound."""
        cells = ", ".join(f"{count:,d} {name}" for name, count in self.cells.items())
        unit = f" {report.area_unit}" if report.target == "sky130" else ""
        return (
            f"bound: {self.ratio(report):.2f} times the {self.area:,.0f}{unit} of products and "
            f"full adders: {cells}"
        )

    def to_dict(self, report: AreaReport) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return {**asdict(self), "ratio": self.ratio(report)}


def needs(lanes: int, bits_a: int, bits_b: int, signs: Signs, *, shift: int = 0) -> Needs:
    """Return the minimum cells of a sum of products.

    Args:
        lanes: products.
        bits_a, bits_b: bits of each factor: with signs beside them, of its magnitude.
        signs: of the factors.
        shift: bits by which products may be shifted against each other.
    """
    products = lanes * bits_a * bits_b
    beside = lanes if signs is Signs.BESIDE else 0
    if signs is Signs.TWOS_COMPLEMENT:
        largest = lanes << bits_a + bits_b - 2
    else:
        largest = lanes * ((1 << bits_a) - 1) * ((1 << bits_b) - 1)
    result = (largest << shift).bit_length() + (signs is not Signs.NONE)
    inverted = 1 + _left(bits_a, bits_b)
    return Needs(products, max(0, products + beside - result), beside * inverted)


@cache
def _left(bits_a: int, bits_b: int) -> int:
    """Return the bits of a product that full adders leave in columns of two."""
    tree = Tree([1] * (bits_a * bits_b))
    columns: list[list[Bit]] = [[] for _ in range(bits_a + bits_b)]
    for index, bit in enumerate(tree.inputs):
        columns[index // bits_b + index % bits_b].append(bit)
    return sum(map(len, tree.compress(columns, rows=2)))


def dot_bound(formats: tuple[BlockFormat, ...], lanes: int, library: CellLibrary) -> Bound | None:
    """Return the bound of a dot product of block formats with the cells of a library.

    None where a format has no fixed point, the signs of two formats differ in kind, or the library
    has no full adder.

    Args:
        formats: of both operands, or one for both.
        lanes: products that are added up.
        library: the cells.
    """
    a, b = _factor(formats[0].element), _factor(formats[-1].element)
    if a is None or b is None or a[1] != b[1]:
        return None
    shift = sum(
        (1 << level.scale.bits) - 1 for each in (formats[0], formats[-1]) for level in each.shifts
    )
    try:
        adder = adder_cell(library, library.name).cell
    except SynthesisError:
        return None
    cells = (_smallest(library, 0b0111, 0b1000), adder, _smallest(library, 0b0110, 0b1001))
    counts = needs(lanes, a[0], b[0], a[1], shift=shift)
    found = list(zip(cells, (counts.products, counts.full_adders, counts.xors), strict=True))
    if any(cell is None and count for cell, count in found):
        return None
    used = [(cell, count) for cell, count in found if cell is not None and count]
    area = sum(cell.area * count for cell, count in used)
    return Bound(round(area, 6), {cell.name: count for cell, count in used})


def unit_bound(point: Point) -> Bound | None:
    """Return the bound of a unit's dot products; None for other units, and without a library."""
    unit = find(point.unit)
    library = flow(point.options).cells
    if unit.operation != "MAC" or library is None:
        return None
    sums = point.parameters.get("rows", 1) * point.parameters.get("columns", 1)
    found = dot_bound(unit.formats(point.parameters), point.parameters["block"], library)
    if found is None or sums == 1:
        return found
    return Bound(sums * found.area, {name: sums * count for name, count in found.cells.items()})


def _factor(element: Codes) -> tuple[int, Signs] | None:
    """Return the bits of an element as a factor, and its signs; None if codes are no integers."""
    if not element.fixed or element.listed:
        return None
    if isinstance(element, SignMagnitude):
        return element.integer_bits, Signs.BESIDE
    if isinstance(element, TwosComplement):
        return element.width, Signs.TWOS_COMPLEMENT
    return element.width, Signs.NONE


def _smallest(library: CellLibrary, *truths: int) -> Cell | None:
    """Return the smallest gate of two inputs with one of these truth tables."""
    found = [cell for truth in truths if (cell := library.smallest(2, truth)) is not None]
    return min(found, key=lambda cell: (cell.area, cell.name), default=None)
