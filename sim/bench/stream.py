"""Driver and monitor of a stream port, for cocotb."""

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Never

from cocotb.triggers import ReadOnly, RisingEdge
from cocotb.utils import get_sim_time

CLOCK_PERIOD = 10
"""Nanoseconds."""

PATIENCE = 5000
"""Cycles that a unit may keep a word waiting, longer than any random stall."""

DRAIN_CYCLES = 64
"""Cycles watched after the last expected output, for outputs that should not be."""

TIME_LIMIT = 100
"""Simulated milliseconds that a test may take, 10 million cycles."""

STALL_SHARES = (0.0, 0.1, 0.5, 0.9)
"""Shares of cycles in which random stalls happen."""

SHARE_CYCLES = 50
"""Cycles after which random stalls go on to another share."""

Pause = Callable[[], bool]
"""Called once per cycle: whether to stall."""


def never() -> bool:
    """No stalls."""
    return False


def random_pauses(seed: str) -> Pause:
    """Random stalls, by turns in no cycle, few, half of them and nearly all.

    Each of `STALL_SHARES` lasts `SHARE_CYCLES` cycles, and all of them come in a random order
    before any comes again.
    """
    return partial(next, _stalls(random.Random(seed)))


def _stalls(rng: random.Random) -> Iterator[bool]:
    while True:
        for share in rng.sample(STALL_SHARES, len(STALL_SHARES)):
            for _ in range(SHARE_CYCLES):
                yield rng.random() < share


def cycle() -> int:
    """Number of the current clock cycle."""
    return int(get_sim_time("ns")) // CLOCK_PERIOD


class Driver:
    """Sends words into the input stream. Call its methods right after a rising clock edge.

    While `valid` is 0, the payload is the complement of the next word, or of the last one after
    all of them: a unit that takes it then gives something wrong. `waits` has the cycles that each
    word that was taken has waited, `pauses` those of the stall before each.
    """

    def __init__(self, dut: Any) -> None:
        self._clock = dut.clk
        self._valid = dut.i_valid
        self._ready = dut.i_ready
        self._payload = dut.i_payload
        self._valid.value = 0
        self.waits: list[int] = []
        self.pauses: list[int] = []

    async def send(self, words: Iterable[int], pause: Pause = never) -> list[int]:
        """Send words in order; return the cycles in which they were taken.

        Raises:
            AssertionError: a word is not taken within `PATIENCE` cycles.
        """
        taken: list[int] = []
        word = 0
        for word in words:
            idle = 0
            while pause():
                self._idle(word)
                idle += 1
                await RisingEdge(self._clock)
            self.pauses.append(idle)
            self._valid.value = 1
            self._payload.value = word
            for waited in range(PATIENCE):
                await ReadOnly()
                accepted = self._ready.value == 1
                if accepted:
                    taken.append(cycle())
                    self.waits.append(waited)
                await RisingEdge(self._clock)
                if accepted:
                    break
            else:
                raise AssertionError(f"input {len(taken)} was not taken in {PATIENCE} cycles")
        self._idle(word)
        return taken

    def _idle(self, word: int) -> None:
        self._valid.value = 0
        self._payload.value = ~word & (1 << len(self._payload)) - 1


class Monitor:
    """Takes words from the output stream and watches the handshake.

    Once `valid` is up it must stay, with the same payload, until the word is taken. `waits` has the
    cycles that each word that was taken has waited.
    """

    def __init__(self, dut: Any) -> None:
        self._clock = dut.clk
        self._valid = dut.o_valid
        self._ready = dut.o_ready
        self._payload = dut.o_payload
        self._ready.value = 0
        self.waits: list[int] = []

    async def receive(self, take: Callable[[int, int], None], pause: Pause = never) -> Never:
        """For ever: call `take(word, cycle)` for each word that is transferred."""
        offered: int | None = None
        waited = 0
        while True:
            ready = not pause()
            self._ready.value = int(ready)
            await ReadOnly()
            if self._valid.value == 1:
                word = int(self._payload.value)
                if offered not in (None, word):
                    raise AssertionError(f"payload changed from {offered:#x} before it was taken")
                offered = None if ready else word
                waited += 1
                if ready:
                    self.waits.append(waited - 1)
                    waited = 0
                    take(word, cycle())
            elif offered is not None:
                raise AssertionError("valid fell before the word was taken")
            await RisingEdge(self._clock)
