"""The simulated tile equals the golden model on every bit, in the cycles that its formula says."""

from typing import Any

import numpy as np
import pytest

import axs6
from axs6.golden.blocks import Blocks
from axs6.golden.formats import operand_formats
from axs6.sim import tile as tile_module
from axs6.sim.tile import Tile

SHAPES = [(1, 1, 1), (3, 1, 8), (1, 2, 9), (7, 5, 40), (6, 4, 24), (23, 17, 100), (130, 3, 64)]


def blocks(rng: np.random.Generator, shape: tuple[int, ...], block: int = 8) -> Blocks:
    """Blocks whose exponents are spread so that sums round, cancel and reach both ends."""
    scale = rng.choice([-60, -8, 0, 8, 60], (*shape[:-1], 1)) + rng.integers(-9, 9, shape)
    return axs6.encode(np.ldexp(rng.standard_normal(shape), scale).astype(np.float32), block=block)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.array_equal(a.view(np.uint32), b.view(np.uint32))


def tile_cycles(
    shape: tuple[int, int, int], step: int, rows: int, columns: int, interleave: int, latency: int
) -> int:
    """Cycles from the first item to the last output of an (M, N, K) product, without stalls."""
    m, n, k = shape
    tiles = -(-m // rows) * -(-n // columns)
    return -(-tiles // interleave) * interleave * -(-k // step) + latency


@pytest.mark.parametrize(
    ("rows", "columns", "stages", "interleave"),
    [
        (2, 2, 0, 3),
        pytest.param(1, 1, 5, 1, marks=pytest.mark.slow),
        *(pytest.param(3, 2, 0, each, marks=pytest.mark.slow) for each in (1, 3, 4)),
        *(pytest.param(1, 1, 5, each, marks=pytest.mark.slow) for each in (3, 4)),
    ],
)
def test_any_shape(rows: int, columns: int, stages: int, interleave: int) -> None:
    rng = np.random.default_rng(1)
    tile = Tile(8, rows=rows, columns=columns, interleave=interleave, stages=stages)
    assert tile.latency == stages + interleave
    for m, n, k in SHAPES:
        a, b = blocks(rng, (m, k)), blocks(rng, (n, k))
        expected = axs6.matmul(a, b)
        for threads in (1, 2):
            run = tile.matmul(a, b, threads)
            assert same(run.values, expected)
            cycles = tile_cycles((m, n, k), 8, rows, columns, interleave, tile.latency)
            assert run.cycles == cycles
            assert run.utilisation == m * n * k / (cycles * rows * columns * 8)


def test_groups_share_the_turns() -> None:
    rng = np.random.default_rng(2)
    tile = Tile(8, rows=2, columns=2, interleave=3)
    a, b = blocks(rng, (5, 7, 24)), blocks(rng, (5, 3, 24))
    assert tile.parameters["view"] == "behaviour"
    run = tile.matmul(a, b)
    for g in range(5):
        pair = [
            Blocks.with_modes(x.exponents[g], x.modes[g], x.codes[g], x.shape[1:]) for x in (a, b)
        ]
        assert same(run.values[g], axs6.matmul(*pair))
    assert run.cycles == -(-5 * 4 * 2 // 3) * 3 * 3 + tile.latency


def test_a_large_product_is_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    tile = Tile(8, rows=2, columns=2, interleave=3)
    a, b = blocks(rng, (23, 40)), blocks(rng, (17, 40))
    whole = tile.matmul(a, b)
    monkeypatch.setattr(tile_module, "MOST_ITEMS", 64)
    parts = tile.matmul(a, b)
    assert same(parts.values, whole.values)
    assert parts.cycles == whole.cycles


@pytest.mark.parametrize("shape", [(0, 3, 8), (3, 0, 8), (3, 3, 0)])
def test_nothing_takes_no_cycles(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    zeros = [axs6.encode(np.zeros((rows, k), np.float32), block=8) for rows in (m, n)]
    run = Tile(8, rows=2, columns=2, interleave=3).matmul(*zeros)
    assert run.values.shape == (m, n)
    assert not run.values.any()
    assert run.cycles == 0


SCALED = {"accumulator": "hopper_fp8_scaled"}
TINY = {"accumulator": "hopper_fp8,reduction=4,promote=4,scaled=true"}
"""Steps of a part of a block, whose sums are multiplied by the scales of the block."""


@pytest.mark.parametrize(
    ("formats", "given", "accumulator"),
    [
        ("int4xint4", {"block": 8, "accumulator": "exact"}, "exact"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [
                ("e2m1fn_float32_t16xe2m1fn_e8m0_t16", TINY, TINY["accumulator"]),
                ("mxfp4xmxfp8_e4m3", {"accumulator": "blackwell_mx"}, "blackwell_mx"),
                ("nvfp4xnvfp4", {"accumulator": "blackwell_fp4"}, "blackwell_fp4"),
                ("mxfp8_e5m2xmxfp8_e5m2", {"accumulator": "ampere"}, "ampere"),
                ("vsq4xvsq4", {}, "fp32"),
                ("mx9xmx9", {"accumulator": "paper"}, "paper"),
                ("fp8_block_t128xe4m3fn_float32_t128", SCALED, SCALED["accumulator"]),
            ]
        ),
    ],
)
def test_other_formats_and_accumulators(
    formats: str, given: dict[str, Any], accumulator: str
) -> None:
    rng = np.random.default_rng(4)
    tile = Tile(format=formats, rows=1, columns=2, interleave=2, **given)
    first, second = operand_formats(formats)
    a, b = (
        axs6.encode(
            np.ldexp(rng.standard_normal((rows, 70)), rng.integers(-9, 9, (rows, 1))).astype("f4"),
            fmt,
        )
        for rows, fmt in ((5, first), (4, second))
    )
    assert same(tile.matmul(a, b).values, axs6.matmul(a, b, accumulator=accumulator))


def test_operands_that_do_not_fit_are_refused() -> None:
    tile = Tile(8, rows=2, columns=2, interleave=3)
    a = axs6.encode(np.zeros((2, 16), np.float32), block=8)
    wide, other = (axs6.encode(np.zeros((2, 24), np.float32), block=block) for block in (8, 16))
    with pytest.raises(ValueError, match=r"must have shapes .* not \(2, 16\) and \(2, 24\)"):
        tile.matmul(a, wide)
    with pytest.raises(ValueError, match="must have the same block"):
        tile.matmul(a, other)
    precise = axs6.encode(np.zeros((2, 16), np.float32), block=8, mode="high_precision")
    with pytest.raises(ValueError, match="block 0 of b is high-precision"):
        tile.matmul(a, precise)
    message = "a must be in axs6_t8, as the tile takes it, not axs6_t16"
    with pytest.raises(ValueError, match=message):
        tile.matmul(other, other)
    with pytest.raises(ValueError, match="matmul has no parameter 'lanes'"):
        Tile(8, lanes=4)


def test_formats_without_hardware_are_refused() -> None:
    a = axs6.encode(np.ones((2, 32)), "mxfp4")
    with pytest.raises(ValueError, match="a must be in axs6_t8, as the tile takes it, not mxfp4"):
        Tile(8, rows=2, columns=2, interleave=3).matmul(a, a)
