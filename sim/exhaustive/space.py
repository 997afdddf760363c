"""Spaces: the inputs that a design must get right, every one of them, in chunks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.core.parameters import STRUCTURE
from axs6.sim.batch.engine import ComponentModel, Source, component_source

Items = dict[str, NDArray[Any]]


class Design:
    """Hardware to enumerate. Its C++ and its compiled model are made when first asked for.

    Args:
        name: what messages call it.
        build: gives the component, which has one input stream `i` and one output stream `o`.
    """

    def __init__(self, name: str, build: Callable[[], Any]) -> None:
        self.name = name
        self._build = build

    @cached_property
    def source(self) -> Source:
        """C++ of the component."""
        return component_source(self._build())

    @cached_property
    def model(self) -> ComponentModel:
        """The compiled batch simulator of the component."""
        return ComponentModel(self.source, self.name)


def named(name: str, view: str) -> str:
    """The name of a space with the view of its hardware, where that is not the structure."""
    return name if view == STRUCTURE else f"{name}-{view}"


@dataclass(frozen=True)
class Space:
    """Items for a design, and the expected outputs.

    Args:
        name: name on the command line.
        formula: the number of cases as a product, in words.
        cases: comparisons in the whole space, the same number in each chunk.
        chunks: parts that are driven and recorded one at a time.
        design: the hardware.
        inputs: gives the input items of a chunk, by its number.
        references: by name, functions that give the output items for input items. The hardware
            must agree with each.

    Raises:
        ValueError: the cases are not the same number in each chunk.
    """

    name: str
    formula: str
    cases: int
    chunks: int
    design: Design
    inputs: Callable[[int], Items]
    references: Mapping[str, Callable[[Items], Items]]

    def __post_init__(self) -> None:
        if self.chunks < 1 or self.cases % self.chunks:
            raise ValueError(
                f"{self.name} must have equal chunks, not {self.cases} cases in {self.chunks}"
            )

    @property
    def chunk_cases(self) -> int:
        """Comparisons in one chunk."""
        return self.cases // self.chunks

    def difference(self, chunk: int) -> str | None:
        """The first item of a chunk on which the hardware differs from a reference, or None."""
        inputs = self.inputs(chunk)
        given = self.design.model.run(inputs).outputs
        for name, reference in self.references.items():
            expected = reference(inputs)
            if not all(np.array_equal(given[field], expected[field]) for field in expected):
                return _describe(inputs, given, expected, name)
        return None


def _describe(inputs: Items, given: Items, expected: Items, reference: str) -> str:
    """Inputs, output of the hardware and output of the reference, as bits, of the first row."""
    wrong = {
        field: np.argwhere(given[field] != expected[field])[0]
        for field in expected
        if not np.array_equal(given[field], expected[field])
    }
    field, place = min(wrong.items(), key=lambda each: int(each[1][0]))
    row, *element = (int(index) for index in place)
    where = f"{field}[{element[0]}]" if element else field
    items = ", ".join(f"{name} {_bits(array[row])}" for name, array in inputs.items())
    rtl, right = (_bits(arrays[field][tuple(place)]) for arrays in (given, expected))
    return f"{items}: {where} is {rtl} in the RTL, {right} in the {reference}"


def _bits(value: Any) -> str:
    """Hexadecimal digits of a number or of each number of an array, as wide as the dtype."""
    if np.ndim(value):
        return "[" + " ".join(_bits(each) for each in value) + "]"
    width = 8 * value.dtype.itemsize
    return f"{int(value) & (1 << width) - 1:#0{width // 4 + 2}x}"


def sliced(
    function: Callable[..., NDArray[np.uint32]], arrays: Sequence[NDArray[Any]], size: int = 1 << 16
) -> NDArray[np.uint32]:
    """`function` of arrays, a slice at a time, so that its temporaries stay in the cache."""
    result = np.empty(len(arrays[0]), np.uint32)
    for start in range(0, len(result), size):
        rows = slice(start, start + size)
        result[rows] = function(*(array[rows] for array in arrays))
    return result
