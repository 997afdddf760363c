"""Samples of formats by their properties, where not every format is in every run."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest

from axs6.golden.formats import Exponent, Real, block_format

Property = tuple[str, Any]


def properties(name: str) -> set[Property]:
    """What a format is made of: a kind of each part."""
    fmt = block_format(name)
    element = fmt.element
    kinds: dict[str, Any] = {
        "element": type(element).__name__,
        "zero": bool(element.has_negative_zero),
        "special": (bool(element.has_nan), bool(element.has_infinity)),
        "scales": tuple(
            (type(level.scale).__name__, level.group if not level.blocked else "block")
            for level in fmt.levels
        ),
        "rule": {str(x.scale.rule) for x in fmt.levels if isinstance(x.scale, Exponent)},
        "modes": fmt.has_modes,
        "unsigned": any(isinstance(x.scale, Real) and not x.scale.dtype.signed for x in fmt.levels),
        "ties": element.ties_away,
    }
    kinds["rule"] = ", ".join(kinds["rule"])
    return set(kinds.items())


def few(names: Iterable[str], together: int = 2) -> list[str]:
    """Names in which any properties meet, so many together, that do in one of `names`."""

    def meeting(name: str) -> set[tuple[Property, ...]]:
        return set(combinations(sorted(properties(name), key=str), together))

    left = {name: meeting(name) for name in names}
    missing = set().union(*left.values())
    found = []
    while missing:
        found.append(max(left, key=lambda name: len(left[name] & missing)))
        missing -= left[found[-1]]
    return found


def formats(names: Iterable[str], together: int = 2) -> list[Any]:
    """Parameters of a test: all but `few` of the names are slow."""
    names = list(names)
    quick = few(names, together)
    return [
        pytest.param(name, marks=() if name in quick else pytest.mark.slow, id=name)
        for name in names
    ]
