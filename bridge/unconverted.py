"""Products that conversion leaves to torch."""

import warnings
from typing import Literal, get_args

Unconverted = Literal["warn", "error", "ignore"]


class UnconvertedWarning(UserWarning):
    """A converted model has a matrix product that torch computes, not the hardware."""


def check_unconverted(unconverted: str) -> None:
    """Raise ValueError unless the treatment of unconverted products is known."""
    if unconverted not in get_args(Unconverted):
        expected = ", ".join(get_args(Unconverted))
        raise ValueError(f"unconverted must be one of {expected}, not {unconverted!r}")


def tell(unconverted: Unconverted, name: str) -> None:
    """Warn that `name` is not converted, unless such warnings are ignored.

    Raises:
        UnconvertedWarning: `unconverted` is "error".
    """
    message = f"{name} is not converted: torch computes its products, not the hardware"
    if unconverted == "error":
        raise UnconvertedWarning(message)
    if unconverted == "warn":
        warnings.warn(message, UnconvertedWarning, stacklevel=2)
