"""Matrix products through the simulated matmul tile, cycle by cycle."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.dot import check_operands
from axs6.golden.formats import BlockFormat, Rule, ScaleChoice, name_of
from axs6.golden.scale_factor import ScaleFactor
from axs6.hw.core.layouts import plural, scale_names
from axs6.hw.registry import find
from axs6.hw.units.dot import parts_of
from axs6.hw.units.packed_dot import formats_of
from axs6.sim.batch.engine import BatchModel
from axs6.sim.control import in_threads
from axs6.sim.words import Rows

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
        block: values in a block; that of the format by default.
        parameters: others of the unit `matmul`: format, accumulator, rows, columns, stages,
            interleave; and view, which is "behaviour" by default.

    Raises:
        ValueError: a parameter that the unit does not have or cannot take.
        ToolError: g++ is missing or fails.
    """

    def __init__(self, block: int | None = None, **parameters: Any) -> None:
        given = parameters if block is None else {"block": block, **parameters}
        self.parameters = find("matmul").simulated(given)
        component: Any = find("matmul").build(**self.parameters)
        self.latency: int = component.latency
        self._formats = formats_of(self.parameters)
        self._parts = parts_of(self.parameters)
        self._lanes = len(component.i.payload.a.codes[0])
        accumulator = self._parts.accumulator
        # Sums that scales multiply are of whole blocks.
        self._multiple = (accumulator.promote or 1) if accumulator.scaled else 1
        self._model = BatchModel("matmul", **self.parameters)

    def matmul(self, a: Blocks, b: Blocks, threads: int = 1) -> TileRun:
        """Product of matrices in blocks along K: y[m, n] = sum over k of a[m, k] * b[n, k].

        Equal to `axs6.golden.matmul(a, b, accumulator)` on every bit; a format without blocks has
        steps of `block` values there too (`reduction`). Rows and columns beyond M and N, and tiles
        that fill up the last turns, are computed and dropped.

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
            ValueError: shapes or formats do not fit, or a block is high-precision.
            ToolError: the simulation fails.
        """
        check_operands(a, b)
        for name, blocks, fmt in zip("ab", (a, b), self._formats, strict=True):
            if _values_of(blocks.format) != _values_of(fmt):
                known, given = map(name_of, (fmt, blocks.format))
                raise ValueError(f"{name} must be in {known}, as the tile takes it, not {given}")
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

        def side(blocks: Blocks, fmt: BlockFormat, count: int) -> _Side:
            return _Side(blocks, fmt, self._lanes, self._multiple, count, groups)

        sides = zip((a, b), self._parts.formats, (rows, columns), strict=True)
        left, right = in_threads(lambda each: side(*each), sides, threads)
        outer = _outer(a, b, left, right, groups) if self._parts.scaled else None
        tiles, cycles = self._tiles(left, right, outer, groups * left.tiles * right.tiles, threads)
        grid = tiles.view(np.float32).reshape(groups, left.tiles, right.tiles, rows, columns)
        grid = grid.swapaxes(2, 3).reshape(groups, left.tiles * rows, -1)[:, :m, :n]
        values = np.ascontiguousarray(grid.reshape(shape))
        return TileRun(values, cycles, groups * m * n * k / (cycles * rows * columns * self._lanes))

    def _tiles(
        self,
        left: "_Side",
        right: "_Side",
        outer: NDArray[np.uint32] | None,
        count: int,
        threads: int,
    ) -> tuple[NDArray[np.uint32], int]:
        """Values of all tiles, shape (count, rows, columns), and the cycles."""
        turns = self.parameters["interleave"]
        rounds = -(-count // turns)
        parts = max(threads, -(-rounds * turns * left.steps // MOST_ITEMS))
        ends = np.linspace(0, rounds, min(parts, rounds) + 1).astype(int) * turns

        def work(numbers: NDArray[np.intp]) -> tuple[NDArray[np.uint32], int]:
            run = self._model.run(self._items(left, right, outer, numbers % count))
            return run.outputs["values"], run.cycles - run.copies * self.latency

        done = in_threads(work, map(np.arange, ends, ends[1:]), threads)
        results, cycles = zip(*done, strict=True)
        return np.concatenate(results)[:count], self.latency + sum(cycles)

    def _items(
        self,
        left: "_Side",
        right: "_Side",
        outer: NDArray[np.uint32] | None,
        tiles: NDArray[np.intp],
    ) -> dict[str, Any]:
        """Items of the unit for tiles by number, which take turns in the order given."""
        turns = self.parameters["interleave"]
        group, within = np.divmod(tiles, left.tiles * right.tiles)
        row, column = np.divmod(within, right.tiles)
        steps = np.arange(left.steps)
        a = _in_turns((group * left.tiles + row).reshape(-1, turns) * left.steps, steps)
        b = _in_turns((group * right.tiles + column).reshape(-1, turns) * left.steps, steps)
        last = np.zeros((len(tiles) // turns, left.steps, turns), np.uint8)
        last[:, -1] = 1
        items = {"last": last.ravel(), **left.items("a", a), **right.items("b", b)}
        if outer is not None:
            items["outer"] = Rows(outer, _in_turns(tiles.reshape(-1, turns), 0 * steps))
        return items


def _in_turns(tiles: NDArray[np.intp], steps: NDArray[np.intp]) -> NDArray[np.int32]:
    """Rows of an array for tiles of shape (rounds, turns), a number for each, and their steps.

    The tiles of a round take turns in every step.
    """
    rounds, turns = tiles.shape
    rows = np.repeat(tiles.astype(np.int32)[:, None], len(steps), axis=1).reshape(rounds, -1)
    rows += np.repeat(steps.astype(np.int32), turns)  # long rows: NumPy is slow along short ones
    return rows.ravel()


def _values_of(fmt: BlockFormat) -> BlockFormat:
    """A format whose codes have the same values, however its scales are found."""
    fmt = fmt.with_choice(ScaleChoice.MAX)
    return fmt.with_rule(Rule.FLOOR) if fmt.exponent else fmt


class _Side:
    """One operand, the rows of each group cut into tiles of `count` rows, K into steps of lanes.

    Its arrays have a row for each tile and step along K, the steps of a tile one after the other.
    Where a step is a part of a block, it has the scales of the block; zeros fill up the last step.

    Args:
        operand: the blocks.
        fmt: the format of a step.
        lanes: values of a step.
        multiple: of how many steps there are a multiple.
        count: rows of a tile.
        groups: products.
    """

    def __init__(
        self,
        operand: Blocks,
        fmt: BlockFormat,
        lanes: int,
        multiple: int,
        count: int,
        groups: int,
    ) -> None:
        self.rows, self.count = operand.shape[-2], count
        self.tiles = -(-self.rows // count)
        self.steps = -(-operand.shape[-1] // (lanes * multiple)) * multiple
        self._groups = groups
        zero = operand.format.element.zero_code
        arrays = {"codes": self._stepped(operand.codes, lanes, fill=zero)}
        inner = operand.scales[len(operand.format.outer) :]
        levels = zip(scale_names(fmt), operand.format.blocked[::-1], inner, strict=True)
        for name, level, codes in levels:
            arrays[plural(name)] = self._stepped(codes, lanes, int(level.group))
        self._arrays = {name: self._tiled(array) for name, array in arrays.items()}

    def _stepped(
        self, codes: NDArray[Any], lanes: int, group: int = 1, fill: int = 0
    ) -> NDArray[Any]:
        """Codes of groups, those of a fill behind them, as (groups, rows, steps), with an axis more
        where a step has several."""
        flat = codes.reshape(self._groups, self.rows, -1)
        if group > lanes:
            flat = np.repeat(flat, group // lanes, axis=2)
        each = max(1, lanes // group)
        more = max(0, self.steps * each - flat.shape[2])
        ends = [(0, 0), (0, 0), (0, more)]
        flat = np.pad(flat, ends, constant_values=fill)[..., : self.steps * each]
        shape = (self._groups, self.rows, self.steps)
        return flat.reshape(shape if each == 1 and group > 1 else (*shape, each))

    def _tiled(self, array: NDArray[Any]) -> NDArray[Any]:
        rest = [(0, 0)] * (array.ndim - 2)
        padded = np.pad(array, [(0, 0), (0, self.tiles * self.count - self.rows), *rest])
        shape = (self._groups * self.tiles, self.count, *array.shape[2:])
        tiled = np.ascontiguousarray(padded.reshape(shape).swapaxes(1, 2))
        return tiled.reshape(-1, self.count, *array.shape[3:])

    def items(self, side: str, rows: NDArray[np.int32]) -> dict[str, Rows]:
        """The fields of payload `side`: tile and step of each item, as one number."""
        return {f"{side}.{name}": Rows(array, rows) for name, array in self._arrays.items()}


def _outer(a: Blocks, b: Blocks, left: _Side, right: _Side, groups: int) -> NDArray[np.uint32]:
    """FP32 patterns of the products of outer scales, of shape (tiles, rows, columns)."""
    first, second = ScaleFactor.of(a), ScaleFactor.of(b)
    m, n = left.tiles * left.count, right.tiles * right.count
    products = np.zeros((groups, m, n), np.uint32)
    for group, rows in enumerate(products):
        here, there = (slice(group * side.rows, (group + 1) * side.rows) for side in (left, right))
        rows[: left.rows, : right.rows] = first.product(second, here, there)
    tiled = products.reshape(groups, left.tiles, left.count, right.tiles, right.count)
    return np.ascontiguousarray(tiled.swapaxes(2, 3)).reshape(-1, left.count, right.count)
