"""Products of blocks in many formats, by torch's operations on any device.

Every bit is the golden model's. Most products are matrix products in FP32. An operand's values are
integers times powers of two: the sum of the products of two blocks is an integer times a power of
two, and where the integer has at most 24 bits every order of additions, with FMA or without, gives
it exactly. Each such sum goes into a buffer, which is then added to the accumulator: one rounding
for each block, in index order. `addmm` would save a pass, but would be wrong wherever a BLAS starts
its chain of FMAs from the accumulator.

That holds while no operand, product or sum leaves FP32's normal range. Rows and columns that might
leave it, and formats with wider sums or other factors, are computed in float64, each step rounded
to FP32 by `axs6.torch.ieee`: an operation on FP32 values that is rounded to float64 and then to
FP32 is rounded as if once, because float64 has more than twice the bits.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import torch
from torch import Tensor

from axs6.golden.accumulator import Accumulator
from axs6.golden.blocks import Blocks
from axs6.golden.formats import FP32, BlockFormat, Exponent, Shift
from axs6.golden.terms import FLOAT_BITS, Terms
from axs6.torch.ieee import narrow, round_to_fp32, widen
from axs6.torch.kernels.layout import layout
from axs6.torch.kernels.packed import held_blocks, packs
from axs6.torch.lanes import LOWEST, binades, quantised

PART_BITS = 17
"""Bits of the lower parts of wide integers: a sum of 2^12 products of two parts is exact."""

FP32_BITS = FP32.fraction_bits + 1
"""Bits of integers that FP32 holds."""

BEYOND = FP32.bias + 1
"""Exponent of the first power of two that FP32 does not hold."""

NO_BLOCK = 1 << 20
"""Lowest exponent of a row whose values are all zero."""

TILE_ROWS = 256
TILE_COLUMNS = 1024
"""Outputs worked on at a time: the accumulator and its buffer stay within a core's cache."""


@dataclass(frozen=True, eq=False)
class BlockMatrices:
    """A batch of matrices in blocks.

    Args:
        format: of the blocks.
        lanes: an integer for each value, or NaN or an infinity, of shape (G, R, n, B): float32
            where that holds the format's integers, else float64.
        factors: factor of the integers of each block, without a divisor such as AXS-6's 31 over 32,
        float64 of shape (G, R, n); NaN where the scale is. outer: scales of rows, which multiply
        the results at the end, float32 of shape (G, R); None where the format has none.
    """

    format: BlockFormat
    lanes: Tensor
    factors: Tensor
    outer: Tensor | None

    @cached_property
    def finite(self) -> bool:
        """Whether all values are."""
        return bool(self.factors.isfinite().all() and self.lanes.isfinite().all())

    @cached_property
    def single(self) -> Tensor:
        """The values, float32 of shape (G, R, n * B); valid only if `normal`."""
        return (self.lanes * self.factors.unsqueeze(-1)).float().flatten(-2)

    @cached_property
    def lowest(self) -> Tensor:
        """Smallest exponent of the factors of each row, without blocks of zeros, int64 (G, R)."""
        empty = (self.lanes == 0).all(-1)
        return binades(self.factors).masked_fill(empty, NO_BLOCK).amin(-1)

    @cached_property
    def highest(self) -> Tensor:
        """Largest exponent of the factors of each row, int64 (G, R)."""
        return binades(self.factors).amax(-1)

    def rows(self, batch: int, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Lanes (1, R', n, B) and factors (1, R', n) of some rows of one matrix."""
        return self.lanes[batch, rows][None], self.factors[batch, rows][None]


@cache
def multiplies(a: BlockFormat, b: BlockFormat) -> bool:
    """Whether `product` multiplies two formats."""
    if not (packs(a) and packs(b)):
        return False
    if _powers(a, b):
        return max(layout(a).bound, layout(b).bound) < 1 << 2 * PART_BITS
    try:
        return Terms.of(a, b, Accumulator()).bound.bit_length() <= FLOAT_BITS
    except ValueError:
        return False


def _lane_dtype(fmt: BlockFormat) -> torch.dtype:
    return torch.float32 if layout(fmt).bound < 1 << FP32_BITS else torch.float64


def prepare(x: Tensor, fmt: BlockFormat, scale: float | None = None) -> BlockMatrices:
    """Encode matrices (G, R, K) along K to nearest, as an operand.

    Args are those of `axs6.torch.lanes.quantised`.
    """
    shape = (*x.shape[:2], -(-x.shape[-1] // fmt.block))
    lanes = torch.empty(*shape, fmt.block, dtype=_lane_dtype(fmt), device=x.device)
    factors = torch.empty(shape, dtype=torch.float64, device=x.device)
    outer = torch.empty(shape[:2], dtype=torch.float32, device=x.device)
    for found in quantised(x, fmt, scale):
        for whole, part in ((lanes, found.lanes), (factors, found.factors), (outer, found.outer)):
            whole.flatten(0, 1)[found.rows] = part
    return BlockMatrices(fmt, lanes, factors, outer if fmt.outer else None)


def take(blocks: Blocks, device: torch.device) -> BlockMatrices:
    """The operand of encoded matrices (G, R, K) in a supported format."""
    blocks = blocks.untiled
    lanes, factors, _, outer = held_blocks(blocks)
    return BlockMatrices(
        blocks.format,
        torch.from_numpy(lanes.astype(np.float64)).to(device, _lane_dtype(blocks.format)),
        torch.from_numpy(factors).to(device),
        None if outer is None else torch.from_numpy(outer).to(device),
    )


def product(a: BlockMatrices, b: BlockMatrices) -> Tensor:
    """y[g, m, n] = sum over k of a[g, m, k] * b[g, n, k], as `axs6.matmul` defines it.

    Args:
        a, b: operands of shapes (G, M, K) and (G, N, K), of formats that `multiplies` accepts.

    Returns:
        float32 of shape (G, M, N). Subnormals are kept, overflow gives infinity, and a NaN is
        always 0x7fc00000.
    """
    terms = Terms.of(a.format, b.format, Accumulator())
    if _powers(a.format, b.format) and terms.bound < 1 << FP32_BITS and a.finite and b.finite:
        y = _single_product(a, b, terms)
    else:
        y = _double_product((a.lanes, a.factors), (b.lanes, b.factors), terms)
    outer = [x.outer for x in (a, b) if x.outer is not None]
    if outer:
        rows = a.outer.unsqueeze(-1) if a.outer is not None else y.new_ones(1)
        columns = b.outer.unsqueeze(-2) if b.outer is not None else y.new_ones(1)
        y = narrow(widen(y) * widen(narrow(widen(rows) * widen(columns))))
    return y.masked_fill_(y.isnan(), torch.nan)


def _divisor(terms: Terms) -> float:
    return terms.divisor / (1 << terms.scale_bits)


def _single_product(a: BlockMatrices, b: BlockMatrices, terms: Terms) -> Tensor:
    """The product before outer scales, in FP32; in float64 for rows that leave FP32's normal
    range."""
    bits = [layout(x.format).bound.bit_length() for x in (a, b)]
    largest = BEYOND - terms.bound.bit_length()
    odd_columns = (b.lowest < LOWEST // 2) | (b.highest > min(largest // 2, BEYOND - bits[1]))
    low_sum = a.lowest + b.lowest.masked_fill(odd_columns, NO_BLOCK).amin(-1, keepdim=True)
    high_sum = a.highest + b.highest.masked_fill(odd_columns, -NO_BLOCK).amax(-1, keepdim=True)
    odd_rows = (low_sum < LOWEST) | (high_sum > largest)
    odd_rows |= (a.lowest < LOWEST) | (a.highest > BEYOND - bits[0])
    y = a.single.new_zeros(*a.single.shape[:2], b.single.shape[1])
    _accumulate(a, b, y, _divisor(terms))
    _replace_rows(y, odd_rows, a, b, terms)
    _replace_rows(y.mT, odd_columns, b, a, terms)
    return y


def _accumulate(a: BlockMatrices, b: BlockMatrices, y: Tensor, divisor: float) -> None:
    """Accumulate into zeros `y` in FP32, and divide."""
    size = a.format.block
    batches, rows, columns = y.shape
    tile_rows, tile_columns = min(rows, TILE_ROWS), min(columns, TILE_COLUMNS)
    tile_batches = max(1, TILE_ROWS * TILE_COLUMNS // (tile_rows * tile_columns))
    buffer = y.new_empty(min(batches, tile_batches) * tile_rows * tile_columns)
    # A tensor: some devices multiply by the reciprocal of a number.
    scale = y.new_tensor(divisor)
    for g in range(0, batches, tile_batches):
        for row in range(0, rows, tile_rows):
            left = a.single[g : g + tile_batches, row : row + tile_rows]
            for column in range(0, columns, tile_columns):
                right = b.single[g : g + tile_batches, column : column + tile_columns].mT
                total = y[g : g + tile_batches, row : row + tile_rows]
                total = total[..., column : column + tile_columns]
                sums = buffer[: total.numel()].view(total.shape)
                for k in range(0, left.shape[-1], size):
                    torch.bmm(left[..., k : k + size], right[:, k : k + size], out=sums)
                    total.add_(sums)
                if divisor != 1:
                    total.div_(scale)


def _replace_rows(y: Tensor, odd: Tensor, a: BlockMatrices, b: BlockMatrices, terms: Terms) -> None:
    """Compute rows of `y` (G, M, N) again in float64: those where `odd` (G, M) is true."""
    for batch in odd.any(-1).nonzero().flatten().tolist():
        right = b.rows(batch, slice(None))
        for rows in odd[batch].nonzero().flatten().split(TILE_ROWS):
            y[batch, rows] = _double_product(a.rows(batch, rows), right, terms)[0]


def _double_product(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor], terms: Terms) -> Tensor:
    """The product of lanes and factors before outer scales, every step rounded to FP32."""
    sums = torch.bmm if terms.bound.bit_length() <= FLOAT_BITS else _wide_sums
    (left, a_factors), (right, b_factors) = a, b
    total = a_factors.new_zeros(*a_factors.shape[:2], b_factors.shape[1])
    for k in range(a_factors.shape[-1]):
        term = sums(left[:, :, k].double(), right[:, :, k].double().mT)
        term = term * a_factors[:, :, k, None] * b_factors[:, None, :, k]
        total = round_to_fp32(total + round_to_fp32(term))
    # A tensor: some devices multiply by the reciprocal of a number.
    return narrow(total / total.new_tensor(_divisor(terms)))


@cache
def _powers(a: BlockFormat, b: BlockFormat) -> bool:
    """Whether all factors of blocks are powers of two."""
    scales = (level.scale for fmt in (a, b) for level in fmt.blocked)
    return all(isinstance(scale, Exponent | Shift) for scale in scales)


def _wide_sums(a: Tensor, b: Tensor) -> Tensor:
    """Products (G, M, B) by (G, B, N) with sums too wide for float64: a float64 that rounds to the
    same FP32 value.

    Integers are parted, high * 2^17 + low, and the sums of the parts are put together as
    top * 2^34 + rest. Where float64 does not hold that, the bits far below FP32's last are one
    that says whether any of them is set.
    """
    whole = torch.bmm(a, b)
    (a_high, a_low), (b_high, b_low) = _parts(a), _parts(b)
    high, low = torch.bmm(a_high, b_high), torch.bmm(a_low, b_low).long()
    middle = (torch.bmm(a_high, b_low) + torch.bmm(a_low, b_high)).long()
    lower = (middle << PART_BITS) + low
    top = high.long() + (lower >> 2 * PART_BITS)
    rest = lower & (1 << 2 * PART_BITS) - 1
    kept = 2 * PART_BITS - 10
    sticky = (rest >> kept << kept) + ((rest & (1 << kept) - 1) != 0).long() * (1 << kept - 1)
    rest = torch.where(top.abs() < 1 << FLOAT_BITS - 2 * PART_BITS - 1, rest, sticky)
    exact = top.double() * float(1 << 2 * PART_BITS) + rest.double()
    return torch.where(whole.isfinite(), exact, whole)


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """High and low parts of integers; 0 where there is no number."""
    numbers = torch.where(x.isfinite(), x, 0.0)
    high = (numbers * 2.0**-PART_BITS).floor()
    return high, numbers - high * 2.0**PART_BITS
