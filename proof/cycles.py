"""Mutants in every cycle: a receiver whose `ready` waits for `valid`, stalls, a reset in flight.

All mutants run at once, each bit of a word another one. The batch simulator is faster but drives
streams alone.
"""

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray

from axs6.hw.units.unit import Items
from axs6.proof.aig import NEXT
from axs6.proof.cases import cases_of, counting, words_of
from axs6.proof.mutants import MOST, SELECTOR, SELECTOR_BITS, Mutants
from axs6.sim.words import payload_bits

COPIES = MOST + 1

CYCLES = 24
"""Cycles of a phase, beside twice the latency."""

PERIOD = 5
"""Cycles in the last of which no item is offered, where mutants must not take fewer of them."""

Bools = NDArray[np.bool_]


def killed_in_cycles(made: Mutants, items: Items, latency: int, seed: int) -> Bools:
    """Which mutants give other outputs than the unit, lose some, give too many, or are slower.

    Args:
        made: the mutants of a unit with registers. items: of the unit, the first of which begin
        vectors where there are any. latency: of the unit. seed: of the stalls.

    Returns:
        For each value of the selector whether that mutant is killed.
    """
    run = _Run(made, items)
    rng, cycles = np.random.default_rng(seed), CYCLES + 2 * latency
    run.reset(True)
    for takes in (True, False):
        run.phase(cycles, lambda: True, lambda valid: valid)
        run.phase(cycles, lambda: bool(rng.random() < 0.6), lambda valid: rng.random(COPIES) < 0.5)
        run.reset(takes)
    run.phase(cycles, lambda: True, lambda valid: np.ones(COPIES, np.bool_))
    run.phase(cycles, lambda: False, lambda valid: np.ones(COPIES, np.bool_))
    run.reset(True)
    pauses = (cycle % PERIOD < PERIOD - 1 for cycle in count())
    run.phase(cycles, lambda: next(pauses), lambda valid: np.ones(COPIES, np.bool_))
    run.kill_slower()
    return run.dead


class _Run:
    """The state of all mutants and what they have taken and given since the last reset."""

    def __init__(self, made: Mutants, items: Items) -> None:
        self._graph = graph = made.graph
        self._names = [name for name in graph.outputs if name.startswith(NEXT)]
        selector = [graph.inputs[f"{SELECTOR}[{k}]"] for k in range(SELECTOR_BITS)]
        self._fixed = counting(selector)
        rng = np.random.default_rng(0)
        self._state = {
            graph.inputs[name.removeprefix(NEXT)]: np.full(
                COPIES // 64, rng.integers(0, 1 << 64, dtype=np.uint64)
            )
            for name in self._names
        }
        self._items = payload_bits(items, made.inputs).astype(np.bool_)
        self._payload = [graph.inputs[f"i_payload[{k}]"] for k in range(self._items.shape[1])]
        self._out = [bit for name, bit in graph.outputs.items() if name.startswith("o_payload[")]
        self.dead = np.zeros(COPIES, np.bool_)
        self._forget()

    def _forget(self) -> None:
        self._taken = np.zeros(COPIES, np.int64)
        self._offered = np.zeros(COPIES, np.bool_)
        self._given: list[list[bytes]] = [[] for _ in range(COPIES)]

    def reset(self, takes: bool) -> None:
        """One cycle of reset, whatever is inside; items begin anew.

        Args:
            takes: whether the receivers would take an output in that cycle.
        """
        self._compare()
        receivers = np.full(COPIES, takes)
        self._step(np.zeros(COPIES, np.bool_), lambda valid: receivers, reset=True)
        self._forget()

    def phase(
        self, cycles: int, offers: Callable[[], bool], ready: Callable[[Bools], Bools]
    ) -> None:
        """Some cycles.

        Args:
            cycles: number. offers: whether an item is offered, if none waits. ready: of the
            receivers, which see `valid`.
        """
        for _ in range(cycles):
            self._offered |= offers()
            self._step(self._offered, ready)
        self._compare()

    def _step(self, valid: Bools, ready: Callable[[Bools], Bools], reset: bool = False) -> None:
        graph = self._graph
        rows = self._items[self._taken % len(self._items)]
        given = {**self._fixed, **self._state}
        given |= {bit: words_of(rows[:, k]) for k, bit in enumerate(self._payload)}
        given[graph.inputs["i_valid[0]"]] = words_of(valid)
        given[graph.inputs["rst[0]"]] = words_of(np.full(COPIES, reset))
        (shown,) = graph.values([graph.outputs["o_valid[0]"]], given)
        takes = ready(_bools(shown))
        given[graph.inputs["o_ready[0]"]] = words_of(takes)
        wanted = [graph.outputs[name] for name in ("o_valid[0]", "i_ready[0]", *self._names)]
        shown, free, *after = graph.values([*wanted, *self._out], given)
        self._state = dict(zip(self._state, after, strict=False))
        taken, gives = valid & _bools(free), _bools(shown) & takes
        self._taken += taken
        self._offered = valid & ~taken
        bits = np.stack([_bools(each) for each in after[len(self._names) :]], axis=1)
        for copy, row in zip(np.flatnonzero(gives), np.packbits(bits, axis=1)[gives], strict=True):
            self._given[copy].append(row.tobytes())

    def kill_slower(self) -> None:
        """Kill those that took other numbers of items since the last reset than the unit."""
        self.dead |= self._taken != self._taken[0]

    def _compare(self) -> None:
        """Kill those whose outputs are not the first ones of the unit, or are too few or many."""
        right = self._given[0]
        for copy, outputs in enumerate(self._given):
            count = min(len(outputs), len(right))
            same_items = self._taken[copy] == self._taken[0]
            self.dead[copy] |= outputs[:count] != right[:count]
            self.dead[copy] |= bool(right) and not outputs
            self.dead[copy] |= bool(same_items) and len(outputs) != len(right)


def _bools(words: NDArray[np.uint64]) -> Bools:
    return cases_of(words, SELECTOR_BITS).astype(np.bool_)
