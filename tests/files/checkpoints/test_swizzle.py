"""The order of scales that cuBLAS reads, against its definition in loops."""

import re

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from axs6.files.checkpoints import KINDS, convert_checkpoint, swizzled, unswizzled
from axs6.files.tensors import open_tensors

HEIGHTS = (1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 260)
SHAPES = [(rows, columns) for rows in HEIGHTS for columns in range(1, 10)]
TO = ("--to", "modelopt")


def in_loops(scales):
    """One scale at a time, as the documentation of cuBLAS counts them."""
    rows, columns = scales.shape
    tiles_in_row = (columns + 3) // 4
    flat = [0] * ((rows + 127) // 128 * tiles_in_row * 512)
    for row in range(rows):
        for column in range(columns):
            tile = row // 128 * tiles_in_row + column // 4
            r, c = row % 128, column % 4
            flat[tile * 512 + r % 32 * 16 + r // 32 * 4 + c] = scales[row, column]
    return flat


@pytest.mark.parametrize("shape", [*SHAPES[::7], (129, 5), (128, 4)], ids=str)
def test_order(shape):
    scales = np.random.default_rng(0).integers(1, 256, shape, np.uint8)
    assert swizzled(scales).tolist() == in_loops(scales)


def test_a_transposed_tile_is_told():
    scales = np.arange(512).reshape(128, 4)
    wrong = scales.reshape(4, 32, 4).transpose(0, 2, 1).reshape(-1)
    assert wrong.tolist() != in_loops(scales)
    assert swizzled(scales).tolist() == in_loops(scales)


@pytest.mark.parametrize("dtype", [np.uint8, ml_dtypes.float8_e4m3fn, np.float32])
def test_there_and_back(dtype):
    rng = np.random.default_rng(1)
    drawn = [(int(rng.integers(1, 261)), int(rng.integers(1, 10))) for _ in range(40)]
    for shape in (*SHAPES, *drawn, (3, 130, 5), (2, 2, 1, 9)):
        scales = rng.integers(0, 100, shape).astype(np.uint8).astype(dtype)
        flat = swizzled(scales)
        assert flat.dtype == scales.dtype
        assert flat.size % 512 == 0
        assert unswizzled(flat, shape).tobytes() == scales.tobytes()
        assert unswizzled(flat.reshape(-1), shape).tobytes() == scales.tobytes()


def test_matrices_one_by_one():
    scales = np.random.default_rng(2).integers(0, 256, (3, 5, 6), np.uint8)
    assert swizzled(scales).tolist() == [in_loops(each) for each in scales]


def test_refused():
    with pytest.raises(ValueError, match="two axes or more"):
        swizzled(np.zeros(4))
    with pytest.raises(ValueError, match="two axes or more"):
        unswizzled(np.zeros(4), (4,))
    said = "scales of shape (5, 5) have 1024 items in tiles of 128 x 4, not 512"
    with pytest.raises(ValueError, match=re.escape(said)):
        unswizzled(np.zeros(512), (5, 5))


@pytest.fixture
def nvfp4(tmp_path):
    rng = np.random.default_rng(3)
    scales = rng.integers(1, 120, (130, 5), np.uint8).view(ml_dtypes.float8_e4m3fn)
    tensors = {
        "l.weight": rng.integers(0, 256, (130, 40), np.uint8),
        "l.weight_scale": scales,
        "l.weight_scale_2": np.array(0.01, np.float32),
    }
    save_file(tensors, tmp_path / "plain.safetensors")
    return tensors


def tensors_of(path):
    with open_tensors(path) as (tensors, _):
        return {x.name: (x.dtype, x.shape, x.stored.all().tobytes()) for x in tensors}


def test_convert(tmp_path, nvfp4, main):
    done = main("convert", "plain.safetensors", "s.safetensors", *TO, "--swizzle-scales")
    assert done.returncode == 0, done.stderr
    assert "modelopt-nvfp4-swizzled" in done.stdout
    wanted = in_loops(nvfp4["l.weight_scale"].view(np.uint8))
    written = tensors_of(tmp_path / "s.safetensors")
    assert written["l.weight_scale"] == ("F8_E4M3", (256, 8), bytes(wanted))
    done = main("convert", "s.safetensors", "p.safetensors", *TO, "--unswizzle-scales")
    assert done.returncode == 0, done.stderr
    assert tensors_of(tmp_path / "p.safetensors") == tensors_of(tmp_path / "plain.safetensors")
    assert main("convert", "s.safetensors", "q.safetensors", *TO).returncode == 2


def test_flat_scales_are_read(tmp_path, nvfp4):
    flat = tmp_path / "flat.safetensors"
    save_file(nvfp4 | {"l.weight_scale": swizzled(nvfp4["l.weight_scale"])}, flat)
    convert_checkpoint(flat, tmp_path / "p.safetensors", KINDS["modelopt"], unswizzle=True)
    assert tensors_of(tmp_path / "p.safetensors") == tensors_of(tmp_path / "plain.safetensors")


@pytest.mark.parametrize("kind", ["gguf", "onnx", "fp8-blocks"])
def test_kinds_without(tmp_path, nvfp4, kind):
    target = tmp_path / f"x{KINDS[kind].suffix}"
    with pytest.raises(ValueError, match=f"^{kind} has no scales of blocks that can be swizzled$"):
        convert_checkpoint(tmp_path / "plain.safetensors", target, KINDS[kind], swizzle=True)
    assert not target.exists()


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (2, 0, 3), (0, 2, 3)])
def test_no_scales(shape: tuple[int, ...]) -> None:
    none = np.zeros(shape, np.uint8)
    assert swizzled(none).size == 0
    assert np.array_equal(unswizzled(swizzled(none), shape), none)


def test_a_source_without_scales_of_blocks(tmp_path):
    codes = np.zeros((2, 4), ml_dtypes.float8_e4m3fn)
    source, target = tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    save_file({"m.weight": codes, "m.weight_scale": np.ones((), np.float32)}, source)
    with pytest.raises(ValueError, match="it has no scales of blocks that can be swizzled"):
        convert_checkpoint(source, target, KINDS["quark"], unswizzle=True)
    assert not target.exists()
