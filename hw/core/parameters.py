"""Checks of unit parameters that several units share."""

from collections.abc import Collection, Mapping

from axs6.golden.formats import Float

BLOCK_FORMS = ("dense", "packed")
"""How blocks come to a unit: as exponent and codes, or as their bytes."""

STRUCTURE, BEHAVIOUR = "structure", "behaviour"
VIEWS = (STRUCTURE, BEHAVIOUR)
"""How a datapath is described: as the gates that synthesis is to map, or in words."""


def one_of(name: str, value: str, known: Collection[str]) -> str:
    """Return the value of a parameter, or raise ValueError unless it is a known one."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return value


def check_view(view: str) -> str:
    """Return the value of the parameter `view`, or raise ValueError."""
    return one_of("view", view, VIEWS)


def float_dtype(name: str, known: Mapping[str, Float]) -> Float:
    """The scalar format of the dtype called `name`.

    Raises:
        ValueError: `known` has no such dtype.
    """
    return known[one_of("dtype", name, known)]
