"""AMD Quark's MX9 and MX6: the same exponents, shifts and codes, bit for bit."""

import numpy as np
import pytest

from axs6.golden import encode

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

SMALLEST_NORMAL = 2.0**-126


@pytest.fixture(scope="module")
def quark(peer):
    return peer("quark", "quark.torch.kernel.hw_emulation.hw_emulation_interface")


def of_quark(quark, x, bits):
    """Its exponents (n,), shifts (n, 8) and codes (n, 16), as it gives them: float32."""
    found = quark.real_quantize_mx6_mx9(
        torch.from_numpy(x), -1, 16, quant_bit=bits, sub_block_size=2
    ).numpy()
    shifts = found[:, 1].astype(np.int64)[:, None] >> np.arange(8) & 1
    return found[:, 0], shifts, found[:, 2:]


@pytest.mark.parametrize(("name", "bits"), [("mx9", 8), ("mx6", 5)])
def test_microexponents(quark, blocks_of, name, bits):
    x = blocks_of(16)
    blocks = encode(x, name)
    exponents, shifts, codes = of_quark(quark, x, bits)
    values = blocks.format.element.integers[blocks.codes].reshape(codes.shape)
    negative = blocks.codes.reshape(codes.shape) >= blocks.format.element.sign_bit
    same = (exponents + 127 == blocks.exponents.reshape(-1)) & (codes == values).all(axis=1)
    same &= (shifts == blocks.scales[1].reshape(shifts.shape)).all(axis=1)
    # It takes subnormal values for 0, and a block of zeros has shifts of 0.
    subnormal = ((x != 0) & (np.abs(x) < SMALLEST_NORMAL)).any(axis=1)
    zeros = (x == 0).all(axis=1)
    assert (same | subnormal | zeros).all()
    assert not shifts[zeros].any()
    assert (exponents[zeros] == -127).all()
    # It loses the sign of zeros in the input, and keeps that of values that become 0.
    assert (np.signbit(codes) == negative)[~subnormal & (x != 0).all(axis=1)].all()
    for exception in (subnormal, zeros):
        assert (exception & ~same).any(), "the exception is gone: take it out of this test"
