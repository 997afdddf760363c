"""Products that torch computes, counted while models run."""

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from axs6.torch.report import ReportRow

aten = torch.ops.aten


def _recurrent(x: Tensor, *weights: Tensor) -> int:
    return x.shape[:-1].numel() * sum(weight.numel() for weight in weights if weight.ndim == 2)


def _grouped(a: Tensor, b: Tensor) -> int:
    """Products in groups, which take all rows, columns or K."""
    groups = len(a) if a.ndim == b.ndim == 3 else 1
    return groups * a.shape[-2] * a.shape[-1] * b.shape[-1]


def _attention(q: Tensor, k: Tensor, v: Tensor) -> int:
    return q.shape[:-1].numel() * k.shape[-2] * (q.shape[-1] + v.shape[-1])


def _encoder(x: Tensor, *arguments: Any) -> int:
    """Self-attention of sequences (N, L, E), nested or not, and its linear layers."""
    lengths = [len(sequence) for sequence in x.unbind()]
    weights = [y for y in arguments if isinstance(y, Tensor) and not y.is_nested and y.ndim == 2]
    (width,) = {weight.shape[1] for weight in weights[:1]}
    linear = sum(lengths) * sum(weight.numel() for weight in weights)
    return linear + 2 * width * sum(length * length for length in lengths)


MACS: Mapping[Any, Callable[..., int]] = {
    aten.mv: lambda a, b: a.numel(),
    aten.addmv: lambda x, a, b: a.numel(),
    aten.dot: lambda a, b: a.numel(),
    aten.vdot: lambda a, b: a.numel(),
    aten.addbmm: lambda x, a, b: a.numel() * b.shape[-1],
    aten.conv_tbc: lambda x, w, b, pad=0: (
        (x.shape[0] + 2 * pad - len(w) + 1) * x.shape[1] * w.numel()
    ),
    aten._trilinear: lambda a, weight, b, *axes: len(a) * weight.numel(),
    aten._euclidean_dist: lambda a, b: a.numel() * b.shape[-2],
    aten._grouped_mm: lambda a, b, offs=None, *options: _grouped(a, b),
    aten.mkldnn_rnn_layer: lambda x, *arguments: _recurrent(x, *arguments[:2]),
    aten._cudnn_rnn: lambda x, weights, *options: _recurrent(x, *weights),
    aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *options: _attention(q, k, v),
    aten._native_multi_head_attention: lambda *arguments: _encoder(arguments[0], *arguments[3:9]),
    aten._transformer_encoder_layer_fwd: lambda *arguments: _encoder(*arguments[:18]),
}
"""MACs of operators that torch's counter does not support, by their arguments."""


class Counter(TorchDispatchMode):
    """A context that records products computed by torch in rows, one for each module and operator.

    Leaves out products of gradients and of integers, and products in compiled functions and in
    operators of functions such as `torch.cond`.

    Args:
        rows: list to which the rows are added.
    """

    supports_higher_order_operators = True

    def __init__(self, rows: list[ReportRow]) -> None:
        super().__init__()
        self._all = rows
        self._rows: dict[tuple[nn.Module | None, Any], ReportRow] = {}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled functions run compiled."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            return func(*args, **options)
        packet = func.overloadpacket
        if packet not in flop_registry and packet not in MACS:
            with self:
                y = func.decompose(*args, **options)
            return func(*args, **options) if y is NotImplemented else y
        y = func(*args, **options)
        floating = any(isinstance(x, Tensor) and not _is_integer(x) for x in args)
        backward = torch._C._current_graph_task_id() != -1
        if floating and not backward:
            row = self._row(packet)
            row.calls += 1
            if packet in MACS:
                row.macs += MACS[packet](*args)
            else:
                row.macs += flop_registry[packet](*args, **options, out_val=y) // 2
        return y

    def _row(self, packet: Any) -> ReportRow:
        running = _running()
        key = (running[0] if running else None, packet)
        if key not in self._rows:
            names = (
                {module: name for name, module in running[-1].named_modules()} if running else {}
            )
            name = f"{names.get(key[0], '')}.{packet.__name__}".lstrip(".")
            self._rows[key] = ReportRow(name, "torch")
            self._all.append(self._rows[key])
        return self._rows[key]


def _running() -> list[nn.Module]:
    """The modules being called, the innermost first. Hooks on all modules would work too, but would
    cause compiled models to be compiled again.
    """
    found = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is nn.Module._call_impl.__code__:
            found.append(frame.f_locals["self"])
        frame = frame.f_back
    return found


def _is_integer(x: Tensor) -> bool:
    return not (x.is_floating_point() or x.is_complex())
