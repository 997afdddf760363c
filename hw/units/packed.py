"""Packed blocks as stimulus: every code of every mode, and every kind of error."""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.formats import AXS6, Mode
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.modes import max_codes, payload_bits, sparse_values
from axs6.golden.pack import HEADER_BYTES, packed_bytes
from axs6.golden.rows import write_rows
from axs6.hw.units.blocks import packed_items
from axs6.hw.units.unit import Items

Rows = NDArray[np.uint8]


def packed_corners(block: int) -> Rows:
    """Every code of every mode with every exponent, every mask bit, and every kind of error."""
    dense, precise = (_every_code(mode, block) for mode in (Mode.DENSE, Mode.HIGH_PRECISION))
    return np.concatenate([dense, precise, sparse_corners(block)])


def sparse_corners(block: int) -> Rows:
    """Sparse blocks with each bit of the mask set and not, and every kind of error."""
    counts = _every_count(block)
    right = np.concatenate([_every_drop(block), counts])
    wrong = [
        _wrong(right, block),
        _with_kept_zeros(counts, block),
        _with_other_masks(counts, block),
    ]
    return np.concatenate([right, *wrong])


def packed_random(
    rng: Generator,
    exponents: NDArray[Any],
    block: int,
    shares: tuple[float, float, float] = (0.4, 0.3, 0.3),
    wrong: float = 0.1,
) -> Rows:
    """Random blocks with these exponents.

    Args:
        rng: generator.
        exponents: one for each block.
        block: values in a block.
        shares: of dense, sparse and high-precision blocks.
        wrong: share of blocks with an inverted bit.
    """
    count = len(exponents)
    modes = rng.choice(np.arange(Mode.RESERVED, dtype=np.uint8), count, p=shares)
    codes = rng.integers(0, 1 << AXS6_ELEMENT.width, (count, block), np.uint8)
    kept = rng.random((count, block)) < rng.random((count, 1))
    codes = np.where(kept, codes, codes & np.uint8(AXS6_ELEMENT.sign_bit))
    rows = packed_dense(exponents, codes, modes == Mode.SPARSE)
    precise = np.flatnonzero(modes == Mode.HIGH_PRECISION)
    largest = np.tile(max_codes(AXS6, Mode.HIGH_PRECISION), block // 2)
    given = rng.integers(0, largest + 1, (len(precise), block))
    rows[precise] = _rows(exponents[precise], modes[precise], given)
    flipped = np.flatnonzero(rng.random(count) < wrong)
    bits = rng.integers(0, 8 * rows.shape[1], len(flipped))
    rows[flipped, bits // 8] ^= np.uint8(1) << (bits % 8).astype(np.uint8)
    return rows


def packed_dense(exponents: NDArray[Any], codes: NDArray[Any], sparse: NDArray[np.bool_]) -> Rows:
    """Dense blocks as bytes; sparse where that is asked for and allowed."""
    dropped, allowed = sparse_values(codes.astype(np.uint8), AXS6)
    chosen = sparse & allowed
    kept = np.where(chosen[:, None] & dropped, 0, codes)
    return _rows(exponents, np.where(chosen, Mode.SPARSE, Mode.DENSE), kept)


def _rows(exponents: NDArray[Any], modes: NDArray[Any], codes: NDArray[Any]) -> Rows:
    exponents, modes, codes = (array.astype(np.uint8) for array in (exponents, modes, codes))
    shape = codes.shape
    return write_rows(
        Blocks.with_modes(exponents[:, None], modes[:, None], codes[:, None], shape)
    ).copy()


def _every_code(mode: Mode, block: int) -> Rows:
    """Every code in some lane with each exponent, in every lane with some, the largest with all."""
    sizes = np.unique(max_codes(AXS6, mode))[::-1].astype(np.int64) + 1
    kinds, most = len(sizes), sizes.max() * len(sizes)
    exponents = np.arange(AXS6_SCALE.largest_code + 1)
    index = np.arange(most) + kinds * exponents[:, None]
    codes = (index % most // kinds).reshape(-1, block) % np.resize(sizes, block)
    largest = np.tile(np.resize(sizes, block) // 2 - 1, (len(exponents), 1))
    codes = np.concatenate([codes, largest])
    exponents = np.append(np.repeat(exponents, most // block), exponents)
    return _rows(exponents, np.full(len(codes), mode), codes)


def _every_drop(block: int) -> Rows:
    """Sparse blocks whose zeros start at each lane, side by side and apart, of both signs."""
    lanes = np.arange(block)
    starts = lanes[:, None]
    together = (lanes - starts) % block < block // 4
    apart = (lanes - starts) % 4 == 0
    many = (lanes - starts) % block < block // 2
    zero = np.concatenate([together, apart, many])
    filled = (lanes + starts) % AXS6_ELEMENT.largest_code + 1 | AXS6_ELEMENT.sign_bit * (lanes % 2)
    codes = np.where(zero, AXS6_ELEMENT.sign_bit * (starts[:1] % 2), np.tile(filled, (3, 1)))
    codes[2 * block :][many] = AXS6_ELEMENT.sign_bit
    dropped, _ = sparse_values(codes.astype(np.uint8), AXS6)
    codes = np.where(dropped, 0, codes)
    return _rows(
        np.resize(np.arange(100, 150), len(codes)), np.full(len(codes), Mode.SPARSE), codes
    )


def _every_count(block: int) -> Rows:
    """Sparse blocks that drop each number of values before each lane, other ones three times."""
    rng, drops = np.random.default_rng(block), block // 4
    dropped = [
        np.concatenate(
            [
                rng.choice(lane, before, replace=False),
                rng.choice(np.arange(lane, block), drops - before, replace=False),
            ]
        )
        for lane in range(block)
        for before in range(max(0, lane + drops - block), min(drops, lane) + 1)
        for _ in range(3)
    ]
    bits = rng.integers(0, AXS6_ELEMENT.width - 1, (len(dropped), block))
    codes = 1 << bits | AXS6_ELEMENT.sign_bit * rng.integers(0, 2, bits.shape)
    codes[np.arange(len(dropped))[:, None], np.array(dropped, int)] = 0
    exponents = np.resize(np.arange(100, 150), len(codes))
    return _rows(exponents, np.full(len(codes), Mode.SPARSE), codes)


def _with_kept_zeros(sparse: Rows, block: int) -> Rows:
    """Sparse blocks in which one stored code is a zero: an error before the last dropped value."""
    bits = np.unpackbits(np.repeat(sparse, 6, axis=0), axis=1, bitorder="little")
    index = np.arange(len(bits))
    first = HEADER_BYTES * 8 + block + AXS6_ELEMENT.width * (index * 5 % (block - block // 4))
    for bit in range(AXS6_ELEMENT.width - 1):
        bits[index, first + bit] = 0
    return np.packbits(bits, axis=1, bitorder="little")


def _with_other_masks(sparse: Rows, block: int) -> Rows:
    """Sparse blocks whose masks drop each number of values but the right one."""
    rng = np.random.default_rng(block)
    dropped = np.repeat(np.delete(np.arange(block + 1), block // 4), 4)
    bits = np.unpackbits(
        np.resize(sparse, (len(dropped), sparse.shape[1])), axis=1, bitorder="little"
    )
    order = rng.permuted(np.tile(np.arange(block), (len(dropped), 1)), axis=1)
    first = HEADER_BYTES * 8
    bits[:, first : first + block] = order >= dropped[:, None]
    return np.packbits(bits, axis=1, bitorder="little")


def _wrong(sparse: Rows, block: int) -> Rows:
    """Blocks with one bit of header, mask or padding inverted, of every mode."""
    used = 8 * HEADER_BYTES + payload_bits(AXS6.with_block(block), Mode.SPARSE)
    header, mask = np.arange(8 * HEADER_BYTES), 8 * HEADER_BYTES + np.arange(block)
    flipped = np.concatenate([header, mask, np.arange(used, 8 * packed_bytes(block=block))])
    rows = np.resize(sparse, (len(flipped), sparse.shape[1])).copy()
    rows[np.arange(len(rows)), flipped // 8] ^= np.uint8(1) << (flipped % 8).astype(np.uint8)
    modes = np.resize(sparse, (1 << AXS6.mode_bits, sparse.shape[1])).copy()
    modes[:, 0] = modes[:, 0] & ~np.uint8(3) | np.arange(1 << AXS6.mode_bits, dtype=np.uint8)
    return np.concatenate([rows, modes])


def packed_vectors(items: Items, block: int) -> Items:
    """Vectors of dense pairs as packed blocks, some sparse, some with errors.

    Sparse edge cases come as pairs of two, and each alone beside a dense block, so that no other
    error hides its own.
    """
    count = len(items["last"])
    pairs, edges = {}, sparse_corners(block)
    for turn, side in enumerate("ab"):
        rows = packed_dense(
            items[f"{side}.exponent"], items[f"{side}.codes"], np.arange(count) % 3 == turn
        )
        plain = np.repeat(rows[2:3], len(edges), axis=0)  # dense for both operands
        alone = [edges, plain] if turn == 0 else [plain, edges]
        pairs[side] = np.concatenate([rows, np.roll(edges, 7 * turn, axis=0), *alone])
    ends = np.arange(len(edges)) % 3 == 2
    ends[-1] = True
    last = [items["last"], ends, np.ones(2 * len(edges), np.int64)]
    return _pair_items(pairs) | {"last": np.concatenate(last)}


def random_pairs(rng: Generator, exponents: NDArray[Any], block: int) -> Items:
    """Pairs of packed blocks with exponents (n, 2); a few are errors."""
    return _pair_items(
        {
            side: packed_random(rng, exponents[:, k], block, (0.5, 0.48, 0.02), wrong=0.02)
            for k, side in enumerate("ab")
        }
    )


def _pair_items(rows: dict[str, Rows]) -> Items:
    return {
        name: array
        for side, given in rows.items()
        for name, array in packed_items(given, f"{side}.").items()
    }
