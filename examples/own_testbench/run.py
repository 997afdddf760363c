"""Generates a unit under a name of its own and runs your own cocotb tests on it.

python examples/own_testbench/run.py verilator
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from testbench import MANIFEST

from axs6.hw.verilog import generate
from axs6.sim.launcher import LOG, run
from axs6.sim.regress import read_results


def main(simulator: str = "verilator") -> None:
    design = generate("dot", name="my_dot", block=8, stages=2)
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    with tempfile.TemporaryDirectory(prefix="own-testbench-") as name:
        folder = Path(name)
        manifest = folder / f"{design.module}.json"
        manifest.write_text(json.dumps(design.manifest))
        results = run(design, simulator, "testbench", folder, {MANIFEST: str(manifest)})
        tests, failure = read_results(results)
        for reason in filter(None, (failure, *(test.failure for test in tests))):
            raise SystemExit(f"{simulator}: {reason}")
        log = (folder / LOG).read_text()
    print(next(line for line in log.splitlines() if line.endswith("equal")).split("  ")[-1].strip())


if __name__ == "__main__":
    main(*sys.argv[1:])
