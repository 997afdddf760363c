"""Treatment of NaN and infinities in encoding."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from axs6.golden.formats import BlockFormat, name_of

NonFinite = Literal["error", "saturate", "propagate"]
"""Treatment of NaN and infinities in encoding.

"error" refuses them, "saturate" gives +0 and the largest code, and "propagate" keeps them where
the format can.
"""

WITHOUT_NAN: Final = ("error", "saturate")
"""Treatments of NaN and infinities in a format without NaN."""


def check_nonfinite(nonfinite: str, known: Sequence[str] = get_args(NonFinite)) -> None:
    """Raise ValueError unless `nonfinite` is one of `known`."""
    if nonfinite not in known:
        raise ValueError(f"nonfinite must be one of {', '.join(known)}, not {nonfinite!r}")


def check_nonfinite_in(fmt: BlockFormat, nonfinite: str) -> None:
    """Raise ValueError unless `nonfinite` is known, and possible in the format."""
    check_nonfinite(nonfinite)
    if nonfinite == "propagate" and not fmt.has_nan:
        name = name_of(fmt)
        raise ValueError(f'nonfinite="propagate" needs a format with NaN, unlike {name}')
