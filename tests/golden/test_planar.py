"""Blocks as arrays of other libraries' dtypes, whose values are those of the golden model."""

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import axs6
from axs6.golden.blocks import Blocks
from axs6.golden.formats import CATALOG, Exponent, block_format
from axs6.golden.planar import (
    Planar,
    checkpoint_pair,
    from_checkpoint,
    from_planar,
    planar,
)

NUMPY = {
    "mxfp8_e4m3": "float8_e4m3fn",
    "mxfp8_e5m2": "float8_e5m2",
    "mxfp6_e3m2": "float6_e3m2fn",
    "mxfp6_e2m3": "float6_e2m3fn",
    "mxfp4": "float4_e2m1fn",
    "mxint8": "int8",
    "nvfp4": "float4_e2m1fn",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "int8": "int8",
    "int4": "int4",
    "uint8": "uint8",
    "vsq4": "int4",
    "vsq8": "int8",
    "e3m4_float32_t0": "float8_e3m4",
    "e4m3_e8m0_t32": "float8_e4m3",
    "tc8_e8m0_t16s2o1": "int8",
}
"""Formats, and the dtypes of their codes in NumPy and ml_dtypes."""

TORCH = {
    "mxfp8_e4m3": torch.float8_e4m3fn,
    "mxfp8_e5m2": torch.float8_e5m2,
    "mxfp4": torch.float4_e2m1fn_x2,
    "mxint8": torch.int8,
    "nvfp4": torch.float4_e2m1fn_x2,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "e5m2_float16_t0": torch.float8_e5m2,
    "e4m3fn_bfloat16_t0": torch.float8_e4m3fn,
}
"""The same in torch."""

NEITHER = ("axs6", "mx9", "mx6", "mx4", "msfp16", "msfp12", "int6", "vsq6")
"""Formats of the catalog that have no such dtype."""


def random_blocks(name: str, shape: tuple[int, ...] = (3, 2, 64), axis: int = -1) -> Blocks:
    """Blocks of every code, and of NaN where the format has it."""
    rng = np.random.default_rng(1)
    blocks = axs6.encode(rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape), name)
    codes = rng.integers(0, 1 << blocks.format.element.width, blocks.codes.shape, np.uint8)
    scales = []
    for level, codes_of_scales in zip(blocks.format.levels[::-1], blocks.scales, strict=True):
        changed = codes_of_scales.copy()
        if level.scale.nan_code is not None and changed.size > 1:
            changed.flat[0] = level.scale.nan_code
        scales.append(changed)
    return Blocks(blocks.format, tuple(scales), codes, shape, zero_points=blocks.zero_points)


def test_the_tables_hold_the_whole_catalog() -> None:
    assert set(CATALOG) <= {*NUMPY, *NEITHER}
    assert not set(NUMPY) & set(NEITHER)
    assert set(TORCH) & set(CATALOG) <= set(NUMPY)


def same(a: Blocks, b: Blocks) -> None:
    assert (a.format, a.shape, a.axis) == (b.format, b.shape, b.axis)
    for x, y in zip((*a.scales, a.codes), (*b.scales, b.codes), strict=True):
        assert x.dtype == y.dtype
        assert np.array_equal(x, y)
    assert (a.zero_points is None) == (b.zero_points is None)
    assert a.zero_points is None or np.array_equal(a.zero_points, b.zero_points)


def multiplied(arrays: Planar, blocks: Blocks) -> Any:
    """What the other library makes of the arrays: codes times scales, in float64."""
    fmt = blocks.format
    values = np.asarray(arrays.codes, np.float64)
    if arrays.zero_points is not None:
        values = values - np.asarray(arrays.zero_points, np.float64)
    elif fmt.element.fixed:
        values = values * float(fmt.element.unit)
    for level, scale in zip(fmt.levels[::-1], arrays.scales, strict=True):
        factor = np.asarray(scale, np.float64)
        if level.scale.__class__.__name__ == "Shift":
            factor = 2.0**-factor
        if level.blocked:
            groups = values.size // factor.size
            factor = np.repeat(factor.ravel(), groups).reshape(values.shape)
        elif level.group == "channel":
            factor = factor[..., None]
        values = values * factor
    return values


def equal(found: Any, expected: Any) -> None:
    """Equal, zeros with their signs, except that NaN may have any."""
    assert found.shape == expected.shape
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(found), nan)
    assert np.array_equal(np.where(nan, 0, found), np.where(nan, 0, expected))
    assert np.array_equal(np.signbit(found[~nan]), np.signbit(expected[~nan]))


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_and_ml_dtypes(name: str) -> None:
    blocks = random_blocks(name)
    arrays = planar(blocks)
    assert str(arrays.codes.dtype) == NUMPY[name]
    assert arrays.codes.shape == (3, 2, 64)
    assert [x.shape for x in arrays.scales] == [x.shape for x in blocks.scales]
    assert blocks.format.element.has_nan == bool(np.isnan(arrays.codes.astype(float)).any())
    equal(multiplied(arrays, blocks), axs6.decode(blocks, np.float64))
    same(from_planar(arrays, name), blocks)
    same(from_planar(planar(blocks, arrays.codes.dtype), name), blocks)
    for level, scale in zip(blocks.format.levels[::-1], arrays.scales, strict=True):
        if isinstance(level.scale, Exponent):
            assert scale.dtype == ml_dtypes.float8_e8m0fnu


@pytest.mark.parametrize("name", TORCH)
def test_torch(name: str) -> None:
    blocks = random_blocks(name)
    tensors = planar(blocks, TORCH[name])
    assert all(isinstance(x, torch.Tensor) for x in (*tensors.scales, tensors.codes))
    assert tensors.codes.dtype is TORCH[name]
    same(from_planar(tensors, name), blocks)
    if TORCH[name] is torch.float4_e2m1fn_x2:
        bytes_ = tensors.codes.view(torch.uint8).numpy()
        flat = blocks.codes.reshape(3, 2, 64)
        assert np.array_equal(bytes_, flat[..., ::2] | flat[..., 1::2] << 4)
        return
    arrays = Planar(
        tuple(x.to(torch.float64).numpy() for x in tensors.scales),
        tensors.codes.to(torch.float64).numpy(),
        None if tensors.zero_points is None else tensors.zero_points.numpy(),
    )
    equal(multiplied(arrays, blocks), axs6.decode(blocks, np.float64))


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "vsq4", "fp8_e5m2", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_padding_and_other_axes(name: str, axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((5, 40, 7)).astype(np.float32)
    blocks = axs6.encode(x, name, axis=axis)
    arrays = planar(blocks)
    padded = -(-x.shape[axis] // blocks.block) * blocks.block
    assert arrays.codes.shape == (*blocks.leading, padded)
    same(from_planar(arrays, name, x.shape, axis), blocks)
    whole = from_planar(arrays, name, axis=axis)
    assert whole.shape[axis] == padded


@pytest.mark.parametrize("name", NEITHER)
def test_formats_without_dtypes(name: str) -> None:
    with pytest.raises(TypeError, match=rf"of {name} have no dtype in NumPy and ml_dtypes$"):
        planar(axs6.encode(np.ones(64), name))
    with pytest.raises(TypeError, match=rf"of {name} have no dtype in torch$"):
        planar(axs6.encode(np.ones(64), name), torch.int8)


def test_wrong_arrays() -> None:
    blocks = axs6.encode(np.ones((2, 64)), "mxfp4")
    arrays = planar(blocks)
    with pytest.raises(
        TypeError, match=r"codes of mxfp4 are float4_e2m1fn, not <class .numpy\.int8"
    ):
        planar(blocks, np.int8)
    with pytest.raises(TypeError, match=r"are torch\.float4_e2m1fn_x2, not torch\.int8$"):
        planar(blocks, torch.int8)
    with pytest.raises(TypeError, match="codes of int4 have no dtype in torch"):
        planar(axs6.encode(np.ones(64), "int4"), torch.int4)
    with pytest.raises(TypeError, match="codes of mxfp4 must be float4_e2m1fn, not uint8"):
        from_planar(arrays._replace(codes=arrays.codes.view(np.uint8)), "mxfp4")
    with pytest.raises(TypeError, match="scales of mxfp4 must be float8_e8m0fnu, not uint8"):
        from_planar(arrays._replace(scales=(arrays.scales[0].view(np.uint8),)), "mxfp4")
    with pytest.raises(ValueError, match="nvfp4 has 2 arrays of scales, not 1"):
        from_planar(arrays, "nvfp4")
    with pytest.raises(ValueError, match=r"\(2, 65\) need codes of shape \(2, 96\), not \(2, 64\)"):
        from_planar(arrays, "mxfp4", (2, 65))
    with pytest.raises(TypeError, match="blocks must be Blocks, as"):
        planar(arrays)  # type: ignore[arg-type]


def test_neither_library_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    check = (
        "import sys, axs6.golden.planar; sys.exit(bool({'torch', 'ml_dtypes'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    int8 = axs6.encode(np.ones(64), "int8")
    same(from_planar(planar(int8), "int8", (64,)), int8)
    with pytest.raises(ImportError, match="float4_e2m1fn is a dtype of ml_dtypes: pip install ml"):
        planar(axs6.encode(np.ones(64), "mxfp4"))


E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def test_pairs_of_checkpoints() -> None:
    """Decoded as the published checkpoints say: two codes a byte, the first in the low bits."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 256, (3, 5, 2, 16), np.uint8)
    scales = rng.integers(120, 135, (3, 5, 2), np.uint8)
    table = np.array([*E2M1, *(-x for x in E2M1)])
    pairs = np.stack([table[codes & 15], table[codes >> 4]], axis=-1).reshape(3, 5, 2, 32)
    values = (pairs * 2.0 ** (scales.astype(float)[..., None] - 127)).reshape(3, 5, 64)
    blocks = from_checkpoint(codes, scales)
    assert blocks.format == block_format("mxfp4")
    equal(axs6.decode(blocks, np.float64), values)
    again = checkpoint_pair(blocks)
    assert np.array_equal(again[0], codes)
    assert np.array_equal(again[1], scales)
    assert np.isnan(axs6.decode(from_checkpoint(codes, scales | 255))).all()


def test_wrong_pairs() -> None:
    codes, scales = np.zeros((4, 16), np.uint8), np.zeros(4, np.uint8)
    with pytest.raises(
        ValueError, match=r"shape of the scales, \(3,\), and 16 bytes for each, not"
    ):
        from_checkpoint(codes, scales[:3])
    with pytest.raises(TypeError, match="codes and scales must be uint8, not uint8 and int8"):
        from_checkpoint(codes, scales.view(np.int8))
    for name in ("axs6", "mxint8", "nvfp4", "int4", "mxfp4_t1"):
        with pytest.raises(ValueError, match=f"exponent of 8 bits for each block.*, not {name}"):
            checkpoint_pair(axs6.encode(np.ones(64), name))
