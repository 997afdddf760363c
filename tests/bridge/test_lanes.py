"""Encoding by torch's operations, with every rounding, in every format that they take."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import pytest
import torch
from torch import Tensor

import axs6
from axs6.golden.check.cases import inputs
from axs6.golden.formats import AXS6, CATALOG, block_format
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.torch import kernels
from axs6.torch.lanes import values
from axs6.torch.rounding import rounder

ENCODED = [name for name in CATALOG if kernels.encodes(block_format(name))]
FP32 = next(kind for kind in inputs.KINDS if kind.name == "float32")
Same = Callable[[Tensor, Tensor], bool]
Mode = Callable[[], AbstractContextManager[None]]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("size", MODE_BLOCKS)
def test_next_to_every_threshold_under_every_exponent(size: int, same: Same, mode: Mode) -> None:
    x = inputs.threshold_blocks(FP32, size).view(np.float32)
    fmt = AXS6.with_block(size)
    with mode():
        got = values(torch.from_numpy(x), fmt)
    assert same(got, torch.from_numpy(axs6.decode(axs6.encode(x, fmt))))


@pytest.mark.parametrize(
    ("rounding", "bits"), [("toward_zero", 8), ("stochastic", 3), ("stochastic", 32)]
)
@pytest.mark.parametrize("name", ENCODED)
def test_every_rounding_is_golden(
    name: str, rounding: str, bits: int, rng: np.random.Generator, same: Same
) -> None:
    fmt = block_format(name)
    x = (rng.standard_normal((9, 150)) * np.exp2(rng.integers(-140, 120, (9, 1)))).astype(
        np.float32
    )
    x[:, ::7] *= np.float32(2.0**-9)
    x[:, 3] = -0.0
    words = None if rounding == "toward_zero" else rng.integers(0, 1 << bits, x.shape)
    given = None if words is None else torch.from_numpy(words)
    got = values(
        torch.from_numpy(x),
        fmt,
        rounder=rounder(torch.from_numpy(x), fmt.block, rounding, given, bits),
    )
    options = {} if words is None else {"random": words, "random_bits": bits}
    assert same(got, torch.from_numpy(axs6.decode(axs6.encode(x, fmt, rounding, **options))))
