"""Rows of bytes read as `unpack` reads them one by one, and written as `pack` writes them."""

import numpy as np
import pytest

from axs6.golden import packed_bytes, unpack
from axs6.golden.formats import AXS6, Mode
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.rows import read_rows, write_rows
from axs6.hw.units.packed import packed_corners, packed_random, sparse_corners


def rows_of(size: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    random = packed_random(rng, rng.integers(0, 256, 1000), size, wrong=0.5)
    anything = rng.integers(0, 256, (500, packed_bytes(block=size)), np.uint8)
    anything[:, 1] &= 3
    return np.concatenate([packed_corners(size)[::37], sparse_corners(size), random, anything])


@pytest.mark.parametrize("size", MODE_BLOCKS)
def test_rows_are_what_unpack_makes_of_each(size: int) -> None:
    rows = rows_of(size)
    blocks, error = read_rows(rows, AXS6.with_block(size))
    assert 100 < error.sum() < len(rows) - 100
    for row, data in enumerate(rows):
        try:
            one = unpack(data.tobytes(), (size,), block=size, align=len(data))
        except ValueError:
            assert error[row]
            assert not blocks.codes[row].any()
            assert (blocks.exponents[row], blocks.modes[row]) == (0, Mode.DENSE)
        else:
            assert not error[row]
            for name in ("exponents", "modes", "codes"):
                assert np.array_equal(getattr(one, name), getattr(blocks, name)[row])


@pytest.mark.parametrize("size", MODE_BLOCKS)
def test_rows_that_can_be_read_are_written_back(size: int) -> None:
    rows = rows_of(size)
    blocks, error = read_rows(rows, AXS6.with_block(size))
    assert np.array_equal(write_rows(blocks)[~error], rows[~error])
