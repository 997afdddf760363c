"""Speed of the torch bridge beside plain torch, and whether its bits are those of the golden model.

Run with `make bench`, or `python benchmarks/bridge.py`. One thread and its processor time, a fixed
seed, the best of several rounds; each round times every function once, so that all see the same
machine. Arrays are small enough for the allocator to use their memory again.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

import axs6
from axs6.golden.accumulator import accumulator
from axs6.golden.blocks import Blocks
from axs6.golden.formats import block_format
from axs6.torch import convert, fake_quantise, kernels

SHAPE = (2048, 2048)
BATCH, FEATURES = 256, 1024
ROUNDS = 9


CHECKED = 16
"""Rows that are compared with the golden model for each format."""

FORMATS = (
    *("axs6", "mxint8", "mx6", "mxfp4", "mxfp6_e2m3", "mx9", "mxfp6_e3m2"),
    *("mxfp8_e4m3", "mxfp8_e5m2", "nvfp4", "vsq6", "fp8_e4m3", "int8_float32_t0"),
    *("if4", "razer", "nf4q6"),
)

NARROW = ("axs6", "mxint8", "mx6", "mxfp4", "mxfp6_e2m3", "int8_float32_t0")
"""Formats whose products AVX2 is measured with."""

STEPPED = (
    *(("fp8_e4m3", "hopper_fp8"), ("fp8_e5m2", "hopper_fp8"), ("fp8_e4m3", "hopper_fp8,promote=4")),
    ("fp8_block_t128", "hopper_fp8_scaled"),
    *(("fp8_e4m3", "ada_fp8"), ("fp8_e4m3", "ampere"), ("mxfp8_e4m3", "blackwell_mx")),
    *(("mxfp4", "blackwell_mx"), ("nvfp4", "blackwell_fp4"), ("mx9", "paper"), ("axs6", "paper")),
    *(("fp8_e5m2", "cdna1"), ("fp8_e5m2", "cdna2"), ("fp8_e5m2", "cdna3")),
    ("fp8_e4m3fnuz", "cdna3_fp8"),
)
"""Formats, and accumulators that take lanes in steps."""


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    instructions = torch.backends.cpu.get_cpu_capability()
    print(f"one thread, best of {ROUNDS}; torch {torch.__version__}, {instructions}")
    quantise()
    linear()
    if (library := kernels.chosen()) is not None:
        print(f"compiled kernels, {kernels.name_of(library)}")
        formats()
        stepped()
        with kernels.use("avx2"):
            avx2()


def quantise() -> None:
    x = torch.randn(SHAPE)
    seconds = best({"plain": lambda: plain_torch(x), "axs6": lambda: fake_quantise(x)})
    blocks = axs6.encode(x.numpy())
    different = count_bits(fake_quantise(x), axs6.decode(blocks))
    print(f"quantise and dequantise {SHAPE[0]} x {SHAPE[1]} float32")
    for name, label in (("plain", "log2 and round in float32"), ("axs6", "fake_quantise")):
        print(f"  {label:27} {x.numel() / seconds[name] / 1e6:7.0f} M values/s")
    print(f"  {'ratio':27} {seconds['plain'] / seconds['axs6']:7.1f}")
    print(f"  {'bits unlike golden':27} {different:7}")


def plain_torch(x: Tensor) -> Tensor:
    """The format's formulas, evaluated in float32 as they stand: close, and not exact."""
    blocks = x.view(-1, 32)
    largest = blocks.abs().amax(-1, keepdim=True)
    exponent = (largest.log2().floor() + 1).clamp(-127, 128)
    scale = torch.exp2(exponent)
    magnitude = (blocks.abs() / scale * 31).round().clamp(max=31)
    return (blocks.sign() * magnitude / 31 * scale).view(x.shape)


@torch.no_grad()
def linear() -> None:
    layer = nn.Linear(FEATURES, FEATURES)
    converted = convert(layer)
    x = torch.randn(BATCH, FEATURES)
    seconds = best({"plain": lambda: layer(x), "axs6": lambda: converted(x)})
    product = axs6.matmul(axs6.encode(x.numpy()), axs6.encode(layer.weight.numpy()))
    different = count_bits(converted(x), product + layer.bias.numpy())
    print(f"linear layer, batch {BATCH}, {FEATURES} to {FEATURES}, weights encoded before")
    for name, label in (("plain", "nn.Linear"), ("axs6", "emulated")):
        print(f"  {label:27} {seconds[name] * 1e3:7.2f} ms")
    print(f"  {'ratio':27} {seconds['axs6'] / seconds['plain']:7.2f}")
    print(f"  {'bits unlike golden':27} {different:7}")


@torch.no_grad()
def formats() -> None:
    layer, x = nn.Linear(FEATURES, FEATURES, bias=False), torch.randn(BATCH, FEATURES)
    big = torch.randn(SHAPE).numpy()
    rows, weight = x.numpy()[None], layer.weight.numpy()[None]
    products: dict[str, Callable[[], object]] = {"plain": lambda: layer(x)}
    values: dict[str, Callable[[], object]] = {}
    different = {}
    for name in FORMATS:
        fmt = block_format(name)
        held = kernels.encode(weight, fmt)
        products[name] = lambda fmt=fmt, held=held: kernels.matmul(kernels.encode(rows, fmt), held)
        given = axs6.encode(rows[0], name)
        exact = axs6.matmul(given, first_rows(axs6.encode(weight[0], name)))
        different[name] = count_bits(torch.from_numpy(products[name]()[0, :, :CHECKED]), exact)
        if kernels.encodes(fmt):
            values[name] = lambda fmt=fmt: kernels.fake_quantise(big, fmt)
            exact = axs6.decode(first_rows(axs6.encode(big, name)))
            different[name] += count_bits(torch.from_numpy(values[name]()[:CHECKED]), exact)
    seconds, quantised = best(products), best(values)
    print(f"batch {BATCH}, {FEATURES} to {FEATURES}, activations encoded; fake_quantise of {SHAPE}")
    print(f"  {'nn.Linear':15} {seconds['plain'] * 1e3:6.2f} ms")
    for name in FORMATS:
        speed = f"{big.size / quantised[name] / 1e6:.0f}" if name in quantised else "-"
        print(
            f"  {name:15} {seconds[name] * 1e3:6.2f} ms"
            f"  ratio {seconds[name] / seconds['plain']:4.2f}"
            f"  {speed:>6} M values/s"
            f"  bits unlike golden {different[name]}"
        )


@torch.no_grad()
def avx2() -> None:
    """Products of narrow formats without AVX-512, which nn.Linear has."""
    layer, x = nn.Linear(FEATURES, FEATURES, bias=False), torch.randn(BATCH, FEATURES)
    rows, weight = x.numpy()[None], layer.weight.numpy()[None]
    products: dict[str, Callable[[], object]] = {"plain": lambda: layer(x)}
    for name in NARROW:
        fmt = block_format(name)
        held = kernels.encode(weight, fmt)
        products[name] = lambda fmt=fmt, held=held: kernels.matmul(kernels.encode(rows, fmt), held)
        products[name]()
    seconds = best(products)
    library = kernels.chosen()
    print(f"the same products, {kernels.name_of(library) if library else 'no kernels'}")
    for name in NARROW:
        print(f"  {name:15} ratio {seconds[name] / seconds['plain']:4.2f}")


def stepped() -> None:
    """Products in accumulators of tensor cores, of matrix cores and of the paper."""
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((rows, FEATURES), np.float32) for rows in (BATCH, FEATURES))
    macs = BATCH * FEATURES * FEATURES
    print(f"batch {BATCH}, {FEATURES} to {FEATURES}, products added in steps")
    for name, text in STEPPED:
        how, (left, right) = accumulator(text), (axs6.encode(x, name) for x in (a, b))
        packed = kernels.pack(left), kernels.pack(right)
        some = first_rows(left), first_rows(right)
        found = kernels.matmul(*map(kernels.pack, some), how)[0]
        different = count_bits(torch.from_numpy(found), axs6.matmul(*some, how))
        seconds = best({"": lambda packed=packed, how=how: kernels.matmul(*packed, how)})[""]
        print(
            f"  {name:14} {text:21} {macs / seconds / 1e9:5.1f} G MAC/s"
            f"  bits unlike golden {different}"
        )


def first_rows(x: Blocks) -> Blocks:
    """The rows that are compared, with scales that follow from all."""
    scales = tuple(each[:CHECKED] if each.ndim else each for each in x.scales)
    shape, modes = (CHECKED, x.shape[1]), x.modes[:CHECKED]
    return replace(x, scales=scales, codes=x.codes[:CHECKED], shape=shape, modes=modes)


def best(functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Processor seconds of each function."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.thread_time()
            function()
            seconds[name].append(time.thread_time() - start)
    return {name: min(times) for name, times in seconds.items()}


def count_bits(ours: Tensor, golden: np.ndarray) -> int:
    """Bits in which two FP32 arrays differ."""
    return int(np.bitwise_count(ours.numpy().view(np.uint32) ^ golden.view(np.uint32)).sum())


if __name__ == "__main__":
    main()
