"""Elementwise operations in BF16 or another narrow dtype."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class Elementwise(TorchFunctionMode):
    """A context in which the FP32 results of torch's functions are rounded to a narrow dtype.

    Norms, softmax, activations, residual sums and the results of products are rounded, and so are
    their gradients. Parameters, views, and tensors changed in place are not rounded. All
    keep the dtype float32, so that layers whose weights are FP32 take them.

    Args:
        dtype: torch.bfloat16 or torch.float16.

    Source: Rouhani et al., With Shared Microexponents, A Little Shifting Goes a Long Way, sec. V.
    """

    def __init__(self, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        if dtype not in (torch.bfloat16, torch.float16):
            raise ValueError(f"dtype must be torch.bfloat16 or torch.float16, not {dtype}")
        self._dtype = dtype

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not isinstance(result, Tensor) or result.dtype != torch.float32:
            return result
        memory = result.untyped_storage().data_ptr()
        if any(isinstance(x, Tensor) and x.untyped_storage().data_ptr() == memory for x in args):
            return result
        return result.to(self._dtype).float()
