"""Detects whether the bits of a tensor have changed. Torch counts the changes of a tensor, but not
all of them: fused optimisers, collectives, and writes through `.data`, NumPy, DLPack or from other
processes do not change its version. So all its bytes are read. On the CPU a kernel computes a
digest: it takes 0.02 % of the tensor's memory and reads half as much as a comparison with a copy.
On other devices the tensor is compared with a copy, which is exact and takes as much memory as the
tensor.
"""

import torch
from torch import Tensor

from axs6.torch import kernels
from axs6.torch.quantise import has_kernels

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer dtypes by the number of bytes."""

Bits = bytes | Tensor


def bits_of(x: Tensor) -> Bits:
    """A digest of a tensor's bytes, or the bytes, which may be the tensor's own memory.

    Two are comparable if the tensors have one dtype, device, shape and order of axes in memory.
    """
    dense = _dense(x.detach().resolve_neg())
    if has_kernels(x.device):
        return kernels.digest(dense.data_ptr(), dense.nbytes, torch.get_num_threads())
    return dense.view(INTEGERS[x.dtype.itemsize])


def kept(bits: Bits) -> Bits:
    """The same bits in memory of their own."""
    return bits if isinstance(bits, bytes) else bits.clone()


def are_same(a: Bits, b: Bits) -> bool:
    """Whether two tensors had the same bits."""
    if isinstance(a, bytes) or isinstance(b, bytes):
        return isinstance(a, bytes) and isinstance(b, bytes) and a == b
    return torch.equal(a, b)


def _dense(x: Tensor) -> Tensor:
    """A tensor's values in contiguous memory, in memory order; without a copy if it is
    contiguous."""
    if x.is_contiguous():
        return x
    return x.permute(sorted(range(x.ndim), key=x.stride, reverse=True)).contiguous()
