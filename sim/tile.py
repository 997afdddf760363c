"""Matrix products through the simulated matmul tile, cycle by cycle."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.dot import check_product
from axs6.hw.registry import find
from axs6.sim.batch.engine import BatchModel
from axs6.sim.words import Items, Rows

MOST_ITEMS = 1 << 22
"""Items that go through the simulator at once; a larger product is done in parts."""


@dataclass(frozen=True)
class TileRun:
    """A product: float32 values (M, N), the cycles that one tile needs for it, and the share of
    its multipliers' work that counts, 0 to 1.
    """

    values: NDArray[np.float32]
    cycles: int
    utilisation: float


class Tile:
    """A matmul tile in the batch simulator.

    Args:
        block: values in a block: 8, 16 or 32.
        parameters: others of the unit `matmul`: rows, columns, stages, interleave.

    Raises:
        ValueError: a parameter that the unit does not have or cannot take.
        ToolError: g++ is missing or fails.
    """

    def __init__(self, block: int = 32, **parameters: Any) -> None:
        self.parameters = find("matmul").parameters({"block": block, **parameters})
        component: Any = find("matmul").build(**self.parameters)
        self.latency: int = component.latency
        self._model = BatchModel("matmul", **self.parameters)

    def matmul(self, a: Blocks, b: Blocks, threads: int = 1) -> TileRun:
        """Product of matrices in blocks along K: y[m, n] = sum over k of a[m, k] * b[n, k].

        Equal to `axs6.golden.matmul(a, b, accumulate="fp32")` on every bit. Rows and columns
        beyond M and N, and tiles that fill up the last turns, are computed and dropped.

        Args:
            a: blocks of shape (M, K).
            b: blocks of shape (N, K).
            threads: threads that simulate.

        Returns:
            The values; K = 0 gives +0 in no cycles. `cycles` is measured: the copies of the tile
            that share the work each fill their pipeline, one tile fills it once. It equals the
            formula in the unit's docstring.

        Raises:
            ValueError: shapes or block sizes do not fit.
            ToolError: the simulation fails.
        """
        check_product(a, b)
        block = self.parameters["block"]
        if a.block_size != block:
            raise ValueError(f"a and b must have block_size {block}, not {a.block_size}")
        (m, k), n = a.shape, b.shape[0]
        if not m or not n or not k:
            return TileRun(np.zeros((m, n), np.float32), 0, 0.0)
        rows, columns = self.parameters["rows"], self.parameters["columns"]
        left, right = _Side(a, rows), _Side(b, columns)
        tiles = left.tiles * right.tiles
        turns, blocks = self.parameters["interleave"], left.blocks
        part = max(1, MOST_ITEMS // (turns * blocks)) * turns
        results, cycles = [], self.latency
        for start in range(0, tiles, part):
            chosen = np.arange(start, min(start + part, -(-tiles // turns) * turns)) % tiles
            part_values, spent = self._part(left, right, chosen.reshape(-1, turns), threads)
            results.append(part_values)
            cycles += spent
        grid = np.concatenate(results)[:tiles].view(np.float32)
        grid = grid.reshape(left.tiles, right.tiles, rows, columns).transpose(0, 2, 1, 3)
        values = np.ascontiguousarray(grid.reshape(left.tiles * rows, -1)[:m, :n])
        return TileRun(values, cycles, m * n * k / (cycles * rows * columns * block))

    def _part(
        self, left: "_Side", right: "_Side", tiles: NDArray[np.int64], threads: int
    ) -> tuple[NDArray[np.uint32], int]:
        """Values of some tiles, and the cycles beyond the latency.

        Args:
            left: rows of A.
            right: columns of B.
            tiles: numbers of the tiles, shape (groups, turns).
            threads: threads that simulate.
        """
        blocks = left.blocks
        step = np.arange(blocks)[:, None]
        row, column = (x[:, None] * blocks + step for x in np.divmod(tiles, right.tiles))
        last = np.broadcast_to(step == blocks - 1, row.shape).ravel()
        items: Items = {
            "last": last.astype(np.uint8),
            **left.items("a", row),
            **right.items("b", column),
        }
        run = self._model.run(items, threads=threads)
        return run.outputs["values"], run.cycles - run.copies * self.latency


class _Side:
    """One operand, cut into tiles of `count` rows: arrays over (tiles, blocks along K)."""

    def __init__(self, operand: Blocks, count: int) -> None:
        rows = operand.shape[0]
        self.tiles = -(-rows // count)
        self.blocks = operand.exponents.shape[1]
        spare = self.tiles * count - rows
        self._arrays = {
            name: self._tiled(np.pad(array, [(0, spare)] + [(0, 0)] * (array.ndim - 1)))
            for name, array in (("exponents", operand.exponents), ("codes", operand.codes))
        }

    def _tiled(self, array: NDArray[np.uint8]) -> NDArray[np.uint8]:
        tiled = array.reshape(self.tiles, -1, *array.shape[1:]).swapaxes(1, 2)
        return np.ascontiguousarray(tiled.reshape(-1, *tiled.shape[2:]))

    def items(self, side: str, index: NDArray[np.int64]) -> dict[str, Rows]:
        """The fields of payload `side`: tile and block of each item, as one number."""
        rows = index.ravel().astype(np.int32)
        return {f"{side}.{name}": Rows(array, rows) for name, array in self._arrays.items()}
