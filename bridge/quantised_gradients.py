"""Gradients in a block format between the backward pass and the optimiser's step."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from axs6.golden.encode import check_nonfinite_in
from axs6.golden.lfsr import RANDOM_SEED
from axs6.golden.nonfinite import NonFinite
from axs6.golden.rounding import RANDOM_BITS, Rounding, check_random_bits, check_rounding
from axs6.torch.feedback import ErrorFeedback
from axs6.torch.lfsr import Lfsr
from axs6.torch.ops import fake_quantise
from axs6.torch.options import Format, spelled, spelling


class QuantisedGradients(nn.Module):
    """Encodes and decodes the gradients of parameters before each step of their optimiser.

    It is a hook, `optimiser.register_step_pre_hook(gradients)`. Blocks lie along all axes of a
    parameter but the first, as for weights in products; blocks of a vector lie along it.

    Args:
        parameters: float32 parameters; parameters without a gradient are skipped.
        format, rounding, block, nonfinite: as of `encode`.
        random_bits, seed: with rounding "stochastic", of an `Lfsr` with a lane for each value of a
            block, which draws words for one gradient after the other.
        feedback: whether the error of each gradient is added to the next one.

    `state_dict` has the registers, `words.states`, and for each parameter its `errors.N.error`.

    Raises:
        TypeError: a parameter is not float32.
        ValueError: an option is unknown, or there is no parameter; in a step, a gradient is not
            finite, or the step has a closure, which computes gradients behind the hook.

    Source: AXS-6 specification, sections 8 and 9.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        format: Format = "axs6",
        rounding: str = "stochastic",
        *,
        block: int | None = None,
        random_bits: int = RANDOM_BITS,
        seed: int = RANDOM_SEED,
        feedback: bool = False,
        nonfinite: NonFinite = "error",
    ) -> None:
        super().__init__()
        text = spelling(format, block)
        check_nonfinite_in(spelled(text), nonfinite)
        check_random_bits(random_bits)
        self._encoding = (text, str(check_rounding(rounding)))
        self._options: dict[str, Any] = {"random_bits": random_bits, "nonfinite": nonfinite}
        # In a tuple, whose parameters are not this module's own.
        self._targets = tuple(parameters)
        if not self._targets:
            raise ValueError("parameters must not be empty")
        for index, target in enumerate(self._targets):
            if target.dtype != torch.float32:
                raise TypeError(f"parameter {index} must be float32, not {target.dtype}")
        self.words: Lfsr | None = None
        if rounding == Rounding.STOCHASTIC:
            self.words = Lfsr(spelled(text).block, seed, random_bits, self._targets[0].device)
        self.errors: nn.ModuleList | None = None
        if feedback:
            self.errors = nn.ModuleList(
                ErrorFeedback(_rows(target).shape, device=target.device) for target in self._targets
            )

    @torch.no_grad()
    def forward(
        self, optimiser: Optimizer, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """The hook that an optimiser calls before its step."""
        # The first argument of a step is the optimiser itself.
        if any(argument is not None for argument in (*args[1:], *kwargs.values())):
            raise ValueError("step must have no closure, which would compute gradients later")
        for index, target in enumerate(self._targets):
            if target.grad is not None:
                rows = _rows(target.grad)
                options = dict(self._options, name=f"gradient {index}")
                if self.words is not None:
                    options["random"] = self.words(rows)
                quantise = fake_quantise if self.errors is None else self.errors[index]
                target.grad.copy_(quantise(rows, *self._encoding, **options).view_as(target.grad))


def _rows(x: Tensor) -> Tensor:
    """Values as (..., K), in the blocks of a weight in products."""
    return x.flatten(1) if x.ndim > 1 else x.flatten()
