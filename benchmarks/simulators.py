"""Speed of the batch simulator beside Verilator, CXXRTL and Amaranth's own simulator.

Run with `make bench`, or `python benchmarks/simulators.py`. All simulate `block_dot` (B = 32, no
stages) on the same random blocks, one item a cycle: both views, and the gates that it is mapped to
on sky130. Verilator's model is built from the same Verilog with -O3 and --x-assign fast, compiled
with -O3 -march=native, and driven by a loop in C++. The batch simulator and CXXRTL read and write
NumPy arrays, which counts; the compiled ones run twice over their items, and the second time is
taken. Models are built beside each other, and all before the first is measured. Then come the
encoder (FP32, B = 32) and a matrix product on the tile, in words. One thread unless said, a fixed
seed, the median of several rounds.

`--formats` measures dot products of other formats in their place.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Module
from amaranth.sim import Simulator
from catalogue.depends import SIMULATED_FORMATS
from machine import processor
from verilated import Parameters, random_items, verilator

import axs6
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.registry import UNITS
from axs6.hw.verilog import generate
from axs6.sim.batch.engine import BatchModel, GateModel
from axs6.sim.cxxrtl import CxxrtlModel
from axs6.sim.tile import Tile
from axs6.sim.words import to_words
from axs6.synth.mapped import mapped_netlist

ROUNDS = 5
BLOCK = 32
TAKEN = {"batch": 300_000, "CXXRTL": 20_000, "Verilator": 50_000, "Amaranth": 100}
"""Items: some tenths of a second for each simulator, or less, in words."""
FEWER = {"CXXRTL": 500, "Verilator": 5_000}
"""Items of those that take long for the structure."""

SHAPE = (256, 1024, 1024)

B32: Parameters = {"block": BLOCK}


def amaranth() -> Callable[[], float]:
    made = generate("block_dot", block=BLOCK)
    words = to_words(random_items("block_dot", {"block": BLOCK}, TAKEN["Amaranth"]), made.inputs)

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


def from_arrays(
    model: Any, unit: str, count: int, parameters: Parameters = B32
) -> Callable[[], float]:
    items = random_items(unit, parameters, count)
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
    built = verilator(folder / chosen, "block_dot", parameters, items["Verilator"], pool)
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
    """Speeds of units without a Verilator model to compare with."""
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


def by_format() -> None:
    """Dot products of other formats, in words, in the batch simulator and in Verilator."""
    print(f"words, one thread, median of {ROUNDS}; {processor()}\n")
    print(f"{'M cycles/s':40} {'batch':>10} {'Verilator':>10} {'ratio':>8}")
    with tempfile.TemporaryDirectory(prefix="axs6-bench-") as name, ThreadPoolExecutor(1) as pool:
        measured = {}
        for number, (unit, given) in enumerate(SIMULATED_FORMATS):
            parameters = {**given, "view": BEHAVIOUR}
            model, count = BatchModel(unit, **parameters), TAKEN["batch"]
            folder = Path(name, str(number))
            measured[" ".join([unit, *given.values()])] = {
                "batch": from_arrays(model, unit, count, parameters),
                "Verilator": verilator(folder, unit, parameters, TAKEN["Verilator"], pool),
            }
        pool.shutdown()
        for design, runs in measured.items():
            batch, built = medians(runs).values()
            print(f"{design:40} {batch / 1e6:10.4f} {built / 1e6:10.4f} {batch / built:7.1f}x")


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
    parser = argparse.ArgumentParser(description="Speed of simulators.")
    parser.add_argument("--formats", action="store_true", help="dot products of formats alone")
    if parser.parse_args().formats:
        by_format()
        return
    print(f"block_dot and encoder with B = {BLOCK}, one thread, median of {ROUNDS}; {processor()}")
    with tempfile.TemporaryDirectory(prefix="axs6-bench-") as name, ThreadPoolExecutor(2) as pool:
        rest = pool.submit(others)
        views = {chosen: view(Path(name), chosen, pool) for chosen in (STRUCTURE, BEHAVIOUR)}
        tile = Tile()
        pool.shutdown()
        for chosen in (BEHAVIOUR, STRUCTURE):
            show_view(chosen, views[chosen])
    show_others(rest.result())
    matmul(tile)


if __name__ == "__main__":
    main()
