"""The functions compared by `validate`, and their answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.blocks import Blocks
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.decode import decode
from axs6.golden.dot import accumulate, block_dot, matmul
from axs6.golden.encode import encode
from axs6.golden.formats import AXS6, Mode
from axs6.golden.modes import elements
from axs6.golden.pack import pack
from axs6.golden.unpack import unpack


@dataclass(frozen=True)
class Model:
    """The validated functions; tests pass wrong ones and expect reports."""

    encode: Callable[..., Blocks] = encode
    decode: Callable[..., NDArray[Any]] = decode
    pack: Callable[..., bytes] = pack
    unpack: Callable[..., Blocks] = unpack
    block_dot: Callable[..., tuple[NDArray[np.int16], NDArray[np.uint16]]] = block_dot
    accumulate: Callable[..., NDArray[np.float32]] = accumulate
    matmul: Callable[..., NDArray[np.float32]] = matmul
    add: Callable[[fp32.Bits, fp32.Bits], fp32.Bits] = fp32.add
    divide: Callable[[fp32.Bits, int], fp32.Bits] = fp32.divide_by_scale


GOLDEN: Final = Model()


class Comparison(NamedTuple):
    """One answer of the model beside the one by definition: integers, bytes, or nested tuples."""

    what: str
    inputs: Any
    model: Any
    exact: Any


def magnitude_bits(mode: Mode) -> tuple[int, int]:
    """Widths of the magnitudes at even and at odd indices."""
    even, odd = elements(AXS6, mode)
    return even.width - 1, odd.width - 1


def as_exact(blocks: Blocks) -> list[exact.Block]:
    """Blocks as the exact model has them, in index order."""
    exponents = blocks.exponents.ravel().tolist()
    codes = blocks.codes.reshape(-1, blocks.block).tolist()
    return list(zip(exponents, codes, strict=True))


def as_blocks(
    exponents: NDArray[np.uint8], codes: NDArray[np.uint8], mode: Mode = Mode.DENSE
) -> Blocks:
    """Blocks of one mode of exponents (..., n) and codes (..., n, B)."""
    shape = (*exponents.shape[:-1], codes.shape[-2] * codes.shape[-1])
    return Blocks.with_modes(exponents, np.full_like(exponents, mode), codes, shape)
