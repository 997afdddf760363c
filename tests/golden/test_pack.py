import contextlib
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axs6.golden import Blocks, encode, pack, packed_bytes, unpack
from axs6.golden.check.cases import inputs
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.formats import Mode
from axs6.golden.pack import layout_of
from axs6.golden.unpack import unpack_some


def make_blocks(exponents, codes):
    exponents, codes = np.array(exponents, np.uint8), np.array(codes, np.uint8)
    return Blocks.with_modes(exponents, np.zeros_like(exponents), codes, (codes.size,))


def damaged(data, position, value):
    copy = bytearray(data)
    copy[position] = value
    return copy


@pytest.mark.parametrize(("size", "used"), [(8, 8), (16, 14), (32, 26)])
def test_packed_bytes(size, used):
    assert packed_bytes(block=size) == used
    assert packed_bytes(block=size, align=32) == 32
    assert packed_bytes(block=size, align=4) == -(-used // 4) * 4


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
    back = unpack(data, blocks.shape, block=blocks.block, align=align)
    assert np.array_equal(back.exponents, blocks.exponents)
    assert np.array_equal(back.codes, blocks.codes)
    assert back.shape == blocks.shape


@settings(deadline=None)
@given(
    st.sampled_from([8, 16, 32]),
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(0, 4 * 26), st.integers(0, 255)), max_size=3),
)
def test_bytes_are_blocks_or_refused(size, seed, changes):
    """Blocks of all modes with a few bytes changed: no two sequences of bytes are the same."""
    exponents, modes, codes = inputs.random_codes_in_modes(size, 4, np.random.default_rng(seed))
    data = bytearray(pack(Blocks.with_modes(exponents, modes, codes, (codes.size,))))
    for place, value in changes:
        data[place % len(data)] = value
    with contextlib.suppress(ValueError):
        assert pack(unpack(data, (4 * size,), block=size)) == data


@pytest.mark.parametrize("size", [8, 16, 32])
@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0), (2, 0, 40)])
def test_no_blocks(size, shape):
    blocks = encode(np.zeros(shape, np.float32), block=size)
    assert pack(blocks) == b""
    assert unpack(b"", shape, block=size, align=32).shape == shape


@pytest.mark.parametrize("shape", [(1,) * 65, (2**60, 2), (0, 2**62)])
def test_shapes_that_no_array_has(shape):
    with pytest.raises(
        ValueError, match=r"^shape must have at most 64 axes and 2\^60 values, not "
    ):
        unpack(b"", shape)


def test_shape_is_kept_and_buffers_are_accepted():
    blocks = encode(np.random.default_rng(0).standard_normal((2, 3, 40)), block=16)
    data = pack(blocks)
    for buffer in (data, bytearray(data), memoryview(data)):
        back = unpack(buffer, (np.int64(2), 3, 40), block=16)
        assert back.shape == (2, 3, 40)
        assert np.array_equal(back.codes, blocks.codes)


@pytest.mark.parametrize("align", [0, -1, 2.0, "32", True, 4097, 10**30])
def test_align(align):
    message = f"^align must be an integer from 1 to 4096, not {align!r}$"
    with pytest.raises(ValueError, match=message):
        packed_bytes(block=32, align=align)
    with pytest.raises(ValueError, match=message):
        pack(encode(np.ones(8)), align)


def test_block_size():
    message = "^block must be one of 8, 16, 32, not 24$"
    with pytest.raises(ValueError, match=message):
        packed_bytes(block=24)
    with pytest.raises(ValueError, match=message):
        unpack(bytes(20), (24,), block=24)


@pytest.mark.parametrize("length", [79, 104])
def test_too_many_bytes(length):
    message = f"data must be 3 blocks, 78 bytes, for shape (3, 32), not {length}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        unpack(bytes(length), (3, 32))


@pytest.mark.parametrize(("length", "block"), [(0, 0), (1, 0), (27, 1), (52, 2)])
def test_too_few_bytes(length, block):
    message = (
        f"data must be 3 blocks for shape (3, 32), but its {length} bytes end in block {block}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        unpack(bytes(length), (3, 32))


@pytest.mark.parametrize("shape", [(), (-1,), (2.0, 3), (True, 3)])
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


def test_the_reserved_mode():
    with pytest.raises(ValueError, match=r"^block 2: mode 3 is reserved$"):
        unpack(damaged(DATA, 52, 3), (3, 32))


def test_a_sparse_block_by_hand():
    # E = 0x81 and mode 1: 0x205; values 1 and 2 are dropped, 0b11111001; then six codes from 1 up.
    blocks = Blocks.with_modes(
        np.array([0x81], np.uint8),
        np.array([1], np.uint8),
        np.array([[1, 0, 0, 2, 3, 4, 5, 6]], np.uint8),
        (8,),
    )
    codes = 1 | 2 << 6 | 3 << 12 | 4 << 18 | 5 << 24 | 6 << 30
    assert pack(blocks).hex() == "0502" + "f9" + codes.to_bytes(5, "little").hex()
    assert unpack(pack(blocks), (8,), block=8).codes.tolist() == blocks.codes.tolist()


def test_a_high_precision_block_by_hand():
    codes = [[127, 0, 1, 31, 64, 16, 3, 4]]
    blocks = Blocks.with_modes(
        np.array([2], np.uint8), np.array([2], np.uint8), np.array(codes, np.uint8), (8,)
    )
    pairs = [127, 1 | 31 << 7, 64 | 16 << 7, 3 | 4 << 7]
    payload = sum(pair << 12 * k for k, pair in enumerate(pairs))
    assert pack(blocks).hex() == "0a00" + payload.to_bytes(6, "little").hex()
    assert unpack(pack(blocks), (8,), block=8).codes.tolist() == codes


@pytest.mark.parametrize("size", [8, 16, 32])
@pytest.mark.parametrize("align", [1, 32])
def test_blocks_of_all_modes_keep_their_bytes(size, align):
    exponents, modes, codes = inputs.random_codes_in_modes(size, 500, np.random.default_rng(0))
    blocks = Blocks.with_modes(exponents, modes, codes, (codes.size,))
    data = pack(blocks, align)
    lengths = {mode: packed_bytes(block=size, align=align, mode=Mode(mode)) for mode in range(3)}
    assert len(data) == sum(lengths[mode] for mode in modes.tolist())
    back = unpack(data, blocks.shape, block=size, align=align)
    for name in ("exponents", "modes", "codes"):
        assert np.array_equal(getattr(back, name), getattr(blocks, name))
    assert pack(back, align) == data


SPARSE = pack(encode(np.tile(np.arange(32) % 4 != 0, (3, 1)).astype(np.float32), mode="sparse"))


@pytest.mark.parametrize(("mask", "ones"), [(0xFF, 26), (0, 18)])
def test_a_mask_leaves_out_a_quarter(mask, ones):
    assert len(SPARSE) == 72
    message = f"^block 1: the mask of a sparse block must have 24 ones, not {ones}$"
    with pytest.raises(ValueError, match=message):
        unpack(damaged(SPARSE, 24 + 2, mask), (3, 32))


@pytest.mark.parametrize("stored", [0, 32], ids=["zero", "minus zero"])
def test_a_mask_leaves_out_the_first_zeros(stored):
    """Values 0 to 2 of block 1 are zeros; its mask leaves out 0 and 2, and 1 is stored."""
    blocks = make_blocks([9, 9], [[1, 0, 0, 0, 5, 6, 7, 8], [0, 0, 0, 4, 5, 6, 7, 8]])
    data = pack(Blocks.with_modes(blocks.exponents, np.ones(2, np.uint8), blocks.codes, (16,)))
    assert data[10] == 0b11111100
    wrong = damaged(data, 10, 0b11111010)
    wrong[11] |= stored
    rule = r"the mask of a sparse block must leave out its first 2 zeros, \[0, 1\], not \[0, 2\]$"
    with pytest.raises(ValueError, match="^block 1: " + rule):
        unpack(wrong, (16,), block=8)
    with pytest.raises(ValueError, match="^block 41: " + rule):
        unpack_some(np.frombuffer(wrong, np.uint8), 2, layout_of(block=8), 40)
    assert unpack_some(np.frombuffer(data, np.uint8), 2, layout_of(block=8), 40)[1] == 16


def test_bytes_behind_a_sparse_block_are_not_lost():
    """A dense block made sparse leaves two bytes over, at whatever place it has."""
    data = bytearray(pack(encode(np.zeros((3, 32), np.float32))))
    for block in range(3):
        wrong = bytearray(data)
        wrong[26 * block] = 1
        wrong[26 * block + 2 : 26 * block + 6] = bytes([0xFF, 0xFF, 0xFF, 0x00])
        with pytest.raises(ValueError, match=r"^data must be 3 blocks, 76 bytes|^block "):
            unpack(bytes(wrong), (3, 32))


def test_padding_within_a_byte():
    data = pack(encode(np.zeros((2, 8), np.float32), block=8, mode="sparse"))
    with pytest.raises(ValueError, match=r"^block 1: padding must be zero, not 8$"):
        unpack(damaged(data, 15, 0x80), (2, 8), block=8)


def test_padding():
    message = "^block 1: padding must be zero, not 000000000009$"
    with pytest.raises(ValueError, match=message):
        unpack(damaged(ALIGNED, 63, 9), (3, 32), align=32)
    assert unpack(damaged(ALIGNED, 57, 9), (3, 32), align=32).shape == (3, 32)
