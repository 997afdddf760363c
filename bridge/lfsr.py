"""Random words in torch: the shift registers of `axs6.golden.lfsr`, on any device."""

from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from axs6.golden import lfsr
from axs6.golden.lfsr import RANDOM_SEED
from axs6.golden.rounding import RANDOM_BITS

BYTES = 4
"""Bytes of a register."""


class Lfsr(nn.Module):
    """Words for stochastic rounding, from a shift register for each lane, as in the hardware.

    Args:
        lanes: number of registers: the values that the hardware encodes at once, a block.
        seed: first state of lane 0, 1 to 2^32 - 1.
        bits: width of a word, 1 to 32: the `random_bits` of `fake_quantise`.
        device: where the registers are, and the words are made.

    The registers are the buffer `states`, int64 of shape (lanes,), saved in `state_dict`.

    Raises:
        ValueError: `seed` or `bits` is out of range.

    Source: docs/format.md, "Stochastic rounding".
    """

    states: Tensor

    def __init__(
        self,
        lanes: int = 32,
        seed: int = RANDOM_SEED,
        bits: int = RANDOM_BITS,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        first = lfsr.Lfsr(lanes, seed, bits)
        self.bits = first.bits
        states = torch.from_numpy(first.states.astype(np.int64)).to(device)
        self.register_buffer("states", states)

    def draw(self, count: int) -> Tensor:
        """The next words of every lane, as `axs6.golden.lfsr.Lfsr.draw`, but int64."""
        return _draw(self.states, count, self.bits)

    def forward(self, x: Tensor) -> Tensor:
        """A word for each value of `x` (..., K): int64 of its shape, on its device.

        Blocks of `lanes` values take one draw each, in the order of memory; words for the padding
        of a row's last block are drawn too, and dropped.
        """
        lanes = len(self.states)
        blocks = -(-x.shape[-1] // lanes)
        words = self.draw(x.shape[:-1].numel() * blocks)
        return words.view(*x.shape[:-1], blocks * lanes)[..., : x.shape[-1]].to(x.device)


@torch.library.custom_op("axs6::draw", mutates_args=("states",))
def _draw(states: Tensor, count: int, bits: int) -> Tensor:
    """The next `count` words of each register, (count, lanes); advances `states`."""
    rows, steps = states.unsqueeze(0), bits
    while len(rows) <= count:
        rows = torch.cat([rows, _leap(rows[: count + 1 - len(rows)], steps)])
        steps *= 2
    states.copy_(rows[count])
    return rows[:count] & ((1 << bits) - 1)


@_draw.register_fake
def _(states: Tensor, count: int, bits: int) -> Tensor:
    return states.new_empty(count, len(states))


def _leap(states: Tensor, steps: int) -> Tensor:
    """A number of steps of each register: linear over GF(2), so the images of the bytes add up."""
    tables, flat = _tables(steps, states.device), states.flatten()
    result = torch.zeros_like(flat)
    for byte, table in enumerate(tables):
        result ^= table.index_select(0, flat >> 8 * byte & 0xFF)
    return result.view_as(states)


@cache
def _tables(steps: int, device: torch.device) -> Tensor:
    """Images of each value of each byte of a register, int64 of shape (4, 256)."""
    columns = lfsr.leap(steps).reshape(BYTES, 8, 1)
    bits = np.arange(256, dtype=np.uint32) >> np.arange(8, dtype=np.uint32)[:, None] & np.uint32(1)
    tables = np.bitwise_xor.reduce(columns * bits, axis=1)
    return torch.from_numpy(tables.astype(np.int64)).to(device)
