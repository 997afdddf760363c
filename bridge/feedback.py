"""Error feedback in torch: the rounding error of a value is added to the next one.

c = fp32(x + e) is encoded, and fp32(c - decode(c)) is the new e. Both sums are computed in float64
and rounded to FP32; with 53 bits this equals a single rounding.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from axs6.golden.formats import BlockFormat
from axs6.golden.nonfinite import NonFinite
from axs6.golden.rounding import RANDOM_BITS
from axs6.torch import quantise
from axs6.torch.ieee import narrow, widen
from axs6.torch.options import spelled, spelling
from axs6.torch.rounding import check_device, check_random
from axs6.torch.transforms import check_traced, is_transformed, transformable


class ErrorFeedback(nn.Module):
    """Encodes and decodes values of one shape step by step, adding the error of the last step.

    Args:
        shape: of the values, (..., K).
        device: where they are.

    The error is the buffer `error`, float32, initially zeros, saved in `state_dict`.

    Source: AXS-6 specification, section 8; docs/format.md, "Error feedback".
    """

    error: Tensor

    def __init__(self, shape: Iterable[int], *, device: torch.device | str | None = None) -> None:
        super().__init__()
        self.register_buffer("error", torch.zeros(tuple(shape), dtype=torch.float32, device=device))

    def forward(
        self,
        x: Tensor,
        format: str | BlockFormat = "axs6",
        rounding: str = "nearest",
        *,
        block: int | None = None,
        random: Tensor | None = None,
        random_bits: int = RANDOM_BITS,
        nonfinite: NonFinite = "error",
        name: str = "values",
    ) -> Tensor:
        """Quantised values of `x` plus the error; their rounding error becomes the new error.

        Args:
            x: float32 values of the error's shape.
            format, rounding, block, random, random_bits, nonfinite, name: as of `encode`. With
                "saturate" a nonfinite sum sets the error to +0.

        Returns:
            float32 of the shape of `x`. These values and the error have the bits of
            `axs6.golden.feedback.encode_with_feedback`. The gradient passes through as it is.

        Raises:
            TypeError, ValueError: `x` is not float32 or of another shape, or as `encode`; the
                error is left as it was.
        """
        text = spelling(format, block)
        check_random(random)
        for what, tensor in ((name, x), ("error", self.error)):
            if tensor.dtype != torch.float32:
                raise TypeError(f"{what} must be float32, not {tensor.dtype}")
        if x.device != self.error.device:
            raise ValueError(
                f"{name} must be on {self.error.device} as the error is, not on {x.device}"
            )
        if x.shape != self.error.shape:
            raise ValueError(
                f"{name} must have the shape of the error {tuple(self.error.shape)}, "
                f"not {tuple(x.shape)}"
            )
        operator: Callable[..., Any] = _feed_back
        if not torch.compiler.is_compiling() and is_transformed():
            operator = _feed_back_transformed
        values, left = operator(x, self.error, text, rounding, random, random_bits, nonfinite, name)
        self.error.copy_(left.detach())
        return values


@torch.library.custom_op("axs6::feed_back", mutates_args=())
def _feed_back(
    x: Tensor,
    error: Tensor,
    format: str,
    rounding: str,
    random: Tensor | None,
    random_bits: int,
    nonfinite: str,
    name: str,
) -> tuple[Tensor, Tensor]:
    """The decoded values, and the error that they leave."""
    corrected = narrow(widen(x) + widen(error))
    options: dict[str, Any] = {"nonfinite": nonfinite, "name": name}
    values = quantise.fake_quantise(
        corrected, spelled(format), rounding, random=random, random_bits=random_bits, **options
    )
    left = narrow(widen(corrected) - widen(values))
    return values.contiguous(), left.masked_fill_(~corrected.isfinite(), 0.0).contiguous()


@_feed_back.register_fake
def _(
    x: Tensor, error: Tensor, format: str, rounding: str, random: Tensor | None, *options: Any
) -> tuple[Tensor, Tensor]:
    check_traced()
    check_device(random, x)
    return x.new_empty(x.shape), x.new_empty(x.shape)


def _pass_through(ctx: Any, grad: Tensor, grad_of_error: Tensor) -> tuple[Tensor | None, ...]:
    return grad, *[None] * 7


def _keep_nothing(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    pass


_feed_back.register_autograd(_pass_through)
_feed_back_transformed = transformable(_feed_back, _keep_nothing, _pass_through)
