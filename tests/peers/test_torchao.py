"""torchao's MX and NVFP4 on CPU, eager: the same scales and codes, bit for bit."""

import numpy as np
import pytest

from axs6.golden import encode

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

ELEMENTS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4")
RULES = ("floor", "ceil", "even", "rceil")
NEAR_POWER = 2.0**-15


@pytest.fixture(scope="module")
def mx(peer):
    return peer("torchao", "torchao.prototype.mx_formats.mx_tensor")


@pytest.fixture(scope="module")
def nvfp4(peer):
    return peer("torchao", "torchao.prototype.mx_formats.nvfp4_tensor")


@pytest.fixture(scope="module")
def numbers(blocks_of):
    return blocks_of(32)


def of_torchao(mx, x, name, rule):
    """Its scales (n,) and codes (n, 32)."""
    elements = (
        torch.float8_e4m3fn, torch.float8_e5m2, mx.DTYPE_FP6_E3M2, mx.DTYPE_FP6_E2M3,
        torch.float4_e2m1fn_x2,
    )  # fmt: skip
    dtype = dict(zip(ELEMENTS, elements, strict=True))[name]
    scales, codes = mx.to_mx(torch.from_numpy(x), dtype, 32, mx.ScaleCalculationMode(rule))
    found = codes.view(torch.uint8).numpy()
    if name == "mxfp4":
        found = np.stack([found & 15, found >> 4], axis=-1)
    return scales.view(torch.uint8).numpy().reshape(-1), found.reshape(x.shape)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ELEMENTS)
def test_mx(mx, numbers, name, rule):
    blocks = encode(numbers, f"{name}-{rule}")
    ours = blocks.scales[0].reshape(-1)
    scales, codes = of_torchao(mx, numbers, name, rule)
    # Where it writes 2^-127 it divides by 2^-126, or with rceil by 1.
    lowest = ours == 0
    # Its rceil takes ceil of a float32 log2, which is an integer just above a power of two.
    largest = np.float32(blocks.format.element.largest)
    fraction = np.frexp(np.abs(numbers).max(axis=1) / largest)[0] * 2 - 1
    log2 = (rule == "rceil") & (fraction > 0) & (fraction < NEAR_POWER) & (scales + 1 == ours)
    same = (scales == ours) & (codes == blocks.codes.reshape(codes.shape)).all(axis=1)
    assert (same | lowest | log2).all()
    assert (scales[lowest] == 0).all()
    for exception in (lowest, log2) if rule == "rceil" else (lowest,):
        assert (exception & ~same).any(), "the exception is gone: take it out of this test"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ELEMENTS)
def test_mx_of_bfloat16(mx, numbers, name, rule):
    bits = (numbers[::16].view(np.uint32) >> 16).astype(np.uint16)
    x = np.ascontiguousarray(bits)
    blocks = encode(x, f"{name}-{rule}")
    widened = (x.astype(np.uint32) << 16).view(np.float32)
    scales, codes = of_torchao(mx, widened, name, rule)
    above = blocks.scales[0].reshape(-1) > 0
    assert (scales == blocks.scales[0].reshape(-1)).all()
    assert (codes == blocks.codes.reshape(codes.shape))[above].all()


def test_nan_and_infinities(mx):
    x = np.zeros((3, 32), np.float32)
    x[:, 0], x[0, 1], x[1, 1] = 1, np.nan, np.inf
    scales, codes = of_torchao(mx, x, "mxfp8_e4m3", "floor")
    blocks = encode(x, "mxfp8_e4m3", nonfinite="propagate")
    # A NaN makes its scale NaN, though E4M3 has one; an infinity becomes the largest element.
    assert (scales.tolist(), blocks.exponents.ravel().tolist()) == (
        [255, 247, 119],
        [119, 255, 119],
    )
    assert (codes[1, 1], blocks.codes[0, 0, 1], blocks.codes[1, 0, 1]) == (0x7E, 0x7F, 0)


@pytest.mark.parametrize("given", [None, 1.0, 0.37])
def test_nvfp4(nvfp4, blocks_of, given):
    x = blocks_of(16)
    x = np.ascontiguousarray(x[np.abs(x).max(axis=1) < 2.0**90])
    assert x.size > 1 << 20
    outer = None if given == 1 else torch.tensor([given or 0], dtype=torch.float32)
    if given is None:
        outer = nvfp4.per_tensor_amax_to_scale(torch.from_numpy(np.abs(x).max(keepdims=True)))
    blocks = encode(x, "nvfp4", scale=given)
    scales, codes = nvfp4.nvfp4_quantize(torch.from_numpy(x), 16, outer)
    found = np.stack([codes.numpy() & 15, codes.numpy() >> 4], axis=-1).reshape(x.shape)
    if given is None:
        assert float(outer) == blocks.scales[0].view(np.float32)
    assert (scales.view(torch.uint8).numpy().reshape(-1) == blocks.scales[1].reshape(-1)).all()
    assert (found == blocks.codes.reshape(x.shape)).all()
