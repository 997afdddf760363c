"""cocotb tests of a stream unit, the same for every unit in the registry.

The golden model gives the expected outputs; the unit defines the inputs.
"""

from collections.abc import Mapping
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from numpy.typing import NDArray

from axs6.hw.registry import find
from axs6.sim.bench.checker import Checker
from axs6.sim.bench.configuration import Configuration, stalled_items
from axs6.sim.bench.stream import (
    CLOCK_PERIOD,
    DRAIN_CYCLES,
    PATIENCE,
    TIME_LIMIT,
    Driver,
    Monitor,
    Pause,
    cycle,
    never,
    random_pauses,
)
from axs6.sim.coverage import (
    Coverage,
    cycle_coverage,
    field_coverage,
    gap_coverage,
    merged,
    reset_coverage,
)
from axs6.sim.words import completing, to_words


class UnitBench:
    """A unit in the simulator, with its driver, its monitor and its golden model."""

    def __init__(self, dut: Any) -> None:
        self.configuration = Configuration.load()
        self.unit = find(self.configuration.unit)
        self.parameters = self.configuration.parameters
        self.latency = self.configuration.manifest["latency"]
        self.interval = self.configuration.manifest["interval"]
        self.stimulus = find(self.configuration.unit)
        self.rng = np.random.default_rng(self.configuration.seed)
        self.dut = dut
        self.driver = Driver(dut)
        self.monitor = Monitor(dut)
        self.met: list[Coverage] = []

    async def reset(self) -> None:
        """Hold reset for two cycles."""
        self.dut.rst.value = 1
        for _ in range(2):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0

    def pauses(self, seed: int) -> Pause:
        """Random stalls; another number gives others."""
        return random_pauses(f"{self.configuration.seed} {seed}")

    def random_items(self, count: int) -> Mapping[str, NDArray[Any]]:
        """Random items; another call gives others."""
        return self.stimulus.random(self.parameters, self.rng, count)

    def report(self, test: str, items: Mapping[str, NDArray[Any]], completed: NDArray[Any]) -> None:
        """Leave the figures of a test that has passed."""
        count = len(next(iter(items.values())))
        covered = {"coverage": self.coverage()} if self.configuration.coverage else {}
        self.configuration.report(test=test, items=count, outputs=len(completed), **covered)

    def coverage(self) -> Coverage:
        """What has been met since the last call."""
        waits = {
            "i, cycles that an item waits": self.driver.waits,
            "i, idle cycles before an item": self.driver.pauses,
            "o, cycles that an item waits": self.monitor.waits,
        }
        none = reset_coverage(self.configuration.inputs)
        found = merged([*self.met, *(cycle_coverage(*each) for each in waits.items()), none])
        self.met.clear()
        for cycles in waits.values():
            cycles.clear()
        return found

    async def abandon(self, items: Mapping[str, NDArray[Any]]) -> None:
        """Send items for some cycles and take no output."""
        words = to_words(items, self.configuration.inputs)
        self.dut.o_ready.value = 0
        sending = cocotb.start_soon(self.driver.send(words))
        for _ in words:
            await RisingEdge(self.dut.clk)
        sending.cancel()
        await ReadOnly()
        waits = self.dut.o_valid.value == 1
        unfinished = "last" in items and not items["last"].any()
        self.met.append(reset_coverage(self.configuration.inputs, waits, unfinished))
        await RisingEdge(self.dut.clk)

    async def run(
        self,
        items: Mapping[str, NDArray[Any]],
        input_pause: Pause = never,
        output_pause: Pause = never,
        *,
        one_at_a_time: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Send items and compare what comes out.

        Args:
            items: input items.
            input_pause, output_pause: stalls.
            one_at_a_time: whether items after a completed output wait for that output.

        Returns:
            For each output, the cycle in which the item that completed it was taken, and the
            cycle in which the output was.
        """
        inputs, outputs = self.configuration.inputs, self.configuration.outputs
        expected = self.unit.golden(items, self.parameters)
        checker = Checker(to_words(expected, outputs), outputs)
        receiving = cocotb.start_soon(self.monitor.receive(checker.take, output_pause))
        self.first_cycle = cycle()
        words, ends = to_words(items, inputs), completing(items)
        taken: list[int] = []
        for end in [*(ends + 1 if one_at_a_time else []), len(words)]:
            taken += await self.driver.send(words[len(taken) : end], input_pause)
            due = int(np.count_nonzero(ends < end))
            for _ in range(PATIENCE):
                if len(checker.cycles) >= due:
                    break
                await RisingEdge(self.dut.clk)
            else:
                break
        for _ in range(DRAIN_CYCLES):
            await RisingEdge(self.dut.clk)
        receiving.cancel()
        checker.check()
        if self.configuration.coverage:
            self.met += [
                field_coverage(items, inputs, "i", self.parameters),
                gap_coverage(self.configuration.unit, items, self.parameters),
                field_coverage(expected, outputs, "o", self.parameters),
            ]
        return np.array(taken)[ends], np.array(checker.cycles)


async def start(dut: Any) -> UnitBench:
    """A bench with a running clock, after reset."""
    Clock(dut.clk, CLOCK_PERIOD, unit="ns").start()
    bench = UnitBench(dut)
    await bench.reset()
    return bench


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def corners(dut: Any) -> None:
    """Every corner case of the format, one after the other."""
    bench = await start(dut)
    items = bench.stimulus.corners(bench.parameters)
    completed, _ = await bench.run(items)
    bench.report("corners", items, completed)


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def full_rate(dut: Any) -> None:
    """Random items without stalls; latency and interval are as the unit promises."""
    bench = await start(dut)
    items = bench.random_items(bench.configuration.items)
    completed, given = await bench.run(items)
    latency = set((given - completed).tolist())
    assert latency == {bench.latency}, f"latency {latency}, not the promised one"
    cycles = int(completed[-1]) - bench.first_cycle + 1
    promised = bench.configuration.items * bench.interval
    assert cycles == promised, f"{cycles} cycles for the items, not {promised}"
    bench.report("full_rate", items, completed)


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def random_stalls(dut: Any) -> None:
    """Random items with random stalls on both sides."""
    bench = await start(dut)
    items = bench.random_items(stalled_items(bench.configuration.items))
    completed, _ = await bench.run(items, bench.pauses(1), bench.pauses(2))
    bench.report("random_stalls", items, completed)


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def valid_first(dut: Any) -> None:
    """Outputs are taken only once `valid` is up: a unit may not wait for `ready`."""
    bench = await start(dut)
    items = bench.random_items(64)
    completed, _ = await bench.run(items, output_pause=lambda: dut.o_valid.value != 1)
    bench.report("valid_first", items, completed)


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def one_at_a_time(dut: Any) -> None:
    """A result comes without a further item, though the vector of the first turn never ends."""
    bench = await start(dut)
    items = bench.random_items(64)
    turns = bench.parameters.get("interleave", 1)
    most = bench.latency
    if turns > 1:
        items = {**items, "last": np.where(np.arange(64) % turns, items["last"], 0)}
        most += 2 * turns
    completed, given = await bench.run(items, one_at_a_time=True)
    latency = int((given - completed).max())
    assert latency <= most, f"latency {latency} where no item follows, not {most} at most"
    bench.report("one_at_a_time", items, completed)


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def reset_in_flight(dut: Any) -> None:
    """After a reset no earlier item affects the outputs.

    Once with results that wait to be taken, once in the middle of a vector.
    """
    bench = await start(dut)
    given = bench.random_items(32)
    unfinished = {**given, "last": np.zeros_like(given["last"])} if "last" in given else given
    for abandoned in (given, unfinished):
        await bench.abandon(abandoned)
        await bench.reset()
        items = bench.random_items(64)
        completed, _ = await bench.run(items)
        bench.report("reset_in_flight", items, completed)
