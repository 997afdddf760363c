"""Backends that compute products: emulation, simulated tile, golden model."""

import logging
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axs6.golden import matmul
from axs6.golden.blocks import Blocks
from axs6.golden.formats import BlockFormat, operands_name
from axs6.golden.nonfinite import NonFinite
from axs6.torch import anywhere, kernels
from axs6.torch.matrices import matrices
from axs6.torch.options import FP32_SUMS, Pair, ProductOptions
from axs6.torch.quantise import (
    as_array,
    check_input,
    encode,
    has_kernels,
    refuse,
)

if TYPE_CHECKING:
    from axs6.sim.tile import Tile


_log = logging.getLogger("axs6")


@dataclass(frozen=True, eq=False)
class ProductBatch:
    """A batch of products.

    Args:
        values: float32 of shape (G, M, N), newly made.
        cycles: clock cycles of the hardware; None without simulation.
        utilisation: share of the tile's block products that contribute to results, 0 to 1, or None.
    """

    values: Tensor
    cycles: int | None = None
    utilisation: float | None = None


class Backend(Protocol):
    """Encodes operands and multiplies them; the type of an encoded operand is private to a
    backend."""

    def prepare(self, x: Tensor, fmt: BlockFormat, name: str, scale: float | None = None) -> Any:
        """Encode matrices of shape (G, R, K), no axis empty, along K.

        A scale of the tensor covers all G; `scale` sets it in advance.

        Raises:
            TypeError, ValueError: the dtype, device or a value is refused; the message begins with
            `name`.
        """
        ...

    def take(self, blocks: Blocks, device: torch.device) -> Any:
        """The result of `prepare` for matrices (G, R, K) that are encoded already."""
        ...

    def product(self, a: Any, b: Any, bias: Tensor | None = None) -> ProductBatch:
        """y[g, m, n] = sum over k of a[g, m, k] * b[g, n, k], plus the bias (G * N,) in FP32."""
        ...

    def prepared_product(
        self,
        x: Tensor,
        fmt: BlockFormat,
        name: str,
        b: Any,
        bias: Tensor | None = None,
        scale: float | None = None,
    ) -> ProductBatch:
        """The product of `prepare`'s result for `x`."""
        return self.product(self.prepare(x, fmt, name, scale), b, bias)


def with_bias(y: Tensor, bias: Tensor | None) -> Tensor:
    """Products (G, M, N) plus a bias (G * N,) in FP32, in place."""
    if bias is not None:
        y += bias.to(y.device, torch.float32).view(y.shape[0], 1, -1)
        if not bias.isfinite().all():
            y.masked_fill_(y.isnan(), torch.nan)
    return y


class Anywhere(Backend):
    """The products of `axs6.torch.anywhere`, on any device, for the formats that it takes."""

    def __init__(self, options: ProductOptions) -> None:
        self._options = options

    def prepare(
        self, x: Tensor, fmt: BlockFormat, name: str, scale: float | None = None
    ) -> anywhere.BlockMatrices:
        """Encode, on the device if torch's operations support it."""
        check_input(x, name)
        nonfinite = self._options.nonfinite
        if x.dtype != torch.float64 and kernels.encodes(fmt, scale):
            if nonfinite == "saturate" or bool(x.isfinite().all()):
                return anywhere.prepare(x, fmt, scale)
            if nonfinite == "error":
                refuse(x, name)
        return self.take(encode(x, fmt, nonfinite=nonfinite, scale=scale, name=name), x.device)

    def take(self, blocks: Blocks, device: torch.device) -> anywhere.BlockMatrices:
        """Copy to the device."""
        return anywhere.take(blocks, device)

    def product(
        self, a: anywhere.BlockMatrices, b: anywhere.BlockMatrices, bias: Tensor | None = None
    ) -> ProductBatch:
        """Block after block, all matrices at once."""
        return ProductBatch(with_bias(anywhere.product(a, b), bias))


class Compiled(Backend):
    """The compiled kernels, on the CPU, for the formats that they multiply."""

    def __init__(self, options: ProductOptions) -> None:
        self._options = options

    def prepare(
        self, x: Tensor, fmt: BlockFormat, name: str, scale: float | None = None
    ) -> kernels.Packed:
        """Encode, by a kernel if one exists."""
        check_input(x, name)
        nonfinite = self._options.nonfinite
        if x.dtype != torch.float64 and kernels.encodes(fmt, scale):
            kept: NonFinite = "saturate" if nonfinite == "saturate" else "error"
            found = kernels.encode(as_array(x), fmt, kept, torch.get_num_threads(), scale)
            if found is not None:
                return found
            if nonfinite == "error":
                refuse(x, name)
        return kernels.pack(encode(x, fmt, nonfinite=nonfinite, scale=scale, name=name))

    def take(self, blocks: Blocks, device: torch.device) -> kernels.Packed:
        """Order for the kernels."""
        return kernels.pack(blocks)

    def product(
        self, a: kernels.Packed, b: kernels.Packed, bias: Tensor | None = None
    ) -> ProductBatch:
        """All matrices at once."""
        accumulator, threads = self._options.accumulator, torch.get_num_threads()
        if accumulator != FP32_SUMS:
            return ProductBatch(
                with_bias(torch.from_numpy(kernels.matmul(a, b, accumulator, threads)), bias)
            )
        added = _of_columns(bias, b)
        return ProductBatch(torch.from_numpy(kernels.matmul(a, b, accumulator, threads, added)))

    def prepared_product(
        self,
        x: Tensor,
        fmt: BlockFormat,
        name: str,
        b: kernels.Packed,
        bias: Tensor | None = None,
        scale: float | None = None,
    ) -> ProductBatch:
        """In one go, by a kernel where there is one."""
        check_input(x, name)
        options = self._options
        plain = scale is None and x.dtype != torch.float64 and options.accumulator == FP32_SUMS
        if plain and kernels.fuses(fmt, b):
            kept: NonFinite = "saturate" if options.nonfinite == "saturate" else "error"
            threads, added = torch.get_num_threads(), _of_columns(bias, b)
            found = kernels.encode_matmul(as_array(x), fmt, b, kept, threads, added)
            if found is not None:
                return ProductBatch(torch.from_numpy(found))
        return super().prepared_product(x, fmt, name, b, bias, scale)


def _of_columns(bias: Tensor | None, b: kernels.Packed) -> NDArray[np.float32] | None:
    """A bias (G * N,), or one that broadcasts to it, as the kernels take it: (G, N)."""
    if bias is None:
        return None
    shape = b.shape[:2]
    if bias.numel() != shape[0] * shape[1]:
        bias = bias.view(shape[0], -1).expand(shape)
    return as_array(bias).reshape(shape)


class Golden(Backend):
    """The golden model, on the CPU: slow, correct by definition."""

    def __init__(self, options: ProductOptions) -> None:
        self._options = options

    def prepare(
        self, x: Tensor, fmt: BlockFormat, name: str, scale: float | None = None
    ) -> list[Blocks]:
        """Encode each matrix."""
        nonfinite = self._options.nonfinite
        return matrices(encode(x, fmt, nonfinite=nonfinite, scale=scale, name=name))

    def take(self, blocks: Blocks, device: torch.device) -> list[Blocks]:
        """The matrices one by one."""
        return matrices(blocks)

    def product(self, a: list[Blocks], b: list[Blocks], bias: Tensor | None = None) -> ProductBatch:
        """Multiply matrix by matrix."""
        accumulator = self._options.accumulator
        values = np.stack([matmul(x, y, accumulator) for x, y in zip(a, b, strict=True)])
        return ProductBatch(with_bias(torch.from_numpy(values), bias))


class Emulated(Backend):
    """The fastest of these backends that supports all formats of the options; all give the same
    bits. That it is the golden model, which is slow, is logged once."""

    def __init__(self, options: ProductOptions) -> None:
        self._options, self._told = options, False
        plain = options.accumulator == FP32_SUMS
        self._anywhere: Backend = Golden(options)
        if plain and all(anywhere.multiplies(*pair) for pair in options.pairs):
            self._anywhere = Anywhere(options)
        self._on_cpu: Backend = self._anywhere
        if all(kernels.takes(*pair, options.accumulator) for pair in options.pairs):
            self._on_cpu = Compiled(options)

    def _on(self, device: torch.device) -> Backend:
        chosen = self._on_cpu if has_kernels(device) else self._anywhere
        if isinstance(chosen, Golden) and not self._told:
            self._told = True
            pairs = " and ".join(map(operands_name, self._options.pairs))
            _log.warning(
                "the golden model computes products of %s in the accumulator %s, slowly: on %s "
                "nothing faster has them",
                *(pairs, self._options.accumulator, device.type),
            )
        return chosen

    def prepare(
        self, x: Tensor, fmt: BlockFormat, name: str, scale: float | None = None
    ) -> tuple[Backend, Any]:
        """The backend for the device of `x`, and its operand."""
        chosen = self._on(x.device)
        return chosen, chosen.prepare(x, fmt, name, scale)

    def take(self, blocks: Blocks, device: torch.device) -> tuple[Backend, Any]:
        """The backend for the device, and its operand."""
        chosen = self._on(device)
        return chosen, chosen.take(blocks, device)

    def product(
        self, a: tuple[Backend, Any], b: tuple[Backend, Any], bias: Tensor | None = None
    ) -> ProductBatch:
        """Multiply two operands of one device."""
        return a[0].product(a[1], b[1], bias)

    def prepared_product(
        self,
        x: Tensor,
        fmt: BlockFormat,
        name: str,
        b: tuple[Backend, Any],
        bias: Tensor | None = None,
        scale: float | None = None,
    ) -> ProductBatch:
        """Multiply on the device of both."""
        return b[0].prepared_product(x, fmt, name, b[1], bias, scale)


class Rtl(Backend):
    """The hardware's tiles of dot products in the compiled simulator: one for each pair of formats.

    A tile is built when the first product needs it.

    Raises:
        ValueError: a parameter of the tile is refused, or there is no hardware for two formats
            that are multiplied, or for the accumulator.
        ToolError: in a product, the simulator cannot be built.
    """

    def __init__(self, options: ProductOptions) -> None:
        from axs6.hw.registry import find

        self._options = options
        self._tiles: dict[Pair, Tile] = {}
        given = dict(options.tile)
        for name in ("block", "format", "accumulator"):
            if name in given:
                raise ValueError(f"tile must not have {name}: it follows from the model's options")
        for pair in options.pairs:
            find("matmul").build(**self._parameters(pair))

    def _parameters(self, pair: Pair) -> dict[str, Any]:
        """Parameters of the tile for two formats."""
        return {
            "format": operands_name(pair),
            "accumulator": str(self._options.accumulator),
            **dict(self._options.tile),
        }

    def prepare(self, x: Tensor, fmt: BlockFormat, name: str, scale: float | None = None) -> Blocks:
        """Encode; refuse matrices that are not on the CPU."""
        _check_cpu(name, x.device)
        return encode(x, fmt, nonfinite=self._options.nonfinite, scale=scale, name=name).untiled

    def take(self, blocks: Blocks, device: torch.device) -> Blocks:
        """The blocks, if the tensor was on the CPU."""
        _check_cpu("weight", device)
        return blocks.untiled

    def product(self, a: Blocks, b: Blocks, bias: Tensor | None = None) -> ProductBatch:
        """All products in one run of the tile, interleaved."""
        from axs6.sim.tile import Tile

        pair = (a.format, b.format)
        if pair not in self._tiles:
            self._tiles[pair] = Tile(**self._parameters(pair))
        run = self._tiles[pair].matmul(a, b, threads=torch.get_num_threads())
        values = with_bias(torch.from_numpy(run.values), bias)
        return ProductBatch(values, run.cycles, run.utilisation)


def _check_cpu(name: str, device: torch.device) -> None:
    if device.type != "cpu":
        raise ValueError(
            f"{name} must be on the CPU, where backend='rtl' simulates, not on {device}; "
            "backend='emulated' gives the same bits there"
        )


_CLASSES: dict[str, type[Emulated | Golden | Rtl]] = {
    "emulated": Emulated,
    "rtl": Rtl,
    "golden": Golden,
}


@cache
def backend_of(options: ProductOptions) -> Backend:
    """The backend for these options, cached."""
    return _CLASSES[options.backend](options)
