"""cocotb test of the design: packets of bytes in, and every bit of every result compared."""

import os
import random
from pathlib import Path
from typing import Any, Never

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from design import BUSES, DATA, FOLDER, HANDSHAKES, SIGNALS


async def record(dut: Any, samples: list[list[int]]) -> Never:
    """For ever: sample the handshakes just before each rising edge."""
    signals = [getattr(dut, f"{bus}_{signal}") for bus in BUSES for signal in SIGNALS]
    while True:
        await RisingEdge(dut.clk)
        samples.append([int(signal.value) for signal in signals])


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def dot_products(dut: Any) -> None:
    folder = Path(os.environ[FOLDER])
    with np.load(folder / DATA) as file:
        data = dict(file)
    Clock(dut.clk, 10, unit="ns").start()
    kinds = (AxiStreamSource, AxiStreamSource, AxiStreamSink)
    a, b, results = (
        kind(AxiStreamBus.from_prefix(dut, bus), dut.clk, dut.rst)
        for kind, bus in zip(kinds, BUSES, strict=True)
    )
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    samples: list[list[int]] = []
    cocotb.start_soon(record(dut, samples))
    for seed, (end, share) in enumerate(((a, 0.2), (b, 0.3), (results, 0.5))):
        rng = random.Random(seed)
        end.set_pause_generator(iter(lambda rng=rng, share=share: rng.random() < share, None))
    for source, rows in ((a, data["a"]), (b, data["b"])):
        for row in rows:
            source.send_nowait(AxiStreamFrame(row.tobytes(), tuser=0))
    for index, (value, user) in enumerate(zip(data["values"], data["user"], strict=True)):
        frame = await results.recv()
        assert bytes(frame.tdata) == value.tobytes(), f"result {index} is {bytes(frame.tdata)!r}"
        assert frame.tuser == user, f"tuser of result {index} is {frame.tuser}"
    await ClockCycles(dut.clk, 64)
    assert results.empty(), "more results than vectors"
    assert results.idle(), "a result without tlast"
    by_bus = np.array(samples, np.uint8).reshape(-1, len(BUSES), len(SIGNALS))
    np.savez(folder / HANDSHAKES, **{bus: by_bus[:, k] for k, bus in enumerate(BUSES)})
