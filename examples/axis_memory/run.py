"""Writes the Verilog of a memory, readers, encoders and a dot product, and simulates it.

python examples/axis_memory/run.py --help
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from design import ADDRESS, DATA, FOLDER, WORDS, generated

import axs6
from axs6.sim.launcher import run
from axs6.sim.regress import read_results
from axs6.sim.tools import SIMULATORS

VECTORS = 24


def write_data(path: Path, block: int, format: str) -> None:
    """Write words for the memory, commands, and the golden model's dot products."""
    rng = np.random.default_rng(0)
    words = rng.standard_normal((WORDS, block)).astype(np.float32)
    lengths = rng.integers(1, 12 * block, VECTORS)
    starts = rng.integers(0, WORDS - 12, (VECTORS, 2))
    flat = words.reshape(-1)
    values = []
    for (a, b), length in zip(starts, lengths, strict=True):
        padding = (0, -length % block)
        vectors = (np.pad(flat[s * block : s * block + length], padding) for s in (a, b))
        blocks = (axs6.encode(x[None], block=block, format=format) for x in vectors)
        values.append(axs6.matmul(*blocks)[0, 0])
    commands = np.column_stack([starts, lengths])
    found = np.array(values, np.float32)
    np.savez(path, words=words, commands=commands, values=found, address_bits=ADDRESS.width)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--block", type=int, default=8)
    parser.add_argument("--format", default="axs6")
    parser.add_argument("--simulator", default="verilator", choices=SIMULATORS)
    parser.add_argument("--verilog", type=Path, help="write the Verilog here")
    given = parser.parse_args()
    try:
        design = generated(given.block, given.format)
    except ValueError as error:
        parser.error(str(error))
    if given.verilog:
        given.verilog.write_text(design.verilog)
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    with tempfile.TemporaryDirectory(prefix="axis-memory-") as name:
        folder = Path(name)
        write_data(folder / DATA, given.block, given.format)
        results = run(design, given.simulator, "testbench", folder, {FOLDER: name})
        tests, failure = read_results(results)
        for reason in filter(None, (failure, *(test.failure for test in tests))):
            raise SystemExit(f"{given.simulator}: {reason}")
    print(f"{VECTORS} dot products equal the golden model, bit for bit ({given.simulator})")


if __name__ == "__main__":
    main()
