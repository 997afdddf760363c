"""Speed of the golden model's encode and decode, beside a plain NumPy copy of the same array.

Run with `make bench`, or `python benchmarks/golden.py`. One thread, a fixed seed, the median of
several rounds; each round times every function once, so that all see the same machine.
"""

import statistics
import time

import numpy as np
from machine import processor

import axs6

SHAPE = (4096, 4096)
ROUNDS = 9


def main() -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    blocks = axs6.encode(x)
    data = axs6.pack(blocks)
    functions = {
        "numpy copy": x.copy,
        "encode": lambda: axs6.encode(x),
        "decode": lambda: axs6.decode(blocks),
        "encode + decode": lambda: axs6.decode(axs6.encode(x)),
        "pack": lambda: axs6.pack(blocks),
        "encode + pack": lambda: axs6.pack(axs6.encode(x)),
        "unpack": lambda: axs6.unpack(data, x.shape),
    }
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    copy = statistics.median(seconds["numpy copy"])
    print(f"{SHAPE[0]} x {SHAPE[1]} float32, one thread, median of {ROUNDS}; {processor()}")
    print(f"{'':16} {'M values/s':>10} {'copies':>8}")
    for name, times in seconds.items():
        median = statistics.median(times)
        print(f"{name:16} {x.size / median / 1e6:10.0f} {median / copy:8.1f}")


if __name__ == "__main__":
    main()
