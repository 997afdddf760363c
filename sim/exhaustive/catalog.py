"""Every space, in the order in which they run."""

from collections.abc import Sequence

from axs6.golden.spec import DETERMINISTIC, OUTPUT_FORMATS, check_integer
from axs6.sim.exhaustive.encoder_spaces import (
    encoder_spaces,
    high_precision_spaces,
    stochastic_spaces,
)
from axs6.sim.exhaustive.fp32_spaces import fp32_spaces
from axs6.sim.exhaustive.mode_spaces import mask_space, precise_space, zeros_space
from axs6.sim.exhaustive.space import Space
from axs6.sim.exhaustive.unit_spaces import decoder_space, product_space


def all_spaces(seed: int = 0) -> list[Space]:
    """Every space; `seed` is that of the random pairs of the adder.

    Raises:
        ValueError: `seed` is negative.
    """
    check_integer("seed", seed, 0)
    return [
        *(decoder_space(fmt) for fmt in OUTPUT_FORMATS),
        *(precise_space(fmt) for fmt in OUTPUT_FORMATS),
        mask_space(),
        zeros_space(),
        product_space(),
        *fp32_spaces(seed),
        *(space for rounding in DETERMINISTIC for space in encoder_spaces(rounding)),
        *(space for rounding in DETERMINISTIC for space in high_precision_spaces(rounding)),
        *stochastic_spaces(),
    ]


def choose(spaces: Sequence[Space], parts: Sequence[str]) -> list[Space]:
    """The spaces whose name contains one of `parts`; all of them if there are none.

    Raises:
        ValueError: a part is in no name; the message lists the names.
    """
    for part in parts:
        if not any(part in space.name for space in spaces):
            known = ", ".join(space.name for space in spaces)
            raise ValueError(f"only must be part of one of {known}, not {part!r}")
    return [space for space in spaces if not parts or any(part in space.name for part in parts)]
