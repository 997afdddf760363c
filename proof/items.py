"""Items of a unit from bits of its payload."""

from collections.abc import Container, Iterable, Sequence
from typing import Any

from axs6.hw.core.layouts import Field
from axs6.hw.units.unit import Items, Unit
from axs6.sim.compiled import element_type
from axs6.sim.words import from_words, payload_width


def item_of(ones: Container[str], inputs: Sequence[Field]) -> Items:
    """One item.

    Args:
        ones: names of the bits that are 1, as "i_payload[3]".
        inputs: fields of the payload.
    """
    places = range(payload_width(inputs))
    word = sum(1 << place for place in places if f"i_payload[{place}]" in ones)
    item = from_words([word], inputs)
    return {field.name: item[field.name].astype(element_type(field)) for field in inputs}


def names_of(payload: int) -> set[str]:
    """Names of the bits of a payload that are 1."""
    return {f"{_BIT}{k}]" for k in range(payload.bit_length()) if payload >> k & 1}


def payload_of(ones: Iterable[str]) -> int:
    """The payload of which those bits are 1 that are among names."""
    places = (name.removeprefix(_BIT)[:-1] for name in ones if name.startswith(_BIT))
    return sum(1 << int(place) for place in places)


_BIT = "i_payload["


def one_item_each(unit: Unit, inputs: Sequence[Field]) -> bool:
    """Whether outputs of a unit depend on one item each; `inputs` are fields of its payload."""
    return not unit.remembers and all(field.name != "last" for field in inputs)


def numbers_of(item: Items) -> dict[str, Any]:
    """The fields of one item as numbers and lists of them, or of several as lists of those."""
    return {
        name: array[0].tolist() if len(array) == 1 else array.tolist()
        for name, array in item.items()
    }
