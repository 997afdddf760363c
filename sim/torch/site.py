"""Places in a model where a matrix product is computed.

Operators of torch take tensors and numbers, so a place is known to them by a number, its handle.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

from torch import Tensor

from axs6.sim.torch.backends import Backend, Options, Result, backend_of

_sites: WeakValueDictionary[int, "Site"] = WeakValueDictionary()
_handles = itertools.count(1)

Observer = Callable[["Site", Tensor, Tensor, Result], None]
"""Called with the place, the operands (G, M, K) and (G, N, K), and the product of them."""

_observers: list[Observer] = []


class Site:
    """One place, with its options and the encoded weight that it keeps.

    Args:
        name: what reports and errors call it: the name of the module.
        options: how its products are computed.
        rows: which rows of its weight it uses; None for all.

    A copy, deep or through pickle, is a place of its own with the same arguments.
    """

    def __init__(self, name: str, options: Options, rows: tuple[int, int] | None = None) -> None:
        self.name = name
        self.options = options
        self.rows = rows
        self.handle = next(_handles)
        self._held: tuple[Tensor, tuple[Any, ...], Any] | None = None
        _sites[self.handle] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return Site, (self.name, self.options, self.rows)

    @property
    def backend(self) -> Backend:
        """What computes the products."""
        return backend_of(self.options)

    def chosen(self, x: Tensor) -> Tensor:
        """The rows of a weight that this place uses."""
        return x if self.rows is None else x[self.rows[0] : self.rows[1]]

    def prepare_weight(self, weight: Tensor, matrices: Tensor) -> Any:
        """Encode `matrices`, a view of `weight`, unless that is the last one and unchanged.

        What tells is the version that torch counts up at every change in place, and the memory:
        the weight is held on to, so that no other can take its place. A tensor made in inference
        mode has no version and is encoded every time.
        """
        name = f"{self.name}: weight"
        if weight.is_inference():
            return self.backend.prepare(matrices, name)
        key = (
            *(weight.data_ptr(), weight._version, weight.dtype, weight.device),
            *(weight.shape, weight.stride()),
        )
        if self._held is None or self._held[1] != key:
            self._held = (weight.detach(), key, self.backend.prepare(matrices, name))
        return self._held[2]

    def report(self, a: Tensor, b: Tensor, result: Result) -> None:
        """Tell the observers of a product."""
        for observer in _observers:
            observer(self, a, b, result)


def site_of(handle: int) -> Site:
    """The place with this handle.

    Raises:
        RuntimeError: it is gone, with the module it belonged to.
    """
    site = _sites.get(int(handle))
    if site is None:
        raise RuntimeError("this compiled function belongs to a converted model that is gone")
    return site


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """A context in which `observer` sees every product."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)
