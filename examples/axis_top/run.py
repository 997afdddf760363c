"""Writes the Verilog of a design on AXI4-Stream, simulates it on real data, draws it, builds it.

python examples/axis_top/run.py --help
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from design import DATA, FOLDER, HANDSHAKES, NAME, generated
from picture import draw
from sklearn.datasets import load_digits

import axs6
from axs6.hw.verilog import Generated
from axs6.sim.launcher import run
from axs6.sim.regress import read_results
from axs6.sim.tools import SIMULATORS
from axs6.synth.area import area


def write_data(path: Path, block: int) -> int:
    """Write pairs of handwritten digits and the golden model's dot products; return how many.

    The last pair has an infinity, so that its first block counts as 0 and its result has `tuser`.
    """
    digits = load_digits().data.astype(np.float32)
    a, b = digits[:8], digits[8:16]
    clean = a.copy()
    clean[-1, :block] = 0
    a[-1, 0] = np.inf
    user = np.isinf(a).any(axis=1)
    products = axs6.matmul(*(axs6.encode(x, block=block) for x in (clean, b)))
    np.savez(path, a=a, b=b, values=np.diagonal(products), user=user)
    return len(a)


def simulate(design: Generated, simulator: str, folder: Path) -> None:
    """Run the bench, or exit with what failed."""
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    results = run(design, simulator, "testbench", folder, {FOLDER: str(folder)})
    tests, failure = read_results(results)
    for reason in filter(None, (failure, *(test.failure for test in tests))):
        raise SystemExit(f"{simulator}: {reason}")


def build(design: Generated) -> str:
    """Size of the design on an ECP5 85F, and its clock, without constraints."""
    report = area(design.verilog, NAME, target="ecp5", fmax=True, breakdown=False, timeout=3600)
    assert report.timing is not None
    figures = [f"{name} {value:g}" for name, value in report.total.figures.items()]
    return f"ECP5: {', '.join(figures)}, {report.timing.fmax_mhz:.1f} MHz ({report.timing.model})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--block", type=int, default=32, choices=(8, 16, 32))
    parser.add_argument("--simulator", default="verilator", choices=SIMULATORS)
    parser.add_argument("--verilog", type=Path, help="write the Verilog here")
    parser.add_argument("--picture", type=Path, help="draw the handshakes here, as SVG")
    parser.add_argument("--ecp5", action="store_true", help="place and route for an ECP5, too")
    given = parser.parse_args()
    design = generated(given.block)
    if given.verilog:
        given.verilog.write_text(design.verilog)
    with tempfile.TemporaryDirectory(prefix="axis-top-") as name:
        folder = Path(name)
        count = write_data(folder / DATA, given.block)
        simulate(design, given.simulator, folder)
        print(f"{count} dot products equal the golden model, bit for bit ({given.simulator})")
        if given.picture:
            draw(folder / HANDSHAKES, given.picture)
    if given.ecp5:
        print(build(design))


if __name__ == "__main__":
    main()
