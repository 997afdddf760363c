"""Figures of speed, and transcripts of simulations."""

from functools import partial

from figure import Figure
from readings import printed

from catalogue.depends import (
    ADDERS,
    BESIDE_VERILATOR,
    BLOCK_DOT,
    CHECKPOINTS,
    CXXRTL,
    ENCODED,
    ENCODING,
    GENERIC,
    PRODUCTS,
    SIMULATED,
    SIMULATED_FORMATS,
    SIMULATORS,
    SKY130,
    TORCH_BITS,
)

BENCHMARKS = (
    Figure(
        "golden-speed",
        ("python benchmarks/golden.py",),
        printed,
        sources=(
            "benchmarks/golden.py",
            *(f"golden/{n}.py" for n in (*ENCODING, *PRODUCTS)),
        ),
        packages=("numpy",),
        varies=r"  +[\d.]+|; .*(?=\")",
    ),
    Figure(
        "checkpoint-speed",
        ("python benchmarks/checkpoints.py",),
        printed,
        sources=("benchmarks/checkpoints.py", *CHECKPOINTS),
        packages=("numpy", "safetensors", "gguf"),
        varies=r"  +[\d.]+|; .*(?=\")",
    ),
    Figure(
        "bridge-speed",
        ("python benchmarks/bridge.py",),
        printed,
        sources=("benchmarks/bridge.py", *TORCH_BITS),
        packages=("torch",),
        varies=r"  +[\d.]+(?= M| ms)|ratio +[\d.]+|; .*(?=\")",
    ),
    Figure(
        "simulator-speed",
        ("python benchmarks/simulators.py",),
        printed,
        designs=(BLOCK_DOT, SIMULATED, ENCODED, ("matmul", {"block": 32, "view": "behaviour"})),
        sources=(*BESIDE_VERILATOR, *dict.fromkeys((*SIMULATORS, *CXXRTL)), *SKY130),
        packages=("amaranth", "pyosys", "verilator"),
        varies=r"  +[\d.]+x?| [\d.]+x|; .*(?=\")",
    ),
    Figure(
        "format-speed",
        ("python benchmarks/simulators.py --formats",),
        printed,
        designs=tuple((unit, {**given, "view": "behaviour"}) for unit, given in SIMULATED_FORMATS),
        sources=(*BESIDE_VERILATOR, *SIMULATORS),
        packages=("amaranth", "verilator"),
        varies=r"  +[\d.]+x?| [\d.]+x|; .*(?=\")",
    ),
    Figure(
        "plain-units",
        ("python benchmarks/straightforward.py",),
        printed,
        designs=tuple(
            (unit, {"block": 32, "dtype": name})
            for unit in ("encoder", "decoder")
            for name in ("bf16", "fp32")
        ),
        sources=(
            "benchmarks/straightforward.py",
            "benchmarks/plain.py",
            *dict.fromkeys((*GENERIC, *SKY130)),
        ),
        packages=("pyosys",),
    ),
    Figure(
        "delays",
        ("python benchmarks/delays.py --liberty FILE",),
        printed,
        designs=(
            BLOCK_DOT,
            *(("block_dot", {"format": name}) for name in ("mxfp4", "mxint8")),
            ("decoder", {"block": 32}),
        ),
        sources=(
            "benchmarks/delays.py",
            *ADDERS,
            *(f"synth/{n}.py" for n in ("fanout", "flow", "netlist", "scripts", "timing")),
        ),
        packages=("pyosys",),
    ),
)

PAIRS = """
import numpy as np

rng = np.random.default_rng(0)
np.save("x.npy", rng.standard_normal((4096, 1024), np.float32))
pairs = {f"{side}.exponent": rng.integers(100, 156, 1_000_000, np.uint8) for side in "ab"}
pairs |= {f"{side}.codes": rng.integers(0, 64, (1_000_000, 32), np.uint8) for side in "ab"}
np.savez("pairs.npz", **pairs)
"""
"""The arrays of docs/simulation.md."""

COPIES = r"  +\d+(?=  +[\d,]+  +\d+\.\d)"
"""The column of `axs6 simulate` with how many copies the vectors of the processor hold."""

CYCLES = rf"{COPIES}|  +\d+\.\d+.*?(?=\")|  +[\d,]+(?=\")|[kM] cycles/s.*?(?=\")"
"""The columns of `axs6 simulate` that the machine decides."""

simulation = partial(Figure, read=printed, varies=CYCLES, prepare=PAIRS)
"""A transcript of `axs6 simulate`, on those arrays."""

SIMULATIONS = (
    simulation(
        "simulate-encoder",
        ("axs6 simulate encoder --input x.npy --output blocks.npz",),
        designs=(ENCODED,),
        sources=SIMULATORS,
    ),
    simulation(
        "simulate-block-dot",
        ("axs6 simulate block_dot --input pairs.npz --output sums.npz",),
        designs=(SIMULATED,),
        sources=SIMULATORS,
    ),
    simulation(
        "simulate-cxxrtl",
        ("axs6 simulate block_dot --input pairs.npz --output sum=sums.npy --engine cxxrtl",),
        designs=(SIMULATED,),
        sources=CXXRTL,
    ),
)

WAVEFORM = simulation(
    "waveform",
    ("axs6 simulate block_dot --input pairs.npz --stages 7 --vcd wave.vcd --window 1000:1100",),
    designs=(("block_dot", {"block": 32, "stages": 7, "view": "behaviour"}),),
    sources=CXXRTL,
)
