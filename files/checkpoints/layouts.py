"""Layouts of checkpoints as data: the tensors that hold a weight, their dtypes, names and shapes.

A weight W of shape (..., N, K) is held as codes of its elements and as one or two levels of
scales. A scale belongs to a tile of `rows` x `values` weights; 0 stands for all of them in that
direction. The value of a weight is computed in float32: the scales of its tile are multiplied, or
the finer one is divided by the coarser one where that is an inverse, and the element is multiplied
by the result. That is what the loaders of these checkpoints compute.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from axs6.files.checkpoints.numbers import ScaleNumber
from axs6.golden.formats import (
    BF16,
    CHANNEL,
    FP16,
    FP32,
    TENSOR,
    BlockFormat,
    Element,
    Exponent,
    Float,
    Level,
    Real,
    Specials,
    block_format,
)

E4M3 = Float(4, 3, Specials.NAN)
E5M2 = Float(5, 2)
E4M3FNUZ, E5M2FNUZ = Float(4, 3, Specials.FNUZ), Float(5, 2, Specials.FNUZ)
E2M1 = Float(2, 1, Specials.NONE)
INT8, INT4 = block_format("int8").element, block_format("int4").element

GGML = "GGML_"
"""Begins the dtypes of tensors of GGUF files that have blocks; the number of the type follows."""

POWER = ScaleNumber(Exponent(8))
"""E8M0: a power of two, or NaN."""
NUMBERS = {"F32": ScaleNumber(FP32), "BF16": ScaleNumber(BF16), "F16": ScaleNumber(FP16)}
FP8 = ScaleNumber(E4M3)
POWERS = {"U8": POWER, "F8_E8M0": POWER}


@dataclass(frozen=True)
class CodesPart:
    """The tensor of element codes.

    Args:
        names: templates of its name, the first of which is written: `{}` stands for the weight's
            name, `{module}` for that without `.weight`.
        dtype: as safetensors name it, or I4. Codes of 4 bits lie two in a byte, the first in the
            low bits; a tensor of U8 has the shape of the bytes, one of F4 or I4 that of the codes.
        block: the bytes of a block where blocks have an axis of their own, or None.
    """

    names: tuple[str, ...]
    dtype: str
    block: int | None = None


@dataclass(frozen=True, eq=False)
class ScalePart:
    """The tensor of a level of scales.

    Args:
        names: templates of its name, as in `CodesPart`, one for each of its names.
        numbers: what its codes are, by the dtypes that it may have; the first is written.
        rows, values: the tile of a scale.
        inverse: whether the finer scale is divided by it.
        axes: how a scale that is one for all values of a row, or of the tensor, is written: with
            axes of length 1, or without.
        optional: whether a missing tensor stands for scales of 1.
        swizzled: whether they are in the order of `swizzle`.
    """

    names: tuple[str, ...]
    numbers: dict[str, ScaleNumber]
    rows: int
    values: int
    inverse: bool = False
    axes: bool = False
    optional: bool = False
    swizzled: bool = False


@dataclass(frozen=True)
class Interleaved:
    """Scales and codes in the blocks of one tensor, as in GGUF files.

    Args:
        kind: number of the type in ggml.
        scales: scales of a block. Their bytes are its first ones; codes of the first scale's values
            follow, then those of the next.
        nibbles: whether a byte has two codes: value j of a scale's n values in the low bits of its
            byte j, value j + n / 2 in the high ones.
    """

    kind: int
    scales: int
    nibbles: bool


@dataclass(frozen=True, eq=False)
class WeightLayout:
    """How a weight is held.

    Args:
        name: its name in messages and options.
        element: the element.
        codes: the tensor of codes.
        scales: the levels of scales, fine to coarse. The finest has no tensor where it is
            interleaved.
        interleaved: blocks of codes and scales in one tensor, or None.
        input: the scale of the module's activations, which a checkpoint may have beside the weight.
    """

    name: str
    element: Element
    codes: CodesPart
    scales: tuple[ScalePart, ...]
    interleaved: Interleaved | None = None
    input: ScalePart | None = None

    @property
    def parts(self) -> tuple[ScalePart, ...]:
        """The levels that have tensors of their own."""
        return self.scales[1:] if self.interleaved else self.scales

    @property
    def packed(self) -> bool:
        """Whether a byte holds two codes."""
        return self.element.width == 4

    @property
    def pairs(self) -> bool:
        """Whether the shape of the tensor of codes counts bytes of two codes."""
        return self.packed and self.codes.dtype == "U8"

    @cached_property
    def format(self) -> BlockFormat:
        """The block format of the values.

        Raises:
            ValueError: there is none: the sizes of a tile are no powers of two.
        """
        levels: list[Level] = []
        for part in self.scales:
            (number, *_) = part.numbers.values()
            kind = number.number
            scale = kind if isinstance(kind, Exponent) else Real(kind)
            if part.values:
                levels.append(Level(scale, part.values, max(part.rows, 1)))
            else:
                levels.append(Level(scale, CHANNEL if part.rows else TENSOR))
        return BlockFormat(self.element, tuple(levels))


def _weight(dtype: str) -> CodesPart:
    return CodesPart(("{}",), dtype)


_PACKED = CodesPart(("{}_packed",), "U8")
_TENSOR_SCALE = ScalePart(("{}_scale",), NUMBERS, 0, 0)
_ROW_SCALE = ScalePart(("{}_scale",), NUMBERS, 1, 0, axes=True)
_FP8_SCALE = ScalePart(("{}_scale",), {"F8_E4M3": FP8}, 1, 16)
_POWERS_32 = ScalePart(("{}_scale",), POWERS, 1, 32)
_GLOBAL = {"F32": ScaleNumber(FP32)}
_INPUT = ScalePart(("{module}.input_scale",), NUMBERS, 0, 0, optional=True)
_INPUT_GLOBAL = ScalePart(
    ("{module}.input_global_scale",), _GLOBAL, 0, 0, inverse=True, axes=True, optional=True
)


def _fp8(name: str, element: Float, part: ScalePart) -> WeightLayout:
    bits = f"E{element.exponent_bits}M{element.fraction_bits}"
    return WeightLayout(name, element, _weight(f"F8_{bits}"), (part,), input=_INPUT)


def _tiles(
    name: str, rows: int, values: int, numbers: dict[str, ScaleNumber], scales: str = "{}_scale_inv"
) -> WeightLayout:
    part = ScalePart((scales,), numbers, rows, values)
    return WeightLayout(name, E4M3, _weight("F8_E4M3"), (part,))


def _ggml(name: str, element: Element, block: Interleaved, *scales: ScalePart) -> WeightLayout:
    codes = CodesPart(("{}",), f"{GGML}{block.kind}")
    return WeightLayout(name, element, codes, scales, block, _INPUT if len(scales) > 1 else None)


GPT_OSS = WeightLayout(
    "gpt-oss-mxfp4",
    E2M1,
    CodesPart(("{}_blocks", "{}.blocks"), "U8", block=16),
    (ScalePart(("{}_scales", "{}.scales"), POWERS, 1, 32),),
)
MODELOPT_NVFP4 = WeightLayout(
    "modelopt-nvfp4",
    E2M1,
    _weight("U8"),
    (_FP8_SCALE, ScalePart(("{}_scale_2",), _GLOBAL, 0, 0)),
    input=_INPUT,
)
COMPRESSED_NVFP4 = WeightLayout(
    "compressed-tensors-nvfp4",
    E2M1,
    _PACKED,
    (_FP8_SCALE, ScalePart(("{}_global_scale",), _GLOBAL, 0, 0, inverse=True, axes=True)),
    input=_INPUT_GLOBAL,
)
COMPRESSED_MXFP4 = WeightLayout("compressed-tensors-mxfp4", E2M1, _PACKED, (_POWERS_32,))
MXFP8 = WeightLayout("mxfp8", E4M3, _weight("F8_E4M3"), (_POWERS_32,))
MXFP8_E5M2 = WeightLayout("mxfp8-e5m2", E5M2, _weight("F8_E5M2"), (_POWERS_32,))
QUARK_MXFP4 = WeightLayout("quark-mxfp4", E2M1, _weight("U8"), (_POWERS_32,))
FP8_BLOCKS = _tiles("fp8-blocks", 128, 128, NUMBERS)
FP8_BLOCKS_E8M0 = _tiles("fp8-blocks-e8m0", 32, 32, POWERS)
COMPRESSED_FP8_BLOCKS = _tiles(
    "compressed-tensors-fp8-blocks", 128, 128, NUMBERS, scales="{}_scale"
)
FP8_TENSOR = _fp8("fp8-tensor", E4M3, _TENSOR_SCALE)
FP8_CHANNEL = _fp8("fp8-channel", E4M3, _ROW_SCALE)
FP8_TENSOR_E5M2 = _fp8("fp8-tensor-e5m2", E5M2, _TENSOR_SCALE)
FP8_CHANNEL_E5M2 = _fp8("fp8-channel-e5m2", E5M2, _ROW_SCALE)
COMPRESSED_TENSOR = replace(
    FP8_TENSOR, scales=(replace(_TENSOR_SCALE, axes=True),), input=replace(_INPUT, axes=True)
)
INT8_TENSOR = WeightLayout("int8-tensor", INT8, _weight("I8"), COMPRESSED_TENSOR.scales)
INT8_CHANNEL = WeightLayout("int8-channel", INT8, _weight("I8"), (_ROW_SCALE,))
GGUF_MXFP4 = _ggml(
    "gguf-mxfp4",
    E2M1,
    Interleaved(39, 1, nibbles=True),
    ScalePart((), {"U8": ScaleNumber(Exponent(8, nan=False))}, 1, 32),
)
GGUF_NVFP4 = _ggml(
    "gguf-nvfp4",
    E2M1,
    Interleaved(40, 4, nibbles=True),
    ScalePart((), {"U8": ScaleNumber(E4M3, signed=False, nan_is_zero=True)}, 1, 16),
    ScalePart(("{module}.scale",), _GLOBAL, 0, 0, optional=True),
)
GGUF_Q8_0 = _ggml(
    "gguf-q8-0",
    INT8,
    Interleaved(8, 1, nibbles=False),
    ScalePart((), {"F16": ScaleNumber(FP16)}, 1, 32),
)


def _onnx(name: str, element: Element, dtype: str, *scales: ScalePart) -> WeightLayout:
    return WeightLayout(name, element, CodesPart(("{}_quantized",), dtype), scales)


ONNX_SCALE, ONNX_SCALE_2 = "{}_scale", "{}_scale_2"
_ONNX_POWERS = ScalePart((ONNX_SCALE,), {"F8_E8M0": POWER}, 1, 32)
_ONNX_TENSOR = ScalePart((ONNX_SCALE,), NUMBERS, 0, 0)
_ONNX_CHANNEL = ScalePart((ONNX_SCALE,), NUMBERS, 1, 0)
_ONNX_BLOCKS = ScalePart((ONNX_SCALE,), {"F16": NUMBERS["F16"], **NUMBERS}, 1, 32)
ONNX_LAYOUTS = (
    _onnx(
        "onnx-nvfp4",
        E2M1,
        "F4",
        ScalePart((ONNX_SCALE,), {"F8_E4M3": FP8}, 1, 16),
        ScalePart((ONNX_SCALE_2,), _GLOBAL, 0, 0),
    ),
    _onnx("onnx-mxfp4", E2M1, "F4", _ONNX_POWERS),
    _onnx("onnx-mxfp8", E4M3, "F8_E4M3", _ONNX_POWERS),
    _onnx("onnx-mxfp8-e5m2", E5M2, "F8_E5M2", _ONNX_POWERS),
    _onnx("onnx-fp8-tensor", E4M3, "F8_E4M3", _ONNX_TENSOR),
    _onnx("onnx-fp8-channel", E4M3, "F8_E4M3", _ONNX_CHANNEL),
    _onnx("onnx-fp8-blocks", E4M3, "F8_E4M3", ScalePart((ONNX_SCALE,), NUMBERS, 1, 128)),
    _onnx("onnx-fp8-tensor-e5m2", E5M2, "F8_E5M2", _ONNX_TENSOR),
    _onnx("onnx-fp8-channel-e5m2", E5M2, "F8_E5M2", _ONNX_CHANNEL),
    _onnx("onnx-fp8-tensor-e4m3fnuz", E4M3FNUZ, "F8_E4M3FNUZ", _ONNX_TENSOR),
    _onnx("onnx-fp8-channel-e4m3fnuz", E4M3FNUZ, "F8_E4M3FNUZ", _ONNX_CHANNEL),
    _onnx("onnx-fp8-tensor-e5m2fnuz", E5M2FNUZ, "F8_E5M2FNUZ", _ONNX_TENSOR),
    _onnx("onnx-fp8-channel-e5m2fnuz", E5M2FNUZ, "F8_E5M2FNUZ", _ONNX_CHANNEL),
    _onnx("onnx-int8-tensor", INT8, "I8", _ONNX_TENSOR),
    _onnx("onnx-int8-channel", INT8, "I8", _ONNX_CHANNEL),
    _onnx("onnx-int8-blocks", INT8, "I8", _ONNX_BLOCKS),
    _onnx("onnx-int4-channel", INT4, "I4", _ONNX_CHANNEL),
    _onnx("onnx-int4-blocks", INT4, "I4", _ONNX_BLOCKS),
)
"""What DequantizeLinear nodes of ONNX do. The nodes tell these layouts, and not the names."""

LAYOUTS = (
    GPT_OSS,
    MODELOPT_NVFP4,
    COMPRESSED_NVFP4,
    COMPRESSED_MXFP4,
    MXFP8,
    MXFP8_E5M2,
    QUARK_MXFP4,
    FP8_BLOCKS,
    FP8_BLOCKS_E8M0,
    COMPRESSED_FP8_BLOCKS,
    FP8_TENSOR,
    FP8_CHANNEL,
    FP8_TENSOR_E5M2,
    FP8_CHANNEL_E5M2,
    INT8_TENSOR,
    INT8_CHANNEL,
    GGUF_MXFP4,
    GGUF_NVFP4,
    GGUF_Q8_0,
)
"""Layouts of safetensors and GGUF files. Dtypes and shapes tell those of the same names apart."""
