"""Packed blocks of any bytes."""

import numpy as np

from axs6.golden import Blocks, pack, unpack
from axs6.golden.check.cases.inputs import random_codes_in_modes
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.pack import layout_of
from axs6.golden.unpack import unpack_some

ALIGNS = (1, 2, 32)
HEAD = 3
"""Bytes of an input that say how its blocks are packed."""


def layout(data: bytes) -> tuple[int, int, int, bytes]:
    """Block size, alignment, number of blocks, and the packed bytes of an input."""
    size, align, count = data[:HEAD].ljust(HEAD, b"\0")
    return MODE_BLOCKS[size % 3], ALIGNS[align % 3], count % 16, data[HEAD:]


def unpacked(data: bytes) -> bool:
    """Bytes are blocks if and only if these pack to the same bytes; or a ValueError is raised."""
    size, align, count, packed = layout(data)
    found, part = None, None
    try:
        found = unpack(packed, (count, size), block=size, align=align)
    except ValueError as error:
        check_line(error)
    try:
        part, length = unpack_some(
            np.frombuffer(packed, np.uint8), count, layout_of(block=size, align=align), 0
        )
    except ValueError as error:
        check_line(error)
    if found is None:
        assert part is None or length < len(packed), "unpack refuses what unpack_some takes"
        return False
    assert part is not None, "unpack takes what unpack_some refuses"
    assert length == len(packed)
    assert np.array_equal(part.codes.ravel(), found.codes.ravel())
    assert pack(found, align) == packed, "other bytes are the same blocks"
    return True


def check_line(error: Exception) -> None:
    """Raise AssertionError unless an error says what is wrong in a line."""
    assert len(str(error).splitlines()) == 1, f"no line that says what is wrong: {error!r}"


def seeds() -> list[bytes]:
    """Blocks of all modes in each size and alignment, and none."""
    rng = np.random.default_rng(0)
    found = [bytes(HEAD)]
    for number, size in enumerate(MODE_BLOCKS):
        for place, align in enumerate(ALIGNS):
            for count in (1, 4, 15):
                exponents, modes, codes = random_codes_in_modes(size, count, rng)
                packed = pack(Blocks.with_modes(exponents, modes, codes, (codes.size,)), align)
                found.append(bytes([number, place, count]) + packed)
    return found
