"""Speed of products in accumulators of tensor and matrix cores, beside MMA-Sim in the same run.

Run `python benchmarks/tensor_cores.py` with the extra `peers`. One thread, a fixed seed, FP8
numbers of normal distribution, the median of several rounds; all results are compared. The ratio
is the speed of the kernel, or of the golden model where there is none, over that of MMA-Sim.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from machine import processor
from mmasim import amd, nv_ptx

import axs6
from axs6.golden.accumulator import accumulator
from axs6.golden.blocks import Blocks
from axs6.torch import kernels

MATRICES = (128, 128, 1024)
"""M, N and K."""

ROUNDS = 3
FP32_ONE = 0x3F800000

FP16, BF16 = (torch.float16, "fp8_e5m2"), (torch.bfloat16, "fp8_e5m2")
E4M3 = (torch.float8_e4m3fn, "fp8_e4m3")
CORES = (
    ("hopper", nv_ptx.MMA, "Hopper", "m16n8k16.f32.f16.f16.f32", FP16),
    ("hopper_to_fp16", nv_ptx.MMA, "Hopper", "m16n8k16.f16.f16.f16.f16", FP16),
    ("hopper_fp8", nv_ptx.WGMMA, "Hopper", "m64n8k32.f32.e4m3.e4m3", E4M3),
    ("blackwell", nv_ptx.TCGen05MMA, "Blackwell", "m64n8k32.kind::f8f6f4.f32.e4m3.e4m3", E4M3),
    ("cdna1", amd.MFMA, "CDNA1", "f32_32x32x8f16", FP16),
    ("cdna2", amd.MFMA, "CDNA2", "f32_32x32x8f16", FP16),
    ("cdna2_bf16", amd.MFMA, "CDNA2", "f32_32x32x4bf16", BF16),
    ("cdna3", amd.MFMA, "CDNA3", "f32_32x32x8_f16", FP16),
    (
        "cdna3_fp8",
        amd.MFMA,
        "CDNA3",
        "f32_16x16x32_fp8_fp8",
        (torch.float8_e4m3fnuz, "fp8_e4m3fnuz"),
    ),
)
"""Accumulators, with a class of MMA-Sim, its arguments, and the dtype and format of operands."""


def main() -> None:
    torch.set_num_threads(1)
    m, n, k = MATRICES
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((rows, k)).astype(np.float32) for rows in (m, n))
    print(f"products, {m} x {n} x {k}, M MAC/s, one thread, median of {ROUNDS}; {processor()}")
    print(f"{'':16}{'golden':>8}{'kernel':>8}{'mmasim':>8}{'ratio':>8}")
    for name, operation, arch, shape, (dtype, fmt) in CORES:
        how = accumulator(name)
        a, b = (axs6.encode(each, fmt) for each in (x, y))
        one = np.array(FP32_ONE, np.uint32)  # in place of the scales
        a, b = (Blocks(each.format, (one,), each.codes, each.shape) for each in (a, b))
        left, right = (torch.from_numpy(axs6.decode(each)).to(dtype) for each in (a, b))
        op = operation(arch, shape)
        total = torch.zeros((m, n), dtype=torch.float16 if "to_fp16" in name else torch.float32)
        ways: dict[str, Callable[[], np.ndarray]] = {
            "golden": lambda a=a, b=b, how=how: axs6.matmul(a, b, how),
            "mmasim": lambda op=op, p=left, q=right, c=total: op(p, q.T, c).float().numpy(),
        }
        if kernels.takes(a.format, b.format, how):
            packed = kernels.pack(a), kernels.pack(b)
            ways["kernel"] = lambda packed=packed, how=how: kernels.matmul(*packed, how)[0]
        results = {way: function() for way, function in ways.items()}
        for way, result in results.items():
            assert np.array_equal(result, results["golden"]), (name, way)
        rates = {way: m * n * k / seconds / 1e6 for way, seconds in timed(ways).items()}
        ratio = max(rates["golden"], rates.get("kernel", 0)) / rates["mmasim"]
        kernel = f"{rates['kernel']:8.0f}" if "kernel" in rates else f"{'-':>8}"
        print(f"{name:16}{rates['golden']:8.1f}{kernel}{rates['mmasim']:8.1f}{ratio:8.1f}")


def timed(ways: dict[str, Callable[[], np.ndarray]]) -> dict[str, float]:
    """Median seconds of each, timed in turn."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, function in ways.items():
            start = time.perf_counter()
            function()
            found[way].append(time.perf_counter() - start)
    return {way: statistics.median(seconds) for way, seconds in found.items()}


if __name__ == "__main__":
    main()
