"""Kinds of checkpoints: the layouts that a library's loader knows, and the files that say so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from axs6.files.checkpoints import layouts as l
from axs6.files.checkpoints.configuration import (
    Contents,
    compressed_tensors,
    fine_grained_fp8,
    gpt_oss,
    modelopt,
    quark,
)
from axs6.files.checkpoints.layouts import WeightLayout
from axs6.files.checkpoints.source import GGUF, ONNX, SAFETENSORS
from axs6.golden.formats import BlockFormat, block_format, name_of

Documents = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of checkpoints.

    Args:
        name: its name in options.
        layouts: the layouts that its loader reads.
        configuration: gives the entries of the folder's documents that describe the weights: for
            each file, what is added to it.
        suffix: of its files.
    """

    name: str
    layouts: tuple[WeightLayout, ...]
    configuration: Callable[[Contents], Documents]
    suffix: str = SAFETENSORS

    def of_format(self, format: str | BlockFormat) -> WeightLayout:
        """The layout that has the elements and scales of a format.

        Raises:
            ValueError: there is none.
        """
        wanted = block_format(format)
        for layout in self.layouts:
            if meaning(layout.format) == meaning(wanted):
                return layout
        raise ValueError(
            f"{self.name} has no layout for {name_of(wanted)}, but for {', '.join(self.formats)}"
        )

    @property
    def formats(self) -> list[str]:
        """Names of the formats of its layouts."""
        return [name_of(each.format) for each in self.layouts]

    def named(self, name: str, format: str | BlockFormat | None = None) -> WeightLayout:
        """The layout of a name.

        Raises:
            ValueError: there is none, or it has other elements or scales than the format.
        """
        layout = next((each for each in self.layouts if each.name == name), None)
        if layout is None:
            known = ", ".join(each.name for each in self.layouts)
            raise ValueError(f"the layout of {self.name} must be one of {known}, not {name!r}")
        if format is not None and meaning(block_format(format)) != meaning(layout.format):
            raise ValueError(
                f"{name} holds {name_of(layout.format)}, not {name_of(block_format(format))}"
            )
        return layout


def meaning(fmt: BlockFormat) -> tuple[Any, ...]:
    """What a format's codes mean, whatever the rule of the scales."""
    scales = [(getattr(x.scale, "dtype", x.scale.bits), x.group, x.rows) for x in fmt.levels]
    return fmt.element, tuple(scales)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("gpt-oss", (l.GPT_OSS,), gpt_oss),
        Kind("modelopt", (l.MODELOPT_NVFP4, l.FP8_TENSOR), modelopt),
        Kind(
            "compressed-tensors",
            (
                l.COMPRESSED_NVFP4,
                l.COMPRESSED_MXFP4,
                l.MXFP8,
                l.COMPRESSED_TENSOR,
                l.FP8_CHANNEL,
                l.COMPRESSED_FP8_BLOCKS,
                l.INT8_TENSOR,
                l.INT8_CHANNEL,
            ),
            compressed_tensors,
        ),
        Kind("quark", (l.QUARK_MXFP4, l.MXFP8, l.FP8_TENSOR, l.FP8_CHANNEL), quark),
        Kind("fp8-blocks", (l.FP8_BLOCKS, l.FP8_BLOCKS_E8M0), fine_grained_fp8),
        Kind("gguf", (l.GGUF_MXFP4, l.GGUF_NVFP4, l.GGUF_Q8_0), lambda _: {}, GGUF),
        Kind("onnx", l.ONNX_LAYOUTS, lambda _: {}, ONNX),
    )
}
"""All kinds, by their names."""


def kind_of(name: str) -> Kind:
    """A kind by its name.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in KINDS:
        raise ValueError(f"the kind of checkpoint must be one of {', '.join(KINDS)}, not {name!r}")
    return KINDS[name]


def nearest_first(kind: Kind, layout: WeightLayout) -> Sequence[WeightLayout]:
    """The layouts of a kind, those whose elements, scales and tiles are like a layout's first."""

    def unlike(other: WeightLayout) -> tuple[bool, bool, bool]:
        tiles = [(part.rows, part.values) for part in layout.scales]
        return (
            other.element != layout.element,
            [(part.rows, part.values) for part in other.scales] != tiles,
            _numbers(other) != _numbers(layout),
        )

    return sorted(kind.layouts, key=unlike)


def _numbers(layout: WeightLayout) -> list[Any]:
    return [next(iter(part.numbers.values())).number for part in layout.scales]
