"""Items of a unit from bits of its payload."""

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from axs6.hw.core.layouts import Field
from axs6.hw.units.unit import Items, Unit
from axs6.sim.compiled import element_type


def item_of(ones: Container[str], inputs: Sequence[Field]) -> Items:
    """One item.

    Args:
        ones: names of the bits that are 1, as "i__payload[3]".
        inputs: fields of the payload.
    """
    found: dict[str, Any] = {}
    for field in inputs:
        values = []
        for k in range(field.count):
            first = field.offset + k * field.width
            bits = (f"i__payload[{first + place}]" in ones for place in range(field.width))
            value = sum(bit << place for place, bit in enumerate(bits))
            if field.signed and value >> (field.width - 1):
                value -= 1 << field.width
            values.append(value)
        found[field.name] = np.array(values, element_type(field)).reshape(1, *field.shape)
    return found


def one_item_each(unit: Unit, inputs: Sequence[Field]) -> bool:
    """Whether outputs of a unit depend on one item each; `inputs` are fields of its payload."""
    return not unit.remembers and all(field.name != "last" for field in inputs)


def numbers_of(item: Items) -> dict[str, Any]:
    """The fields of one item as numbers and lists of them."""
    return {name: array[0].tolist() for name, array in item.items()}
