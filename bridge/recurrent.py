"""Recurrent layers and their cells with the products of the hardware.

Torch's own modules handle packed sequences, single sequences and default hidden states; the
functions that they finally call are replaced. A layer multiplies the inputs of all steps at once,
and its hidden state step by step. Torch computes the gates, in the dtype of the input.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from axs6.torch.constant import refuse_tracing
from axs6.torch.layers import Converted, linear
from axs6.torch.site import Site

KINDS = ("input", "hidden", "projection")
"""Kinds of places: products of inputs, of hidden states, and of what becomes hidden states."""

State = tuple[Tensor, ...]
"""The hidden state (B, H); for an LSTM also the cell state."""

Product = Callable[[Tensor], Tensor]
Products = tuple[Product, Product, Product]
"""A product for each of the kinds."""

Step = Callable[[Tensor, State, Products], State]
"""The next state, by the input's part in the gates (B, gates * H)."""


class Places(Protocol):
    """Source of the handles of the products' places."""

    def site(self, kind: str) -> int:
        """Handle of the next place."""
        ...


def _rnn(activation: Product, x: Tensor, state: State, products: Products) -> State:
    return (activation(products[1](state[0]) + x),)


def _gru(x: Tensor, state: State, products: Products) -> State:
    of_x, of_h = x.chunk(3, -1), products[1](state[0]).chunk(3, -1)
    reset, update = ((h + x).sigmoid() for h, x in zip(of_h[:2], of_x[:2], strict=True))
    new = (of_x[2] + of_h[2] * reset).tanh()
    return ((state[0] - new) * update + new,)


def _lstm(x: Tensor, state: State, products: Products) -> State:
    into, forget, new, out = (products[1](state[0]) + x).chunk(4, -1)
    inner = forget.sigmoid() * state[1] + into.sigmoid() * new.tanh()
    return products[2](out.sigmoid() * inner.tanh()), inner


_STEPS: Mapping[str, Step] = {
    "rnn_tanh": partial(_rnn, torch.tanh),
    "rnn_relu": partial(_rnn, torch.relu),
    "gru": _gru,
    "lstm": _lstm,
}
"""Torch's functions that are recurrent layers; with "_cell" at the end they are single steps."""


def _cell(name: str) -> Callable[..., Any]:
    """Replacement of torch's function for one step, called with arguments by position."""

    def run(places: Places, *given: Any, **named: Any) -> Any:
        if named:
            return NotImplemented
        x, state, *weights = given
        products = _products(places, weights, len(weights) > 2)
        found = _STEPS[name](products[0](x), _states(state), products)
        return found if name == "lstm" else found[0]

    return run


def _layers(name: str) -> Callable[..., Any]:
    """Replacement of torch's function for layers, called with arguments by position.

    Its first arguments are a batch (T, B, I), or (B, T, I) if the last one is True; or packed
    sequences (rows, I), the rows of a step one after the other, and the count of rows of each step.
    """

    def run(places: Places, *given: Any, **named: Any) -> Any:
        if named:
            return NotImplemented
        packed = not isinstance(given[3], bool)
        if packed:
            x, counts, *rest = given
            sizes = counts.tolist()
        else:
            x, *rest, batch_first = given
            x = x.transpose(0, 1) if batch_first else x
            sizes = [x.shape[1]] * x.shape[0]
            x = x.flatten(0, 1)
        if not sizes:
            raise ValueError("sequences must have at least one step, not 0")
        y, state = _all_layers(_STEPS[name], places, x, sizes, *rest)
        if not packed:
            y = y.unflatten(0, (len(sizes), sizes[0]))
            y = y.transpose(0, 1) if batch_first else y
        return (y, *state)

    return run


def _all_layers(
    step: Step,
    places: Places,
    x: Tensor,
    sizes: Sequence[int],
    given: Any,
    weights: Sequence[Tensor],
    biased: bool,
    depth: int,
    dropout: float,
    training: bool,
    bidirectional: bool,
) -> tuple[Tensor, list[Tensor]]:
    """Outputs (rows, directions * H), and the last states (depth * directions, B, H).

    Args:
        step: of each layer.
        places: source of the products' places.
        x: packed sequences (rows, I).
        sizes: rows of each step, never more than of the one before.
        given, weights, biased, depth, dropout, training, bidirectional: as of torch's function.
    """
    directions, states = 1 + bidirectional, _states(given)
    each = len(weights) // (depth * directions)
    last = []
    for number in range(depth):
        found = []
        for index in range(number * directions, (number + 1) * directions):
            products = _products(places, weights[index * each : (index + 1) * each], biased)
            state = tuple(part[index] for part in states)
            found.append(_run(step, products, x, sizes, state, index % directions == 1))
        x = torch.cat([y for y, _ in found], -1)
        last += [state for _, state in found]
        if number + 1 < depth:
            x = functional.dropout(x, dropout, training)
    return x, [torch.stack(parts) for parts in zip(*last, strict=True)]


def _run(
    step: Step,
    products: Products,
    x: Tensor,
    sizes: Sequence[int],
    state: State,
    reverse: bool,
) -> tuple[Tensor, State]:
    """Outputs (rows, H) and the last state of one direction of a layer."""
    order = -1 if reverse else 1
    found = []
    for part in products[0](x).split(sizes)[::order]:
        count = len(part)
        new = step(part, tuple(old[:count] for old in state), products)
        found.append(new[0])
        # Sequences that have ended, or not begun, keep their states.
        state = tuple(torch.cat([x, old[count:]]) for x, old in zip(new, state, strict=True))
    return torch.cat(found[::order]), state


def _states(given: Tensor | Sequence[Tensor]) -> State:
    return (given,) if isinstance(given, Tensor) else tuple(given)


def _products(places: Places, weights: Sequence[Tensor], biased: bool) -> Products:
    """The products with the weights of one direction of a layer, or of a cell."""
    matrices = [*weights[:2], *weights[2 + 2 * biased :]]
    biases = [*(weights[2:4] if biased else (None, None)), None]

    def product(weight: Tensor, bias: Tensor | None, kind: str) -> Product:
        handle = places.site(kind)
        return lambda x: linear(x, weight, bias, handle)

    found = [product(*each) for each in zip(matrices, biases, KINDS, strict=False)]
    return found[0], found[1], found[2] if len(found) > 2 else lambda x: x


RECURRENT: Mapping[str, Callable[..., Any]] = {
    **{name: _layers(name) for name in _STEPS},
    **{f"{name}_cell": _cell(name) for name in _STEPS},
}
"""Replacements of torch's functions, by their names."""

_FUNCTIONS = {getattr(torch, name): replacement for name, replacement in RECURRENT.items()}


class _Replaced(TorchFunctionMode):
    """Replaces the function that a layer calls; places are in the order of its products."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        super().__init__()
        if not torch.compiler.is_compiling():
            refuse_tracing()
        self._handles = iter([site.handle for site in sites.values()])

    def site(self, kind: str) -> int:
        """Handle of the next place."""
        return next(self._handles)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _FUNCTIONS:
            return _FUNCTIONS[func](self, *args)
        return func(*args, **kwargs or {})


class _Recurrent(Converted):
    """Base of the layers and cells: a place for each weight, by its name."""

    axs6_sites: dict[str, Site]

    @property
    def axs6_site(self) -> Site:  # type: ignore[override]
        """One of its places; all have the same options."""
        return next(iter(self.axs6_sites.values()))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Arguments and results are those of torch's layer."""
        with _Replaced(self.axs6_sites):
            return super().forward(*args, **kwargs)


class RNN(_Recurrent, nn.RNN):
    """`nn.RNN` in block formats, along the features of the input and of the hidden state."""


class LSTM(_Recurrent, nn.LSTM):
    """`nn.LSTM` in block formats, along the features of the input and of the hidden state."""


class GRU(_Recurrent, nn.GRU):
    """`nn.GRU` in block formats, along the features of the input and of the hidden state."""


class RNNCell(_Recurrent, nn.RNNCell):
    """`nn.RNNCell` in block formats, along the features of the input and of the hidden state."""


class LSTMCell(_Recurrent, nn.LSTMCell):
    """`nn.LSTMCell` in block formats, along the features of the input and of the hidden state."""


class GRUCell(_Recurrent, nn.GRUCell):
    """`nn.GRUCell` in block formats, along the features of the input and of the hidden state."""
