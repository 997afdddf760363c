"""Every space, in the order in which they run."""

from collections.abc import Sequence

from axs6.golden.arguments import check_integer
from axs6.golden.formats import ROW_FORMATS
from axs6.golden.formats.floating import OUTPUT_DTYPES
from axs6.golden.rounding import DETERMINISTIC
from axs6.hw.core.parameters import STRUCTURE, check_view
from axs6.hw.decoder.plan import decoded
from axs6.hw.dot.shape import multiplied
from axs6.sim.exhaustive.conversion_spaces import conversion_spaces
from axs6.sim.exhaustive.decoder_spaces import decoder_space
from axs6.sim.exhaustive.encoder_spaces import (
    encoder_spaces,
    format_spaces,
    high_precision_spaces,
    stochastic_spaces,
)
from axs6.sim.exhaustive.fp32_spaces import fp32_spaces
from axs6.sim.exhaustive.fused_spaces import fused_spaces
from axs6.sim.exhaustive.mode_spaces import mask_space, precise_space, zeros_space
from axs6.sim.exhaustive.multiplication_spaces import multiplication_spaces
from axs6.sim.exhaustive.scaled_spaces import scaled_spaces
from axs6.sim.exhaustive.space import Space
from axs6.sim.exhaustive.unit_spaces import product_space


def all_spaces(seed: int = 0, view: str = STRUCTURE) -> list[Space]:
    """Every space of a view; those of hardware without views are among those of the structure.

    Args:
        seed: of the random pairs of the adder.
        view: one of `axs6.hw.core.parameters.VIEWS`.

    Raises:
        ValueError: `seed` is negative, or there is no such view.
    """
    check_integer("seed", seed, 0)
    alone = check_view(view) == STRUCTURE
    return [
        *(decoder_space(dtype, view=view) for dtype in OUTPUT_DTYPES),
        *(decoder_space(*each) for each in _decoders() if alone),
        *(precise_space(dtype, view=view) for dtype in OUTPUT_DTYPES),
        *([mask_space()] if alone else []),
        zeros_space(view=view),
        product_space(view=view),
        *(product_space(view=view, fmt=name) for name in _signed()),
        *([*conversion_spaces(), *fp32_spaces(seed)] if alone else []),
        *multiplication_spaces(view),
        *fused_spaces(view),
        *(space for rounding in DETERMINISTIC for space in encoder_spaces(rounding, view)),
        *(space for rounding in DETERMINISTIC for space in high_precision_spaces(rounding, view)),
        *stochastic_spaces(view),
        *([*format_spaces(), *scaled_spaces()] if alone else []),
    ]


def _decoders() -> list[tuple[str, None, str, str]]:
    """Decoders of the formats that have names and no modes."""
    names = [name for name, fmt in ROW_FORMATS.items() if decoded(fmt) and not fmt.has_modes]
    return [(dtype, None, STRUCTURE, name) for name in names for dtype in OUTPUT_DTYPES]


def _signed() -> list[str]:
    """The formats that have names, dot products and no modes."""
    return [name for name, fmt in ROW_FORMATS.items() if multiplied(fmt) and not fmt.has_modes]


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
