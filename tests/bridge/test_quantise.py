from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import Tensor

import axs6
from axs6.golden.check.cases import inputs
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.torch import decode, encode, fake_quantise
from axs6.torch.ieee import narrow, round_to_fp32, widen

KINDS = [kind for kind in inputs.KINDS if kind.fmt]
Same = Callable[[Tensor, Tensor], bool]
Mode = Callable[[], AbstractContextManager[None]]


def tensor_of(kind: inputs.InputKind, patterns: inputs.Patterns) -> Tensor:
    """The patterns as a tensor of their dtype."""
    signed = patterns.astype(f"u{kind.width // 8}").view(f"i{kind.width // 8}")
    return torch.from_numpy(signed).view(getattr(torch, kind.name))


def every_case(kind: inputs.InputKind, size: int, rng: np.random.Generator) -> inputs.Patterns:
    return np.concatenate(
        [
            inputs.special_blocks(kind, size, rng),
            inputs.threshold_blocks(kind, size),
            inputs.random_blocks(kind, size, 500, rng),
        ]
    )


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("size", MODE_BLOCKS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_bit_is_that_of_the_golden_model(
    kind: inputs.InputKind, size: int, rng: np.random.Generator, same: Same, mode: Mode
) -> None:
    assert_golden(kind, every_case(kind, size, rng), size, "nearest", mode, same)


def assert_golden(
    kind: inputs.InputKind,
    patterns: inputs.Patterns,
    size: int,
    rounding: str,
    mode: Mode,
    same: Same,
    words: np.ndarray | None = None,
    bits: int = 16,
) -> axs6.Blocks:
    """Compare what torch gives with the golden model's blocks, and return these."""
    x = tensor_of(kind, patterns)
    options: dict[str, Any] = {"rounding": rounding, "nonfinite": "saturate", "random_bits": bits}
    expected = axs6.encode(kind.array(patterns), block=size, random=words, **options)
    random = None if words is None else torch.from_numpy(words)
    with mode():
        got = encode(x, block=size, random=random, **options)
        faked = fake_quantise(x, block=size, random=random, **options)
        decoded = decode(got)
    assert np.array_equal(got.exponents, expected.exponents)
    assert np.array_equal(got.codes, expected.codes)
    assert got.shape == expected.shape
    values = torch.from_numpy(axs6.decode(expected))
    assert same(faked, values)
    assert same(decoded, values)
    return expected


@pytest.mark.parametrize("size", MODE_BLOCKS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_rounding_is_that_of_the_golden_model(
    kind: inputs.InputKind, size: int, rng: np.random.Generator, same: Same, mode: Mode
) -> None:
    patterns = every_case(kind, size, rng)
    assert_golden(kind, patterns, size, "toward_zero", mode, same)
    for bits in (1, 32):
        words = rng.integers(0, 1 << bits, patterns.shape)
        words[:, ::3] = rng.choice([0, (1 << bits) - 1], words[:, ::3].shape)
        assert_golden(kind, patterns, size, "stochastic", mode, same, words, bits)


def test_a_word_decides_of_every_magnitude(same: Same) -> None:
    """All of one byte by all words of 8 bits, as bfloat16: each code is reached by its share."""
    kind = KINDS[2]
    values = torch.arange(256).bfloat16().view(torch.int16).numpy().astype(np.uint64)
    patterns = np.full((256 * 256, 8), tensor_bits(255.0), np.uint64)
    patterns[:, 0] = np.repeat(values, 256)
    words = np.zeros(patterns.shape, np.int64)
    words[:, 0] = np.tile(np.arange(256), 256)
    blocks = assert_golden(kind, patterns, 8, "stochastic", nullcontext, same, words, 8)
    totals = blocks.codes[:, 0, 0].astype(int).reshape(256, 256).sum(axis=1)
    assert totals.tolist() == [31 * value for value in range(256)]


def tensor_bits(value: float) -> int:
    """The bfloat16 pattern of a value."""
    return int(torch.tensor(value).bfloat16().view(torch.int16))


@pytest.mark.parametrize("bits", [4, 16, 32])
def test_words_round_subnormals_up_beside_normal_values(bits: int, same: Same, mode: Mode) -> None:
    """The largest word lifts a subnormal to magnitude 1 while 31 x / scale is 2^-bits or more."""
    largest = np.arange(1, 48, dtype=np.uint64) << np.uint64(23)
    patterns = np.zeros((len(largest), 8), np.uint64)
    patterns[:, 0] = largest
    patterns[:, 1:] = [0x7FFFFF, 0x807FFFFF, 1, 0x80000001, 0x400000, 0, 0x80000000]
    words = np.full((1, 8), (1 << bits) - 1)
    # One block at a time: a smaller one would make torch take care of subnormals in all.
    for field, row in enumerate(patterns[:, None], 1):
        blocks = assert_golden(KINDS[0], row, 8, "stochastic", mode, same, words, bits)
        # Scale is 2^(field - 126), and 31 (2^-126 - 2^-149) just below 2^-121.
        assert (blocks.codes[0, 0, 1] > 0) == (field < 5 + bits)


def test_the_cases_catch_a_product_by_31_in_float32(rng: np.random.Generator) -> None:
    kind = KINDS[0]
    x = tensor_of(kind, inputs.threshold_blocks(kind, 32))
    exact = encode(x)
    scale = torch.from_numpy(exact.exponents[:, None].astype(np.int32)) - 127
    rounded = (x.abs() * 31 * torch.exp2(-scale.float())).round()
    assert (rounded.numpy() != (exact.codes[..., 0, :] & 31)).any()


DTYPES = [
    (torch.float32, np.float32),
    (torch.float64, np.float64),
    (torch.bfloat16, ml_dtypes.bfloat16),
]


@pytest.mark.parametrize("size", MODE_BLOCKS)
@pytest.mark.parametrize(("dtype", "numpy_dtype"), DTYPES)
def test_every_code_decodes_as_in_the_golden_model(
    size: int, dtype: torch.dtype, numpy_dtype: type
) -> None:
    exponents = np.repeat(np.arange(256, dtype=np.uint8), 64 // size)[:, None]
    codes = np.tile(np.arange(64, dtype=np.uint8), 256).reshape(-1, 1, size)
    shape = (len(codes), size)
    blocks = axs6.Blocks.with_modes(exponents, np.zeros_like(exponents), codes, shape)
    got = decode(blocks, dtype)
    assert got.shape == shape
    assert got.dtype == dtype
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    expected = axs6.decode(blocks, numpy_dtype).view(f"i{dtype.itemsize}")
    assert np.array_equal(got.contiguous().view(kind).numpy(), expected)


@pytest.mark.parametrize(("dtype", "numpy_dtype"), DTYPES)
def test_blocks_of_every_mode_decode_as_in_the_golden_model(
    dtype: torch.dtype, numpy_dtype: type, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((60, 31)) * np.exp2(rng.integers(-160, 127, (60, 1)))
    x[::3, :12] = 0
    found = [axs6.encode(x, block=16, mode=mode) for mode in ("dense", "sparse", "high_precision")]
    exponents = np.stack([blocks.exponents for blocks in found])
    modes = np.stack([blocks.modes for blocks in found])
    codes = np.stack([blocks.codes for blocks in found])
    assert set(modes.ravel()) == {0, 1, 2}
    exponents[:, :2] = [0], [255]
    blocks = axs6.Blocks.with_modes(exponents, modes, codes, (3, 60, 31))
    got = decode(blocks, dtype).contiguous().view(torch.uint8).numpy()
    assert got.tobytes() == axs6.decode(blocks, numpy_dtype).tobytes()


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0,), (2, 3, 33), (1,), (2, 0, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_shapes(shape: tuple[int, ...], dtype: torch.dtype, same: Same) -> None:
    x = torch.randn(shape).to(dtype)
    expected = axs6.encode(x.double().numpy())
    got = encode(x)
    assert got.shape == shape
    assert np.array_equal(got.codes, expected.codes)
    assert same(fake_quantise(x), torch.from_numpy(axs6.decode(expected)))


def test_strides_do_not_matter(same: Same) -> None:
    x = torch.randn(70, 40)
    assert same(fake_quantise(x.mT), fake_quantise(x.mT.contiguous()))
    assert np.array_equal(encode(x[:, ::2]).codes, encode(x[:, ::2].contiguous()).codes)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("function", [encode, fake_quantise])
def test_values_that_are_not_finite_are_named(
    function: Callable[..., object], dtype: torch.dtype, value: float
) -> None:
    x = torch.zeros(2, 3, 40, dtype=dtype)
    x[1, 0, 37] = value
    x[1, 2, 0] = value
    with pytest.raises(ValueError, match=rf"fc1.*finite.*element \(1, 0, 37\) is {value}"):
        function(x, name="fc1")


@pytest.mark.parametrize("function", [encode, fake_quantise])
def test_bad_arguments_are_refused(function: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="values must be a tensor, not list"):
        function([1.0])
    with pytest.raises(TypeError, match=r"must be float32, bfloat16.* not torch\.int32"):
        function(torch.zeros(3, dtype=torch.int32))
    with pytest.raises(ValueError, match=r"at least one axis, not shape \(\)"):
        function(torch.tensor(1.0))
    with pytest.raises(ValueError, match="block must be one of 8, 16, 32, not 12"):
        function(torch.zeros(3), block=12)
    with pytest.raises(ValueError, match=r"nonfinite must be one of .*, not 'skip'"):
        function(torch.zeros(3), nonfinite="skip")
    with pytest.raises(ValueError, match=r"rounding must be one of nearest, .*, not 'up'"):
        function(torch.zeros(3), rounding="up")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", [encode, fake_quantise])
def test_bad_words_are_refused(function: Callable[..., object], dtype: torch.dtype) -> None:
    x = torch.zeros(2, 8, dtype=dtype)
    words = torch.zeros(2, 8, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"random is for rounding .stochastic., not 'nearest'"):
        function(x, random=words)
    with pytest.raises(ValueError, match="needs random, an integer for each value"):
        function(x, rounding="stochastic")
    with pytest.raises(TypeError, match=r"^random must be a tensor, not list$"):
        function(x, rounding="stochastic", random=[1])
    with pytest.raises(TypeError, match=r"^random must hold .* not torch\.float32$"):
        function(x, rounding="stochastic", random=torch.zeros(2, 8))
    with pytest.raises(ValueError, match=r"shape of the values \(2, 8\), not \(1, 8\)$"):
        function(x, rounding="stochastic", random=words[:1])
    for bad in (-1, 256):
        words[1, 3] = bad
        with pytest.raises(ValueError, match=rf"2\^8 - 1: element \(1, 3\) is {bad}$"):
            function(x, rounding="stochastic", random=words, random_bits=8)
    with pytest.raises(ValueError, match=r"^random_bits must be an integer from 1 to 32, not 33$"):
        function(x, random_bits=33)


def test_words_elsewhere_are_refused() -> None:
    words = torch.zeros(8, dtype=torch.int64, device="meta")
    with pytest.raises(ValueError, match=r"^random must be on cpu as the values are, not on meta$"):
        encode(torch.zeros(8), block=8, rounding="stochastic", random=words)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_words_of_every_width(dtype: torch.dtype, same: Same) -> None:
    x = torch.randn(3, 40)
    words = torch.randint(128, x.shape)
    expected = fake_quantise(x, rounding="stochastic", random=words, random_bits=32)
    got = fake_quantise(x, rounding="stochastic", random=words.to(dtype), random_bits=32)
    assert same(got, expected)


def test_decode_refuses_other_dtypes_and_objects() -> None:
    blocks = encode(torch.ones(4))
    with pytest.raises(TypeError, match=r"dtype must be float32.* not torch\.float16"):
        decode(blocks, torch.float16)
    with pytest.raises(TypeError, match="blocks must be Blocks"):
        decode(torch.ones(4))


def test_the_gradient_passes_through() -> None:
    x = torch.randn(3, 40, dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn(3, 40)
    fake_quantise(x).backward(grad)
    assert x.grad is not None
    assert torch.equal(x.grad, grad.bfloat16())


def test_conversions_keep_subnormals(rng: np.random.Generator, mode: Mode) -> None:
    bits = rng.integers(-(2**31), 2**31, 200_000).astype(np.int32)
    bits[:1000] >>= 9
    bits[1000:2000] &= np.int32(-(2**31) | 0xFFFFFF)
    bits = bits[(bits & 0x7FFFFFFF) <= 0x7F800000]
    with np.errstate(all="ignore"):
        values = bits.view(np.float32).astype(np.float64)
        between = values * rng.uniform(0.5, 2, values.shape)
        between[:1000] = (rng.integers(0, 1 << 24, 1000) + 0.5) * 2.0**-149
        nearest = between.astype(np.float32)
    with mode():
        wide = widen(torch.from_numpy(bits).view(torch.float32))
        narrowed = narrow(torch.from_numpy(between))
        rounded = round_to_fp32(torch.from_numpy(between))
    assert np.array_equal(wide.numpy().view(np.int64), values.view(np.int64))
    assert np.array_equal(narrowed.numpy().view(np.int32), nearest.view(np.int32))
    assert np.array_equal(rounded.numpy(), nearest.astype(float))
