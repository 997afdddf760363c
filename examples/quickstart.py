"""The golden model in ten lines: encode, look at the bits, multiply, decode."""

import numpy as np

import axs6

rng = np.random.default_rng(0)
x = rng.standard_normal((4, 100)).astype(np.float32)
w = rng.standard_normal((3, 100)).astype(np.float32)

a, b = axs6.encode(x), axs6.encode(w)
print("blocks:", a, "exponents of the first row:", a.exponents[0])
print("bytes:", len(axs6.pack(a)), "instead of", x.nbytes)
print("largest error of a value:", np.abs(axs6.decode(a) - x).max())

y = axs6.matmul(a, b)
print("what the hardware gives for x @ w.T:\n", y)
print("in FP32:\n", x @ w.T)
