"""Scales of tensors from the maxima of earlier steps."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from axs6.golden.arguments import check_integer
from axs6.golden.formats import TENSOR, BlockFormat, Real, block_format
from axs6.torch.ops import fake_quantise
from axs6.torch.site import Role
from axs6.torch.training.options import options_of, places


class DelayedScales:
    """Scales of a converted model's operands from the maxima of earlier steps.

    Every operand whose format has one real scale of the tensor (`fp8_e4m3`, `fp8_e5m2`, `int8`) is
    encoded with a scale that is set before the values: inputs and weights, in the backward products
    too, and gradients. Values beyond it are clipped to the largest code; gradients ignore the
    clipping. The scales of a step are fixed; a hook of the optimiser moves on:

        model = convert(model, format="fp8_e4m3", gradients="fp8_e5m2")
        optimiser.register_step_post_hook(DelayedScales(model))

    Until the first step each tensor has its own scale. In evaluation mode operands do not change
    the maxima. Copies of the model use current scales. In distributed training each process has its
    own maxima.

    Args:
        model: a converted model; all its products then take these scales.
        history: number of maxima kept for an operand, one for each step; the largest counts.
        margin: binades kept free above it.

    Raises:
        ValueError: the model has no such format, or a count is too small.
    """

    def __init__(self, model: nn.Module, history: int = 16, margin: int = 0) -> None:
        check_integer("history", history, 1)
        check_integer("margin", margin, 0)
        if not any(takes_scale(fmt) for x in options_of(model).values() for fmt in x.formats):
            raise ValueError("model must have a format with one real scale of the tensor")
        self._model, self._history, self._margin = model, history, margin
        self._maxima: dict[str, Tensor] = {}
        self._newest: dict[str, float] = {}
        for _, _, place in places(model):
            place.scale_by(self)

    def __call__(self, *arguments: Any) -> None:
        """The hook of an optimiser: calls `step`."""
        self.step()

    def step(self) -> None:
        """Use the maxima since the last step for the scales of the next step."""
        for operand, newest in self._newest.items():
            earlier = self._maxima.get(operand, torch.zeros(self._history))
            self._maxima[operand] = _with_newest(earlier, newest)
        self._newest = {}

    def scale(self, place: str, role: Role, fmt: BlockFormat) -> float | None:
        """Scale of an operand in this step; None if it is computed from the tensor."""
        maxima = self._maxima.get(f"{place}.{role}")
        if maxima is None or not takes_scale(fmt):
            return None
        return scale_of(maxima, fmt, self._margin)

    def observe(self, place: str, role: Role, x: Tensor) -> None:
        """Add the finite values of an operand to the maxima, in training mode."""
        if self._model.training and x.numel():
            magnitudes = x.detach().abs().float()
            largest = magnitudes.masked_fill(~magnitudes.isfinite(), 0.0).amax()
            operand = f"{place}.{role}"
            self._newest[operand] = max(self._newest.get(operand, 0.0), float(largest))

    def state_dict(self) -> dict[str, Tensor]:
        """Maxima of each operand, float32 of shape (history,), newest first."""
        return {operand: maxima.clone() for operand, maxima in self._maxima.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Load the maxima of a checkpoint.

        Raises:
            ValueError: its history has another length.
        """
        for operand, maxima in state.items():
            if maxima.shape != (self._history,):
                raise ValueError(
                    f"maxima of {operand} must have shape ({self._history},), as `history` says, "
                    f"not {tuple(maxima.shape)}"
                )
        self._maxima = {operand: maxima.clone() for operand, maxima in state.items()}
        self._newest = {}


class DelayedScaling(nn.Module):
    """Encodes and decodes a tensor with a scale from the maxima of earlier steps.

    A scale that is set before the values saves hardware a pass over them. Values beyond it are
    clipped to the largest code, and their share is counted.

    Args:
        format: one whose only scale is a real one of the tensor: `fp8_e4m3`, `fp8_e5m2`, `int8`.
        history: number of maxima kept; the largest counts.
        margin: binades kept free above it.

    The maxima are the buffer `maxima`, float32 of shape (history,), newest first, initially zeros,
    saved in `state_dict`. They do not change in evaluation mode.

    Raises:
        ValueError: another format, or a count below 1.
    """

    maxima: Tensor

    def __init__(
        self, format: str | BlockFormat = "fp8_e4m3", history: int = 16, margin: int = 0
    ) -> None:
        super().__init__()
        self._format = block_format(format)
        if not takes_scale(self._format):
            raise ValueError(f"format must have one real scale of the tensor, not {self._format}")
        check_integer("history", history, 1)
        check_integer("margin", margin, 0)
        self._margin = margin
        self.register_buffer("maxima", torch.zeros(history))

    @property
    def scale(self) -> float | None:
        """Scale of the next tensor; None before the first one, which has its own scale."""
        return scale_of(self.maxima, self._format, self._margin)

    def forward(self, x: Tensor) -> Tensor:
        """The quantised float32 values of `x`, with the scale of earlier tensors.

        Args:
            x: finite values (..., K).

        Returns:
            The values of `axs6.decode(axs6.encode(x, format, scale=scale))`. The gradient passes
            through unchanged, except that clipped values have none.

        Raises:
            ValueError: a value is not finite; the maxima are left as they were.
        """
        scale = self.scale
        values = fake_quantise(x.detach(), self._format, scale=scale)
        if self.training and x.numel():
            self.maxima.copy_(_with_newest(self.maxima, float(x.detach().abs().amax())))
        limit = torch.inf if scale is None else scale * float(self._format.element.largest)
        return _StraightThrough.apply(x, values, x.detach().abs() <= limit)


class _StraightThrough(torch.autograd.Function):
    """Other values for a tensor; the gradient passes only where `kept`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, values: Tensor, kept: Tensor) -> Tensor:
        ctx.save_for_backward(kept)
        return values

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (kept,) = ctx.saved_tensors
        return grads[0] * kept, None, None


def takes_scale(fmt: BlockFormat) -> bool:
    """Whether a format's only scale is a real one of the tensor, without a zero point."""
    level, *others = fmt.levels
    real = isinstance(level.scale, Real) and not level.scale.zero_point
    return real and level.group == TENSOR and not others


def scale_of(maxima: Tensor, fmt: BlockFormat, margin: int) -> float | None:
    """The scale for the largest of the maxima; None if all are 0."""
    largest = float(maxima.max())
    if largest == 0:
        return None
    wanted = largest * 2.0**margin / float(fmt.element.largest)
    return max(wanted, float(torch.finfo(torch.float32).tiny))


def _with_newest(maxima: Tensor, newest: float) -> Tensor:
    """Maxima with a new one at the front and without the oldest."""
    return torch.cat([maxima.new_tensor([newest]), maxima[:-1]])
