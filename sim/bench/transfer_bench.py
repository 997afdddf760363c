"""cocotb test that runs arrays through a unit at full rate and saves the outputs."""

from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from axs6.sim.bench.configuration import CYCLES, INPUTS, OUTPUTS, Configuration
from axs6.sim.bench.stream import CLOCK_PERIOD, PATIENCE, Driver, Monitor, cycle
from axs6.sim.words import completing, from_words, to_words


@cocotb.test()
async def transfer(dut: Any) -> None:
    """Send every input item, and take every output item."""
    configuration = Configuration.load()
    with np.load(Path(configuration.folder) / INPUTS) as file:
        items = dict(file)
    Clock(dut.clk, CLOCK_PERIOD, unit="ns").start()
    driver, monitor = Driver(dut), Monitor(dut)
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    words: list[int] = []
    cycles: list[int] = []

    def take(word: int, now: int) -> None:
        words.append(word)
        cycles.append(now)

    first = cycle()
    cocotb.start_soon(monitor.receive(take))
    await driver.send(to_words(items, configuration.inputs))
    outputs = len(completing(items))
    for _ in range(PATIENCE):
        if len(words) == outputs:
            break
        await RisingEdge(dut.clk)
    assert len(words) == outputs, f"{len(words)} outputs came, not {outputs}"
    results = from_words(words, configuration.outputs)
    count = {CYCLES: np.int64(cycles[-1] - first + 1 if cycles else 0)}
    np.savez(Path(configuration.folder) / OUTPUTS, **results, **count)  # type: ignore[arg-type]
