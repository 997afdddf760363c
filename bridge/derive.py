"""Classes of converted modules, which look like the original classes."""

import copy
from types import MethodType
from typing import Any

from torch import fx, nn

from axs6.torch.intercept import Intercepted, LeftAlone, methods_of

_derived: dict[tuple[type[nn.Module], ...], type[nn.Module]] = {}
_own: dict[type[nn.Module], type[nn.Module]] = {}


def derived(own: type[nn.Module], *bases: type[nn.Module]) -> type[nn.Module]:
    """A class with the name and text of `own`, and these bases; its objects copy and pickle.

    In the bases a mixin precedes `own`. A replacement of torch's layer follows it: `own` inherits
    `forward` from it, or reaches it by `super()`.
    """
    if bases not in _derived:
        members = {
            "__module__": own.__module__,
            "__qualname__": own.__qualname__,
            "__doc__": own.__doc__,
        }
        for mixin in (Intercepted, LeftAlone):
            if mixin in bases:
                members |= methods_of(own, mixin)
        made_for_one_object = issubclass(own, fx.GraphModule)
        members |= _graph_members(own, bases) if made_for_one_object else _members(own, bases)
        metaclass: Any = type(own)
        _derived[bases] = metaclass(own.__name__, bases, members)
        _own[_derived[bases]] = own
    return _derived[bases]


def become(module: nn.Module, cls: type[nn.Module]) -> None:
    """Give a module another class, and its methods that it keeps as attributes too.

    Tools that assign a `forward` to the object keep the `forward` of its class this way.
    """
    before = type(module)
    module.__class__ = cls
    for name, kept in [*vars(module).items()]:
        if isinstance(kept, MethodType) and kept.__self__ is module:
            method = kept.__func__.__name__
            if kept.__func__ is getattr(before, method, None):
                module.__dict__[name] = getattr(cls, method).__get__(module)


def underived(cls: type[nn.Module]) -> type[nn.Module]:
    """The original class of a class made by `derived`, or the class itself."""
    return _own.get(cls, cls)


def _members(own: type[nn.Module], bases: tuple[type[nn.Module], ...]) -> dict[str, Any]:
    def reduce(self: nn.Module, protocol: Any) -> tuple[Any, ...]:
        return _new, (own, *bases), self.__getstate__()

    return {"__reduce_ex__": reduce}


def _new(own: type[nn.Module], *bases: type[nn.Module]) -> nn.Module:
    return object.__new__(derived(own, *bases))


def _graph_members(own: Any, bases: tuple[type[nn.Module], ...]) -> dict[str, Any]:
    """Methods of an `fx.GraphModule`, whose class is made for this one object.

    Copies and pickles have classes of their own, and compiling the graph again writes `forward`
    into the class: all are done to the module as it was, which shares its attributes.
    """
    mixins = tuple(base for base in bases if base is not own)

    def plain(self: Any) -> Any:
        module = object.__new__(own)
        module.__dict__ = self.__dict__
        return module

    def recompile(self: Any) -> Any:
        return plain(self).recompile()

    def deepcopy(self: Any, memo: Any) -> Any:
        added = {name: value for name, value in vars(self).items() if name.startswith("axs6_")}
        return _mix_in(copy.deepcopy(plain(self), memo), mixins, copy.deepcopy(added, memo))

    def reduce(self: Any, protocol: Any) -> tuple[Any, ...]:
        added = {name: value for name, value in vars(self).items() if name.startswith("axs6_")}
        return _mix_in, (plain(self), mixins, added)

    return {"recompile": recompile, "__deepcopy__": deepcopy, "__reduce_ex__": reduce}


def _mix_in(module: Any, mixins: tuple[type[nn.Module], ...], added: dict[str, Any]) -> Any:
    own = type(module)
    module.__dict__.update(added)
    become(module, derived(own, *mixins, own))
    return module
