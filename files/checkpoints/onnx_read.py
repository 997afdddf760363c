"""Reading ONNX models: initialisers, and the weights that DequantizeLinear makes of them."""

import math
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from axs6.damaged import DAMAGED
from axs6.files.checkpoints.layouts import (
    E2M1,
    E4M3,
    E4M3FNUZ,
    E5M2,
    E5M2FNUZ,
    FP8,
    INT4,
    INT8,
    NUMBERS,
    ONNX_LAYOUTS,
    POWER,
    CodesPart,
    ScalePart,
    WeightLayout,
)
from axs6.files.checkpoints.recognise import Found, Problem, assembled
from axs6.files.checkpoints.weight import ScaleLevel, Weight
from axs6.files.scratch import naming_folder
from axs6.files.stored import Stored
from axs6.files.tensors import DTYPES, Tensor

DTYPES_OF = {
    "FLOAT": "F32",
    "FLOAT16": "F16",
    "BFLOAT16": "BF16",
    "DOUBLE": "F64",
    "INT64": "I64",
    "INT32": "I32",
    "INT16": "I16",
    "INT8": "I8",
    "INT4": "I4",
    "UINT64": "U64",
    "UINT32": "U32",
    "UINT16": "U16",
    "UINT8": "U8",
    "BOOL": "BOOL",
    "COMPLEX64": "C64",
    "FLOAT8E4M3FN": "F8_E4M3",
    "FLOAT8E5M2": "F8_E5M2",
    "FLOAT8E4M3FNUZ": "F8_E4M3FNUZ",
    "FLOAT8E5M2FNUZ": "F8_E5M2FNUZ",
    "FLOAT8E8M0": "F8_E8M0",
    "FLOAT4E2M1": "F4",
}
"""Dtypes, as safetensors name them, of ONNX's types; I4 is ONNX's alone."""

ELEMENTS = {
    "F4": E2M1,
    "F8_E4M3": E4M3,
    "F8_E5M2": E5M2,
    "F8_E4M3FNUZ": E4M3FNUZ,
    "F8_E5M2FNUZ": E5M2FNUZ,
    "I8": INT8,
    "I4": INT4,
}
"""Elements by the dtypes of their codes."""

_SCALES = {**NUMBERS, "F8_E8M0": POWER}
_FINE = {"F8_E4M3": FP8}
"""Scales that are numbers, and those that have scales themselves."""

_WIDE = ("I32", "I16", "U16")
"""Dtypes of more than 8 bits, of biases and activations: such tensors stay as they are."""


@dataclass(frozen=True)
class OnnxModel:
    """A model: what was found, all of its initialisers, and the files beside it with their data."""

    found: Found
    tensors: list[Tensor]
    beside: list[Path]


class _ProblemError(ValueError):
    """A node that makes no weight that is known."""


def read_model(path: Path, stack: ExitStack) -> OnnxModel:
    """The weights and other initialisers of a model.

    A weight is the output of a DequantizeLinear whose inputs are constant; its values are in
    float32, before they are rounded to the output's type if that is another. Scales may be the
    output of another such node. The model's other nodes are not looked at.

    Args:
        path: the model. Data in it are unpacked into a temporary file.
        stack: closes the files.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is damaged, or an initialiser has a type that is not known.
    """
    graph = _loaded(path).graph
    names = [each.name for each in graph.initializer]
    names += [name for node in graph.node for name in (*node.input, *node.output)]
    if wrong := next((name for name in names if not isinstance(name, str)), None):
        raise ValueError(f"{path} must be a whole ONNX model: the name {wrong!r} is no text")
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            constants[node.output[0]] = node.attribute[0].t
    data = _Data(path, stack)
    try:
        with naming_folder(Path(tempfile.gettempdir())):
            tensors = {name: data.tensor(name, each) for name, each in constants.items()}
    except DAMAGED as error:
        raise ValueError(f"{path} must be a whole ONNX model: {error}") from None
    return OnnxModel(_found(graph, tensors), list(tensors.values()), sorted(data.beside))


def _loaded(path: Path) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror}") from error
    except DecodeError as error:
        raise ValueError(f"{path} must be a whole ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise ValueError(f"{path} must be a whole ONNX model: it has no graph")
    return model


class _Data:
    """The bytes of initialisers, in a temporary file or in files beside the model."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path = path
        self._stack = stack
        self._end = 0
        unpacked = tempfile.TemporaryFile(prefix="axs6-onnx-", buffering=0)  # noqa: SIM115
        self._file = stack.enter_context(unpacked)
        self.beside: dict[Path, BinaryIO] = {}

    def tensor(self, name: str, tensor: Any) -> Tensor:
        """An initialiser.

        Raises:
            ValueError: its type is not known, its bytes are too few or too many, or its file is
                not in the model's folder.
        """
        from onnx import TensorProto

        names = {number: each for each, number in TensorProto.DataType.items()}
        kind = names.get(tensor.data_type, str(tensor.data_type))
        if kind not in DTYPES_OF:
            raise ValueError(f"initialiser {name!r} has type {kind}, which is not supported")
        dtype, shape = DTYPES_OF[kind], tuple(tensor.dims)
        if any(size < 0 for size in shape):
            raise ValueError(f"initialiser {name!r} has the shape {shape}")
        held = np.dtype(DTYPES.get(dtype, "|u1"))
        bits = 4 if dtype in ("F4", "I4") else 8 * held.itemsize
        wanted = -(-math.prod(shape) * bits // 8)
        external = tensor.data_location == TensorProto.EXTERNAL
        where, file, start, found = (self._external if external else self._internal)(tensor, wanted)
        if found != wanted:
            raise ValueError(f"initialiser {name!r} must have {wanted} bytes, not {found}")
        own = shape if dtype in DTYPES else (wanted,)
        return Tensor(name, dtype, shape, Stored(where, file, start, held, own))

    def _internal(self, tensor: Any, wanted: int) -> tuple[Path, BinaryIO, int, int]:
        from onnx import numpy_helper

        data = tensor.raw_data
        if wanted and not data:
            data = numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
        tensor.ClearField("raw_data")  # once in memory is enough
        start, self._end = self._end, self._end + len(data)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        return self._path, self._file, start, len(data)

    def _external(self, tensor: Any, wanted: int) -> tuple[Path, BinaryIO, int, int]:
        from onnx.external_data_helper import ExternalDataInfo

        info = ExternalDataInfo(tensor)
        folder = self._path.parent.resolve()
        where = (folder / info.location).resolve()
        if not where.is_relative_to(folder) or not where.is_file():
            raise ValueError(
                f"the data of initialiser {tensor.name!r} are in {info.location!r}, which is no "
                "file in its folder"
            )
        if where not in self.beside:
            self.beside[where] = self._stack.enter_context(where.open("rb", buffering=0))
        start = info.offset or 0
        left = max(0, where.stat().st_size - start)
        return (
            where,
            self.beside[where],
            start,
            min(left, wanted if info.length is None else info.length),
        )


@dataclass(frozen=True)
class _Node:
    """A DequantizeLinear: names of its output and inputs, and its attributes."""

    output: str
    codes: str
    scale: str
    zero: str
    axis: int
    block: int
    dtype: int


def _nodes(graph: Any) -> Iterator[_Node]:
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and len(node.input) > 1 and node.output:
            given = {each.name: each.i for each in node.attribute}
            yield _Node(
                node.output[0],
                node.input[0],
                node.input[1],
                node.input[2] if len(node.input) > 2 else "",
                given.get("axis", 1),
                given.get("block_size", 0),
                given.get("output_dtype", 0),
            )


def _found(graph: Any, tensors: dict[str, Tensor]) -> Found:
    nodes = {node.output: node for node in _nodes(graph) if node.codes in tensors}
    inner = {node.scale for node in nodes.values()}
    weights, problems = [], []
    used: set[str] = set()
    for node in nodes.values():
        if node.output in inner or tensors[node.codes].dtype in _WIDE:
            continue
        try:
            weight = _weight(node, nodes, tensors)
        except _ProblemError as error:
            problems.append(Problem(node.output, str(error)))
            continue
        weights.append(weight)
        used |= {*weight.files, node.zero}
    plain = [tensor for name, tensor in tensors.items() if name not in used]
    return Found(weights, plain, problems)


def _weight(node: _Node, nodes: dict[str, _Node], tensors: dict[str, Tensor]) -> Weight:
    codes = tensors[node.codes]
    if codes.dtype not in ELEMENTS:
        raise _ProblemError(f"DequantizeLinear of {codes.dtype}, which is not supported")
    if not codes.shape:
        raise _ProblemError("DequantizeLinear of a number, which is no weight")
    levels = [node]
    if node.scale in nodes:
        levels.append(nodes[node.scale])
    names = [level.codes for level in levels[1:]] + [levels[-1].scale]
    if any(name not in tensors for name in names):
        raise _ProblemError("its scales are not constant, or the third level of scales")
    parts = [tensors[name] for name in names]
    if len(levels) > 1 and (levels[1].dtype or _float_type(parts[1])) != 1:
        raise _ProblemError("scales that are dequantised must be FLOAT")
    for level in levels:
        _check_zero(level, tensors)
    scales, tiles = [], []
    shape = codes.shape
    for number, (level, tensor) in enumerate(zip(levels, parts, strict=True)):
        known = _FINE if number + 1 < len(levels) else _SCALES
        if tensor.dtype not in known:
            raise _ProblemError(f"scales of {tensor.dtype}, which are not supported")
        grid = _Grid.of(shape, tensor.shape, level)
        if number and (grid.rows or grid.values):
            raise _ProblemError("the scale of scales must be one for all, or for each matrix")
        scales.append(ScaleLevel(known[tensor.dtype], grid.load(tensor), grid.rows, grid.values))
        tiles.append(ScalePart((), {tensor.dtype: known[tensor.dtype]}, grid.rows, grid.values))
        shape = tensor.shape
    layout = _layout(codes, tiles)
    return assembled(node.output, codes, layout, codes.shape, scales, parts, None)


def _float_type(tensor: Tensor) -> int:
    """ONNX's number of the type of a scale, if that is FLOAT."""
    return 1 if tensor.dtype == "F32" else 0


def _check_zero(node: _Node, tensors: dict[str, Tensor]) -> None:
    if node.zero and (node.zero not in tensors or tensors[node.zero].stored.all().any()):
        raise _ProblemError("a zero point other than 0, which is not supported")


def _layout(codes: Tensor, tiles: list[ScalePart]) -> WeightLayout:
    """The layout of a name that has these tiles and dtypes, or one without."""

    def has(layout: WeightLayout) -> bool:
        return (layout.element, layout.codes.dtype, len(layout.scales)) == (
            ELEMENTS[codes.dtype],
            codes.dtype,
            len(tiles),
        ) and all(
            (part.rows, part.values) == (tile.rows, tile.values)
            and tile.numbers.items() <= part.numbers.items()
            for part, tile in zip(layout.scales, tiles, strict=True)
        )

    known = next((layout for layout in ONNX_LAYOUTS if has(layout)), None)
    return known or WeightLayout(
        "onnx", ELEMENTS[codes.dtype], CodesPart((), codes.dtype), tuple(tiles)
    )


@dataclass(frozen=True)
class _Grid:
    """How the scales of a tensor belong to weights.

    Args:
        shape: of the weights.
        scales: the shape of the scales with as many axes; sizes are 1 where one is for all.
        axis: along which `block` weights have one.
        rows, values: the tile of a scale, 0 for all.
    """

    shape: tuple[int, ...]
    scales: tuple[int, ...]
    axis: int
    block: int
    rows: int
    values: int

    @classmethod
    def of(cls, shape: tuple[int, ...], scales: tuple[int, ...], node: _Node) -> "_Grid":
        """The grid that a node says."""
        axes = len(shape)
        ones = (1,) * axes
        if math.prod(scales) == 1 and len(scales) <= 1:
            return cls(shape, ones, 0, 0, 0, 0)
        axis = node.axis + axes if node.axis < 0 else node.axis
        if not 0 <= axis < axes or node.block < 0:
            raise _ProblemError(f"axis {node.axis} and block_size {node.block}, which it has not")
        block, others = (node.block, shape) if node.block else (1, ones)
        full = (*others[:axis], -(-shape[axis] // block), *others[axis + 1 :])
        if scales != (full if node.block else full[axis : axis + 1]):
            raise _ProblemError(f"scales of shape {scales} for codes of shape {shape}")
        rest = 1 if node.block else 0
        rows, values = (block if axis == place else rest for place in (axes - 2, axes - 1))
        if node.block >= shape[-1] and axis == axes - 1 and node.block not in _BLOCKS:
            values = 0
        return cls(shape, full, axis, block, rows, values)

    def load(self, tensor: Tensor) -> Any:
        """What gives the codes of scales, of shape (matrices, tiles of rows, tiles of values)."""
        known = {**_SCALES, **_FINE}[tensor.dtype]

        def load() -> NDArray[Any]:
            codes = np.ascontiguousarray(tensor.stored.all()).view(known.dtype)
            if math.prod(self.scales) == 1:
                return codes.reshape(1, 1, 1)
            codes = codes.reshape(self.scales)
            inner = codes.shape[-2:]
            if self.axis < len(self.shape) - 2:
                codes = codes.repeat(self.block, self.axis)
                codes = codes.take(np.arange(self.shape[self.axis]), self.axis)
            codes = np.broadcast_to(codes, (*self.shape[:-2], *inner))
            tall = inner[0] if len(inner) > 1 else 1
            return np.ascontiguousarray(codes).reshape(math.prod(self.shape[:-2]), tall, inner[-1])

        return load


_BLOCKS = {part.values for layout in ONNX_LAYOUTS for part in layout.scales}
"""Blocks of the layouts that have names."""
