"""Places of matrix products in a model.

Operators of torch take tensors and numbers, so a place is known to them by a number, its handle.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from axs6.golden.blocks import Blocks
from axs6.golden.formats import BlockFormat
from axs6.golden.rounding import RANDOM_BITS, Rounding
from axs6.torch.backends import Backend, ProductBatch, backend_of
from axs6.torch.bits import Bits, are_same, bits_of, kept
from axs6.torch.extent import encode_part, scales_tensor
from axs6.torch.matrices import reshaped, rows
from axs6.torch.options import Pair, ProductOptions
from axs6.torch.quantise import decode, encode

_sites: WeakValueDictionary[int, "Site"] = WeakValueDictionary()
_handles = itertools.count(1)

Wholes = tuple[Tensor | None, Tensor | None]
"""The whole tensors of two operands, which set their scales; None for operands that are whole."""

Observer = Callable[["Site", Tensor, Tensor, ProductBatch, Wholes], None]
"""Called with the place, the operands (G, M, K) and (G, N, K), the product of them, and wholes."""

_observers: list[Observer] = []

_from_blocks = WeakIdKeyDictionary()
"""Weights that were loaded from blocks: the name, and torch's version counter at loading."""

Role = Literal["left", "right", "gradient"]
"""Role of an operand at a place: in the forward product, or the gradient of its result."""


class Scaling(Protocol):
    """Source of scales that are set before the values of operands."""

    def scale(self, place: str, role: Role, fmt: BlockFormat) -> float | None:
        """Scale of an operand in a format; None if it is computed from the values."""
        ...

    def observe(self, place: str, role: Role, x: Tensor) -> None:
        """Record the values of an operand."""
        ...


class _Held(NamedTuple):
    """The encoding of a weight.

    Args:
        key: inputs other than the bits of the weight. bits: bits of the rows of the weight.
        encoding: the backend's operand. weight: the weight of a frozen place, kept alive so that no
        other tensor takes its memory. version: torch's count of the changes of that weight.
    """

    key: tuple[Any, ...]
    bits: Bits
    encoding: Any
    weight: Tensor | None = None
    version: int = 0

    def is_of(self, weight: Tensor) -> bool:
        """Whether this encodes the same weight object, unchanged by torch's version counter."""
        if self.weight is None or self.weight.data_ptr() != weight.data_ptr():
            return False
        return self.version == _version(weight)


def _version(x: Tensor) -> int:
    """Torch's version counter of a tensor; there is none in inference mode."""
    return 0 if x.is_inference() else x._version


class Site:
    """One place, with its options and the encoded weight that it keeps.

    Args:
        name: name in reports and errors: the name of the module. options: how its products are
        computed. rows: the rows of its weight that it uses; None for all. parameter: name of the
        weight in the module; None without a weight. packed: blocks from which the weight was
        loaded, see `load`. weighted: whether its right operands are weights. transposed: whether
        the first axis of the weight is K, not the others.

    A copy, deep or through pickle, is a place of its own with the same arguments, and no `scaling`.
    """

    def __init__(
        self,
        name: str,
        options: ProductOptions,
        rows: tuple[int, int] | None = None,
        parameter: str | None = None,
        packed: Blocks | None = None,
        weighted: bool = False,
        transposed: bool = False,
    ) -> None:
        self.name = name
        self.options = options
        self.rows = rows
        self.parameter = parameter
        self.packed = packed
        self.weighted = weighted
        self.transposed = transposed
        self.handle = next(_handles)
        self.scaling: Scaling | None = None
        self._held: _Held | None = None
        self._frozen = False
        _sites[self.handle] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return Site, (
            *(self.name, self.options, self.rows, self.parameter, self.packed),
            *(self.weighted, self.transposed),
        )

    @cached_property
    def backend(self) -> Backend:
        """The backend of the products."""
        return backend_of(self.options)

    @cached_property
    def formats(self) -> Pair:
        """Formats of the two operands."""
        options = self.options
        return options.activations, options.weights if self.weighted else options.activations

    def format(self, role: Role) -> BlockFormat:
        """Format of an operand."""
        if role == "gradient":
            assert self.options.gradients is not None
            return self.options.gradients
        return self.formats[role == "right"]

    def scale(self, role: Role) -> float | None:
        """Scale of an operand, if it is set before the values."""
        if self.scaling is None:
            return None
        return self.scaling.scale(self.name, role, self.format(role))

    def prepare(self, x: Tensor, role: Role, called: str, whole: Tensor | None = None) -> Any:
        """Encode an operand (G, R, K), part of a whole; `name` is its name in errors."""
        prepared = self._prepare_by(self.backend, x, role, f"{self.name}: {called}", whole)
        self._observe(x if whole is None else whole, role)
        return prepared

    def product(
        self,
        x: Tensor,
        called: str,
        right: Any,
        bias: Tensor | None = None,
        whole: Tensor | None = None,
    ) -> Tensor:
        """The product of a left operand (G, M, K), as `prepare` takes it, and a prepared one."""
        name, backend = f"{self.name}: {called}", self.backend
        blocks = self.part(x, "left", name, whole)
        if blocks is None:
            scale = self.scale("left")
            result = backend.prepared_product(x, self.formats[0], name, right, bias, scale)
        else:
            result = backend.product(backend.take(blocks, x.device), right, bias)
        self._observe(x if whole is None else whole, "left")
        return result.values

    def prepare_for(
        self, backend: Backend, x: Tensor, role: Role, whole: Tensor | None = None
    ) -> Any:
        """Encode an operand (G, R, K) of the forward product for another backend."""
        blocks = self.loaded(x) if role == "right" else None
        if blocks is not None:
            return backend.take(blocks, x.device)
        return self._prepare_by(backend, x, role, self.name, whole)

    def part(self, x: Tensor, role: Role, name: str, whole: Tensor | None) -> Blocks | None:
        """Blocks of an operand with the scale of a whole; None if it has its own scale."""
        options = (self.options.nonfinite, self.scale(role), name)
        return encode_part(x, whole, self.format(role), *options)

    def _prepare_by(
        self, backend: Backend, x: Tensor, role: Role, name: str, whole: Tensor | None
    ) -> Any:
        if role == "gradient" and self.options.gradient_rounding is not Rounding.NEAREST:
            blocks: Blocks | None = self._rounded_gradient(x, name)
        else:
            blocks = self.part(x, role, name, whole)
        if blocks is not None:
            return backend.take(blocks, x.device)
        return backend.prepare(x, self.format(role), name, self.scale(role))

    def _rounded_gradient(self, x: Tensor, name: str) -> Blocks:
        """Blocks of a gradient, rounded otherwise than to nearest.

        Words for stochastic rounding come from torch's default generator of the device.
        """
        rounding, words = self.options.gradient_rounding, None
        if rounding is Rounding.STOCHASTIC:
            words = torch.randint(1 << RANDOM_BITS, x.shape, device=x.device)
        return encode(
            x,
            self.format("gradient"),
            rounding,
            random=words,
            nonfinite=self.options.nonfinite,
            scale=self.scale("gradient"),
            name=name,
        )

    def _observe(self, x: Tensor, role: Role) -> None:
        if self.scaling is not None:
            self.scaling.observe(self.name, role, x)

    def scale_by(self, scaling: Scaling | None) -> None:
        """Set the source of scales."""
        self.scaling = scaling

    def chosen(self, x: Tensor) -> Tensor:
        """The rows of a weight that this place uses."""
        return x if self.rows is None else x[self.rows[0] : self.rows[1]]

    def whole(self, weight: Tensor) -> Tensor | None:
        """The whole weight, if this place uses only some of its rows."""
        return None if self.rows is None else weight

    def freeze(self, frozen: bool) -> None:
        """Set whether the weight is frozen: checked only by torch's version counter.

        In any case the next product reads all of it.
        """
        self._frozen = frozen
        if self._held is not None:
            self._held = self._held._replace(weight=None)

    def look_again(self) -> None:
        """Let the next product read all of the weight, even if frozen."""
        self.freeze(self._frozen)

    def prepare_weight(self, weight: Tensor, matrices: Tensor) -> Any:
        """Encode `matrices`, a view of `weight`, unless the bits are unchanged. The bits are read
        before encoding: a change in between is noticed the next time.
        """
        key = (
            *(weight.dtype, weight.device, weight.shape, weight.stride()),
            *(matrices.shape, self.scale("right")),
        )
        held = self._held if self._held is not None and self._held.key == key else None
        if held is None or not held.is_of(weight):
            bits = bits_of(weight if scales_tensor(self.formats[1]) else self.chosen(weight))
            if held is None or not are_same(held.bits, bits):
                held = _Held(key, kept(bits), self._prepared(weight, matrices))
            if self._frozen:
                held = held._replace(weight=weight.detach(), version=_version(weight))
            self._held = held
        self._observe(matrices if self.rows is None else weight, "right")
        return held.encoding

    def _prepared(self, weight: Tensor, matrices: Tensor) -> Any:
        blocks = self.loaded(matrices)
        if blocks is not None:
            return self.backend.take(blocks, matrices.device)
        if self.packed is None:
            check_origin(self, weight)
        name = f"{self.name}: weight"
        return self._prepare_by(self.backend, matrices, "right", name, self.whole(weight))

    def load(self, blocks: Blocks | None) -> None:
        """Keep the blocks (all rows of the weight, K) from which the weight is loaded, or none."""
        if blocks is not None and self.rows is not None:
            blocks = rows(blocks, slice(*self.rows))
        self.packed, self._held = blocks, None

    def loaded(self, matrices: Tensor) -> Blocks | None:
        """The blocks from which a weight (G, N, K) was loaded, as long as they decode to it.

        Encoding it again would give other blocks: the largest magnitude decodes to a power of two,
        whose own block has the next exponent.
        """
        if self.packed is None or self.packed.codes.size == 0:
            return None
        values = decode(self.packed, device=matrices.device).to(matrices.dtype)
        if not torch.equal(values.reshape(matrices.shape), matrices.detach()):
            return None
        return reshaped(self.packed, matrices.shape[:2])

    def report(
        self, a: Tensor, b: Tensor, result: ProductBatch, wholes: Wholes = (None, None)
    ) -> None:
        """Tell the observers of a product."""
        for observer in _observers:
            observer(self, a, b, result, wholes)


def note_origin(weight: Tensor, name: str) -> None:
    """Record that a weight was loaded from the blocks of its place."""
    _from_blocks[weight] = (name, _version(weight))


def check_origin(place: Site, x: Tensor) -> None:
    """Warn, once for each weight, if values loaded from blocks are encoded again."""
    root = x if x._base is None else x._base
    name, version = _from_blocks.get(root, ("", 0))
    if not name or version != _version(root):
        return
    del _from_blocks[root]
    warnings.warn(
        f"{place.name} multiplies by {name}, which was loaded from the blocks of another product: "
        "the result has not the bits of the model that was saved",
        UserWarning,
        stacklevel=2,
    )


def site_of(handle: int) -> Site:
    """The place with this handle.

    Raises:
        RuntimeError: it is gone, with the module it belonged to.
    """
    site = _sites.get(int(handle))
    if site is None:
        raise RuntimeError(
            "this compiled function belongs to a converted model that no longer exists"
        )
    return site


def is_observed() -> bool:
    """Whether products have observers, which see them without the bias."""
    return bool(_observers)


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """A context in which `observer` sees every product."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)
