"""Matrix products with the bits of the hardware, computed by compiled kernels or the BLAS at hand.

On the CPU `axs6.torch.kernels` computes them, where g++ has compiled it. Elsewhere torch does:
within a block all products share one exponent. An operand is held as m * 2^(E - 132), so that a
product of two panels of B columns is the term t = P * 2^(Ea + Eb - 264) of the FP32 accumulation:
a sum of multiples of one power of two with at most 15 significant bits, which every order of
additions, with FMA or without, gives exactly. Each panel's product goes into a buffer, which is
then added to the accumulator: one rounding for each block, in index order. `addmm` would save a
pass, but would be wrong wherever a BLAS starts its chain of FMAs from the accumulator.

That holds while no operand, product or term leaves FP32's normal range. Rows and columns that
might leave it are computed again in float64, which holds every term exactly, each step rounded
to FP32 by `axs6.torch.ieee`.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from axs6.golden.blocks import Blocks
from axs6.golden.formats import AXS6, FP32, name_of
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.nonfinite import NonFinite
from axs6.torch import kernels
from axs6.torch.ieee import narrow, round_to_fp32
from axs6.torch.quantise import (
    as_array,
    axs6_of,
    check_input,
    encode,
    has_kernels,
    in_torch,
    power_table,
    refuse,
    round_blocks,
)

DIVISOR = AXS6_ELEMENT.divisor**2
"""What a sum of products of two magnitudes is divided by."""

OFFSET = -(2 * AXS6_SCALE.bias + DIVISOR.bit_length()) // 2
"""An operand is m * 2^(E + OFFSET)."""

LOWEST = 1 - FP32.bias
SMALLEST_EXPONENT = LOWEST - OFFSET
"""Smallest shared exponent whose scaled operands are normal."""

SMALLEST_SUM = LOWEST - 2 * OFFSET
"""Smallest sum of two shared exponents whose products are normal."""

LARGEST_SUM = FP32.bias + 1 - 15 - 2 * OFFSET
"""Largest sum of two shared exponents whose terms, of at most 15 bits, are finite."""

COLUMN_EXPONENTS = (64, 192)
"""Columns with exponents beyond these are left to float64, so that rows need not be."""

NO_BLOCK = 2 * AXS6_SCALE.largest_code
"""Lowest exponent of a row whose values are all zero."""

TILE_ROWS = 256
TILE_COLUMNS = 1024
"""Outputs worked on at a time: the accumulator and its buffer stay within a core's cache."""

SCALE = DIVISOR / (1 << DIVISOR.bit_length())


@dataclass(frozen=True, eq=False)
class Operand:
    """A batch of matrices in AXS-6, as the product wants it.

    Args:
        magnitudes: signed m, int8 or int16 of shape (G, R, n * B).
        exponents: shared exponents, int32 of shape (G, R, n).
        packed: the same for the compiled kernels; None where there are none.
    """

    magnitudes: Tensor
    exponents: Tensor
    packed: kernels.Packed | None = None

    @property
    def block(self) -> int:
        """Values in a block, B."""
        return self.magnitudes.shape[-1] // self.exponents.shape[-1]

    @cached_property
    def scaled(self) -> Tensor:
        """m * 2^(E + OFFSET), float32 of the shape of the magnitudes; of no use where E is below
        `SMALLEST_EXPONENT`."""
        powers = power_table(self.magnitudes.device, OFFSET)[self.exponents.long()]
        return (self._blocks * powers.unsqueeze(-1)).float().flatten(-2)

    @cached_property
    def lowest(self) -> Tensor:
        """Least exponent of each row, blocks of zeros left out, int32 of shape (G, R)."""
        empty = (self._blocks == 0).all(-1)
        return self.exponents.masked_fill(empty, NO_BLOCK).amin(-1)

    @cached_property
    def highest(self) -> Tensor:
        """Largest exponent of each row, int32 of shape (G, R)."""
        return self.exponents.amax(-1)

    @property
    def _blocks(self) -> Tensor:
        """The magnitudes, (G, R, n, B)."""
        return self.magnitudes.unflatten(-1, (-1, self.block))

    def wide(self, batch: int, rows: Tensor | slice) -> Tensor:
        """Some rows of one matrix, m * 2^(E + OFFSET) in float64, shape (R', n * B)."""
        powers = power_table(self.magnitudes.device, OFFSET)[self.exponents[batch, rows].long()]
        return (self._blocks[batch, rows] * powers.unsqueeze(-1)).flatten(-2)


def prepare(x: Tensor, block: int, nonfinite: NonFinite, name: str) -> Operand:
    """Encode matrices (G, R, K) along K, which is at least 1.

    Raises:
        TypeError: `x` is not float32, bfloat16, float16 or float64.
        ValueError: a value is not finite and `nonfinite` is "error".
    """
    check_input(x, name)
    if x.dtype == torch.float64:
        return from_blocks(encode(x, block=block, nonfinite=nonfinite, name=name), x.device)
    if has_kernels(x.device):
        values, threads = as_array(x), torch.get_num_threads()
        packed = kernels.encode(values, axs6_of(block), nonfinite, threads)
        if packed is None:
            refuse(x, name)
        return _of_packed(packed)
    n = -(-x.shape[-1] // block)
    count = x.shape[0] * x.shape[1] * n
    magnitudes = torch.empty((count, block), dtype=torch.int8, device=x.device)
    exponents = torch.empty(count, dtype=torch.int32, device=x.device)
    for chunk in round_blocks(x, block, nonfinite, name):
        exponents[chunk.rows] = chunk.exponents
        magnitudes[chunk.rows] = chunk.steps
    shape = x.shape[:2]
    return Operand(magnitudes.view(*shape, n * block), exponents.view(*shape, n))


def from_blocks(blocks: Blocks, device: torch.device) -> Operand:
    """The operand of matrices that are encoded already, of shape (G, R, K).

    Raises:
        ValueError: they are not in AXS-6.
    """
    if not in_torch(blocks.format):
        raise ValueError(f"blocks must be in {name_of(AXS6)}, not {name_of(blocks.format)}")
    if has_kernels(device):
        return _of_packed(kernels.pack(blocks))
    exponents = torch.from_numpy(blocks.exponents).to(device, torch.int32)
    magnitudes = torch.from_numpy(AXS6_ELEMENT.integers[blocks.codes]).to(device, torch.int8)
    return Operand(magnitudes.flatten(-2), exponents)


def _of_packed(packed: kernels.Packed) -> Operand:
    exponents = torch.from_numpy(packed.exponents)
    return Operand(torch.from_numpy(packed.lanes), exponents, packed)


def product(a: Operand, b: Operand) -> Tensor:
    """y[g, m, n] = sum over k of a[g, m, k] * b[g, n, k], as `axs6.matmul` defines it.

    Args:
        a, b: operands of shapes (G, M, K) and (G, N, K).

    Returns:
        float32 of shape (G, M, N). Subnormals are kept, overflow gives infinity, and a NaN is
        always 0x7fc00000.
    """
    if a.packed is not None and b.packed is not None and kernels.multiplies(a.packed, b.packed):
        return torch.from_numpy(kernels.matmul(a.packed, b.packed, threads=torch.get_num_threads()))
    y = a.scaled.new_zeros(*a.scaled.shape[:2], b.scaled.shape[1])
    _narrow_product(a, b, y)
    low, high = COLUMN_EXPONENTS
    odd_columns = (b.lowest < low) | (b.highest > high)
    low_sum = a.lowest + b.lowest.masked_fill(odd_columns, NO_BLOCK).amin(-1, keepdim=True)
    high_sum = a.highest + b.highest.masked_fill(odd_columns, 0).amax(-1, keepdim=True)
    odd_rows = (low_sum < SMALLEST_SUM) | (high_sum > LARGEST_SUM)
    odd_rows |= a.lowest < SMALLEST_EXPONENT
    _replace_rows(y, odd_rows, a, b)
    _replace_rows(y.mT, odd_columns, b, a)
    # A NaN needs an infinity first: none is in reach of so many of the largest terms.
    blocks = a.exponents.shape[-1]
    if int(a.highest.max() + b.highest.max()) + blocks.bit_length() > LARGEST_SUM:
        y.masked_fill_(y.isnan(), torch.nan)
    return y


def _narrow_product(a: Operand, b: Operand, y: Tensor) -> None:
    """Accumulate into zeros `y` in FP32, and divide."""
    size = a.block
    batches, rows, columns = y.shape
    tile_rows, tile_columns = min(rows, TILE_ROWS), min(columns, TILE_COLUMNS)
    tile_batches = max(1, TILE_ROWS * TILE_COLUMNS // (tile_rows * tile_columns))
    buffer = y.new_empty(min(batches, tile_batches) * tile_rows * tile_columns)
    # A tensor: some devices multiply by the reciprocal of a number.
    scale = y.new_tensor(SCALE)
    for g in range(0, batches, tile_batches):
        for row in range(0, rows, tile_rows):
            left = a.scaled[g : g + tile_batches, row : row + tile_rows]
            for column in range(0, columns, tile_columns):
                right = b.scaled[g : g + tile_batches, column : column + tile_columns].mT
                total = y[g : g + tile_batches, row : row + tile_rows]
                total = total[..., column : column + tile_columns]
                terms = buffer[: total.numel()].view(total.shape)
                for k in range(0, left.shape[-1], size):
                    torch.bmm(left[..., k : k + size], right[:, k : k + size], out=terms)
                    total.add_(terms)
                total.div_(scale)


def _replace_rows(y: Tensor, odd: Tensor, a: Operand, b: Operand) -> None:
    """Compute rows of `y` (G, M, N) again in float64: those where `odd` (G, M) is true."""
    for batch in odd.any(-1).nonzero().flatten().tolist():
        right = b.wide(batch, slice(None))
        for rows in odd[batch].nonzero().flatten().split(TILE_ROWS):
            y[batch, rows] = _wide_product(a.wide(batch, rows), right, a.block)


def _wide_product(a: Tensor, b: Tensor, size: int) -> Tensor:
    """The product of float64 rows (M, K) and (N, K), every step rounded to FP32."""
    total = a.new_zeros(len(a), len(b))
    for k in range(0, a.shape[-1], size):
        terms = torch.mm(a[:, k : k + size], b[:, k : k + size].T)
        total = round_to_fp32(total + round_to_fp32(terms))
    return narrow(total / SCALE)
