"""Matrix products through the simulated matmul tile, cycle by cycle."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks, check_hardware_format
from axs6.golden.dot import check_operands
from axs6.hw.registry import find
from axs6.sim.batch.engine import BatchModel
from axs6.sim.words import Items, Rows

MOST_ITEMS = 1 << 22
"""Items that go through the simulator at once; a larger product is done in parts."""


@dataclass(frozen=True)
class TileRun:
    """Products: float32 values, the cycles that one tile needs for them, and the share of its
    multipliers' work that counts, 0 to 1.
    """

    values: NDArray[np.float32]
    cycles: int
    utilisation: float


class Tile:
    """A matmul tile in the batch simulator.

    Args:
        block: values in a block: 8, 16 or 32.
        parameters: others of the unit `matmul`: rows, columns, stages, interleave; and view, which
            is "behaviour" by default.

    Raises:
        ValueError: a parameter that the unit does not have or cannot take.
        ToolError: g++ is missing or fails.
    """

    def __init__(self, block: int = 32, **parameters: Any) -> None:
        self.parameters = find("matmul").simulated({"block": block, **parameters})
        component: Any = find("matmul").build(**self.parameters)
        self.latency: int = component.latency
        self._model = BatchModel("matmul", **self.parameters)

    def matmul(self, a: Blocks, b: Blocks, threads: int = 1) -> TileRun:
        """Product of matrices in blocks along K: y[m, n] = sum over k of a[m, k] * b[n, k].

        Equal to `axs6.golden.matmul(a, b, accumulator="fp32")` on every bit. Rows and columns
        beyond M and N, and tiles that fill up the last turns, are computed and dropped.

        Args:
            a: blocks of shape (M, K), or (G, M, K) for a product of each of G pairs.
            b: blocks of shape (N, K), or (G, N, K).
            threads: threads that simulate.

        Returns:
            The values, (M, N) or (G, M, N); K = 0 gives +0 in no cycles. `cycles` is measured: the
            copies of the tile that share the work each fill their pipeline, one tile fills it
            once. It equals the formula in the unit's docstring, with the tiles of all G products.

        Raises:
            TypeError: an operand is not Blocks.
            ValueError: shapes or block sizes do not fit, or a block is high-precision.
            ToolError: the simulation fails.
        """
        check_operands(a, b)
        for name, blocks in (("a", a), ("b", b)):
            check_hardware_format(name, blocks)
        block = self.parameters["block"]
        if a.block != block:
            raise ValueError(f"a and b must have block {block}, not {a.block}")
        ends = a.shape[-1:], b.shape[-1:]
        if len(a.shape) not in (2, 3) or a.shape[:-2] != b.shape[:-2] or ends[0] != ends[1]:
            raise ValueError(
                "a and b must have shapes (M, K) and (N, K), or (G, M, K) and (G, N, K), "
                f"not {a.shape} and {b.shape}"
            )
        groups, (m, k), n = prod(a.shape[:-2]), a.shape[-2:], b.shape[-2]
        shape = (*a.shape[:-1], n)
        if not groups * m * n * k:
            return TileRun(np.zeros(shape, np.float32), 0, 0.0)
        rows, columns = self.parameters["rows"], self.parameters["columns"]
        left, right = _Side(a, rows, groups), _Side(b, columns, groups)
        tiles, cycles = self._tiles(left, right, groups * left.tiles * right.tiles, threads)
        grid = tiles.view(np.float32).reshape(groups, left.tiles, right.tiles, rows, columns)
        grid = grid.swapaxes(2, 3).reshape(groups, left.tiles * rows, -1)[:, :m, :n]
        values = np.ascontiguousarray(grid.reshape(shape))
        return TileRun(values, cycles, groups * m * n * k / (cycles * rows * columns * block))

    def _tiles(
        self, left: "_Side", right: "_Side", count: int, threads: int
    ) -> tuple[NDArray[np.uint32], int]:
        """Values of all tiles, shape (count, rows, columns), and the cycles."""
        turns = self.parameters["interleave"]
        part = max(1, MOST_ITEMS // (turns * left.blocks)) * turns
        results, cycles = [], self.latency
        for start in range(0, count, part):
            numbers = np.arange(start, min(start + part, -(-count // turns) * turns))
            group, within = np.divmod(numbers % count, left.tiles * right.tiles)
            row, column = np.divmod(within, right.tiles)
            rows = (group * left.tiles + row, group * right.tiles + column)
            values, spent = self._part(left, right, rows, threads)
            results.append(values)
            cycles += spent
        return np.concatenate(results)[:count], cycles

    def _part(
        self,
        left: "_Side",
        right: "_Side",
        tiles: tuple[NDArray[np.int64], NDArray[np.int64]],
        threads: int,
    ) -> tuple[NDArray[np.uint32], int]:
        """Values of some tiles, and the cycles beyond the latency.

        Args:
            left: rows of A.
            right: columns of B.
            tiles: for each tile, where its rows and its columns are; a multiple of the turns.
            threads: threads that simulate.
        """
        blocks, turns = left.blocks, self.parameters["interleave"]
        step = np.arange(blocks, dtype=np.int32)[:, None]
        row, column = (
            each.astype(np.int32).reshape(-1, 1, turns) * np.int32(blocks) + step for each in tiles
        )
        last = np.broadcast_to(step == blocks - 1, row.shape).ravel()
        sides = {**left.items("a", row), **right.items("b", column)}
        items: Items = {"last": last.astype(np.uint8), **sides}
        run = self._model.run(items, threads=threads)
        return run.outputs["values"], run.cycles - run.copies * self.latency


class _Side:
    """One operand, the rows of each group cut into tiles of `count` rows.

    Its arrays have a row for each tile and block along K, the blocks of a tile one after the other.
    """

    def __init__(self, operand: Blocks, count: int, groups: int) -> None:
        rows = operand.shape[-2]
        self.tiles = -(-rows // count)
        self.blocks = operand.exponents.shape[-1]
        self._arrays = {
            name: self._tiled(array.reshape(groups, rows, self.blocks, -1), count)
            for name, array in (("exponents", operand.exponents), ("codes", operand.codes))
        }

    def _tiled(self, array: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
        groups, rows, blocks, width = array.shape
        padded = np.pad(array, [(0, 0), (0, self.tiles * count - rows), (0, 0), (0, 0)])
        tiled = padded.reshape(groups * self.tiles, count, blocks, width).swapaxes(1, 2)
        return np.ascontiguousarray(tiled).reshape(-1, count, width)

    def items(self, side: str, index: NDArray[np.int32]) -> dict[str, Rows]:
        """The fields of payload `side`: tile and block of each item, as one number."""
        exponents, codes = self._arrays["exponents"][..., 0], self._arrays["codes"]
        rows = index.ravel()
        return {f"{side}.exponents": Rows(exponents, rows), f"{side}.codes": Rows(codes, rows)}
