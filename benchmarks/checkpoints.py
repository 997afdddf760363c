"""Time and memory of converting checkpoints of 1 GiB.

Run with `python benchmarks/checkpoints.py`. A fixed seed. Beside each conversion stands its bound:
twice the time of `cp` and of decoding all values at 200 million a second.
"""

import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import ml_dtypes
import numpy as np
from machine import processor
from safetensors.numpy import save_file

MEBIBYTES = 1024
TENSORS = 8
COLUMNS = 4096
DECODING = 200e6
"""Values a second in the bound."""


def main() -> None:
    print(f"{MEBIBYTES} MiB in {TENSORS} tensors; {processor()}")
    print(f"{'':36} {'s':>6} {'bound s':>8} {'of bound':>9} {'above tensor':>13}")
    with TemporaryDirectory() as name:
        folder = Path(name)
        for made, kinds in ((mxfp4, ("compressed-tensors", "gguf")), (nvfp4, ("gguf", MULTIPLIED))):
            source = folder / "source.safetensors"
            # In a process of its own: the memory of this one would count for its children.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                values = pool.apply(made, (source,))
            for kind in kinds:
                report(source, folder, kind, made.__name__, values)


MULTIPLIED = "compressed-tensors"
"""The kind that divides by the scale that the source multiplies by."""


def mxfp4(path: Path) -> int:
    """Write a checkpoint as of gpt-oss; returns the number of its values."""
    rng, rows = np.random.default_rng(0), MEBIBYTES * 2**20 // TENSORS // (COLUMNS // 32 * 17)
    tensors = {}
    for n in range(TENSORS):
        shape = (rows, COLUMNS // 32)
        tensors[f"layer{n}_blocks"] = rng.integers(0, 256, (*shape, 16), np.uint8)
        tensors[f"layer{n}_scales"] = rng.integers(100, 140, shape, np.uint8)
    save_file(tensors, path)
    return TENSORS * rows * COLUMNS


def nvfp4(path: Path) -> int:
    """Write a checkpoint as of ModelOpt, with scales whose inverses bfloat16 values have."""
    rng, rows = np.random.default_rng(0), MEBIBYTES * 2**20 // TENSORS // (COLUMNS // 16 * 9)
    tensors = {}
    for n in range(TENSORS):
        name, shape = f"layer{n}.weight", (rows, COLUMNS // 16)
        scales = rng.integers(40, 127, shape, np.uint8)
        tensors[name] = rng.integers(0, 256, (rows, COLUMNS // 2), np.uint8)
        tensors[f"{name}_scale"] = scales.view(ml_dtypes.float8_e4m3fn)
        tensors[f"{name}_scale_2"] = np.array((n + 1) / 2688, np.float32)
    save_file(tensors, path)
    return TENSORS * rows * COLUMNS


def report(source: Path, folder: Path, kind: str, name: str, values: int) -> None:
    """Print a line: seconds, the bound, the ratio, and the memory above a tensor's."""
    target = folder / f"target.{'gguf' if kind == 'gguf' else 'safetensors'}"
    copied, _ = timed(lambda: subprocess.Popen(["cp", source, folder / "copy"]))
    (folder / "copy").unlink()
    command = [sys.executable, "-m", "axs6", "convert", str(source), str(target), "--to", kind]
    seconds, memory = timed(lambda: subprocess.Popen(command, stdout=subprocess.DEVNULL))
    target.unlink()
    bound = 2 * (copied + values / DECODING)
    above = memory - MEBIBYTES * 2**20 / TENSORS
    print(
        f"{f'{name} to {kind}':36} {seconds:6.1f} {bound:8.1f} {seconds / bound:9.2f} "
        f"{above / 2**20:9.0f} MiB"
    )


def timed(start: Callable[[], "subprocess.Popen[bytes]"]) -> tuple[float, float]:
    """Seconds and the largest memory in bytes of a process, which must succeed."""
    began = time.perf_counter()
    _, status, usage = os.wait4(start().pid, 0)
    if status:
        raise RuntimeError(f"a command ended with status {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_maxrss * 1024


if __name__ == "__main__":
    if shutil.disk_usage("/tmp").free < 4 * MEBIBYTES * 2**20:
        raise SystemExit("needed: 4 GiB of temporary files")
    main()
