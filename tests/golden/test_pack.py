import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axs6.golden import Blocks, encode, exact, pack, packed_bytes, unpack


def make_blocks(exponents, codes):
    exponents, codes = np.array(exponents, np.uint8), np.array(codes, np.uint8)
    return Blocks(exponents, np.zeros_like(exponents), codes, (codes.size,))


def damaged(data, position, value):
    copy = bytearray(data)
    copy[position] = value
    return copy


@pytest.mark.parametrize(("size", "used"), [(8, 8), (16, 14), (32, 26)])
def test_packed_bytes(size, used):
    assert packed_bytes(size) == used
    assert packed_bytes(size, 32) == 32
    assert packed_bytes(size, 4) == -(-used // 4) * 4


def test_one_block_by_hand():
    # E = 0x81 << 2 = 0x204; then 1 | 2 << 6 | 3 << 12 | 4 << 18 = 0x103081, and the same of 60..63.
    blocks = make_blocks([0x81], [[1, 2, 3, 4, 60, 61, 62, 63]])
    assert pack(blocks).hex() == "0402" + "813010" + "7cefff"
    assert pack(blocks, 12).hex() == "0402" + "813010" + "7cefff" + "00000000"


def test_largest_exponent():
    assert pack(make_blocks([255], [[0] * 8]))[:2].hex() == "fc03"


blocks_of_any_size = st.sampled_from([8, 16, 32]).flatmap(
    lambda size: st.lists(
        st.tuples(st.integers(0, 255), st.lists(st.integers(0, 63), min_size=size, max_size=size)),
        min_size=1,
        max_size=5,
    )
)


@settings(deadline=None)
@given(blocks_of_any_size, st.sampled_from([1, 2, 3, 32, 64]))
def test_round_trip_and_definition(given_blocks, align):
    blocks = make_blocks([e for e, _ in given_blocks], [codes for _, codes in given_blocks])
    data = pack(blocks, align)
    assert data == b"".join(exact.pack_block(*block, align) for block in given_blocks)
    back = unpack(data, blocks.shape, blocks.block_size, align)
    assert np.array_equal(back.exponents, blocks.exponents)
    assert np.array_equal(back.codes, blocks.codes)
    assert back.shape == blocks.shape


@pytest.mark.parametrize("size", [8, 16, 32])
@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0), (2, 0, 40)])
def test_no_blocks(size, shape):
    blocks = encode(np.zeros(shape, np.float32), size)
    assert pack(blocks) == b""
    assert unpack(b"", shape, size, 32).shape == shape


def test_shape_is_kept_and_buffers_are_accepted():
    blocks = encode(np.random.default_rng(0).standard_normal((2, 3, 40)), 16)
    data = pack(blocks)
    for buffer in (data, bytearray(data), memoryview(data)):
        back = unpack(buffer, (np.int64(2), 3, 40), 16)
        assert back.shape == (2, 3, 40)
        assert np.array_equal(back.codes, blocks.codes)


@pytest.mark.parametrize("align", [0, -1, 2.0, "32"])
def test_align(align):
    message = f"^align must be a positive number of bytes, not {align!r}$"
    with pytest.raises(ValueError, match=message):
        packed_bytes(32, align)
    with pytest.raises(ValueError, match=message):
        pack(encode(np.ones(8)), align)


def test_block_size():
    message = "^block_size must be one of 8, 16, 32, not 24$"
    with pytest.raises(ValueError, match=message):
        packed_bytes(24)
    with pytest.raises(ValueError, match=message):
        unpack(bytes(20), (24,), 24)


@pytest.mark.parametrize("length", [0, 77, 79, 104])
def test_length(length):
    message = "data must be 3 blocks of 26 bytes for shape (3, 32), 78 bytes, not "
    with pytest.raises(ValueError, match=f"^{re.escape(message)}{length}$"):
        unpack(bytes(length), (3, 32))


@pytest.mark.parametrize("shape", [(), (-1,), (2.0, 3)])
def test_shape(shape):
    message = f"shape must be at least one non-negative integer, not {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        unpack(b"", shape)


DATA = pack(encode(np.ones((3, 32), np.float32)))
ALIGNED = pack(encode(np.ones((3, 32), np.float32)), 32)


@pytest.mark.parametrize(("byte", "found"), [(0x06, 1), (0x82, 32), (0xFE, 63)])
def test_header_bits(byte, found):
    message = f"^block 1: header bits 10 to 15 must be zero, not {found}$"
    with pytest.raises(ValueError, match=message):
        unpack(damaged(DATA, 26 + 1, byte), (3, 32))


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_mode(mode):
    message = rf"^block 2: mode must be 0 \(dense\), not {mode}$"
    with pytest.raises(ValueError, match=message):
        unpack(damaged(DATA, 52, mode), (3, 32))


def test_padding():
    message = "^block 1: padding must be zero, not 000000000009$"
    with pytest.raises(ValueError, match=message):
        unpack(damaged(ALIGNED, 63, 9), (3, 32), align=32)
    assert unpack(damaged(ALIGNED, 57, 9), (3, 32), align=32).shape == (3, 32)
