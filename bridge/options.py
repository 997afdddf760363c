"""How the products of a model are computed: formats, accumulator and backend."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import signature
from typing import Any, Final, Self, TypedDict

from axs6.golden.accumulator import ACCUMULATORS, Accumulator
from axs6.golden.accumulator import accumulator as accumulator_of
from axs6.golden.encode import check_nonfinite_in
from axs6.golden.formats import AXS6, BlockFormat, block_format, name_of
from axs6.golden.hadamard import check_size
from axs6.golden.nonfinite import NonFinite
from axs6.golden.rounding import Rounding, check_rounding
from axs6.golden.terms import Terms
from axs6.torch.constant import traced_as_constant

BACKENDS: Final = ("emulated", "rtl", "golden")
"""Backends: compiled kernels, the simulated tile, or the NumPy model."""

FP32: Final = "fp32"
"""Name of the format of unconverted products."""

FP32_SUMS: Final = ACCUMULATORS["fp32"]
"""Exact sums of blocks, added in FP32."""

Format = str | BlockFormat
Pair = tuple[BlockFormat, BlockFormat]


class Names(TypedDict, total=False):
    """How a layer's products are computed, as `ProductOptions.of` and policies take it by names."""

    format: Format
    weights: Format | None
    activations: Format | None
    gradients: Format | None
    gradient_rounding: str
    gradient_rotation: int
    accumulator: str | Accumulator
    block: int | None
    choice: str | None
    nonfinite: NonFinite


@dataclass(frozen=True)
class ProductOptions:
    """How products are computed.

    Args:
        backend: "emulated" computes the bits of the hardware with compiled kernels or torch's own
            matrix products where they take the formats, else with the NumPy model; "rtl" simulates
            the hardware's tile of dot products; "golden" is the NumPy model.
        weights: format of weights.
        activations: format of inputs, and of both operands of products without a weight. It and
            that of gradients have no tiles: of a format with tiles they take the one of a row.
        gradients: format of the gradients of results, with which the backward products are
            computed; None for FP32 products of the decoded operands.
        gradient_rounding: of these gradients when they are encoded.
        gradient_rotation: block of the Hadamard transform of both operands of the products that
            give the gradients of weights; 0 for no transform.
        accumulator: how the products of a dot product become one number.
        nonfinite: "error" refuses NaN and infinite operands and names the layer; "saturate"
            encodes NaN as +0 and infinities as the largest code; "propagate" keeps them, in formats
            with NaN.
        tile: parameters of `axs6.sim.tile.Tile`, as sorted pairs; for "rtl" alone.

    Raises:
        ValueError: a parameter is unknown, does not go with the backend, or two formats have no
            product in the accumulator.
    """

    backend: str = "emulated"
    weights: BlockFormat = AXS6
    activations: BlockFormat = AXS6
    gradients: BlockFormat | None = None
    gradient_rounding: Rounding = Rounding.NEAREST
    gradient_rotation: int = 0
    accumulator: Accumulator = FP32_SUMS
    nonfinite: NonFinite = "error"
    tile: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        check_backend("backend", self.backend)
        object.__setattr__(self, "activations", self.activations.untiled)
        if self.gradients is not None:
            object.__setattr__(self, "gradients", self.gradients.untiled)
        for fmt in self.formats:
            check_nonfinite_in(fmt, self.nonfinite)
        for left, right in self.pairs:
            Terms.of(left, right, self.accumulator)
        if self.gradient_rotation != 0:
            check_size(self.gradient_rotation, "gradient_rotation")
        plain = self.gradient_rounding is Rounding.NEAREST and self.gradient_rotation == 0
        if self.gradients is None and not plain:
            name = "gradient_rounding" if self.gradient_rotation == 0 else "gradient_rotation"
            raise ValueError(f"{name} needs gradients in a block format, not {FP32}")
        if self.tile and self.backend != "rtl":
            raise ValueError(f"tile is for backend='rtl', not {self.backend!r}")

    @classmethod
    def of(
        cls,
        format: Format = "axs6",
        *,
        weights: Format | None = None,
        activations: Format | None = None,
        gradients: Format | None = None,
        gradient_rounding: str = "nearest",
        gradient_rotation: int = 0,
        accumulator: str | Accumulator = "fp32",
        block: int | None = None,
        choice: str | None = None,
        backend: str = "emulated",
        nonfinite: NonFinite = "error",
        tile: Mapping[str, Any] | None = None,
    ) -> Self:
        """Options by names.

        Args:
            format: of weights and activations that have none of their own.
            weights, activations, gradients: formats, as names, strings or BlockFormats; "fp32" as
                that of gradients is None.
            gradient_rounding: "nearest", "toward_zero" or "stochastic".
            gradient_rotation: 8, 16, 32, 64, 128, or 0 for none.
            accumulator: a name, a string or an Accumulator.
            block: values of the largest group of a fixed size, in place of those of all formats.
            choice: of the finest scales, in place of those of all formats.
            backend, nonfinite: as they are.
            tile: a mapping.

        Raises:
            TypeError, ValueError: one is refused.
        """

        def chosen(given: Format | None) -> BlockFormat:
            fmt = block_format(format if given is None else given)
            fmt = fmt if block is None else fmt.with_block(block)
            return fmt if choice is None else fmt.with_choice(choice)

        return cls(
            backend,
            chosen(weights),
            chosen(activations),
            None if gradients in (None, FP32) else chosen(gradients),
            check_rounding(gradient_rounding),
            gradient_rotation,
            accumulator_of(accumulator),
            nonfinite,
            tuple(sorted((tile or {}).items())),
        )

    @property
    def formats(self) -> tuple[BlockFormat, ...]:
        """The formats, each once."""
        given = (self.activations, self.weights, self.gradients)
        return tuple(dict.fromkeys(fmt for fmt in given if fmt is not None))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Formats that are multiplied with each other, each pair once."""
        rights = (self.weights, self.activations)
        lefts = (self.activations, self.gradients)
        found = [(a, b) for a in lefts for b in rights if a is not None]
        return tuple(dict.fromkeys(found))

    @property
    def settings(self) -> dict[str, Any]:
        """A policy's settings for these options."""
        return {
            "weights": name_of(self.weights),
            "activations": name_of(self.activations),
            "gradients": FP32 if self.gradients is None else name_of(self.gradients),
            "gradient_rounding": str(self.gradient_rounding),
            "gradient_rotation": self.gradient_rotation,
            "accumulator": str(self.accumulator),
            "nonfinite": self.nonfinite,
        }

    def __str__(self) -> str:
        shown = {"backend": self.backend}
        if self.weights == self.activations:
            shown["format"] = name_of(self.weights)
        else:
            shown |= {x: name_of(getattr(self, x)) for x in ("weights", "activations")}
        if self.gradients is not None:
            shown["gradients"] = name_of(self.gradients)
        if self.gradient_rounding is not Rounding.NEAREST:
            shown["gradient_rounding"] = str(self.gradient_rounding)
        if self.gradient_rotation != 0:
            shown["gradient_rotation"] = str(self.gradient_rotation)
        if self.accumulator != FP32_SUMS:
            shown["accumulator"] = str(self.accumulator)
        return ", ".join(f"{name}={value}" for name, value in shown.items())


DEFAULTS: Final[Mapping[str, Any]] = {
    name: parameter.default
    for name, parameter in signature(ProductOptions.of).parameters.items()
    if name in Names.__annotations__
}
"""Defaults of `Names`."""


def check_backend(argument: str, backend: str) -> None:
    """Raise ValueError unless the backend exists; `argument` is its name in the message."""
    if backend not in BACKENDS:
        raise ValueError(f"{argument} must be one of {', '.join(BACKENDS)}, not {backend!r}")


@traced_as_constant
def spelling(format: Format, block: int | None = None, choice: str | None = None) -> str:
    """The string of a format with a block size and choice of scales, for torch's operators.

    Raises:
        TypeError, ValueError: as `block_format`, `BlockFormat.with_block` and `with_choice`.
    """
    fmt = block_format(format)
    fmt = fmt if block is None else fmt.with_block(block)
    return name_of(fmt if choice is None else fmt.with_choice(choice))


@cache
def spelled(text: str) -> BlockFormat:
    """The format of a string, read once."""
    return block_format(text)
