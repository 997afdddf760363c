"""Tiles: groups of several rows of a matrix."""

import re

import numpy as np
import pytest

import axs6
from axs6.golden.blocks import Blocks
from axs6.golden.formats import block_format, name_of, operand_formats

SQUARE = ("mxfp8_32x32", "e2m1fn_e4m3fn_t16x16_float32", "e4m3fn_float32_t8x8", "int8_e8m0_t4x4")


def matrix(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)).astype(np.float32)


@pytest.mark.parametrize("name", SQUARE)
def test_encoding_and_transposing_commute(name: str) -> None:
    """W and its transpose share their scales: products by either see the same values."""
    w = matrix((75, 100))
    a, b = axs6.encode(w, name), axs6.encode(np.ascontiguousarray(w.T), name)
    assert np.array_equal(axs6.decode(a).T, axs6.decode(b))
    along = axs6.encode(w, name, axis=0)
    assert np.array_equal(axs6.decode(a), axs6.decode(along))
    rows = block_format(name).untiled
    if rows.exponent:
        plain = axs6.decode(axs6.encode(w, rows)).T
        assert not np.array_equal(plain, axs6.decode(axs6.encode(w.T, rows)))


@pytest.mark.parametrize("name", [*SQUARE, "mxfp4_t2x8", "mx9_t8x4", "int4_bfloat16_t4x2_mse"])
@pytest.mark.parametrize("shape", [(16, 32), (7, 33), (2, 3, 10, 20)])
def test_a_tile_is_a_block_of_its_values(name: str, shape: tuple[int, ...]) -> None:
    """Each tile, its rows one after the other, is a block of a format of one row."""
    fmt = block_format(name)
    if fmt.rows > shape[-2] and fmt.block > shape[-1]:
        return
    x = matrix(shape)
    got = axs6.decode(axs6.encode(x, fmt), np.float64)
    flat = block_format(str(fmt)).with_block(min(1024, fmt.rows * fmt.block), 1)
    top = axs6.encode(x, fmt).scales[0].view(np.float32) if fmt.outer else None
    for where in np.ndindex(shape[:-2]):
        for r in range(0, shape[-2], fmt.rows):
            for c in range(0, shape[-1], fmt.block):
                tile = (*where, slice(r, r + fmt.rows), slice(c, c + fmt.block))
                values = np.zeros((fmt.rows, fmt.block), np.float32)
                part = x[tile]
                values[: part.shape[0], : part.shape[1]] = part
                one = axs6.encode(values.reshape(1, -1), flat, scale=top)
                expected = axs6.decode(one, np.float64).reshape(values.shape)
                assert np.array_equal(got[tile], expected[: part.shape[0], : part.shape[1]])


def test_shapes_of_scales() -> None:
    blocks = axs6.encode(matrix((3, 75, 100)), "e2m1fn_e4m3fn_t16x16_float32")
    assert [x.shape for x in blocks.scales] == [(), (3, 5, 7)]
    assert blocks.codes.shape == (3, 75, 7, 16)
    rows = blocks.untiled
    assert rows.format == block_format("nvfp4")
    assert np.array_equal(rows.scales[1][:, 17], blocks.scales[1][:, 1])
    assert np.array_equal(axs6.decode(rows), axs6.decode(blocks))
    along = axs6.encode(matrix((3, 100, 75)), "mxfp4_t4x16", axis=1)
    assert along.exponents.shape == (3, 19, 7)


def test_bits_of_a_value_have_a_share_of_the_scale() -> None:
    assert float(block_format("fp8_block").bits_a_value[0]) == 8 + 32 / 128**2
    assert float(block_format("mxfp4_t16x16").bits_a_value[0]) == 4 + 8 / 256


def test_products_are_those_of_rows() -> None:
    w, x = matrix((40, 70)), matrix((5, 70), 1)
    weights, inputs = axs6.encode(w, "mxfp8_32x32"), axs6.encode(x, "mxfp8_e4m3")
    y = axs6.matmul(inputs, weights)
    assert np.array_equal(y, axs6.matmul(inputs, weights.untiled))
    sums, exponents = axs6.block_dot(weights, weights)
    expected = axs6.block_dot(weights.untiled, weights.untiled)
    assert np.array_equal(sums, expected[0])
    assert np.array_equal(exponents, expected[1])


def test_strings() -> None:
    fmt = block_format("e4m3fn_e8m0_t16x32")
    assert (fmt.rows, fmt.block, str(fmt)) == (16, 32, "e4m3fn_e8m0_t16x32")
    assert name_of(fmt) == "mxfp8_e4m3_t16x32"
    assert block_format("e4m3fn_e8m0_t1x32") == block_format("mxfp8_e4m3")
    assert name_of(block_format("mxfp8_32x32").untiled) == "mxfp8_e4m3"
    assert [name_of(x) for x in operand_formats("mxfp4_t32x32xmxfp8_32x32")] == [
        "mxfp4_t32x32",
        "mxfp8_32x32",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int8_e8m0_t3x32", "the rows of a tile must be a power of two, not 3"),
        ("int8_e8m0_t2048x32", "the rows of a tile must be a power of two from 1 to 1024"),
        ("int8_float32_t8x0", "rows are for groups of a fixed size, not for a channel"),
        ("int8_e8m0_t4x32_float32_t0", "several rows must not lie under a scale of one channel"),
        ("e2m1fn_e4m3fn_t4x16_float32_t32", "must be the largest one of a fixed size"),
        ("uint8_float32_uint8_t4x32", "a scale with a zero point must be of one row"),
        ("sm6dz_e8m0f_t8x32_modes", "modes need one exponent scale of blocks alone"),
    ],
)
def test_what_no_format_is(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        block_format(text)


def test_bad_input() -> None:
    with pytest.raises(
        ValueError, match=r"mxfp8_32x32 has tiles of 32 rows, .* not of shape \(64,"
    ):
        axs6.encode(matrix((64,)), "mxfp8_32x32")
    message = (
        "has tiles of 32 x 32 values, which need as many rows or columns, not a matrix of 9 x 31"
    )
    with pytest.raises(ValueError, match=message):
        axs6.encode(matrix((9, 31)), "mxfp8_32x32")
    assert axs6.encode(matrix((9, 32)), "mxfp8_32x32").exponents.shape == (1, 1)
    for empty in ((0, 31), (9, 0)):
        assert axs6.encode(np.zeros(empty, np.float32), "mxfp8_32x32").shape == empty
    x = matrix((75, 100))
    x[40, 70] = np.nan
    for axis in (-1, 0):
        with pytest.raises(ValueError, match=r"element \(40, 70\) is nan"):
            axs6.encode(x, "mxfp4_t16x16", axis=axis)
    blocks = axs6.encode(matrix((40, 64)), "mxfp4_t16x16")
    with pytest.raises(ValueError, match=r"need scales of shape \(3, 4\), not \(40, 4\)"):
        Blocks(blocks.format, blocks.untiled.scales, blocks.codes, (40, 64))
    with pytest.raises(ValueError, match=r"values of at least two axes, not of shape \(2560,\)"):
        Blocks(blocks.format, blocks.scales, blocks.codes, (2560,))
    with pytest.raises(
        ValueError, match=r"needs? values of at least two axes, not of shape \(64,\)"
    ):
        axs6.unpack(b"", (64,), "mxfp4_t16x16")
