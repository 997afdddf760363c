"""Blocks as arrays of other libraries' dtypes, whose values are those of the golden model."""

import math
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tiles import small_tiles

import axs6
from axs6.golden import formats
from axs6.golden.blocks import Blocks
from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import Special
from axs6.golden.check.exact.formats import Exponent, Real, real_element
from axs6.golden.check.subjects import CheckedFormat
from axs6.golden.formats import CATALOG, block_format
from axs6.golden.planar import (
    Planar,
    checkpoint_pair,
    from_checkpoint,
    from_planar,
    planar,
)

LIBRARY = {
    name: np.dtype(getattr(ml_dtypes, name, None) or getattr(np, name))
    for name in ("int8", "uint8", *dir(ml_dtypes))
    if re.fullmatch(r"(u?int|float)[1-8](_e\d.*)?", name)
}
"""The dtypes of NumPy and ml_dtypes of up to eight bits."""

WIDE = {(8, 23): "float32", (8, 7): "bfloat16", (5, 10): "float16"}
"""Those of more bits, by their exponent and fraction."""

IN_TORCH = {
    **{name: name for name in ("int8", "uint8", "float32", "float16", "bfloat16")},
    **{name: name for name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")},
    **{name: name for name in ("float8_e4m3fnuz", "float8_e5m2fnuz")},
    "float4_e2m1fn": "float4_e2m1fn_x2",
}
"""Those that torch has tensors of, as it calls them."""


@cache
def values_of(dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """The values of all codes of a dtype."""
    info = ml_dtypes.iinfo if re.match("u?int", dtype.name) else ml_dtypes.finfo
    bits = info(dtype).bits
    with np.errstate(invalid="ignore"):  # signaling NaN
        return np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float64)


def dtype_of(values: Sequence[Any]) -> str | None:
    """The dtype whose codes have these values, zeros with their signs."""
    given = np.array([math.nan if x is Special.NAN else as_float(x) for x in values])
    for name, dtype in LIBRARY.items():
        known = values_of(dtype)
        if np.array_equal(known, given, equal_nan=True):
            number = ~np.isnan(known)
            if np.array_equal(np.signbit(known[number]), np.signbit(given[number])):
                return name
    return None


def as_float(x: Any) -> float:
    named = {
        Special.INFINITY: math.inf,
        Special.NEGATIVE_INFINITY: -math.inf,
        Special.NEGATIVE_ZERO: -0.0,
    }
    return named[x] if isinstance(x, Special) else float(x)


def dtypes(name: str) -> list[str | None]:
    """The dtypes of a format's codes and scales, by the public definition of each of them."""
    definition = CheckedFormat.of(name).definition
    element = definition.element
    unit = 1 if element.floating else element.magnitudes[1]
    values = [x if isinstance(x, Special) else x / unit for x in element.values]
    found = [dtype_of(range(1 << element.width) if element.listed or definition.second else values)]
    for level in definition.levels:
        if isinstance(level, Exponent):
            found.append(dtype_of([scale_value(k, level) for k in range(1 << level.bits)]))
        elif isinstance(level, Real):
            fields = level.exponent_bits, level.fraction_bits
            wide = level.bits > 8
            found.append(WIDE.get(fields) if wide else dtype_of(real_element(level).values))
        else:
            found.append(dtype_of(range(1 << level.bits)))
    return found


COMPOSED = ("e3m4_float32_t0", "e4m3fnuzb11_float32", "e4m3_e8m0_t32", "tc8_e8m0_t16s2o1",
            "e5m2_float16_t0", "e4m3fn_bfloat16_t0")  # fmt: skip

DTYPES = {name: dtypes(name) for name in (*map(small_tiles, CATALOG), *COMPOSED)}

NUMPY = {name: str(each[0]) for name, each in DTYPES.items() if None not in each}
"""Formats, and the dtypes of their codes in NumPy and ml_dtypes."""

TORCH = {
    name: getattr(torch, IN_TORCH[codes])
    for name, codes in NUMPY.items()
    if set(DTYPES[name]) <= set(IN_TORCH)
}
"""The same in torch."""

NEITHER = [name for name in DTYPES if name not in NUMPY]
"""Formats that have no such dtype."""


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


def test_dtypes_are_found_by_the_values_of_their_codes() -> None:
    known = {
        "mxfp8_e4m3": "float8_e4m3fn",
        "mxfp6_e3m2": "float6_e3m2fn",
        "nvfp4": "float4_e2m1fn",
        "mxint8": "int8",
        "vsq4": "int4",
        "uint8": "uint8",
        "e3m4_float32_t0": "float8_e3m4",
        "fp8_e4m3fnuz": "float8_e4m3fnuz",
        "e4m3fnuzb11_float32": "float8_e4m3b11fnuz",
    }
    assert known.items() <= NUMPY.items()
    assert {"axs6", "mx9", "msfp12", "int6", "nvfp4_ue5m3"} <= set(NEITHER)
    assert "vsq8" in NUMPY.keys() - TORCH.keys()  # torch has no scales of four bits


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
        if level.tiled:
            factor = np.repeat(factor, level.rows, axis=-2)[..., : values.shape[-2], :]
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
    if blocks.format.element.listed:  # codes are places
        assert (arrays.codes.astype(np.uint8) == blocks.codes.reshape(3, 2, 64)).all()
    else:
        equal(multiplied(arrays, blocks), axs6.decode(blocks, np.float64))
    same(from_planar(arrays, name), blocks)
    same(from_planar(planar(blocks, arrays.codes.dtype), name), blocks)
    for level, scale in zip(blocks.format.levels[::-1], arrays.scales, strict=True):
        if isinstance(level.scale, formats.Exponent):
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
    with pytest.raises(ValueError, match=r"^checkpoints have 4-bit codes under .*, not nvfp4$"):
        from_checkpoint(codes, scales, "nvfp4")


@pytest.mark.parametrize("bits", ["e4m3fnuz", "e5m2fnuz"])
def test_tensors_of_torch_in_safetensors_files(bits: str, tmp_path: Path) -> None:
    """Their dtype is that of torch, and they come back as the same blocks."""
    blocks = random_blocks(f"fp8_{bits}", (3, 64))
    arrays = planar(blocks, getattr(torch, f"float8_{bits}"))
    path = tmp_path / "planar.safetensors"
    save_file({"codes": arrays.codes, "scale": arrays.scales[0]}, path)
    assert f'"F8_{bits.upper()}"'.encode() in path.read_bytes()
    found = load_file(path)
    same(from_planar(Planar((found["scale"],), found["codes"]), blocks.format), blocks)
