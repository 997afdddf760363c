"""Encodes the same values in every block format, and prints what a block of each is made of."""

import numpy as np

import axs6
from axs6.golden.explain import symbol
from axs6.golden.formats import Real

SHOWN = 64
"""Bytes of a block up to which trailing zeros are printed."""

x = np.array([3, -1.5, 0.4, 0.1, -0.25, 0.05, 6.5, -0.9])
print("values", *x)
for name, fmt in axs6.formats().items():
    row = np.append(x, np.zeros(fmt.block - x.size))
    b = axs6.encode(row if fmt.rows == 1 else row[None], fmt)
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
    packed = axs6.pack(b)
    used = packed.rstrip(b"\0") if len(packed) > SHOWN else packed
    zeros = f" and {len(packed) - len(used)} zeros" if len(used) < len(packed) else ""
    print("  bytes ", used.hex(" ") + zeros)
    print("  values", *(f"{value:.7g}" for value in axs6.decode(b).ravel()[: x.size]))
