"""cocotb tests of a unit on AXI4-Stream, the same for every one in the registry.

The golden model gives the expected outputs; the unit defines the beats.
"""

from collections.abc import Mapping
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamFrame
from numpy.typing import NDArray

from axs6.hw.registry import find
from axs6.sim.bench.axis import Bus, Watch
from axs6.sim.bench.checker import Checker
from axs6.sim.bench.configuration import Configuration, stalled_items
from axs6.sim.bench.stream import (
    CLOCK_PERIOD,
    DRAIN_CYCLES,
    PATIENCE,
    TIME_LIMIT,
    cycle,
    random_pauses,
)

Items = Mapping[str, NDArray[Any]]


class AxisBench:
    """A unit in the simulator between sources and a sink, with its golden model."""

    def __init__(self, dut: Any) -> None:
        self.configuration = Configuration.load()
        self.unit = find(self.configuration.unit)
        self.parameters = self.configuration.parameters
        self.stimulus = find(self.configuration.unit)
        self.rng = np.random.default_rng(self.configuration.seed)
        self.dut = dut
        manifest = self.configuration.manifest
        *inputs, output = (Bus.of(manifest, each["name"]) for each in manifest["streams"])
        self.inputs, self.output = inputs, output
        self.sources = [bus.source(dut) for bus in inputs]
        self.sink = output.sink(dut)
        self.watches = [Watch(dut, bus.name) for bus in (*inputs, output)]
        for watch in self.watches:
            cocotb.start_soon(watch.run())

    async def reset(self) -> None:
        """Hold reset for two cycles, and forget what was sent and received."""
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 2)
        for end in (*self.sources, self.sink):
            end.clear()
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    def pause(self) -> None:
        """Stall at random on every bus from now on."""
        for number, end in enumerate((*self.sources, self.sink)):
            pauses = random_pauses(f"{self.configuration.seed} {number}")
            end.set_pause_generator(iter(pauses, None))

    def random_items(self, count: int) -> Items:
        """Random beats; another call gives others."""
        return self.stimulus.random(self.parameters, self.rng, count)

    def send(self, items: Items) -> None:
        """Queue items in the sources."""
        for source, frames in zip(self.sources, self._packets(items), strict=True):
            for frame in frames:
                source.send_nowait(frame)

    def _packets(self, items: Items) -> list[list[AxiStreamFrame]]:
        """The packets of each input."""
        return [list(bus.frames(bus.words(items))) for bus in self.inputs]

    async def run(self, test: str, items: Items, *, one_at_a_time: bool = False) -> None:
        """Send items, compare every packet that comes out, and report.

        With `one_at_a_time` a packet, or one on each input, is sent after the outputs of the last.
        """
        expected = self.unit.golden(items, self.parameters)
        checker = Checker(self.output.words(expected), self.output.fields)
        for watch in self.watches:
            watch.cycles.clear()
        receiving = cocotb.start_soon(self._receive(checker))
        if one_at_a_time:
            due = 0
            for frames in zip(*self._packets(items), strict=True):
                for source, frame in zip(self.sources, frames, strict=True):
                    source.send_nowait(frame)
                due += 1 if len(self.inputs) > 1 else len(frames[0].tdata)
                await self._received(checker, due)
                if len(checker.cycles) < due:
                    break
        else:
            self.send(items)
            await self._received(checker, len(checker.cycles) + checker.missing)
        await ClockCycles(self.dut.clk, DRAIN_CYCLES)
        receiving.cancel()
        checker.check(never="never came, or without tlast")
        assert self.sink.idle(), "a packet has begun that was not expected"
        count = len(next(iter(items.values())))
        self.configuration.report(test=test, items=count, outputs=len(checker.cycles))

    async def _received(self, checker: Checker, due: int) -> None:
        """Wait for a number of beats, if they come."""
        seen, since = 0, cycle()
        while len(checker.cycles) < due and cycle() - since < PATIENCE:
            await RisingEdge(self.dut.clk)
            if seen < len(checker.cycles):
                seen, since = len(checker.cycles), cycle()

    async def _receive(self, checker: Checker) -> None:
        while True:
            frame = await self.sink.recv(compact=False)
            for word in self.output.beats(frame):
                checker.take(word, cycle())


async def start(dut: Any) -> AxisBench:
    """A bench with a running clock, after reset."""
    Clock(dut.clk, CLOCK_PERIOD, unit="ns").start()
    dut.rst.value = 0
    bench = AxisBench(dut)
    await bench.reset()
    return bench


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def corners(dut: Any) -> None:
    """Some of the corner cases of the format, in packets of random lengths."""
    bench = await start(dut)
    await bench.run("corners", bench.stimulus.corners(bench.parameters))


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def full_rate(dut: Any) -> None:
    """Random packets without stalls; latency and interval are as the unit promises."""
    bench = await start(dut)
    items = bench.random_items(bench.configuration.items)
    await bench.run("full_rate", items)
    manifest = bench.configuration.manifest
    *inputs, given = (np.array(watch.cycles) for watch in bench.watches)
    for taken in inputs:
        cycles, promised = taken[-1] - taken[0] + 1, len(taken) * manifest["interval"]
        assert cycles == promised, f"{cycles} cycles for the beats, not {promised}"
    completing: Any = slice(None)
    if len(inputs) > 1:
        completing = np.flatnonzero(items["a.last"] | items["b.last"])
    latency = set((given - inputs[0][completing]).tolist())
    assert latency == {manifest["latency"]}, f"latency {latency}, not the promised one"


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def random_stalls(dut: Any) -> None:
    """Random packets with random stalls on every bus."""
    bench = await start(dut)
    bench.pause()
    await bench.run("random_stalls", bench.random_items(stalled_items(bench.configuration.items)))


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def valid_first(dut: Any) -> None:
    """Beats are taken only once `tvalid` is up: a unit may not wait for `tready`."""
    bench = await start(dut)
    bench.sink.set_pause_generator(iter(lambda: dut.m_axis_tvalid.value != 1, None))
    await bench.run("valid_first", bench.random_items(32))


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def one_at_a_time(dut: Any) -> None:
    """The outputs of a packet come without a further packet."""
    bench = await start(dut)
    items = bench.random_items(32)
    lasts = [name for name in items if name.endswith("last")]
    same = dict.fromkeys(lasts, items[lasts[0]])
    await bench.run("one_at_a_time", {**items, **same}, one_at_a_time=True)


@cocotb.test(timeout_time=TIME_LIMIT, timeout_unit="ms")
async def reset_in_flight(dut: Any) -> None:
    """After a reset no earlier item affects the outputs.

    Once with results that wait to be taken, once in the middle of a packet.
    """
    bench = await start(dut)
    given = bench.random_items(32)
    lasts = [name for name in given if name.endswith("last")]
    one_packet = {name: np.arange(32) == 31 for name in lasts}
    for abandoned, stalled in ((given, True), ({**given, **one_packet}, False)):
        bench.sink.pause = stalled
        bench.send(abandoned)
        await ClockCycles(dut.clk, 16)
        bench.sink.pause = False
        await bench.reset()
        await bench.run("reset_in_flight", bench.random_items(32))
