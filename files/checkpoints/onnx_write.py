"""Writing ONNX models of initialisers and DequantizeLinear nodes, through the package onnx."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from axs6.files.checkpoints.held import Held
from axs6.files.checkpoints.layouts import ScalePart
from axs6.files.checkpoints.onnx_read import DTYPES_OF
from axs6.files.writer import Entry

INLINE = 1024
"""Tensors of fewer bytes are in the model and not beside it, as the package onnx has it."""

ALIGNMENT = 4096
"""Of tensors in the file beside the model, as ONNX asks for mapped files."""

OPSET, OPSET_POWERS = 23, 24
"""The first sets of operators that have FLOAT4E2M1 and `output_dtype`, and FLOAT8E8M0."""


def write_onnx(
    file: BinaryIO,
    entries: Sequence[Entry],
    contents: Iterable[Iterable[bytes]],
    weights: Sequence[Held],
    data: BinaryIO | None = None,
) -> None:
    """Write a model whose outputs are weights, and check it.

    Args:
        file: of the model.
        entries: the initialisers. contents: the bytes of each, in pieces.
        weights: whose tensors are among the entries.
        data: a file beside the model for the bytes of large tensors, or None.

    Raises:
        ValueError: ONNX has no such type, or the model would have more than 2 GB.
    """
    import onnx
    from onnx import TensorProto, helper

    kinds = {dtype: getattr(TensorProto, name) for name, dtype in DTYPES_OF.items()}
    for entry in entries:
        if entry.dtype not in kinds:
            raise ValueError(f"tensor {entry.name!r}: ONNX has no tensors of {entry.dtype}")
    if data is None and sum(entry.most_bytes for entry in entries) > onnx.checker.MAXIMUM_PROTOBUF:
        raise ValueError(
            f"{file.name} would have more than {onnx.checker.MAXIMUM_PROTOBUF:,} bytes; a folder "
            "has room for larger models"
        )
    nodes: list[Any] = []
    shapes = {entry.name: entry.shape for entry in entries}
    for weight in weights:
        shapes |= _add_nodes(weight, nodes)
    tensors = []
    for entry, pieces in zip(entries, contents, strict=True):
        tensor = TensorProto(name=entry.name, data_type=kinds[entry.dtype], dims=shapes[entry.name])
        if data is None or entry.most_bytes < INLINE:
            tensor.raw_data = b"".join(pieces)
        else:
            _write_beside(data, tensor, pieces)
        tensors.append(tensor)
    outputs = [
        helper.make_tensor_value_info(weight.name, TensorProto.FLOAT, weight.shape)
        for weight in weights
    ]
    powers = any("F8_E8M0" in weight.dtypes for weight in weights)
    opset = helper.make_opsetid("", OPSET_POWERS if powers else OPSET)
    model = helper.make_model(
        helper.make_graph(nodes, "weights", [], outputs, tensors),
        opset_imports=[opset],
        ir_version=helper.find_min_ir_version_for([opset]),
        producer_name="axs6",
    )
    file.write(model.SerializeToString())
    file.flush()
    if data is not None:
        data.flush()
    try:
        onnx.checker.check_model(file.name)
    except onnx.checker.ValidationError as error:
        first, *_ = str(error).splitlines()
        raise ValueError(f"ONNX has no model of these tensors: {first}") from None


def _write_beside(data: BinaryIO, tensor: Any, pieces: Iterable[bytes]) -> None:
    from onnx import TensorProto

    start = -(-data.tell() // ALIGNMENT) * ALIGNMENT
    data.seek(start)
    length = sum(data.write(piece) for piece in pieces)
    tensor.data_location = TensorProto.EXTERNAL
    place = {"location": Path(data.name).name, "offset": start, "length": length}
    for key, value in place.items():
        tensor.external_data.add(key=key, value=str(value))


def _add_nodes(weight: Held, nodes: list[Any]) -> dict[str, tuple[int, ...]]:
    """Add the nodes of a weight, scales of scales first. Returns the shapes of scales."""
    from onnx import TensorProto, helper

    codes, *levels = weight.entries()
    shapes: dict[str, tuple[int, ...]] = {}
    scale = ""
    for number, part in reversed(list(enumerate(weight.layout.scales))):
        entry = levels[number - 1] if number else codes
        output = f"{entry.name}_dequantized" if number else weight.name
        attributes, shapes[levels[number].name] = _place(entry, levels[number].shape, part)
        if not scale and weight.dtypes[number] != "F32":
            attributes["output_dtype"] = TensorProto.FLOAT
        inputs = [entry.name, scale or levels[number].name]
        nodes.append(helper.make_node("DequantizeLinear", inputs, [output], **attributes))
        scale = output
    return shapes


def _place(
    entry: Entry, scales: tuple[int, ...], part: ScalePart
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The attributes that say to which codes scales belong, and the shape of the scales.

    Scales of the rows of several matrices are those of blocks that are as long as a row.

    Raises:
        ValueError: there are scales of matrices, and these are counted along two axes.
    """
    codes = entry.shape
    if not scales:
        return {}, scales
    if part.values:
        return {"axis": len(codes) - 1, "block_size": part.values}, scales
    if part.rows and len(codes) > 2:
        return {"axis": len(codes) - 1, "block_size": codes[-1]}, (*scales, 1)
    if len(scales) > 1 or scales != codes[:1]:
        raise ValueError(
            f"tensor {entry.name!r}: ONNX has no scales of matrices along two axes, as in {codes}"
        )
    return {"axis": 0}, scales
