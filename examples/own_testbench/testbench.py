"""cocotb tests of your own: pairs of vectors through a dot product, with stalls of your own.

Driver, monitor and checker are the project's; run.py starts the simulator.
"""

import json
import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

import axs6
from axs6.hw.verilog import stream_fields
from axs6.sim.bench.checker import Checker
from axs6.sim.bench.stream import CLOCK_PERIOD, Driver, Monitor, random_pauses
from axs6.sim.words import block_items, to_words

MANIFEST = "MY_DOT_MANIFEST"
"""Environment variable with the path of the manifest that `axs6 generate` wrote."""


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def products_of_vectors(dut: Any) -> None:
    manifest = json.loads(Path(os.environ[MANIFEST]).read_text())
    inputs, outputs = (stream_fields(manifest, stream) for stream in "io")
    block = manifest["parameters"]["block"]
    rng = np.random.default_rng(1)
    a, b = (axs6.encode(rng.standard_normal((20, 4 * block)), block=block) for _ in range(2))
    last = np.tile([0, 0, 0, 1], 20)
    items = {**block_items(a, "a."), **block_items(b, "b."), "last": last}
    products = np.diagonal(axs6.matmul(a, b)).view(np.uint32)

    Clock(dut.clk, CLOCK_PERIOD, unit="ns").start()
    driver, monitor = Driver(dut), Monitor(dut)
    checker = Checker(to_words({"value": products}, outputs), outputs)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    cocotb.start_soon(monitor.receive(checker.take, random_pauses("outputs")))
    await driver.send(to_words(items, inputs), random_pauses("inputs"))
    while checker.missing:
        await ClockCycles(dut.clk, 1)
    dut._log.info("%d products equal", len(checker.cycles))
