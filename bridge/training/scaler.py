"""Loss scaling that reacts to saturated as well as to nonfinite gradients."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from axs6.golden import encode
from axs6.golden.formats import BlockFormat, Real, block_format


def saturated_share(x: Tensor, format: str | BlockFormat, scale: float | None = None) -> float:
    """Share of the values that have the largest code of a format.

    Args:
        x: finite values (..., K).
        format: a name, a string or a BlockFormat.
        scale: outermost real scale, if the format has one; None to compute it from the values.

    Returns:
        0 to 1; 0 where there is no value.

    Raises:
        ValueError: a value is not finite, or the format has no such scale.
    """
    if not x.numel():
        return 0.0
    fmt = block_format(format)
    rows = x.detach().float().reshape(-1, x.shape[-1] if x.ndim else 1)
    blocks = encode(rows.cpu().numpy(), fmt, scale=scale)
    largest = np.abs(fmt.element.integers[blocks.codes]) == fmt.element.largest_integer
    return float(np.count_nonzero(largest)) / x.numel()


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler` on the CPU that also backs off if scaled gradients saturate.

    Losses are multiplied by a scale so that gradients fit the range of a format. If a gradient is
    not finite, the step is skipped and the scale is multiplied by the backoff factor. If more than
    `limit` of the scaled gradients have the largest code, the step is taken, since clipped
    gradients are still useful, and the scale backs off as well. After `growth_interval` steps
    without either, the scale grows.

    Args:
        format: of the gradients, as `backward` leaves them: a name, a string or a BlockFormat.
        limit: share of values at the largest code from which the scale backs off.
        scale: outermost real scale of the format, which loss scaling stands in for: 1 for formats
            of a tensor or of channels. Formats with exponents of blocks have none, and with them
            the share says how far the blocks' own scales clip.
        device: where the gradients are.
        options: `init_scale`, `growth_factor`, `backoff_factor`, `growth_interval` and `enabled`
            of `torch.amp.GradScaler`.

    `state_dict` has the form of `torch.amp.GradScaler`; `load_state_dict` takes states of both.

    Raises:
        ValueError: the format is unknown, or the limit is not from 0 to 1.
    """

    def __init__(
        self,
        format: str | BlockFormat = "fp8_e5m2",
        limit: float = 0.01,
        *,
        device: str = "cpu",
        **options: Any,
    ) -> None:
        super().__init__(device, **options)
        if not 0 <= limit <= 1:
            raise ValueError(f"limit must be from 0 to 1, not {limit}")
        self._format, self._limit = block_format(format), limit
        outer = self._format.outer
        self._real_scale = 1.0 if outer and isinstance(outer[-1].scale, Real) else None
        self._shares: list[float] = []

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the scale, once it is known how many of them saturate."""
        if self.is_enabled():
            self._shares.append(self._share(optimizer))
        super().unscale_(optimizer)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Choose the next scale: `new_scale` if given, else by what the gradients were."""
        saturated = max(self._shares, default=0.0) > self._limit
        self._shares.clear()
        before = self.get_scale()
        super().update(new_scale)
        if self.is_enabled() and new_scale is None and saturated:
            factor = self.get_backoff_factor()
            super().load_state_dict(
                {**self.state_dict(), "scale": before * factor, "_growth_tracker": 0}
            )

    def _share(self, optimizer: Optimizer) -> float:
        """Share of saturated values among all finite gradients of an optimiser."""
        saturated = count = 0.0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is not None and bool(grad.isfinite().all()):
                    share = saturated_share(grad, self._format, self._real_scale)
                    saturated += share * grad.numel()
                    count += grad.numel()
        return saturated / count if count else 0.0
