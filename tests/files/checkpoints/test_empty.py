"""Weights without values."""

import json

import pytest

from axs6.files.checkpoints import KINDS, convert_checkpoint, decode_checkpoint


@pytest.mark.parametrize("rows", [0, 3, 2**62])
@pytest.mark.parametrize("kind", ["quark", "onnx"])
def test_rows_without_values(tmp_path, rows, kind):
    """They take no time, however many a file says that it has."""
    header = {
        "w": {"dtype": "F8_E4M3", "shape": [rows, 0], "data_offsets": [0, 0]},
        "w_scale": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
    }
    text = json.dumps(header).encode()
    source, target = tmp_path / "a.safetensors", tmp_path / f"b{KINDS[kind].suffix}"
    source.write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    (row,) = convert_checkpoint(source, target, KINDS[kind])
    assert (row.shape, row.same) == ((rows, 0), "float32")
    assert decode_checkpoint(target, tmp_path / "c.safetensors") == ["w"]
