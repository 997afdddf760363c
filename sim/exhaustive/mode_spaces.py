"""Spaces of block modes: every high-precision code, every mask, every set of zeros."""

from math import comb

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.formats import AXS6, FP32, Mode
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.modes import dropped_values, max_codes
from axs6.golden.pack import HEADER_BYTES, packed_bytes
from axs6.golden.rows import write_rows
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.registry import find
from axs6.hw.units.blocks import packed_items
from axs6.sim.exhaustive.space import Design, Items, Space, named

EXPONENTS = 1 << AXS6_SCALE.bits
MASK_CHUNKS = 100


def precise_space(dtype: str, block: int = 8, view: str = STRUCTURE) -> Space:
    """Every code of high-precision blocks with every exponent, in each lane of the decoder.

    Args:
        dtype: of the values.
        block: lanes.
        view: of the decoder.
    """
    parameters = find("decoder").parameters(
        {"block": block, "dtype": dtype, "blocks": "packed", "view": view}
    )
    largest = np.resize(max_codes(AXS6, Mode.HIGH_PRECISION), block)
    count = int(largest.max()) + 1

    def inputs(chunk: int) -> Items:
        codes = (np.arange(count)[:, None] + np.arange(block) // 2) & largest
        exponents = np.repeat(np.arange(EXPONENTS, dtype=np.uint8), count)[:, None]
        blocks = Blocks.with_modes(
            exponents,
            np.full_like(exponents, Mode.HIGH_PRECISION),
            np.tile(codes.astype(np.uint8), (EXPONENTS, 1))[:, None],
            (len(exponents), block),
        )
        return packed_items(write_rows(blocks))

    return Space(
        name=named(f"decoder-{dtype}-high_precision", view),
        formula=f"2^8 exponents x {count} codes x {block} lanes",
        cases=EXPONENTS * count * block,
        chunks=1,
        design=Design(f"decoder {dtype} packed", lambda: find("decoder").build(**parameters)),
        inputs=inputs,
        references={"golden model": lambda items: find("decoder").golden(items, parameters)},
    )


def mask_space(block: int = 32) -> Space:
    """Every mask that leaves out a quarter of the values, through the expander.

    The stored codes are all different from their neighbours, and none is zero.
    """
    parameters = find("expander").parameters({"block": block})
    masks = comb(block, dropped_values(block))

    def inputs(chunk: int) -> Items:
        size = masks // MASK_CHUNKS
        kept = _masks(chunk * size + np.arange(size), block)
        codes = np.arange(block - dropped_values(block)) * 5 % 31 + 1
        bits = (codes[:, None] >> np.arange(AXS6_ELEMENT.width) & 1).astype(np.uint8).ravel()
        rows = np.zeros((size, packed_bytes(block=block)), np.uint8)
        rows[:, 0] = 4 * (chunk % 64) | Mode.SPARSE
        payload = np.concatenate([kept, np.tile(bits, (size, 1))], axis=1)
        packed = np.packbits(payload, axis=1, bitorder="little")
        rows[:, HEADER_BYTES : HEADER_BYTES + packed.shape[1]] = packed
        return packed_items(rows)

    return Space(
        name="masks",
        formula=f"{masks:,} masks of {block} values",
        cases=masks,
        chunks=MASK_CHUNKS,
        design=Design("expander", lambda: find("expander").build(**parameters)),
        inputs=inputs,
        references={"golden model": lambda items: find("expander").golden(items, parameters)},
    )


def _masks(numbers: NDArray[np.int64], block: int) -> NDArray[np.uint8]:
    """Masks with a quarter of zeros by number, in the combinatorial number system."""
    kept = np.ones((len(numbers), block), np.uint8)
    left = numbers.copy()
    for zeros in range(dropped_values(block), 0, -1):
        counts = np.array([comb(lane, zeros) for lane in range(block + 1)])
        lane = np.searchsorted(counts, left, side="right") - 1
        kept[np.arange(len(left)), lane] = 0
        left -= counts[lane]
    return kept


def zeros_space(block: int = 16, view: str = STRUCTURE) -> Space:
    """Every set of lanes that are zero, of either sign, through the encoder of sparse blocks.

    The others hold values that are all different.
    """
    parameters = find("encoder").parameters(
        {"block": block, "mode": Mode.SPARSE.label, "view": view}
    )

    def inputs(chunk: int) -> Items:
        number, lane = np.arange(1 << block)[:, None], np.arange(block)
        zero = number >> lane & 1 == 1
        field = np.uint32(FP32.bias + chunk - 1) << FP32.fraction_bits
        values = field + ((lane + 1) << FP32.fraction_bits - 5)
        small = (lane % 2) * FP32.sign_bit + (lane // 2 % 2)
        return {"values": np.where(zero, small, values).astype(np.uint32)}

    return Space(
        name=named("zeros", view),
        formula=f"2^{block} sets of zeros x 2 exponents",
        cases=2 << block,
        chunks=2,
        design=Design("encoder sparse", lambda: find("encoder").build(**parameters)),
        inputs=inputs,
        references={"golden model": lambda items: find("encoder").golden(items, parameters)},
    )
