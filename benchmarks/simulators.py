"""Speed of the batch simulator beside Verilator, CXXRTL and Amaranth's own simulator.

Run with `make bench`, or `python benchmarks/simulators.py`. All simulate `block_dot` (B = 32, no
stages) on the same random blocks, one item a cycle: both views, and the gates that it is mapped to
on sky130. Verilator's model is built from the same Verilog with -O3 and --x-assign fast, compiled
with -O3 -march=native, and driven by a loop in C++. The batch simulator and CXXRTL read and write
NumPy arrays, which counts; the compiled ones run twice over their items, and the second time is
taken. Verilator's models are built beside the others', and all before the first is measured. Then
come the encoder (FP32, B = 32) and a matrix product on the tile, in words. One thread
unless said, a fixed seed, the median of several rounds.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Module
from amaranth.sim import Simulator
from machine import processor

import axs6
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.registry import UNITS, find
from axs6.hw.verilog import generate
from axs6.sim.arrays import element_type
from axs6.sim.batch.engine import BatchModel, GateModel
from axs6.sim.cxxrtl import CxxrtlModel
from axs6.sim.tile import Tile
from axs6.sim.tools import check_simulator, simulator_environment
from axs6.sim.words import to_words
from axs6.synth.mapped import mapped_netlist

ROUNDS = 5
BLOCK = 32
TAKEN = {"batch": 300_000, "CXXRTL": 20_000, "Verilator": 50_000, "Amaranth": 100}
"""Items: some tenths of a second for each simulator, or less, in words."""
FEWER = {"CXXRTL": 500, "Verilator": 5_000}
"""Items of those that take long for the structure."""

WORDS = -(-2 * (8 + 6 * BLOCK) // 32)
"""Of 32 bits, for two blocks."""
SHAPE = (256, 1024, 1024)

HARNESS = """
#include "Vaxs6_block_dot.h"
#include <chrono>
#include <cstdio>
#include <vector>
int main(int argc, char** argv) {
  const int items = atoi(argv[2]), words = atoi(argv[3]);
  std::vector<uint32_t> data(size_t(words) * items);
  FILE* file = fopen(argv[1], "rb");
  if (!file || fread(data.data(), 4, data.size(), file) != data.size()) return 1;
  Vaxs6_block_dot model;
  model.rst = 0, model.i___05Fvalid = 1, model.o___05Fready = 1;
  uint32_t sum = 0;
  auto start = std::chrono::steady_clock::now();
  for (int n = -items; n < items; n++) {
    if (n == 0) sum = 0, start = std::chrono::steady_clock::now();
    const uint32_t* item = &data[size_t(n < 0 ? n + items : n) * words];
    for (int w = 0; w < words; w++) model.i___05Fpayload[w] = item[w];
    model.clk = 0, model.eval();
    sum = sum * 31 + model.o___05Fpayload;
    model.clk = 1, model.eval();
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  printf("%.9f %u\\n", seconds.count(), sum);
}
"""


def random_items(unit: str, count: int) -> dict[str, Any]:
    entry = UNITS[unit]
    parameters = entry.parameters({"block": BLOCK})
    items = find(unit).random(parameters, np.random.default_rng(0), min(count, 50_000))
    repeats = -(-count // 50_000)
    types = {field.name: element_type(field) for field in generate(unit, **parameters).inputs}
    return {
        name: np.concatenate([array.astype(types[name])] * repeats)[:count]
        for name, array in items.items()
    }


def verilator(folder: Path, view: str, count: int, pool: ThreadPoolExecutor) -> Callable[[], float]:
    """Start to build the model with its loop; the function runs it, for cycles a second."""
    check_simulator("verilator")
    folder.mkdir()
    made = generate("block_dot", block=BLOCK, view=view)
    (folder / "axs6_block_dot.v").write_text(made.verilog)
    (folder / "main.cpp").write_text(HARNESS)
    items = random_items("block_dot", count)
    words = to_words(items, made.inputs)
    (folder / "items.bin").write_bytes(
        b"".join(word.to_bytes(4 * WORDS, "little") for word in words)
    )
    flags = ["-MAKEFLAGS", "OPT_FAST='-O3 -march=native'"]
    options = ["-O3", "--x-assign", "fast", "-Wno-fatal", *flags, "--build-jobs", "2"]
    command = ["verilator", "--cc", "--exe", "--build", *options, "axs6_block_dot.v", "main.cpp"]
    environment = simulator_environment("verilator")
    build = pool.submit(
        subprocess.run,
        command,
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        timeout=600,
    )
    program = [
        str(folder / "obj_dir" / "Vaxs6_block_dot"),
        "items.bin",
        str(len(words)),
        str(WORDS),
    ]
    sums = UNITS["block_dot"].golden(items, {"block": BLOCK})
    expected = 0
    for word in to_words(sums, made.outputs):
        expected = (expected * 31 + word) & 0xFFFFFFFF

    def run() -> float:
        build.result()
        done = subprocess.run(program, cwd=folder, check=True, capture_output=True, text=True)
        seconds, checksum = done.stdout.split()
        if int(checksum) != expected:
            raise SystemExit("Verilator's outputs differ from the golden model")
        return len(words) / float(seconds)

    return run


def amaranth() -> Callable[[], float]:
    made = generate("block_dot", block=BLOCK)
    words = to_words(random_items("block_dot", TAKEN["Amaranth"]), made.inputs)

    def run() -> float:
        unit: Any = UNITS["block_dot"].build(block=BLOCK, view=BEHAVIOUR)
        top = Module()
        top.submodules.unit = unit

        async def bench(context: Any) -> None:
            for word in words:
                context.set(unit.i.payload.as_value(), word)
                await context.delay(1e-9)
                context.get(unit.o.payload.as_value())

        simulator = Simulator(top)
        simulator.add_testbench(bench)
        start = time.perf_counter()
        simulator.run()
        return len(words) / (time.perf_counter() - start)

    return run


def from_arrays(model: Any, unit: str, count: int) -> Callable[[], float]:
    items = random_items(unit, count)
    model.run({name: array[:1] for name, array in items.items()})  # CXXRTL compiles with the first

    def run() -> float:
        model.run(items)
        start = time.perf_counter()
        model.run(items)
        return count / (time.perf_counter() - start)

    return run


def medians(runs: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Cycles a second of each, the simulators in turn."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            rates[name].append(run())
    return {name: statistics.median(each) for name, each in rates.items()}


def view(folder: Path, chosen: str, pool: ThreadPoolExecutor) -> dict[str, Callable[[], float]]:
    """One view in every simulator; Amaranth's takes minutes to build the structure."""
    items = TAKEN if chosen == BEHAVIOUR else {**TAKEN, **FEWER}
    parameters = {"block": BLOCK, "view": chosen}
    built = verilator(folder / chosen, chosen, items["Verilator"], pool)
    runs = {
        "batch": from_arrays(BatchModel("block_dot", **parameters), "block_dot", items["batch"]),
        "CXXRTL": from_arrays(CxxrtlModel("block_dot", **parameters), "block_dot", items["CXXRTL"]),
        "Verilator": built,
    }
    return runs | ({"Amaranth": amaranth()} if chosen == BEHAVIOUR else {})


def show_view(chosen: str, runs: dict[str, Callable[[], float]]) -> None:
    rates = medians(runs)
    head = f"{'M cycles/s':>12} {'G MAC/s':>9} {'batch is faster by':>19}"
    print(f"\n{f'block_dot, {chosen}':24} {head}")
    for name, rate in rates.items():
        ratio = rates["batch"] / rate
        print(f"{name:24} {rate / 1e6:12.4f} {rate * BLOCK / 1e9:9.4f} {ratio:18.1f}x")


def others() -> dict[str, Callable[[], float]]:
    """What has no Verilator model of the same beside it."""
    made = generate("block_dot", block=BLOCK)
    gates = mapped_netlist(made.verilog, made.module, target="sky130")
    return {
        "block_dot, sky130 gates": from_arrays(
            GateModel(gates, "block_dot", block=BLOCK), "block_dot", TAKEN["batch"]
        ),
        "encoder, behaviour": from_arrays(
            BatchModel("encoder", block=BLOCK), "encoder", TAKEN["batch"] // 3
        ),
    }


def show_others(runs: dict[str, Callable[[], float]]) -> None:
    print(f"\n{'batch':24} {'M cycles/s':>12}")
    for name, rate in medians(runs).items():
        print(f"{name:24} {rate / 1e6:12.4f}")


def matmul(tile: Tile) -> None:
    m, n, k = SHAPE
    rng = np.random.default_rng(0)
    a, b = (axs6.encode(rng.standard_normal((rows, k), np.float32)) for rows in (m, n))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for threads, each in seconds.items():
            start = time.perf_counter()
            run = tile.matmul(a, b, threads)
            each.append(time.perf_counter() - start)
    one, two = (statistics.median(each) for each in seconds.values())
    print(f"\nmatmul {m} x {k} by {k} x {n}, 4 x 4 tile, {run.cycles:,} cycles")
    for name, each in (("one thread", one), ("two threads", two)):
        print(f"{name:12} {each:8.3f} s {m * n * k / each / 1e9:9.2f} G MAC/s {one / each:6.2f}x")


def main() -> None:
    print(f"block_dot and encoder with B = {BLOCK}, one thread, median of {ROUNDS}; {processor()}")
    with tempfile.TemporaryDirectory(prefix="axs6-bench-") as name, ThreadPoolExecutor(1) as pool:
        views = {chosen: view(Path(name), chosen, pool) for chosen in (STRUCTURE, BEHAVIOUR)}
        rest, tile = others(), Tile()
        pool.shutdown()
        for chosen in (BEHAVIOUR, STRUCTURE):
            show_view(chosen, views[chosen])
    show_others(rest)
    matmul(tile)


if __name__ == "__main__":
    main()
