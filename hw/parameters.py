"""Checks of unit parameters that several units share."""

from collections.abc import Mapping

from axs6.golden.spec import FloatFormat


def float_format(name: str, known: Mapping[str, FloatFormat]) -> FloatFormat:
    """The format called `name`.

    Raises:
        ValueError: `known` has no such format.
    """
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"format must be one of {', '.join(known)}, not {name!r}")
    return known[name]
