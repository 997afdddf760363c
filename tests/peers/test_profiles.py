"""Profiles beside the libraries that they are of: the same scales and codes, bit for bit."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import axs6
from axs6.golden.encode_as import encode_as, run
from axs6.golden.formats import block_format
from axs6.golden.profile import (
    DEFINITION,
    Above,
    BlockScale,
    Cast,
    Division,
    QuotientRounding,
    Ties,
    steps_of,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

TOPS = (90, 20, 0, -40, -100, -118, -124, -140)
"""Largest magnitudes of tensors, as exponents of two."""

LLAMA_NVFP4 = "e2m1fn_e4m3fn_t16"

WIDEST = 8192
"""Blocks of a tensor."""


def tensors(x, fmt, profile):
    """Tensors (n, B) with largest magnitudes below each of `TOPS`, and one of zeros."""
    top = np.abs(x).max(axis=1)
    for exponent in TOPS:
        chosen = x[(top < 2.0**exponent) & (top > 2.0 ** (exponent - 40))]
        chosen = chosen[:: max(1, len(chosen) // WIDEST)]
        if len(block_format(fmt).levels) > 1:
            chosen = beside_halves_of_scales(chosen, encode_as(chosen, fmt, profile))
        yield chosen
        yield beside_ties(chosen, encode_as(chosen, fmt, profile))
    yield np.zeros((2, x.shape[1]), np.float32)


def beside(x, rng):
    """Float32 patterns next to float64 numbers."""
    with np.errstate(over="ignore"):
        patterns = x.astype(np.float32).view(np.uint32) + rng.integers(-2, 3, x.shape)
    return patterns.astype(np.uint32).view(np.float32)


def beside_halves_of_scales(x, encoded):
    """Blocks whose scales are beside halves of two E4M3 codes, but for the largest block."""
    blocks, rng = encoded.blocks, np.random.default_rng(2)
    scale = blocks.format.levels[0].scale.dtype
    outer = blocks.scales[0].view(np.float32) if blocks.format.outer else 1
    table = scale.integers[: scale.largest_code + 1] * float(scale.unit)
    halves = rng.choice((table[1:] + table[:-1]) / 2, len(x))
    top = np.abs(x).max(axis=1)
    wanted = beside(halves * float(outer) * float(blocks.format.element.largest), rng)
    keep = (top == top.max()) | ~(wanted < top.max()) | (wanted <= 0) | (top == 0)
    wanted = np.where(keep, top, wanted)[:, None]
    small = np.clip(x, -wanted, wanted)
    small[np.arange(len(x)), rng.integers(0, x.shape[1], len(x))] = wanted[:, 0]
    return np.where(keep[:, None], x, small)


def beside_ties(x, encoded):
    """Blocks with the largest magnitudes of others, and values beside halves of two codes."""
    blocks, rng = encoded.blocks, np.random.default_rng(1)
    element = blocks.format.element
    one = next(c for c in range(element.largest_code) if element.integer(c) * element.unit == 1)
    unit = axs6.decode(replace(blocks, codes=np.full_like(blocks.codes, one)), np.float64)
    table = element.integers[: element.largest_code + 1] * float(element.unit)
    halves = rng.choice((table[1:] + table[:-1]) / 2, x.shape) * rng.choice([-1, 1], x.shape)
    values = beside(unit.reshape(x.shape) * halves, rng)
    top = np.abs(x).max(axis=1, keepdims=True)
    return np.where((np.abs(x) < top) & (np.abs(values) <= top), values, x)


def of_dtype(x, dtype):
    """Values as an array that the golden model takes and as a tensor, of a dtype of torch."""
    given = torch.from_numpy(x).to(dtype)
    if dtype is torch.bfloat16:
        return given.view(torch.uint16).numpy(), given
    return given.numpy(), given


def pairs(codes):
    """Two codes of each byte, the first in the low bits."""
    found = codes.view(torch.uint8).numpy()
    return np.stack([found & 15, found >> 4], axis=-1).reshape(len(found), -1)


def check(encoded, scales, codes):
    """Raise AssertionError unless the scales of blocks and the codes are the same."""
    blocks = encoded.blocks
    if scales is not None:
        assert (blocks.scales[-1].reshape(-1) != scales.reshape(-1)).sum() == 0
    assert (blocks.codes.reshape(codes.shape) != codes).sum() == 0


@pytest.fixture(scope="module")
def compressed(peer):
    return {
        "helpers": peer("compressed_tensors", "compressed_tensors.quantization.utils.helpers"),
        "args": peer("compressed_tensors", "compressed_tensors.quantization"),
        "forward": peer("compressed_tensors", "compressed_tensors.quantization.lifecycle.forward"),
        "pack": peer("compressed_tensors", "compressed_tensors.compressors.nvfp4.helpers"),
        "power": peer("compressed_tensors", "compressed_tensors.compressors.mx_utils"),
    }


def of_compressed(compressed, x, bits, kind, group=None, scale_dtype=None, parent=False):
    """Its scale of the tensor, its scales, and its quotients rounded to elements."""
    helpers = compressed["helpers"]
    strategy = "tensor" if group is None else "tensor_group" if parent else "group"
    args = compressed["args"].QuantizationArgs(
        num_bits=bits, type=kind, group_size=group, strategy=strategy, scale_dtype=scale_dtype
    )
    outer = helpers.generate_gparam(x.min(), x.max()) if parent else None
    low, high = (x.amin(1, True), x.amax(1, True)) if group else (x.min(), x.max())
    scales, _ = helpers.calculate_qparams(low, high, args, outer)
    found = compressed["forward"].quantize(x, scales, None, args, global_scale=outer)
    return outer, scales, found


def nvfp4_of_compressed(compressed, x):
    """Its scale of the tensor, and its codes of scales and elements."""
    outer, scales, found = of_compressed(
        compressed, x, 4, "float", 16, torch.float8_e4m3fn, parent=True
    )
    codes = pairs(compressed["pack"].pack_fp4_to_uint8(found))
    return outer.numpy(), scales.to(torch.float8_e4m3fn).view(torch.uint8).numpy(), codes


FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nvfp4_of_compressed_tensors(compressed, blocks_of, dtype):
    for values in tensors(blocks_of(16), "nvfp4", "compressed-tensors"):
        ours, theirs = of_dtype(values, dtype)
        if not np.isfinite(theirs.float().numpy()).all():
            continue
        outer, scales, codes = nvfp4_of_compressed(compressed, theirs)
        encoded = encode_as(ours, "nvfp4", "compressed-tensors")
        assert encoded.outer == outer
        check(encoded, scales, codes)


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
@pytest.mark.parametrize("name", ["mxfp4", "mxfp6_e2m3", "mxfp8_e4m3"])
def test_mx_of_compressed_tensors(compressed, blocks_of, name, dtype):
    x = blocks_of(32)
    x = np.concatenate([x, beside_ties(x, encode_as(x, name, "compressed-tensors"))])
    # It writes E8M0's NaN where amax, rounded, is 2^128.
    wide = of_dtype(x, dtype)[1].float().numpy()
    lost = np.abs(wide).max(axis=1) >= 1.75 * 2.0**127
    assert lost.any()
    ours, theirs = of_dtype(np.ascontiguousarray(x[~lost]), dtype)
    element = block_format(name).element
    _, scales, found = of_compressed(compressed, theirs, element.width, "float", 32, torch.uint8)
    encoded = encode_as(ours, name, "compressed-tensors")
    powers = compressed["power"].compress_mx_scale(scales, torch.uint8).numpy()
    check(encoded, powers, codes_of(element, found.float().numpy()))


def codes_of(element, values):
    """Codes of values that an element has, with their signs."""
    half = element.integers[: element.largest_code + 1]
    code = np.searchsorted((half * float(element.unit)).astype(np.float32), np.abs(values))
    return (code | np.signbit(values) * element.sign_bit).astype(np.uint8)


@pytest.mark.parametrize("name", ["fp8_e4m3", "int8"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_whole_tensors_of_compressed_tensors(compressed, blocks_of, name, dtype):
    kind = "int" if name == "int8" else "float"
    for values in tensors(blocks_of(32), name, "compressed-tensors"):
        ours, theirs = of_dtype(values, dtype)
        if not np.isfinite(theirs.float().numpy()).all():
            continue
        _, scale, found = of_compressed(compressed, theirs, 8, kind)
        encoded = encode_as(ours, name, "compressed-tensors")
        codes = found.to(torch.int8 if kind == "int" else torch.float8_e4m3fn)
        assert encoded.outer == scale.float().numpy()
        check(encoded, None, codes.view(torch.uint8).numpy())


@pytest.fixture(scope="module")
def quants(peer):
    return peer("gguf", "gguf.quants")


def test_mxfp4_of_llama_cpp(quants, blocks_of):
    x = blocks_of(32)
    x = np.concatenate([x, beside_ties(x, encode_as(x, "mxfp4", "llama.cpp"))])
    with np.errstate(over="ignore"):
        found = quants.MXFP4.quantize_blocks(x)
    half = found[:, 1:]
    codes = np.concatenate([half & 15, half >> 4], axis=1)
    encoded = encode_as(x, "mxfp4", "llama.cpp")
    top = np.abs(x).max(axis=1)
    # Below 2^-125 its exponent is negative and wraps; its log2 of numbers just below a power of
    # two is that power's.
    wrapped = (top > 0) & (top < 2.0**-125)
    log2 = np.frexp(top)[0] > 1 - 2.0**-15
    ours = encoded.blocks.scales[0].reshape(-1)
    same = (ours == found[:, 0]) & (encoded.blocks.codes.reshape(x.shape) == codes).all(axis=1)
    assert (same | wrapped | log2).all()
    assert (found[:, 0] == ours + 1)[~same & log2 & ~wrapped].all()
    for exception in (wrapped, log2):
        assert (exception & ~same).any(), "the exception is gone: take it out of this test"


def test_scales_of_nvfp4_of_llama_cpp(quants, blocks_of):
    x = blocks_of(16)
    x = np.concatenate([x, beside_halves_of_scales(x, encode_as(x, LLAMA_NVFP4, "llama.cpp"))])
    expected = quants.NVFP4.fp32_to_ue4m3(np.abs(x).max(axis=1) / np.float32(6))
    encoded = encode_as(x, LLAMA_NVFP4, "llama.cpp")
    assert (encoded.blocks.scales[0].reshape(-1) != expected).sum() == 0


def test_q8_0_of_llama_cpp(quants, blocks_of):
    x = blocks_of(32)
    x = np.concatenate([x, beside_ties(x, encode_as(x, "int8_float16_t32", "llama.cpp"))])
    with np.errstate(all="ignore"):
        found = quants.Q8_0.quantize_blocks(x)
    scales = found[:, :2].copy().view(np.uint16).reshape(-1)
    encoded = encode_as(x, "int8_float16_t32", "llama.cpp")
    ours = encoded.blocks.scales[0].reshape(-1)
    top = np.abs(x).max(axis=1)
    # Its FP16 scales become infinite, and its reciprocals of scales below 2^-128.
    infinite, inverse = scales == 0x7C00, (top > 0) & (top / np.float32(127) <= 2.0**-128)
    same = (ours == scales) & (encoded.blocks.codes.reshape(x.shape) == found[:, 2:]).all(axis=1)
    assert (same | infinite | inverse).all()
    assert (ours[infinite] == 0x7BFF).all()
    for exception in (infinite, inverse):
        assert (exception & ~same).any(), "the exception is gone: take it out of this test"


@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2"])
def test_float8_of_torchao(peer, blocks_of, name):
    scaling = peer("torchao", "torchao.float8.float8_utils")
    training = peer("torchao", "torchao.float8.float8_training_tensor")
    dtype = {"fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}[name]
    for values in tensors(blocks_of(32), name, "torchao"):
        for ours, theirs in (of_dtype(values, x) for x in FLOATS[:2]):
            scale = scaling.tensor_to_scale(theirs, dtype)
            found = training._ToFloat8ConstrFunc.apply(theirs, scale, dtype)
            encoded = encode_as(ours, name, "torchao")
            assert encoded.outer == scale.numpy()
            check(encoded, None, found._data.view(torch.uint8).numpy())


@pytest.mark.parametrize("rule", ["floor", "ceil", "even", "rceil"])
def test_mx_of_torchao(peer, blocks_of, rule):
    mx = peer("torchao", "torchao.prototype.mx_formats.mx_tensor")
    x = blocks_of(32)
    ours, theirs = of_dtype(x, torch.float32)
    for name, dtype in (("mxfp4", torch.float4_e2m1fn_x2), ("mxfp8_e4m3", torch.float8_e4m3fn)):
        named = name if rule == "floor" else f"{name}-{rule}"
        blocks = encode_as(ours, named, "torchao").blocks
        scales, codes = mx.to_mx(theirs, dtype, 32, mx.ScaleCalculationMode(rule))
        found = pairs(codes) if name == "mxfp4" else codes.view(torch.uint8).numpy()
        exponents = scales.view(torch.uint8).numpy().reshape(-1)
        same = (blocks.codes.reshape(x.shape) == found).all(axis=1)
        same &= blocks.exponents.reshape(-1) == exponents
        # Its rceil takes ceil of a float32 log2: test_torchao.py.
        largest = np.float32(blocks.format.element.largest)
        fraction = np.frexp(np.abs(x).max(axis=1) / largest)[0] * 2 - 1
        log2 = (rule == "rceil") & (fraction > 0) & (fraction < 2.0**-15)
        assert (same | log2).all()


def test_nvfp4_of_torchao_is_the_definition():
    assert steps_of("torchao", block_format("nvfp4")) == DEFINITION


@pytest.mark.parametrize(("name", "bits"), [("mx9", 8), ("mx6", 5)])
def test_microexponents_of_quark(peer, blocks_of, name, bits):
    interface = peer("quark", "quark.torch.kernel.hw_emulation.hw_emulation_interface")
    x = blocks_of(16)
    found = interface.real_quantize_mx6_mx9(
        torch.from_numpy(x), -1, 16, quant_bit=bits, sub_block_size=2
    ).numpy()
    blocks = encode_as(x, name, "quark").blocks
    codes = codes_of(block_format(name).element, found[:, 2:] * float(blocks.format.element.unit))
    shifts = found[:, 1].astype(np.int64)[:, None] >> np.arange(8) & 1
    assert (blocks.exponents.reshape(-1) != found[:, 0] + 127).sum() == 0
    assert (blocks.scales[1].reshape(shifts.shape) != shifts).sum() == 0
    assert (blocks.codes.reshape(codes.shape) != codes).sum() == 0


WRONG = (
    {"division": Division.PRODUCT},
    {"division": Division.RECIPROCALS},
    {"block": BlockScale(Above.FOLDED, held=False, empty=Fraction(1, 8))},
    {"block": BlockScale(Above.DIVIDED, held=False, empty=Fraction(1, 8))},
    {"block": BlockScale(Above.MULTIPLIED, empty=Fraction(1, 8))},
    {"block": BlockScale(Above.MULTIPLIED, held=False)},
    {"block": BlockScale(Above.MULTIPLIED, False, Cast.LLAMA, Fraction(1, 8))},
    {"rounding": QuotientRounding()},
    {"rounding": QuotientRounding(Ties.AWAY, zero_sign=False)},
)


@pytest.mark.parametrize("changed", WRONG, ids=lambda x: str(next(iter(x.values())))[:70])
def test_a_wrong_step_is_found(compressed, blocks_of, changed):
    fmt = block_format("nvfp4")
    wrong = replace(steps_of("compressed-tensors", fmt), **changed)
    differs = False
    for values in tensors(blocks_of(16), fmt, "compressed-tensors"):
        ours, theirs = of_dtype(values, torch.float32)
        _, scales, codes = nvfp4_of_compressed(compressed, theirs)
        try:
            check(run(ours, fmt, wrong), scales, codes)
        except AssertionError:
            differs = True
    assert differs
