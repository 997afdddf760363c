"""Matrix products that a module's own methods compute, replaced while they run."""

import functools
import inspect
import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Self
from weakref import WeakValueDictionary

import torch
from torch import Tensor, fx, nn
from torch._ops import HigherOrderOperator, OpOverload
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from axs6.torch.constant import refuse_tracing, traced_as_constant
from axs6.torch.freeze import set_frozen
from axs6.torch.options import ProductOptions
from axs6.torch.products import PRODUCTS, REPLACED, WEIGHTED, Replacement, product_name
from axs6.torch.site import Scaling, Site
from axs6.torch.unconverted import Unconverted, tell

_scopes: WeakValueDictionary[int, "Scope"] = WeakValueDictionary()
_handles = itertools.count(1)
_CHECKPOINT = torch.ops.higher_order.tag_activation_checkpoint


class Scope:
    """The products in one module's methods, as places numbered in order of execution.

    Args:
        name: the module's name in the model, "" for the model itself.
        options: how the products are computed.
        unconverted: what to do about products that are not replaced.
    """

    def __init__(self, name: str, options: ProductOptions, unconverted: Unconverted) -> None:
        self.name = name
        self.options = options
        self.unconverted = unconverted
        self.handle = next(_handles)
        self.scaling: Scaling | None = None
        self._frozen = False
        self._told: set[str] = set()
        self._sites: dict[str, Site] = {}
        _scopes[self.handle] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return Scope, (self.name, self.options, self.unconverted)

    def site(self, part: str, number: int, kind: str) -> Site:
        """The place of product `number` of a run, or of a part of it."""
        name = f"{self.name}.{part}{kind}{number}".lstrip(".")
        if name not in self._sites:
            self._sites[name] = Site(name, self.options, weighted=kind in WEIGHTED)
            self._sites[name].scaling = self.scaling
            self._sites[name].freeze(self._frozen)
        return self._sites[name]

    def scale_by(self, scaling: Scaling | None) -> None:
        """Set the source of scales for the places here."""
        self.scaling = scaling
        for site in self._sites.values():
            site.scaling = scaling

    def freeze(self, frozen: bool) -> None:
        """Set whether the weights of places here are frozen."""
        self._frozen = frozen
        for site in self._sites.values():
            site.freeze(frozen)

    def look_again(self) -> None:
        """Let the next products read all of their weights, frozen ones too."""
        self.freeze(self._frozen)

    def tell(self, function: str) -> None:
        """Warn once that this function is not replaced."""
        if function not in self._told or self.unconverted == "error":
            self._told.add(function)
            tell(self.unconverted, f"{self.name}.{function}".lstrip("."))


@traced_as_constant
def _site_handle(scope: int, part: str, number: int, kind: str) -> int:
    return _scopes[scope].site(part, number, kind).handle


@traced_as_constant
def _tell(scope: int, function: str) -> None:
    # The compiler runs it while it traces, so that compiled models tell too.
    _scopes[scope].tell(function)


@traced_as_constant
def _show_private_functions() -> None:
    # The compiler keeps functions with a leading underscore from modes, which see them otherwise.
    from torch._dynamo.variables.torch import get_overridable_functions

    get_overridable_functions().update(PRODUCTS)


@traced_as_constant
def _tell_compiled(scope: int, function: str) -> None:
    # Where a method runs eagerly, an operator that is traced for itself is told when it runs.
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code in (Intercepted.forward.__code__, _run_method.__code__):
            return
        frame = frame.f_back
    _scopes[scope].tell(function)


class Interception(TorchFunctionMode):
    """Replaces the products of a scope, for one run of a method.

    Products of integers pass.

    Args:
        scope: its handle.
        part: prefix of the names of the places, before a dot; "" in the method itself.
        count: number of the first place.
    """

    def __init__(self, scope: int, part: str = "", count: int = 0) -> None:
        super().__init__()
        self.scope = scope
        self.part = part
        self.count = count
        if torch.compiler.is_dynamo_compiling():
            _show_private_functions()
        else:
            refuse_tracing()

    def site(self, kind: str) -> int:
        """Handle of the next place."""
        self.count += 1
        return _site_handle(self.scope, self.part, self.count - 1, kind)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        arguments = kwargs or {}
        if func is Tensor.unflatten:
            # torch's compiler cannot follow the method, which is Python, from within a mode.
            func = torch.unflatten
        if isinstance(func, HigherOrderOperator):
            return self._run_functions(func, args, arguments)
        called = func.overloadpacket if isinstance(func, OpOverload) else func
        name = product_name(called)
        if name is None or _are_integers(args, arguments):
            return func(*args, **arguments)
        y = NotImplemented
        if called in REPLACED and _can_be_encoded(args, arguments):
            y = _replaced(self, REPLACED[called], args, arguments)
        if y is NotImplemented:
            _tell(self.scope, name)
            # The modes of the modules around this one would tell again.
            with torch._C.DisableTorchFunction():
                y = func(*args, **arguments)
        return y

    def _run_functions(self, func: HigherOrderOperator, args: Any, kwargs: Any) -> Any:
        """An operator of functions, such as `torch.cond`, which ignores the modes around it.

        Torch's compiler traces checkpointed functions with replacements; it refuses these within
        other operators. Run eagerly, an operator has graphs, whose products are reported.
        """
        if func is _CHECKPOINT:
            self.count += 1
            part = f"{self.part}checkpoint{self.count - 1}."
            return func(_within(args[0], self.scope, part), *args[1:], **kwargs)
        if torch.compiler.is_dynamo_compiling():
            _tell_compiled(self.scope, PRODUCTS.get(func, "what a compiled operator calls"))
        else:
            own = [PRODUCTS[func]] if func in PRODUCTS else []
            for name in own or [f"{x} in {func.name()}" for x in _products_of_graphs(args)]:
                _tell(self.scope, name)
        with torch._C.DisableTorchFunction():
            return func(*args, **kwargs)


def _within(function: Callable[..., Any], scope: int, part: str) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with Interception(scope, part):
            return function(*args, **kwargs)

    return run


def _products_of_graphs(args: Any) -> list[str]:
    """Names of the products in graphs among arguments, and of operators there, each once."""
    found = [product_name(x.overloadpacket) for x in args if isinstance(x, OpOverload)]
    graphs = [x for x in args if isinstance(x, fx.GraphModule)]
    for node in (n for graph in graphs for m in _graphs(graph) for n in m.graph.nodes):
        target = node.target
        if node.op == "call_method":
            target = getattr(Tensor, target, None)
        if node.op in ("call_method", "call_function"):
            found.append(product_name(getattr(target, "overloadpacket", target)))
    return [*dict.fromkeys(name for name in found if name is not None)]


def _graphs(module: fx.GraphModule) -> list[fx.GraphModule]:
    return [x for x in module.modules() if isinstance(x, fx.GraphModule)]


def _tensors(args: Any, kwargs: Any) -> list[Tensor]:
    """Tensors among arguments, those in lists included."""
    values = [
        y for x in (*args, *kwargs.values()) for y in (x if isinstance(x, list | tuple) else (x,))
    ]
    return [x for x in values if isinstance(x, Tensor)]


def _are_integers(args: Any, kwargs: Any) -> bool:
    return not any(x.is_floating_point() or x.is_complex() for x in _tensors(args, kwargs))


def _can_be_encoded(args: Any, kwargs: Any) -> bool:
    """Whether both operands allow it; masks and results may follow them, sizes may stand
    between."""
    operands = [x for x in _tensors(args, kwargs) if x.dtype != torch.int64][:2]
    return all(x.is_floating_point() and x.layout == torch.strided for x in operands)


def _replaced(mode: Interception, replacement: Replacement, args: Any, kwargs: Any) -> Any:
    """The result of a replacement, written to `out` if given."""
    # The operators call the first argument of torch's functions by another name.
    named = {("input" if name == "self" else name): x for name, x in kwargs.items()}
    out = named.pop("out", None)
    y = replacement(mode, *args, **named)
    if out is None or y is NotImplemented:
        return y
    if torch.is_grad_enabled() and (y.requires_grad or out.requires_grad):
        raise RuntimeError("out must not be given if gradients are needed")
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


class Telling(Interception):
    """Reports the products of a scope instead of replacing them.

    Args:
        scope: its handle.
        part: where the products are.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        arguments = kwargs or {}
        name = product_name(func.overloadpacket if isinstance(func, OpOverload) else func)
        if name is not None and not _are_integers(args, arguments):
            _tell(self.scope, f"{self.part}{name}")
        with torch._C.DisableTorchFunction():
            return func(*args, **arguments)


def telling(part: str) -> "Callable[[], Telling] | None":
    """A function that makes a reporting mode for later, if products are replaced now."""
    scope = _innermost_scope()
    return None if scope is None else functools.partial(Telling, scope, f"{part}: ")


class Intercepted(nn.Module):
    """Mixin before a module's class: its `forward` runs with its products replaced."""

    axs6_scope: Scope

    def train(self, mode: bool = True) -> Self:
        """The module's own method; training mode unfreezes all weights."""
        if mode:
            set_frozen(self, False)
        return super().train(mode)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The same as the module's own method."""
        with Interception(self.axs6_scope.handle):
            return super().forward(*args, **kwargs)


class LeftAlone(nn.Module):
    """Mixin before the class of an excluded module: nothing in it is replaced."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own method, with its hooks and a `forward` assigned to the object."""
        return _leave_alone(super().__call__, *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The same as the module's own method."""
        return _leave_alone(super().forward, *args, **kwargs)


def methods_of(own: type[nn.Module], mixin: type[nn.Module]) -> dict[str, Any]:
    """The methods of a module's class that are not torch's, run as a mixin runs its `forward`.

    Their signatures stay. Methods called by `forward` continue its numbering. Generators and
    coroutines are left out.
    """
    run = _run_method if mixin is Intercepted else _leave_alone
    found = {name: inspect.getattr_static(own, name) for name in dir(own)}
    methods = {
        name: _wrapped(method, run)
        for name, method in found.items()
        if inspect.isfunction(method)
        and not (hasattr(nn.Module, name) or name.startswith("__"))
        and not (method.__module__ or "").startswith("torch.")
        and not (inspect.isgeneratorfunction(method) or inspect.iscoroutinefunction(method))
    }

    @functools.wraps(own.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return mixin.forward(self, *args, **kwargs)

    return {**methods, "forward": forward}


def _wrapped(method: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        return run(method, *args, **kwargs)

    return replaced


def _leave_alone(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with torch._C.DisableTorchFunction():
        return function(*args, **kwargs)


def _run_method(method: Callable[..., Any], self: Intercepted, *args: Any, **kwargs: Any) -> Any:
    scope = self.axs6_scope.handle
    if _innermost_scope() == scope:
        return method(self, *args, **kwargs)
    with Interception(scope):
        return method(self, *args, **kwargs)


def _innermost() -> "Interception | None":
    """The mode that replaces products in this thread."""
    for mode in reversed(_get_current_function_mode_stack()):
        if isinstance(mode, Interception):
            return mode
    return None


def _innermost_scope() -> int | None:
    """Handle of the scope whose products are being replaced."""
    mode = _innermost()
    return None if mode is None else mode.scope


def going_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose products are replaced as now, in other threads and later too."""
    mode = _innermost()
    if mode is None:
        return function
    scope, part, count = mode.scope, mode.part, mode.count

    def run(*args: Any, **kwargs: Any) -> Any:
        if _innermost_scope() == scope:
            return function(*args, **kwargs)
        with Interception(scope, part, count):
            return function(*args, **kwargs)

    return run
