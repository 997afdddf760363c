"""Functions that torch's compiler runs while it traces."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def traced_as_constant(function: Function) -> Function:
    """Let torch's compiler call a function of constants and treat its result as a constant.

    It is `torch.compiler.assume_constant_result`, which would import all of the compiler at once:
    half of the time that importing this bridge took.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def refuse_tracing() -> None:
    """Raise RuntimeError within `torch.jit.trace`: its graphs would keep the traced sizes."""
    if torch.jit.is_tracing():
        raise RuntimeError("torch.jit.trace cannot follow converted models: use torch.export")
