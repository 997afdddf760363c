"""Checkpoints of other tools, made at random, and their values by what is published of each.

Nothing here is of the package: values are computed by tables, ml_dtypes and float32 arithmetic, in
the order in which the loader of each layout computes them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

E4M3, E5M2, E8M0 = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e8m0fnu,
)
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
TABLE = np.concatenate([FP4, -FP4])

Tensors = dict[str, NDArray[Any]]
F32 = np.float32


def nibbles(pairs: NDArray[np.uint8]) -> NDArray[np.float32]:
    """FP4 values of bytes, the low bits first, along the last axis."""
    return TABLE[np.stack([pairs & 15, pairs >> 4], axis=-1)].reshape(*pairs.shape[:-1], -1)


def powers(codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """2^(code - 127), and NaN of 255."""
    found = np.ldexp(F32(1), np.minimum(codes, 254).astype(np.int32) - 127)
    return np.where(codes == 255, F32(np.nan), found).astype(F32)


def spread(factors: NDArray[np.float32], size: int, length: int) -> NDArray[np.float32]:
    """Each factor for `size` values, of rows of `length`."""
    return np.repeat(factors, size, axis=-1)[..., :length]


def tiled(factors: NDArray[np.float32], tile: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Each factor for a tile of tile x tile values, the last ones cut."""
    tall = np.repeat(factors, tile, axis=-2)[..., : shape[-2], :]
    return spread(tall, tile, shape[-1])


def random_pairs(rng: np.random.Generator, *shape: int) -> NDArray[np.uint8]:
    """Random bytes."""
    return rng.integers(0, 256, shape, np.uint8)


def random_fp8(rng: np.random.Generator, dtype: Any, *shape: int) -> NDArray[Any]:
    """Random codes, NaN and infinities among them."""
    return random_pairs(rng, *shape).view(dtype)


def scales_fp8(rng: np.random.Generator, *shape: int) -> NDArray[Any]:
    """Random positive E4M3 numbers, subnormal ones too."""
    return rng.integers(0, 0x7F, shape, np.uint8).view(E4M3)


def exponents(rng: np.random.Generator, *shape: int) -> NDArray[np.uint8]:
    """Random exponents, also of NaN and the smallest."""
    found = rng.integers(90, 160, shape, np.uint8)
    found.flat[:2] = [255, 0][: found.size]
    return found


def reals(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    """Random positive float32 numbers."""
    return rng.lognormal(-5, 3, shape).astype(F32)


def _product(elements: NDArray[Any], factors: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        return elements.astype(F32) * factors


Made = tuple[Tensors, Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float32]]]


def gpt_oss(rng: np.random.Generator) -> Made:
    tensors = {"w_blocks": random_pairs(rng, 2, 3, 4, 16), "w_scales": exponents(rng, 2, 3, 4)}
    return tensors, lambda t: _product(
        nibbles(t["w_blocks"].reshape(2, 3, 64)), spread(powers(t["w_scales"]), 32, 128)
    )


def modelopt(rng: np.random.Generator) -> Made:
    tensors = {
        "m.weight": random_pairs(rng, 6, 32),
        "m.weight_scale": scales_fp8(rng, 6, 4),
        "m.weight_scale_2": reals(rng),
        "m.input_scale": reals(rng),
    }

    def values(t: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        scale = t["m.weight_scale"].astype(F32) * t["m.weight_scale_2"]
        return _product(nibbles(t["m.weight"]), spread(scale, 16, 64))

    return tensors, values


def compressed_nvfp4(rng: np.random.Generator) -> Made:
    tensors = {
        "m.weight_packed": random_pairs(rng, 6, 32),
        "m.weight_scale": scales_fp8(rng, 6, 4),
        "m.weight_global_scale": 1 / reals(rng, 1),
        "m.input_global_scale": reals(rng, 1),
    }

    def values(t: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        scale = t["m.weight_scale"].astype(F32) / t["m.weight_global_scale"]
        return _product(nibbles(t["m.weight_packed"]), spread(scale, 16, 64))

    return tensors, values


def _mxfp4(codes: str) -> Callable[[np.random.Generator], Made]:
    def made(rng: np.random.Generator) -> Made:
        tensors = {codes: random_pairs(rng, 5, 32), "m.weight_scale": exponents(rng, 5, 2)}
        return tensors, lambda t: _product(
            nibbles(t[codes]), spread(powers(t["m.weight_scale"]), 32, 64)
        )

    return made


def _mxfp8(dtype: Any) -> Callable[[np.random.Generator], Made]:
    def made(rng: np.random.Generator) -> Made:
        tensors = {
            "m.weight": random_fp8(rng, dtype, 5, 64),
            "m.weight_scale": exponents(rng, 5, 2).view(E8M0),
        }
        return tensors, lambda t: _product(
            t["m.weight"], spread(powers(t["m.weight_scale"].view(np.uint8)), 32, 64)
        )

    return made


def _blocks(
    tile: int, scale: Callable[..., Any], name: str = "m.weight_scale_inv"
) -> Callable[[np.random.Generator], Made]:
    def made(rng: np.random.Generator) -> Made:
        shape = (2 * tile + 5, tile + 7)
        tensors = {
            "m.weight": random_fp8(rng, E4M3, *shape),
            name: scale(rng, 3, 2),
        }

        def values(t: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
            held = t[name]
            factors = powers(held) if held.dtype == np.uint8 else held.astype(F32)
            return _product(t["m.weight"], tiled(factors, tile, shape))

        return tensors, values

    return made


def _scaled(dtype: Any, *scale: int) -> Callable[[np.random.Generator], Made]:
    def made(rng: np.random.Generator) -> Made:
        tensors = {
            "m.weight": random_fp8(rng, dtype, 7, 20),
            "m.weight_scale": reals(rng, *scale).astype(ml_dtypes.bfloat16),
        }
        return tensors, lambda t: _product(t["m.weight"], t["m.weight_scale"].astype(F32))

    return made


MADE: dict[str, Callable[[np.random.Generator], Made]] = {
    "gpt-oss-mxfp4": gpt_oss,
    "modelopt-nvfp4": modelopt,
    "compressed-tensors-nvfp4": compressed_nvfp4,
    "compressed-tensors-mxfp4": _mxfp4("m.weight_packed"),
    "quark-mxfp4": _mxfp4("m.weight"),
    "mxfp8": _mxfp8(E4M3),
    "mxfp8-e5m2": _mxfp8(E5M2),
    "fp8-blocks": _blocks(128, reals),
    "fp8-blocks-e8m0": _blocks(32, exponents),
    "compressed-tensors-fp8-blocks": _blocks(128, reals, "m.weight_scale"),
    "fp8-tensor": _scaled(E4M3),
    "fp8-channel": _scaled(E4M3, 7, 1),
    "fp8-tensor-e5m2": _scaled(E5M2, 1),
    "fp8-channel-e5m2": _scaled(E5M2, 7, 1),
    "int8-tensor": _scaled(np.int8, 1),
    "int8-channel": _scaled(np.int8, 7, 1),
}
"""For each layout of safetensors files: a checkpoint, and what computes its weight's values."""


def weight_name(tensors: Mapping[str, Any]) -> str:
    """The name of the weight."""
    return "m.weight" if any(name.startswith("m.") for name in tensors) else "w"


def bits(values: NDArray[Any]) -> NDArray[Any]:
    """The bits of float32 or bfloat16 numbers, all NaN as one."""
    patterns = values.view(f"u{values.dtype.itemsize}")
    nan = np.isnan(values.astype(np.float32))
    return np.where(nan, patterns.dtype.type(-1 % (1 << 8 * patterns.itemsize)), patterns)
