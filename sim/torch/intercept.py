"""Matrix products that a module's own `forward` computes, replaced while it runs."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from axs6.sim.torch.attention import scaled_dot_product_attention
from axs6.sim.torch.backends import Options
from axs6.sim.torch.functional import multiply
from axs6.sim.torch.layers import linear
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

    Products of integers pass, and so does what is not in `REPLACED`: `einsum`, `addmm`,
    `baddbmm`, convolutions that are not layers.
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
        replacement = REPLACED.get(func)
        operands = [x for x in (*args, *arguments.values()) if isinstance(x, Tensor)]
        if replacement is None or not all(x.is_floating_point() for x in operands[:2]):
            return func(*args, **arguments)
        return replacement(self, *args, **arguments)


def _multiply(mode: Interception, input: Tensor, other: Tensor) -> Tensor:
    return multiply(input, other, mode.site("matmul"))


def _reflected(mode: Interception, input: Tensor, other: Tensor) -> Tensor:
    return multiply(other, input, mode.site("matmul"))


def _bmm(mode: Interception, input: Tensor, mat2: Tensor) -> Tensor:
    return multiply(input, mat2, mode.site("matmul"))


def _linear(
    mode: Interception, input: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    return linear(input, weight, bias, mode.site("linear"))


def _attention(mode: Interception, *args: Any, **kwargs: Any) -> Tensor:
    sites = (mode.site("scores"), mode.site("values"))
    return scaled_dot_product_attention(sites, *args, **kwargs)


REPLACED: Mapping[Any, Callable[..., Tensor]] = {
    torch.matmul: _multiply,
    Tensor.matmul: _multiply,
    Tensor.__matmul__: _multiply,
    Tensor.__rmatmul__: _reflected,
    torch.mm: _bmm,
    Tensor.mm: _bmm,
    torch.bmm: _bmm,
    Tensor.bmm: _bmm,
    functional.linear: _linear,
    functional.scaled_dot_product_attention: _attention,
}
"""Functions that are replaced, by what."""


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


_derived: dict[tuple[type[nn.Module], ...], type[nn.Module]] = {}
_own: dict[type[nn.Module], type[nn.Module]] = {}


def derived(own: type[nn.Module], *bases: type[nn.Module]) -> type[nn.Module]:
    """A class with the name and text of `own`, and these bases; its objects copy and pickle.

    A mixin stands before `own` in the bases. A replacement of torch's layer stands after it: that
    is what `own` inherits its `forward` from, or reaches by `super()`.
    """

    def reduce(self: nn.Module, protocol: Any) -> tuple[Any, ...]:
        return _new, (own, *bases), self.__getstate__()

    if bases not in _derived:
        members = {
            "__module__": own.__module__,
            "__qualname__": own.__qualname__,
            "__doc__": own.__doc__,
            "__reduce_ex__": reduce,
        }
        metaclass: Any = type(own)
        _derived[bases] = metaclass(own.__name__, bases, members)
        _own[_derived[bases]] = own
    return _derived[bases]


def underived(cls: type[nn.Module]) -> type[nn.Module]:
    """The class that `derived` made one of, or the class itself."""
    return _own.get(cls, cls)


def _new(own: type[nn.Module], *bases: type[nn.Module]) -> nn.Module:
    return object.__new__(derived(own, *bases))
