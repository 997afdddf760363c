"""Scales of tensors that follow from the maxima of earlier steps."""

from typing import Any

import torch
from torch import Tensor, nn

from axs6.golden import decode, encode
from axs6.golden.arguments import check_integer
from axs6.golden.formats import TENSOR, BlockFormat, Real, block_format


class DelayedScaling(nn.Module):
    """Encodes and decodes a tensor under the scale that the maxima of earlier steps ask for.

    A scale that is known before the values are spares hardware a pass over them. Values that have
    grown beyond it are clipped to the largest code, and their share is counted.

    Args:
        format: one whose only scale is a real one of the tensor: `fp8_e4m3`, `fp8_e5m2`, `int8`.
        history: how many maxima are kept; the largest of them counts.
        margin: binades kept free above it.

    The maxima are the buffer `maxima`, float32 of shape (history,), newest first and at first
    zeros, which `state_dict` has. In evaluation mode they stay as they are.

    Raises:
        ValueError: another format, or a count below 1.
    """

    maxima: Tensor

    def __init__(
        self, format: str | BlockFormat = "fp8_e4m3", history: int = 16, margin: int = 0
    ) -> None:
        super().__init__()
        self._format = block_format(format)
        levels = self._format.levels
        real = isinstance(levels[0].scale, Real) and not levels[0].scale.zero_point
        if len(levels) > 1 or levels[0].group != TENSOR or not real:
            raise ValueError(f"format must have one real scale of the tensor, not {self._format}")
        check_integer("history", history, 1)
        check_integer("margin", margin, 0)
        self._margin = margin
        self.register_buffer("maxima", torch.zeros(history))

    @property
    def scale(self) -> float | None:
        """Scale of the next tensor; None before any, where it follows from the tensor itself."""
        largest = float(self.maxima.max())
        if largest == 0:
            return None
        wanted = largest * 2.0**self._margin / float(self._format.element.largest)
        return max(wanted, float(torch.finfo(torch.float32).tiny))

    def forward(self, x: Tensor) -> Tensor:
        """The float32 values that stand for `x` under the scale of earlier tensors.

        Args:
            x: finite values (..., K), float32.

        Returns:
            What `axs6.decode(axs6.encode(x, format, scale=scale))` gives. The gradient passes
            through as it is, but for clipped values, which have none.

        Raises:
            ValueError: a value is not finite; the maxima are left as they were.
        """
        scale = self.scale
        array = x.detach().cpu().numpy()
        options: dict[str, Any] = {} if scale is None else {"scale": scale}
        values = torch.from_numpy(decode(encode(array, self._format, **options))).to(x.device)
        if self.training and x.numel():
            newest = x.detach().abs().amax().to(self.maxima).reshape(1)
            self.maxima.copy_(torch.cat([newest, self.maxima[:-1]]))
        limit = torch.inf if scale is None else scale * float(self._format.element.largest)
        return _StraightThrough.apply(x, values, x.detach().abs() <= limit)


class _StraightThrough(torch.autograd.Function):
    """Values in place of others, with the gradient of those that are kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, values: Tensor, kept: Tensor) -> Tensor:
        ctx.save_for_backward(kept)
        return values

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (kept,) = ctx.saved_tensors
        return grads[0] * kept, None, None
