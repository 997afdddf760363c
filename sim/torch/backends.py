"""What computes a product: the emulation, the simulated tile, or the golden model."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from axs6.golden import matmul
from axs6.golden.blocks import Blocks
from axs6.golden.spec import WITHOUT_NAN, NonFinite, check_block, check_nonfinite
from axs6.sim.torch import emulated
from axs6.sim.torch.quantise import encode


@dataclass(frozen=True)
class Options:
    """How products are computed.

    Args:
        backend: "emulated" computes the bits of the hardware with compiled kernels on the CPU,
            with torch's own matrix products elsewhere; "rtl" simulates the hardware's tile of dot
            products; "golden" is the NumPy model.
        block: values that share an exponent: 8, 16 or 32.
        nonfinite: "error" refuses NaN and infinite operands and names the layer; "saturate"
            encodes NaN as +0 and infinities as the largest code, as the hardware does.
        tile: parameters of `axs6.sim.tile.Tile`, as sorted pairs; for "rtl" alone.

    Raises:
        ValueError: a parameter is unknown, or does not go with the backend.
    """

    backend: str = "emulated"
    block: int = 32
    nonfinite: NonFinite = "error"
    tile: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        check_backend("backend", self.backend)
        check_block(self.block)
        check_nonfinite(self.nonfinite, WITHOUT_NAN)
        if self.tile and self.backend != "rtl":
            raise ValueError(f"tile is for backend='rtl', not {self.backend!r}")

    @classmethod
    def of(
        cls,
        backend: str,
        block: int,
        nonfinite: NonFinite,
        tile: Mapping[str, Any] | None,
    ) -> "Options":
        """Options from a mapping of tile parameters."""
        return cls(backend, block, nonfinite, tuple(sorted((tile or {}).items())))


def check_backend(argument: str, backend: str) -> None:
    """Raise ValueError unless there is such a backend; `argument` is what the caller calls it."""
    if backend not in BACKENDS:
        raise ValueError(f"{argument} must be one of {', '.join(BACKENDS)}, not {backend!r}")


@dataclass(frozen=True, eq=False)
class Result:
    """A batch of products.

    Args:
        values: float32 of shape (G, M, N), newly made.
        cycles: clock cycles that the hardware took; None where none was simulated.
        utilisation: share of the tile's block products that were of use, 0 to 1, or None.
    """

    values: Tensor
    cycles: int | None = None
    utilisation: float | None = None


class Backend(Protocol):
    """Encodes operands and multiplies them; what it encodes an operand into is its own affair."""

    def prepare(self, x: Tensor, name: str) -> Any:
        """Encode matrices of shape (G, R, K), no axis empty, along K.

        Raises:
            TypeError, ValueError: the dtype, device or a value is refused; `name` says whose.
        """
        ...

    def take(self, blocks: Blocks, device: torch.device) -> Any:
        """What `prepare` would give for matrices that are encoded already, (G, R, K)."""
        ...

    def product(self, a: Any, b: Any) -> Result:
        """y[g, m, n] = sum over k of a[g, m, k] * b[g, n, k]."""
        ...


class Emulated:
    """The products of `axs6.sim.torch.emulated`."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def prepare(self, x: Tensor, name: str) -> emulated.Operand:
        """Encode and scale."""
        return emulated.prepare(x, self._options.block, self._options.nonfinite, name)

    def take(self, blocks: Blocks, device: torch.device) -> emulated.Operand:
        """Scale."""
        return emulated.from_blocks(blocks, device)

    def product(self, a: emulated.Operand, b: emulated.Operand) -> Result:
        """Block after block."""
        return Result(emulated.product(a, b))


class Golden:
    """The golden model, on the CPU: slow, and right by definition."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def prepare(self, x: Tensor, name: str) -> list[Blocks]:
        """Encode each matrix."""
        size, nonfinite = self._options.block, self._options.nonfinite
        return self.take(encode(x, block=size, nonfinite=nonfinite, name=name), x.device)

    def take(self, blocks: Blocks, device: torch.device) -> list[Blocks]:
        """The matrices one by one."""
        return [
            Blocks.with_modes(
                blocks.exponents[g], blocks.modes[g], blocks.codes[g], blocks.shape[1:]
            )
            for g in range(len(blocks.exponents))
        ]

    def product(self, a: list[Blocks], b: list[Blocks]) -> Result:
        """Multiply matrix by matrix."""
        values = np.stack([matmul(x, y) for x, y in zip(a, b, strict=True)])
        return Result(torch.from_numpy(values))


class Rtl:
    """The hardware's tile of dot products in the compiled simulator.

    Raises:
        ValueError: a parameter of the tile is refused.
        ToolError: the simulator cannot be built.
    """

    def __init__(self, options: Options) -> None:
        from axs6.sim.tile import Tile

        self._options = options
        self._tile = Tile(block=options.block, **dict(options.tile))

    def prepare(self, x: Tensor, name: str) -> Blocks:
        """Encode; refuse matrices that are not on the CPU."""
        _check_cpu(name, x.device)
        return encode(x, block=self._options.block, nonfinite=self._options.nonfinite, name=name)

    def take(self, blocks: Blocks, device: torch.device) -> Blocks:
        """The blocks, if the tensor was on the CPU."""
        _check_cpu("weight", device)
        return blocks

    def product(self, a: Blocks, b: Blocks) -> Result:
        """All products in one run of the tile, whose turns they share."""
        run = self._tile.matmul(a, b, threads=torch.get_num_threads())
        return Result(torch.from_numpy(run.values), run.cycles, run.utilisation)


def _check_cpu(name: str, device: torch.device) -> None:
    if device.type != "cpu":
        raise ValueError(
            f"{name} must be on the CPU, where backend='rtl' simulates, not on {device}; "
            "backend='emulated' gives the same bits there"
        )


BACKENDS: dict[str, type[Emulated | Golden | Rtl]] = {
    "emulated": Emulated,
    "rtl": Rtl,
    "golden": Golden,
}


@cache
def backend_of(options: Options) -> Backend:
    """The backend that works by these options, made once."""
    return BACKENDS[options.backend](options)
