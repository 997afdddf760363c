"""Payload layouts of the units' ports, with every width taken from the golden model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from amaranth.hdl import Shape, Value, unsigned
from amaranth.lib import data

from axs6.golden.arguments import check_integer
from axs6.golden.formats import (
    AXS6,
    FP32,
    BlockFormat,
    Exponent,
    Float,
    Integer,
    Mode,
    Real,
    Scale,
    Shift,
    SignMagnitude,
    name_of,
)
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.formats.modes import HEADER_BITS
from axs6.golden.pack import ALIGN_MAX
from axs6.golden.scaling import code_dtype
from axs6.hw.core.parameters import formats_of_operands


def float_layout(dtype: Float) -> data.StructLayout:
    """Fields of one floating-point value, from bit 0."""
    return data.StructLayout(
        {"fraction": dtype.fraction_bits, "exponent": dtype.exponent_bits, "sign": 1}
    )


def code_layout_of(code: SignMagnitude) -> data.StructLayout:
    """Fields of one code, from bit 0."""
    return data.StructLayout({"magnitude": code.magnitude_bits, "sign": 1})


code_layout = code_layout_of(AXS6_ELEMENT)
"""Fields of one 6-bit code, from bit 0."""


def lanes_layout(kinds: Sequence[data.Layout], block: int) -> data.StructLayout:
    """Lanes `lane0`, `lane1` and so on, whose layouts alternate between some."""
    return data.StructLayout({f"lane{k}": kinds[k % len(kinds)] for k in range(block)})


def lanes_of(lanes: data.View) -> list[Any]:
    """The lanes of a `lanes_layout`, in order."""
    return [lanes[name] for name, _ in lanes.shape()]


def words_layout(block: int, random_bits: int) -> data.StructLayout:
    """A random word for each lane, that of lane 0 in the lowest bits."""
    return data.StructLayout({"random": data.ArrayLayout(unsigned(random_bits), block)})


def values_layout(block: int, dtype: Float) -> data.StructLayout:
    """A block of floating-point values, value 0 in the lowest bits."""
    return data.StructLayout({"values": data.ArrayLayout(unsigned(dtype.width), block)})


SCALE_NAMES: Mapping[type[Scale], str] = {
    Exponent: "exponent",
    Shift: "shift",
    Integer: "factor",
    Real: "scale",
}
"""Names of the fields of scales: plural for arrays."""


def scale_names(fmt: BlockFormat) -> list[str]:
    """Names of the fields of a block's scales, coarse to fine.

    The group follows where a kind of scale is there more than once.
    """
    kinds = [SCALE_NAMES[type(level.scale)] for level in fmt.blocked]
    names = [
        f"{kind}{'s' * (level.group != fmt.block)}{level.group if kinds.count(kind) > 1 else ''}"
        for kind, level in zip(kinds, fmt.blocked, strict=True)
    ]
    return names[::-1]


def block_layout(block: int, fmt: BlockFormat | None = None) -> data.StructLayout:
    """A dense block: its scales, coarse to fine, then the codes, code 0 in the lowest bits.

    Scales of channels and tensors are not part of it. A scale of the whole block is a number, those
    of smaller groups are an array.

    Args:
        block: values in the block.
        fmt: its format, with blocks of that size where it has blocks; AXS-6 by default.
    """
    fmt = fmt or AXS6.with_block(block)
    scales: dict[str, Any] = {}
    for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
        number, groups = unsigned(level.scale.bits), block // int(level.group)
        scales[name] = number if groups == 1 else data.ArrayLayout(number, groups)
    codes = data.ArrayLayout(unsigned(fmt.element.width), block)
    return data.StructLayout({**scales, "codes": codes})


ZERO_POINT = "zero_point"
"""Name of the field with the code of the value 0, in formats that have one."""


def outer_names(fmt: BlockFormat) -> list[str]:
    """Names of the fields of scales of the tensor and of channels, coarse to fine."""
    groups = [level.group for level in fmt.outer[::-1]]
    return ["outer"] if len(groups) == 1 else [f"outer_{group}" for group in groups]


FLOAT_FIELDS = ("value", "values", "errors")
"""Names of fields that hold floats of a unit's dtype."""


def float_format(name: str, parameters: Mapping[str, Any]) -> Float | None:
    """Format of a field's elements, where they are floats: values and real scales.

    That of values is the unit's parameter `dtype`, or FP32 where it has none.

    Args:
        name: of the field.
        parameters: of the unit.
    """
    side, _, last = name.rpartition(".")
    if last in FLOAT_FIELDS:
        return INPUT_DTYPES[parameters.get("dtype", FP32.name)]
    formats = formats_of_operands(parameters.get("format", name_of(AXS6)))
    fmt = formats[-1 if side == "b" else 0]
    names = [*outer_names(fmt), *scale_names(fmt)]
    scale = dict(zip(names, (level.scale for level in fmt.levels[::-1]), strict=True)).get(last)
    return scale.dtype if isinstance(scale, Real) else None


def scaled_layout(block: int, fmt: BlockFormat) -> data.StructLayout:
    """A dense block behind the scales of its tensor and channel, which are fields of each item.

    The fields lie in the order in which a tensor of one block is packed.

    Args:
        block: values in the block.
        fmt: its format, with blocks of that size where it has blocks.
    """
    levels = zip(outer_names(fmt), fmt.outer[::-1], strict=True)
    outer: dict[str, Any] = {name: unsigned(level.scale.bits) for name, level in levels}
    inner = dict(block_layout(block, fmt).members)
    zero = {} if fmt.element.signed else {ZERO_POINT: unsigned(fmt.element.width)}
    codes = inner.pop("codes")
    return data.StructLayout({**outer, **inner, **zero, "codes": codes})


UNUSED, PADDING = "unused", "padding"
"""Names of the fields with the padding bits of the last byte, and with the padding bytes."""


def filled_layout(block: int, fmt: BlockFormat, align: int = 1) -> data.StructLayout:
    """The bytes of a tensor of one block, in a format without modes.

    Fields are those of `scaled_layout`, those of outer scales and zero points in whole bytes; then
    `unused`, the bits that fill up the last byte, and `padding`, bytes up to a multiple of `align`.

    Raises:
        ValueError: `align` is not an integer from 1 to 4096.
    """
    check_integer("align", align, 1, ALIGN_MAX)
    members: dict[str, Any] = dict(scaled_layout(block, fmt).members)
    for name in (*outer_names(fmt), ZERO_POINT) if fmt.outer else ():
        if name in members:
            members[name] = unsigned(8 * np.dtype(code_dtype(members[name].width)).itemsize)
    size = data.StructLayout(members).size
    unused, padding = -size % 8, -size // 8 % align
    more = {UNUSED: unsigned(unused)} if unused else {}
    bytes_ = {PADDING: data.ArrayLayout(unsigned(8), padding)} if padding else {}
    return data.StructLayout({**members, **more, **bytes_})


def packed_layout(block: int) -> data.StructLayout:
    """A block of any mode as its packed bytes; sparse blocks are padded with zeros to the length of
    the others."""
    return data.StructLayout(
        {
            "mode": unsigned(AXS6.mode_bits),
            "exponent": unsigned(AXS6_SCALE.bits),
            "reserved": unsigned(HEADER_BITS - AXS6.header_used),
            "payload": data.ArrayLayout(unsigned(8), AXS6.with_block(block).payload_bits // 8),
        }
    )


def encoded_layout(
    block: int, mode: Mode = Mode.DENSE, fmt: BlockFormat | None = None
) -> data.StructLayout:
    """A block and whether one of the values it came from was NaN or infinite.

    A dense block is its scales and codes, one of another mode its packed bytes; `fmt` is as of
    `scaled_layout`, AXS-6 by default.
    """
    dense = scaled_layout(block, fmt or AXS6.with_block(block))
    layout = dense if mode is Mode.DENSE else packed_layout(block)
    return data.StructLayout({"block": layout, "invalid": 1})


error_layout = data.StructLayout({"error": 1})
"""Error flag: a packed block cannot be read, or not by this unit."""


outer_layout = data.StructLayout({"outer": unsigned(FP32.width)})
"""The product of the scales of channels and tensors of both operands, rounded to FP32."""


def pair_layout(block: int, *, packed: bool = False) -> data.StructLayout:
    """The two operands of a block dot product: dense blocks, or packed ones of any mode."""
    layout = packed_layout(block) if packed else block_layout(block)
    return data.StructLayout({"a": layout, "b": layout})


def many_layout(one: data.StructLayout, count: int) -> data.StructLayout:
    """Blocks side by side: each field of one as an array, in the plural."""
    return data.StructLayout(
        {plural(name): data.ArrayLayout(field.shape, count) for name, field in one}
    )


def plural(name: str) -> str:
    """The name of a block's field where there are many blocks."""
    kind = name.rstrip("0123456789")
    return name if kind.endswith("s") else f"{kind}s{name[len(kind) :]}"


fp32_layout = data.StructLayout({"value": unsigned(FP32.width)})
"""One FP32 value as its bit pattern."""


last_layout = data.StructLayout({"last": 1})
"""Marks the last item of a vector."""


@dataclass(frozen=True)
class Field:
    """One number, or one array of equal numbers, within a payload.

    `name` joins nested names with dots; `offset` and `width` are bits; `shape` is () for a number.
    Element i of an array, counted in row-major order, lies at `offset + i * width`.
    """

    name: str
    offset: int
    width: int
    signed: bool
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of elements."""
        return prod(self.shape)


def port_fields(component: Any) -> tuple[list[Field], list[Field]]:
    """The fields of the payloads of a component's streams `i` and `o`."""
    return fields(component.i.payload.shape()), fields(component.o.payload.shape())


def fields(layout: data.StructLayout) -> list[Field]:
    """The numbers in a payload, in bit order."""
    found: list[Field] = []
    _collect(layout, "", 0, found)
    return found


def _collect(layout: data.StructLayout, prefix: str, base: int, found: list[Field]) -> None:
    for key, field in layout:
        name, offset = f"{prefix}{key}", base + field.offset
        if isinstance(field.shape, data.StructLayout):
            _collect(field.shape, f"{name}.", offset, found)
        else:
            shape: list[int] = []
            element = field.shape
            while isinstance(element, data.ArrayLayout):
                shape.append(element.length)
                element = element.elem_shape
            number = Shape.cast(element)
            found.append(Field(name, offset, number.width, number.signed, tuple(shape)))


def elements_of(field: Any) -> list[Value]:
    """The elements of a field that is a number or an array."""
    return list(field) if isinstance(field.shape(), data.ArrayLayout) else [field]
