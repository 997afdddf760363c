"""Products of AXS-6 by torch's operations: every border of FP32, where sums leave its range."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import axs6
from axs6.golden.blocks import Blocks
from axs6.golden.check.cases import fp32 as fp32_cases
from axs6.golden.formats import AXS6
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.torch import anywhere, encode, fake_quantise
from axs6.torch.anywhere import prepare, product, take

Same = Callable[[Tensor, Tensor], bool]
Mode = Callable[[], AbstractContextManager[None]]
CPU = torch.device("cpu")

RANGES = {
    "near one": (-2, 3),
    "wide": (-14, 15),
    "everything": (-149, 128),
    "subnormal products": (-75, -55),
    "subnormal operands": (-149, -118),
    "large products": (58, 68),
    "overflow": (100, 128),
}
"""Binary exponents that the values of a matrix are spread over."""


def matrix(rng: np.random.Generator, rows: int, columns: int, how: str) -> Tensor:
    """Values whose blocks differ in exponent, some of them all zero."""
    groups = -(-columns // 8)
    exponents = np.repeat(rng.integers(*RANGES[how], (rows, groups)), 8, axis=1)[:, :columns]
    x = np.ldexp(rng.standard_normal((rows, columns)), exponents)
    x[np.repeat(rng.random((rows, groups)) < 0.1, 8, axis=1)[:, :columns]] = 0
    limit = float(np.finfo(np.float32).max)
    return torch.from_numpy(np.clip(x, -limit, limit)).float()


def golden(a: Tensor, b: Tensor, size: int) -> Tensor:
    blocks = (axs6.encode(x.numpy(), block=size) for x in (a, b))
    return torch.from_numpy(axs6.matmul(*blocks))


def emulate(a: Tensor, b: Tensor, size: int) -> Tensor:
    left, right = (prepare(x.unsqueeze(0), AXS6.with_block(size)) for x in (a, b))
    return product(left, right)[0]


@cache
def golden_products(left: str, right: str) -> list[tuple[int, Tensor, Tensor, Tensor]]:
    """Sizes of blocks, operands in two ranges, and their products in the golden model."""
    rng = np.random.default_rng(0)
    found = []
    for size in MODE_BLOCKS:
        for rows, columns, depth in ((1, 1, 5), (7, 1, 64), (1, 9, 200), (17, 33, 130)):
            a, b = matrix(rng, rows, depth, left), matrix(rng, columns, depth, right)
            found.append((size, a, b, golden(a, b, size)))
    return found


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("left", "right", "threads"),
    [
        pytest.param(left, right, count, marks=[pytest.mark.slow] * (count > 1 and left != right))
        for left in RANGES
        for right in RANGES
        for count in (1, 2)
    ],
    indirect=["threads"],
)
def test_products_over_all_exponents(left: str, right: str, same: Same, mode: Mode) -> None:
    for size, a, b, expected in golden_products(left, right):
        with mode():
            y = emulate(a, b, size)
        assert same(y, expected)


@pytest.mark.usefixtures("threads")
def test_tiles_and_batches_join(
    rng: np.random.Generator, same: Same, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tile in ((3, 5), (4, 1000), (1000, 4), (16, 8)):
        monkeypatch.setattr(anywhere, "TILE_ROWS", tile[0])
        monkeypatch.setattr(anywhere, "TILE_COLUMNS", tile[1])
        for how in ("near one", "everything"):
            a = torch.stack([matrix(rng, 10, 70, how) for _ in range(7)])
            b = torch.stack([matrix(rng, 11, 70, how) for _ in range(7)])
            y = product(*(prepare(x, AXS6.with_block(16)) for x in (a, b)))
            for g in range(7):
                assert same(y[g], golden(a[g], b[g], 16))


def test_large_products(rng: np.random.Generator, same: Same) -> None:
    a, b = matrix(rng, 300, 500, "near one"), matrix(rng, 1100, 500, "near one")
    a[17] *= 2.0**-120
    b[1050] *= 2.0**-100
    b[3] *= 2.0**90
    assert same(emulate(a, b, 32), golden(a, b, 32))


def block_pair(total: int, exponent: int) -> tuple[list[int], list[int], int, int] | None:
    """Codes and exponents of two blocks with a given dot product, where there are some."""
    sign, rest = (32, -total) if total < 0 else (0, total)
    left, right = [31] * (rest // 961), [31] * (rest // 961)
    rest %= 961
    left += [rest // 31, rest % 31]
    right += [31, 1]
    if len(left) > 34 or any(left[32:]):
        return None
    left, right = ((x + [0] * 32)[:32] for x in (left, right))
    first = min(exponent, 255)
    return [m | sign for m in left], right, first, exponent - first


def test_sums_next_to_every_border(same: Same) -> None:
    compared = 0
    for terms in (*fp32_cases.FIXED_TERMS, *fp32_cases.ties()):
        pairs = [block_pair(*term) for term in terms]
        if not terms or None in pairs:
            continue
        blocks = []
        for codes, exponents in ((0, 2), (1, 3)):
            array = np.array([[pair[exponents] for pair in pairs]], np.uint8)
            values = np.array([[pair[codes] for pair in pairs]], np.uint8)
            blocks.append(
                Blocks.with_modes(array, np.zeros_like(array), values, (1, 32 * len(terms)))
            )
        expected = torch.from_numpy(axs6.matmul(*blocks))
        left, right = (
            take(
                Blocks.with_modes(x.exponents[None], x.modes[None], x.codes[None], (1, *x.shape)),
                CPU,
            )
            for x in blocks
        )
        assert same(product(left, right)[0], expected)
        compared += 1
    assert compared > 1300


def test_not_a_number_is_always_the_same() -> None:
    big = 2.0**127
    a, b = torch.tensor([[big] * 32 + [-big] * 32]), torch.full((1, 64), big)
    y = emulate(a, b, 32)
    assert y.view(torch.int32).item() == 0x7FC00000


def dequantise_then_multiply(a: Tensor, b: Tensor) -> Tensor:
    """The usual shortcut, which rounds in other places."""
    return fake_quantise(a) @ fake_quantise(b).mT


def chained(a: Tensor, b: Tensor) -> Tensor:
    """Each product of a block added to the accumulator by itself, as a chain of FMAs would."""
    left, right = (prepare(x.unsqueeze(0), AXS6).single[0] for x in (a, b))
    total = torch.zeros(len(a), len(b))
    for k in range(left.shape[1]):
        total += left[:, k, None] * right[:, k]
    return total / (961 / 1024)


def tree(a: Tensor, b: Tensor) -> Tensor:
    """The right terms, added in another order."""
    left, right = (prepare(x.unsqueeze(0), AXS6).single[0] for x in (a, b))
    terms = [left[:, k : k + 32] @ right[:, k : k + 32].mT for k in range(0, left.shape[1], 32)]
    return torch.stack(terms).sum(0) / (961 / 1024)


@pytest.mark.parametrize("wrong", [dequantise_then_multiply, chained, tree])
def test_the_comparison_catches_other_orders(
    wrong: Callable[[Tensor, Tensor], Tensor], rng: np.random.Generator
) -> None:
    a, b = matrix(rng, 16, 1024, "wide"), matrix(rng, 16, 1024, "wide")
    different = wrong(a, b).view(torch.int32) != golden(a, b, 32).view(torch.int32)
    assert different.float().mean() > 0.05


def test_float64_is_taken_exactly(rng: np.random.Generator, same: Same) -> None:
    a: NDArray[np.float64] = rng.standard_normal((5, 62))
    # Next to the rounding thresholds of a block whose scale is one; float32 moves some across.
    centres = (np.arange(31) + 0.5) / 31
    a[0, :31], a[0, 31:] = np.nextafter(centres, 0), np.nextafter(centres, 1)
    b = rng.standard_normal((6, 62)) * 1e-30
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    blocks = (take(encode(x.unsqueeze(0)), CPU) for x in (left, right))
    assert same(product(*blocks)[0], golden(left, right, 32))
    single, double = axs6.encode(a.astype(np.float32)), axs6.encode(a)
    assert (single.codes != double.codes).any()
