"""The bytes of a checkpoint's weights in text: its tensors, and what the first of them mean."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from axs6.files.checkpoints.layouts import GGML, WeightLayout
from axs6.files.checkpoints.numbers import element_table
from axs6.files.checkpoints.source import Checkpoint, open_checkpoint
from axs6.files.checkpoints.weight import Weight
from axs6.files.tensors import Tensor

BYTES = 24
"""Bytes of a tensor that are shown, at most."""

VALUES = (0, 1, 2, 16, 32)
"""Values that are explained, where the first row has them."""


def drawn(path: Path) -> Iterator[str]:
    """Lines that show the tensors of each weight, their first bytes, and values of its first row.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is damaged, or no checkpoint.
    """
    with open_checkpoint(path) as checkpoint:
        held = {tensor.name: tensor for shard in checkpoint.shards for tensor in shard.tensors}
        for number, weight in enumerate(checkpoint.found.weights):
            if number:
                yield ""
            yield from _weight(checkpoint, weight, held)
            weight.release()


def _format(layout: WeightLayout) -> str:
    """The format of a layout, or the sizes of its tiles where there is none."""
    try:
        return str(layout.format)
    except ValueError:
        part = layout.scales[0]
        return f"tiles of {part.rows} x {part.values}"


def _weight(checkpoint: Checkpoint, weight: Weight, held: dict[str, Tensor]) -> Iterator[str]:
    layout = weight.layout
    yield f"{weight.name}: {_shape(weight.shape)} in {layout.name}, {_format(layout)}"
    tensors = [held[name] for name in weight.files]
    names = max(len(each.name) for each in tensors)
    kinds = max(len(_dtype(each)) for each in tensors)
    shapes = max(len(_shape(each.shape)) for each in tensors)
    for each in tensors:
        start = f"{each.name:{names}}  {_dtype(each):{kinds}}  {_shape(each.shape):{shapes}}"
        data = np.concatenate([*each.stored.chunks(BYTES)][:1] or [np.zeros(0, np.uint8)])
        more = f" and {each.nbytes - BYTES:,} more" if each.nbytes > BYTES else ""
        yield f"  {start}  {' '.join(f'{byte:02x}' for byte in data.tolist())}{more}"
    if not weight.rows:
        return
    _, size = weight.factors(0, 1)
    table, codes = element_table(layout.element), weight.read(0, 1)[0]
    values = weight.values(0, 1)[0]
    for value in VALUES:
        if value < weight.length:
            code = int(codes[value])
            yield (
                f"  value {value:2}: {_place(layout, value)}, code {code:#04x}, element "
                f"{table[code]:g}, times {_scale(weight, value // size)}: {values[value]:.9g}"
            )


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "one"


def _dtype(tensor: Tensor) -> str:
    number = tensor.dtype.removeprefix(GGML)
    return tensor.dtype if number == tensor.dtype else f"type {number}"


def _place(layout: WeightLayout, value: int) -> str:
    """Where the code of a value is in the bytes of its row."""
    if layout.interleaved:
        part, block = layout.scales[0], layout.interleaved
        (number,) = part.numbers.values()
        values = part.values * block.scales
        within, ahead = value % values, block.scales * number.dtype.itemsize
        size = ahead + values * layout.element.width // 8
        start = value // values * size + ahead
        if not block.nibbles:
            return f"byte {start + within}"
        group, place = divmod(within, part.values)
        half = part.values // 2
        bits = "low" if place < half else "high"
        return f"byte {start + group * half + place % half}, {bits} bits"
    if layout.packed:
        return f"byte {value // 2}, {'high' if value % 2 else 'low'} bits"
    return f"byte {value}"


def _scale(weight: Weight, tile: int) -> str:
    """The scales of a tile of the first row."""
    found = []
    for number, level in enumerate(weight.scales):
        row = level.factors[0, 0]
        factor = row[min(tile, len(row) - 1)]
        sign = "" if not number else "/ " if level.inverse else "x "
        found.append(f"{sign}{factor:.9g}")
    return " ".join(found)
