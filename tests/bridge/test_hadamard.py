"""The Hadamard transform in torch against the golden model."""

import numpy as np
import pytest
import torch
from torch import Tensor

from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.hadamard import SIZES, hadamard_bits
from axs6.hw.units.hadamard import corner_rows, random_rows
from axs6.torch import hadamard

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def patterns_of(x: Tensor) -> np.ndarray:
    """Unsigned bit patterns."""
    signed = x.view(torch.int32 if x.dtype is torch.float32 else torch.int16).numpy()
    return signed.view(f"u{x.dtype.itemsize}")


@pytest.mark.parametrize(
    ("name", "size", "flush"),
    [
        *(("bf16", size, size == 32) for size in SIZES),
        ("fp16", 16, True),
        ("fp32", 8, False),
        ("fp32", 128, True),
    ],
)
def test_bits_are_those_of_the_golden_model(name: str, size: int, flush: bool) -> None:
    dtype = INPUT_DTYPES[name]
    rng = np.random.default_rng(size)
    rows = np.concatenate([corner_rows(dtype, size), random_rows(dtype, size, rng, 200)])
    signed = np.int32 if dtype.width == 32 else np.int16
    x = torch.from_numpy(rows.astype(f"u{dtype.width // 8}").view(signed)).view(DTYPES[name])
    torch.set_flush_denormal(flush)
    try:
        found = hadamard(x, size)
    finally:
        torch.set_flush_denormal(False)
    expected = hadamard_bits(rows.astype(np.uint64), dtype)
    assert found.dtype == x.dtype
    assert np.array_equal(patterns_of(found), expected.astype(patterns_of(found).dtype))


def test_gradients_are_transformed() -> None:
    x = torch.randn(3, 64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    gradient = torch.randn(3, 64, generator=torch.Generator().manual_seed(1))
    (found,) = torch.autograd.grad(hadamard(x, 32), x, gradient)
    assert torch.equal(found, hadamard(gradient, 32))


def test_under_vmap_and_compiled() -> None:
    x = torch.randn(4, 2, 64, generator=torch.Generator().manual_seed(0))
    expected = hadamard(x, 16)
    assert torch.equal(torch.func.vmap(lambda row: hadamard(row, 16))(x), expected)
    compiled = torch.compile(lambda value: hadamard(value, 16), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), expected)


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="float32, bfloat16 or float16, not "):
        hadamard(torch.zeros(16).double(), 16)
    with pytest.raises(ValueError, match="the last axis must be blocks of 16, not of shape"):
        hadamard(torch.zeros(2, 24), 16)
