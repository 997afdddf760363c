"""Speed of the golden model: encode, decode and pack beside a NumPy copy, and matrix products.

Run with `make bench`, or `python benchmarks/golden.py`. One thread, a fixed seed, the median of
several rounds; each round times every function once, so that all see the same machine.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
from machine import processor

import axs6
from axs6.golden.formats import CATALOG

SHAPE = (4096, 4096)
ROUNDS = 5

FORMAT_SHAPE = (1024, 4096)
"""Values of each format: fewer, because there are many formats."""

MATRICES = (128, 128, 1024)
"""M, N and K of the products."""


def main() -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    blocks = axs6.encode(x)
    data = axs6.pack(blocks)
    report(
        x.size,
        {
            "numpy copy": x.copy,
            "encode": lambda: axs6.encode(x),
            "decode": lambda: axs6.decode(blocks),
            "encode + decode": lambda: axs6.decode(axs6.encode(x)),
            "pack": lambda: axs6.pack(blocks),
            "encode + pack": lambda: axs6.pack(axs6.encode(x)),
            "unpack": lambda: axs6.unpack(data, x.shape),
        },
        f"axs6, {SHAPE[0]} x {SHAPE[1]} float32, one thread, median of {ROUNDS}; {processor()}",
    )
    few = np.ascontiguousarray(x[: FORMAT_SHAPE[0], : FORMAT_SHAPE[1]])

    def both(name: str) -> Callable[[], object]:
        return lambda: axs6.decode(axs6.encode(few, name))

    functions = {"numpy copy": few.copy} | {name: both(name) for name in CATALOG}
    report(few.size, functions, f"encode + decode, {FORMAT_SHAPE[0]} x {FORMAT_SHAPE[1]} float32")
    report_products(x)


def report_products(x: np.ndarray) -> None:
    """Time products of every format, and of some in other accumulators than the default."""
    m, n, k = MATRICES
    a, b = x[:m, :k], x[m : m + n, :k]

    def product(name: str, accumulator: str = "fp32") -> Callable[[], object]:
        left, right = axs6.encode(a, name), axs6.encode(b, name)
        return lambda: axs6.matmul(left, right, accumulator)

    functions = {name: product(name) for name in CATALOG}
    fp8 = ("exact", "paper", "hopper_fp8", "blackwell_mx")
    functions |= {f"{name} e4m3": product("mxfp8_e4m3", name) for name in fp8}
    functions |= {f"{name} axs6": product("axs6", name) for name in ("exact", "paper")}
    functions["blackwell nvfp4"] = product("nvfp4", "blackwell_fp4")
    title = f"matmul, {m} x {n} x {k}"
    report(m * n * k, functions, title, ("M MAC/s", "of axs6"))


def report(
    count: int,
    functions: dict[str, Callable[[], object]],
    title: str,
    columns: tuple[str, str] = ("M values/s", "copies"),
) -> None:
    """Time the functions in turn and print a table, with the times over that of the first one."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    first = statistics.median(next(iter(seconds.values())))
    print(title)
    print(f"{'':16} {columns[0]:>10} {columns[1]:>8}")
    for name, times in seconds.items():
        median = statistics.median(times)
        print(f"{name:16} {count / median / 1e6:10.0f} {median / first:8.1f}")
    print()


if __name__ == "__main__":
    main()
