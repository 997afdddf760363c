"""Encodes the same values in every block format, and prints what a block of each is made of."""

import numpy as np

import axs6
from axs6.golden.explain import symbol
from axs6.golden.formats import Real

x = np.array([3, -1.5, 0.4, 0.1, -0.25, 0.05, 6.5, -0.9])
print("values", *x)
for name, fmt in axs6.formats().items():
    b = axs6.encode(x, fmt)
    scales = [
        f"{symbol(fmt, level)} = "
        + " ".join(
            f"{code:#x}" if isinstance(level.scale, Real) else f"{code}" for code in codes.flat
        )
        for level, codes in zip(fmt.levels[::-1], b.scales, strict=True)
    ]
    if b.zero_points is not None:
        scales.append(f"z = {b.zero_points}")
    print()
    print(f"{name}: {fmt}")
    print("  scales", ", ".join(scales))
    print("  codes ", b.codes.ravel()[: x.size].tobytes().hex(" "))
    print("  bytes ", axs6.pack(b).hex(" "))
    print("  values", *(f"{value:.7g}" for value in axs6.decode(b)))
