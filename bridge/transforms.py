"""Operators under the transforms of `torch.func`, which do not support the gradients of custom
operators.

The gradient functions of an operator also make an `autograd.Function`, which these transforms
support. They provide gradients, batches of gradients and `vmap`; there is no forward mode.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

Gradients = tuple[Tensor | None, ...]
"""Gradients of an operator's arguments."""


def is_transformed() -> bool:
    """Whether a transform of `torch.func` or forward-mode differentiation is active."""
    return peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def check_traced() -> None:
    """Refuse forward mode while torch's compiler traces an operator: it would lose the tangents."""
    if torch.compiler.is_compiling() and forward_ad._current_level >= 0:
        _refuse_forward_mode()


def transformable(
    operator: Callable[..., Any], setup_context: Callable[..., None], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """An operator for the transforms.

    Args:
        operator: called with its arguments by position.
        setup_context, backward: the functions of its `register_autograd`.
    """

    def forward(*arguments: Any) -> Any:
        return operator(*arguments)

    members: dict[str, Any] = {
        "generate_vmap_rule": True,
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
        "jvp": staticmethod(_refuse_forward_mode),
    }
    function = type("Transformed", (torch.autograd.Function,), members)
    return function.apply  # type: ignore[attr-defined]


def keep_dtype(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep the dtype of the first argument for the backward pass."""
    ctx.dtype = inputs[0].dtype


def _refuse_forward_mode(*tangents: Any) -> NoReturn:
    raise NotImplementedError(
        "products in block formats have no forward-mode derivatives (jvp, jacfwd, hessian): "
        "take vjp or jacrev"
    )
