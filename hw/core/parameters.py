"""Checks of unit parameters that several units share."""

from collections.abc import Collection, Mapping, Sequence

from axs6.golden.formats import BlockFormat, Float, block_format, name_of, operand_formats
from axs6.golden.formats.modes import MODE_BLOCKS

BLOCK_FORMS = ("dense", "packed")
"""Forms of input blocks: exponent and codes, or packed bytes."""

DEFAULT_ACCUMULATOR = "fp32"
"""Adds the sums of blocks in FP32; see `axs6.golden.accumulator`."""

STRUCTURE, BEHAVIOUR = "structure", "behaviour"
VIEWS = (STRUCTURE, BEHAVIOUR)
"""Views of a datapath: gates for synthesis, or words."""


def one_of(name: str, value: str, known: Collection[str]) -> str:
    """Return the value of a parameter, or raise ValueError unless it is a known one."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return value


BLOCKS = (8, 16, 32, 64, 128)
"""Values of a block that units take; those of formats with modes have fewer choices."""


def blocks_of_format(fmt: BlockFormat) -> tuple[int, ...]:
    """The blocks that units may have in a format."""
    finer = fmt.blocked[-2:-1]
    least = 2 * int(finer[0].group) if finer else 1
    known = MODE_BLOCKS if fmt.has_modes else BLOCKS
    return tuple(block for block in known if block >= least)


def block_format_of(format: str | BlockFormat, block: int | None) -> tuple[BlockFormat, int]:
    """The block format of a unit, and the values of a block, its lanes.

    Args:
        format: a name or string of a format, or the format. Of tiles, units take the rows one by
            one, each a block under the scale of its tile.
        block: values in a block; None for the format's own. A format whose scales are all of
            channels or the tensor has as many lanes as this says.

    Raises:
        ValueError: the string is no format, or units do not take the block.
    """
    fmt = block_format(format).untiled
    lanes = fmt.block if block is None else block
    known = blocks_of_format(fmt)
    if isinstance(lanes, bool) or lanes not in known:
        of = "" if fmt.has_modes else f" in {name_of(fmt)}"
        raise ValueError(f"block must be one of {', '.join(map(str, known))}{of}, not {lanes!r}")
    return (fmt.with_block(int(lanes)) if fmt.blocked else fmt), int(lanes)


def formats_of_operands(format: str | BlockFormat) -> tuple[BlockFormat, ...]:
    """The formats of the blocks of the operands that a string names: those of one row of tiles.

    Raises:
        ValueError: the string is no format.
    """
    return tuple(fmt.untiled for fmt in operand_formats(format))


def block_of(formats: Sequence[BlockFormat], block: int | None) -> int:
    """The values of a block of operands in some formats: `block`, or else what all of them have.

    Raises:
        ValueError: there is no `block`, and those of the formats are not the same.
    """
    if block is not None:
        return block
    first, *others = formats
    for fmt in others:
        if fmt.block != first.block:
            raise ValueError(
                f"{name_of(first)} has blocks of {first.block} and {name_of(fmt)} of {fmt.block}: "
                "give the size for both as block"
            )
    return first.block


def check_view(view: str) -> str:
    """Return the value of the parameter `view`, or raise ValueError."""
    return one_of("view", view, VIEWS)


def float_dtype(name: str, known: Mapping[str, Float]) -> Float:
    """The scalar format of the dtype called `name`.

    Raises:
        ValueError: `known` has no such dtype.
    """
    return known[one_of("dtype", name, known)]
