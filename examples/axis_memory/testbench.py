"""cocotb test of the design: vectors into the memory, commands, and every bit of the results."""

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamSink
from design import DATA, FOLDER


async def send(dut: Any, stream: str, payloads: Sequence[int]) -> None:
    """Send payloads on a stream, with random pauses."""
    valid, ready, payload = (
        getattr(dut, f"{stream}_{role}") for role in ("valid", "ready", "payload")
    )
    for each in payloads:
        while random.random() < 0.3:
            await RisingEdge(dut.clk)
        valid.value, payload.value = 1, each
        await RisingEdge(dut.clk)
        while not ready.value:
            await RisingEdge(dut.clk)
        valid.value = 0


def pauses() -> Iterator[bool]:
    """Whether the receiver waits, cycle by cycle."""
    while True:
        yield random.random() < 0.4


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def dot_products(dut: Any) -> None:
    with np.load(Path(os.environ[FOLDER], DATA)) as file:
        data = dict(file)
    Clock(dut.clk, 10, unit="ns").start()
    bus = AxiStreamBus.from_prefix(dut, "m_axis")
    results = AxiStreamSink(bus, dut.clk, dut.rst)
    results.set_pause_generator(pauses())
    dut.write_valid.value = dut.command_valid.value = 0
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    bits = int(data["address_bits"])
    words = [int.from_bytes(word.tobytes(), "little") for word in data["words"]]
    await send(dut, "write", [word << bits | k for k, word in enumerate(words)])
    commands = [int(a) | int(b) << bits | int(n) << 2 * bits for a, b, n in data["commands"]]
    cocotb.start_soon(send(dut, "command", commands))
    for index, value in enumerate(data["values"]):
        frame = await results.recv()
        assert bytes(frame.tdata) == value.tobytes(), f"result {index} is {bytes(frame.tdata)!r}"
    await ClockCycles(dut.clk, 64)
    assert results.empty(), "more results than commands"
    assert results.idle(), "a result without tlast"
