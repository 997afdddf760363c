"""Matrix products that a module's own `forward` computes, replaced while it runs."""

import itertools
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode

from axs6.sim.torch.backends import Options
from axs6.sim.torch.products import REPLACED, Replacement
from axs6.sim.torch.site import Site

_scopes: WeakValueDictionary[int, "Scope"] = WeakValueDictionary()
_handles = itertools.count(1)


class Scope:
    """The products in one module's `forward`, which are places numbered as they come.

    Args:
        name: the module's name in the model, "" for the model itself.
        options: how the products are computed.
    """

    def __init__(self, name: str, options: Options) -> None:
        self.name = name
        self.options = options
        self.handle = next(_handles)
        self._sites: dict[str, Site] = {}
        _scopes[self.handle] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return Scope, (self.name, self.options)

    def site(self, number: int, kind: str) -> Site:
        """The place of product `number` of a run."""
        name = f"{self.name}.{kind}{number}".lstrip(".")
        if name not in self._sites:
            self._sites[name] = Site(name, self.options)
        return self._sites[name]


@torch.compiler.assume_constant_result
def _site_handle(scope: int, number: int, kind: str) -> int:
    return _scopes[scope].site(number, kind).handle


class Interception(TorchFunctionMode):
    """Replaces the products of a scope, for one run of a `forward`.

    Products of integers pass.
    """

    def __init__(self, scope: int) -> None:
        super().__init__()
        self._scope = scope
        self._count = 0

    def site(self, kind: str) -> int:
        """Handle of the next place."""
        self._count += 1
        return _site_handle(self._scope, self._count - 1, kind)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        arguments = kwargs or {}
        if func is Tensor.unflatten:
            # torch's compiler cannot follow the method, which is Python, from within a mode.
            func = torch.unflatten
        called = func.overloadpacket if isinstance(func, OpOverload) else func
        if called not in REPLACED or not _are_floating(args, arguments):
            return func(*args, **arguments)
        y = _replaced(self, REPLACED[called], args, arguments)
        return func(*args, **arguments) if y is NotImplemented else y


def _are_floating(args: Any, kwargs: Any) -> bool:
    """Whether the first two tensors among some arguments hold floating point."""
    operands = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    return all(x.is_floating_point() for x in operands[:2])


def _replaced(mode: Interception, replacement: Replacement, args: Any, kwargs: Any) -> Any:
    """What a replacement gives, written where `out` says."""
    # The operators call the first argument of torch's functions by another name.
    named = {("input" if name == "self" else name): x for name, x in kwargs.items()}
    out = named.pop("out", None)
    y = replacement(mode, *args, **named)
    if out is None or y is NotImplemented:
        return y
    if torch.is_grad_enabled() and (y.requires_grad or out.requires_grad):
        raise RuntimeError("out must not be given where gradients are wanted")
    if (out.dtype, out.device) != (y.dtype, y.device):
        raise ValueError(
            f"out must be {y.dtype} on {y.device}, as the result, not {out.dtype} on {out.device}"
        )
    if out.shape != y.shape:
        if out.numel():
            raise ValueError(
                f"out must be empty or have shape {tuple(y.shape)}, not {tuple(out.shape)}"
            )
        out.resize_(y.shape)
    return out.copy_(y)


class Intercepted(nn.Module):
    """Mixin before a module's class: its `forward` runs with its products replaced."""

    axs6_scope: Scope

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the module's own."""
        with Interception(self.axs6_scope.handle):
            return super().forward(*args, **kwargs)


class LeftAlone(nn.Module):
    """Mixin before the class of an excluded module: nothing in it is replaced."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the module's own."""
        with torch._C.DisableTorchFunction():
            return super().forward(*args, **kwargs)
