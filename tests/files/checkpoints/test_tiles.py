"""FP8 weights with a scale for each tile of rows and values."""

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from axs6.files.checkpoints import KINDS, convert_checkpoint, open_checkpoint
from axs6.files.tensors import open_tensors

SIZES = ("weight_block_size", "block_structure")


def model(folder, end, config, grid=(2, 3), shape=(200, 300)):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 127, shape, np.uint8).view(ml_dtypes.float8_e4m3fn)
    folder.mkdir()
    scales = rng.random(grid, np.float32)
    save_file({"l.weight": codes, f"l.weight{end}": scales}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"quantization_config": config}))
    return codes.astype(np.float32), scales


def values_of(path):
    with open_checkpoint(path) as checkpoint:
        (weight,) = checkpoint.found.weights
        return weight.values(0, weight.rows)


def test_there_and_back(tmp_path):
    """Tiles of compressed-tensors have the names of scales of tensors and rows."""
    codes, scales = model(tmp_path / "a", "_scale_inv", {"weight_block_size": [128, 128]})
    wanted = codes * scales.repeat(128, 0)[:200].repeat(128, 1)[:, :300]
    (row,) = convert_checkpoint(tmp_path / "a", tmp_path / "b", KINDS["compressed-tensors"])
    assert (row.after, row.same) == ("compressed-tensors-fp8-blocks", "float32")
    convert_checkpoint(tmp_path / "b", tmp_path / "c", KINDS["fp8-blocks"])
    for name in "abc":
        assert values_of(tmp_path / name).tobytes() == wanted.tobytes()
    with open_tensors(tmp_path / "c" / "model.safetensors") as (tensors, _):
        found = {each.name: each.stored.all().tobytes() for each in tensors}
    assert found["l.weight_scale_inv"] == scales.tobytes()


def test_a_matrix_within_a_tile(tmp_path):
    """Its scale has two axes, as loaders want it."""
    codes, scales = model(tmp_path / "a", "_scale_inv", {}, (1, 1), shape=(64, 64))
    for name, kind in (("b", "compressed-tensors"), ("c", "fp8-blocks")):
        convert_checkpoint(tmp_path / "a", tmp_path / name, KINDS[kind])
        assert (values_of(tmp_path / name) == codes * scales).all()
    with open_tensors(tmp_path / "c" / "model.safetensors") as (tensors, _):
        assert [each.shape for each in tensors] == [(64, 64), (1, 1)]


@pytest.mark.parametrize("config", SIZES)
def test_sizes_of_the_configuration(tmp_path, config):
    sizes = [64, 100]
    stated = {"config_groups": {"group_0": {"weights": {"block_structure": sizes}}}}
    if config == "weight_block_size":
        stated = {"weight_block_size": sizes}
    end = "_scale_inv" if config == "weight_block_size" else "_scale"
    codes, scales = model(tmp_path / "a", end, stated, grid=(4, 3))
    wanted = codes * scales.repeat(64, 0)[:200].repeat(100, 1)
    assert values_of(tmp_path / "a").tobytes() == wanted.tobytes()


@pytest.mark.parametrize("size", [[0, 128], [-1, 128], [128], 128, ["128", 128], None])
def test_sizes_that_are_none(tmp_path, size):
    codes, scales = model(tmp_path / "a", "_scale_inv", {"weight_block_size": size})
    wanted = codes * scales.repeat(128, 0)[:200].repeat(128, 1)[:, :300]
    assert values_of(tmp_path / "a").tobytes() == wanted.tobytes()


def test_powers_of_two_in_tiles_of_other_sizes(tmp_path):
    """Scales of E8M0 for tiles of the size that the configuration names."""
    codes, _ = model(tmp_path / "a", "_scale_inv", {"weight_block_size": [128, 128]})
    powers = np.arange(120, 126, dtype=np.uint8).reshape(2, 3)
    scales = powers.view(ml_dtypes.float8_e8m0fnu)
    tensors = {"l.weight": codes.astype(ml_dtypes.float8_e4m3fn), "l.weight_scale_inv": scales}
    save_file(tensors, tmp_path / "a" / "model.safetensors")
    factors = np.ldexp(np.float32(1), powers.astype(np.int32) - 127)
    wanted = codes * factors.repeat(128, 0)[:200].repeat(128, 1)[:, :300]
    assert np.array_equal(values_of(tmp_path / "a"), wanted)
