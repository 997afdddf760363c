"""Vectors of decoding: packed blocks of every mode, and bytes that are no blocks."""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from axs6.golden.check.cases import inputs
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import BF16, FP32, FP64
from axs6.golden.decode import decode
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.unpack import unpack
from axs6.golden.vectors.subject import BYTES, NUMBER, PATTERNS, WORD, Case, Subject

EXPONENTS: Final = (*range(7), 127, 254, 255)
"""Exponents at which every code is decoded: FP32 subnormals, one, and the largest."""

ALIGN: Final = 32

Decoded = tuple[int, int, list[int], list[int], list[int], list[int]]
"""Exponent, configuration bits and codes; then FP32, BF16 and FP64 patterns of the values."""


def decode_by_definition(block: int, align: int, packed: bytes) -> Decoded:
    """The result of exact fractions for one packed block."""
    ((config, (exponent, codes)),) = exact.unpack(packed, block, 1, align)
    widths = exact.PRECISE_BITS if config == 2 else exact.DENSE_BITS
    single, short, double = (
        [exact.decode_bits(exponent, c, fmt, widths[i % 2]) for i, c in enumerate(codes)]
        for fmt in (FP32, BF16, FP64)
    )
    return exponent, config, codes, single, short, double


def decode_by_golden(block: int, align: int, packed: bytes) -> Decoded:
    """The result of the golden model for one packed block."""
    found = unpack(packed, (block,), block=block, align=align)
    single = decode(found, np.float32).view(np.uint32).tolist()
    short = decode(found, "bfloat16").tolist()
    double = decode(found, np.float64).view(np.uint64).tolist()
    head = int(found.exponents[0]), int(found.modes[0]), found.codes[0].tolist()
    return *head, single, short, double


def _decode(name: str, mode: int, exponent: int, codes: list[int], align: int = 1) -> Case:
    packed = exact.pack_block(exponent, codes, align, mode)
    return Case(name, {"block": len(codes), "align": align, "packed": packed})


def decode_cases() -> Iterator[Case]:
    """Every code of dense and high-precision blocks at chosen exponents; masks; random blocks."""
    for exponent in EXPONENTS:
        for start in (0, 32):
            codes = list(range(start, start + 32))
            yield _decode(f"dense_codes_exponent_{exponent}", 0, exponent, codes)
        for start in range(0, 128, 16):
            pairs = [(start + k, (start + k) % 32) for k in range(16)]
            codes = [code for pair in pairs for code in pair]
            yield _decode(f"high_precision_codes_exponent_{exponent}", 2, exponent, codes)
    for block in MODE_BLOCKS:
        for name, kept in _masks(block).items():
            codes = [(k % 62 + 1) * keeps for k, keeps in enumerate(kept)]
            yield _decode(name, 1, 128, codes)
        later = [0] * (block // 4) + [32, 0] + [63] * (block - block // 4 - 2)
        yield _decode("stored_zeros_of_a_sparse_block", 1, 255, later)
        yield _decode("zeros", 0, 0, [0] * block)
        yield _decode("negative_zeros", 0, 255, [32] * block)
        yield _decode("largest", 0, 255, [31, 63] * (block // 2))
        yield _decode("largest_high_precision", 2, 255, [63, 31] * (block // 2))
        rng = np.random.default_rng([8, block])
        exponents, modes, rows = inputs.random_codes_in_modes(block, 16, rng)
        for k, (exponent, mode) in enumerate(zip(exponents.tolist(), modes.tolist(), strict=True)):
            yield _decode("random", mode, exponent, rows[k].tolist(), ALIGN if k % 4 == 3 else 1)


def _masks(block: int) -> dict[str, list[int]]:
    """Masks of sparse blocks."""
    quarter = block // 4
    return {
        "first_quarter_not_stored": [0] * quarter + [1] * (block - quarter),
        "last_quarter_not_stored": [1] * (block - quarter) + [0] * quarter,
        "every_fourth_not_stored": [int(k % 4 != 1) for k in range(block)],
    }


DECODE: Final = Subject(
    name="decode",
    title="packed blocks, and the values they hold",
    inputs={"block": NUMBER, "align": NUMBER, "packed": BYTES},
    outputs={
        "exponent": NUMBER,
        "config": NUMBER,
        "codes": PATTERNS,
        "fp32": PATTERNS,
        "bf16": PATTERNS,
        "fp64": PATTERNS,
    },
    cases=decode_cases,
    exact=decode_by_definition,
    golden=decode_by_golden,
)

FAULTS: Final = {
    "truncated": r"bytes end in block (\d+)",
    "trailing": r"data must be (\d+) blocks, \d+ bytes",
    "header": r"block (\d+): header bits",
    "reserved": r"block (\d+): mode 3 is reserved",
    "mask": r"block (\d+): the mask of a sparse block",
    "padding": r"block (\d+): padding must be zero",
}
"""Faults of packed blocks, and the golden model's messages for them."""


def unpack_by_definition(block: int, align: int, count: int, packed: bytes) -> tuple[str, int]:
    """The fault of packed blocks and the block that has it, or "none" and their number."""
    try:
        return "none", len(exact.unpack(packed, block, count, align))
    except exact.MalformedError as error:
        return error.fault, error.block


def unpack_by_golden(block: int, align: int, count: int, packed: bytes) -> tuple[str, int]:
    """As `unpack_by_definition`."""
    try:
        return "none", len(unpack(packed, (count * block,), block=block, align=align).exponents)
    except ValueError as error:
        for fault, message in FAULTS.items():
            found = re.search(message, str(error))
            if found:
                return fault, int(found[1])
        raise


def unpack_cases() -> Iterator[Case]:
    """Blocks of all modes after each other, whole and then with one fault."""
    for block in MODE_BLOCKS:
        for align in (1, ALIGN):
            blocks = _blocks(block, align, np.random.default_rng([9, block, align]))
            count, whole = len(blocks), b"".join(blocks)
            for name, said, packed in (
                ("well_formed", count, whole),
                ("last_byte_missing", count, whole[:-1]),
                ("header_alone", count, whole[:2]),
                ("one_block_too_few", count + 1, whole),
                ("one_block_too_many", count - 1, whole),
                ("one_byte_too_many", count, whole + b"\0"),
            ):
                yield _unpack(name, block, align, said, packed)
            yield from _one_fault(block, align, blocks)
            yield from _one_skipped(block, align)


def _blocks(block: int, align: int, rng: np.random.Generator) -> list[bytes]:
    """Four packed blocks: sparse, dense, high-precision and sparse."""
    exponents, modes, codes = inputs.random_codes_in_modes(block, 60, rng)
    dense, sparse, precise = (np.flatnonzero(modes == mode).tolist() for mode in range(3))
    return [
        exact.pack_block(int(exponents[k]), codes[k].tolist(), align, int(modes[k]))
        for k in (sparse[0], dense[0], precise[0], sparse[1])
    ]


def _one_fault(block: int, align: int, blocks: list[bytes]) -> Iterator[Case]:
    """The blocks with one bit wrong that should be zero, or one too many or too few in a mask."""
    used = 16 + block + block * 3 // 4 * 6
    for number, data in enumerate(blocks):
        sparse = number in (0, 3)
        ends = used if sparse else 16 + block * 6
        mask = int.from_bytes(data, "little") >> 16
        wrong = {"header_bit_10": 1 << 10, "header_bit_15": 1 << 15}
        if not sparse:
            wrong["reserved_mode"] = ~data[0] & 3
        else:
            first = next(k for k in range(block) if not mask >> k & 1)
            last = next(k for k in reversed(range(block)) if mask >> k & 1)
            wrong |= {"mask_bit_too_many": 1 << 16 + first, "mask_bit_too_few": 1 << 16 + last}
        if ends < 8 * len(data):
            wrong |= {"first_padding_bit": 1 << ends, "last_padding_bit": 1 << 8 * len(data) - 1}
        for name, bits in wrong.items():
            word = int.from_bytes(data, "little") ^ bits
            changed = [*blocks[:number], word.to_bytes(len(data), "little"), *blocks[number + 1 :]]
            yield _unpack(name, block, align, len(blocks), b"".join(changed))


def _one_skipped(block: int, align: int) -> Iterator[Case]:
    """After a right block one whose mask stores the first zero, and leaves out one more behind."""
    quarter = block // 4
    for name, code in (("mask_skips_zero", 0), ("mask_skips_minus_zero", 32)):
        codes = [0] * quarter + [code] + [1] * (block - quarter - 1)
        right = exact.pack_block(129, codes, align, 1)
        word = int.from_bytes(right, "little") ^ (1 << 16 | 1 << 16 + quarter)
        yield _unpack(name, block, align, 2, right + word.to_bytes(len(right), "little"))


def _unpack(name: str, block: int, align: int, count: int, packed: bytes) -> Case:
    return Case(name, {"block": block, "align": align, "count": count, "packed": packed})


UNPACK: Final = Subject(
    name="unpack",
    title="packed blocks after each other, whole or with one fault",
    inputs={"block": NUMBER, "align": NUMBER, "count": NUMBER, "packed": BYTES},
    outputs={"fault": WORD, "number": NUMBER},
    cases=unpack_cases,
    exact=unpack_by_definition,
    golden=unpack_by_golden,
)
