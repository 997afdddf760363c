"""Blocks of the golden model as the checks write them, and back."""

import numpy as np
import pytest

from axs6.golden.check.comparison import as_blocks, as_exact, magnitude_bits
from axs6.golden.formats import Mode


def test_widths_of_magnitudes() -> None:
    assert magnitude_bits(Mode.DENSE) == magnitude_bits(Mode.SPARSE) == (5, 5)
    assert magnitude_bits(Mode.HIGH_PRECISION) == (6, 4)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_blocks_and_back(leading: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    exponents = rng.integers(0, 256, (*leading, 4)).astype(np.uint8)
    codes = rng.integers(0, 32, (*leading, 4, 8)).astype(np.uint8)
    blocks = as_blocks(exponents, codes, mode=Mode.HIGH_PRECISION)
    assert blocks.shape == (*leading, 32)
    assert (blocks.modes == Mode.HIGH_PRECISION).all()
    assert as_exact(blocks) == [
        (int(exponent), row)
        for exponent, row in zip(exponents.ravel(), codes.reshape(-1, 8).tolist(), strict=True)
    ]
