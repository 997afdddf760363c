"""Checks of decoding and of packed bytes: every code, and blocks of all modes."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np

from axs6.golden.blocks import Blocks
from axs6.golden.check.cases import inputs
from axs6.golden.check.comparison import Comparison, Model, as_blocks, as_exact, magnitude_bits
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import BF16, FP32, FP64
from axs6.golden.formats import Mode
from axs6.golden.formats.modes import MODE_BLOCKS

OUTPUTS = (("float32", FP32), ("bfloat16", BF16), ("float64", FP64))


def decode_all(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Every code at every exponent, in every output format."""
    pairs = [(exponent, code) for exponent in range(256) for code in range(64)]
    for name, fmt in OUTPUTS:
        expected = [exact.decode_bits(exponent, code, fmt) for exponent, code in pairs]
        unsigned = f"u{(fmt.exponent_bits + fmt.fraction_bits + 1) // 8}"
        for size in MODE_BLOCKS:
            exponents = np.repeat(np.arange(256, dtype=np.uint8), 64 // size)
            codes = np.tile(np.arange(64, dtype=np.uint8), 256).reshape(-1, size)
            got = model.decode(as_blocks(exponents, codes), name).view(unsigned).ravel().tolist()
            for pair, answer, by_definition in zip(pairs, got, expected, strict=True):
                yield Comparison(f"decode to {name}, code", pair, answer, by_definition)


def decode_precise(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Every code of high-precision blocks at every exponent, in every output format."""
    for name, fmt in OUTPUTS:
        unsigned = f"u{(fmt.exponent_bits + fmt.fraction_bits + 1) // 8}"
        for size in MODE_BLOCKS:
            exponents = np.repeat(np.arange(256, dtype=np.uint8), 256 // size)
            codes = np.empty((len(exponents), size), np.uint8)
            codes[:, ::2] = np.resize(np.arange(128, dtype=np.uint8), codes[:, ::2].shape)
            codes[:, 1::2] = np.resize(np.arange(32, dtype=np.uint8), codes[:, 1::2].shape)
            array = as_blocks(exponents, codes, mode=Mode.HIGH_PRECISION)
            got = model.decode(array, name).view(unsigned).reshape(codes.shape).tolist()
            for exponent, row, answers in zip(exponents.tolist(), codes.tolist(), got, strict=True):
                for index, (code, answer) in enumerate(zip(row, answers, strict=True)):
                    n = magnitude_bits(Mode.HIGH_PRECISION)[index % 2]
                    by_definition = _decoded(exponent, code, fmt, n)
                    what = f"decode to {name}, {n} magnitude bits, code"
                    yield Comparison(what, (exponent, code), answer, by_definition)


_decoded = cache(exact.decode_bits)


def pack_bytes(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Bytes of blocks of all modes, and blocks from bytes, packed tightly and aligned."""
    for size in MODE_BLOCKS:
        exponents, modes, codes = inputs.random_codes_in_modes(size, blocks, rng)
        given = list(zip(modes.tolist(), exponents.tolist(), codes.tolist(), strict=True))
        array = Blocks.with_modes(exponents, modes, codes, (codes.size,))
        for align in (1, 32):
            packed = [exact.pack_block(e, c, align, mode) for mode, e, c in given]
            data = model.pack(array, align)
            ends = np.cumsum([len(piece) for piece in packed]).tolist()
            pieces = [data[a:b] for a, b in pairwise([0, *ends])]
            for block, piece, by_definition in zip(given, pieces, packed, strict=True):
                yield Comparison(f"pack align={align}, block", block, piece, by_definition)
            got = model.unpack(b"".join(packed), array.shape, block=size, align=align)
            back = [
                (mode, *rest) for mode, rest in zip(got.modes.tolist(), as_exact(got), strict=True)
            ]
            for block, piece, answer in zip(given, packed, back, strict=True):
                yield Comparison(f"unpack align={align}, bytes", piece, answer, block)
