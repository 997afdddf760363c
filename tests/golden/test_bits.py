"""Codes in bytes, against one integer whose bits are those of the codes."""

import numpy as np
import pytest

from axs6.golden import bits

WIDTHS = [*((n, n) for n in range(1, 9)), (7, 5), (3, 1), (8, 6)]


def joined(codes: list[int], widths: list[int]) -> int:
    """The integer with the codes one above the other, the first one lowest."""
    value = 0
    for code, width in zip(reversed(codes), reversed(widths), strict=True):
        value = value << width | code
    return value


@pytest.mark.parametrize("count", [2, 8, 10, 16, 30])
@pytest.mark.parametrize(("even", "odd"), WIDTHS)
def test_codes_as_bytes(even: int, odd: int, count: int) -> None:
    widths = [even, odd] * (count // 2)
    rng = np.random.default_rng([even, odd, count])
    codes = rng.integers(0, np.int64(1) << np.array(widths), (3, count)).astype(np.uint8)
    codes[0] = (1 << np.array(widths)) - 1
    length = -(-sum(widths) // 8)
    packed = bits.pack_codes(codes, even, odd)
    assert packed.dtype == np.uint8
    assert packed.shape == (3, length)
    for row, data in zip(codes.tolist(), packed, strict=True):
        assert data.tobytes() == joined(row, widths).to_bytes(length, "little")
    assert np.array_equal(bits.unpack_codes(packed, count, even, odd), codes)


@pytest.mark.parametrize("bit", [0, 3, 7, 8, 13])
@pytest.mark.parametrize("width", [1, 2, 8, 11, 16])
def test_one_code_of_each_row(bit: int, width: int) -> None:
    codes = np.array([(1 << width) - 1, 0, 1 << width - 1, 1], np.uint16)
    packed = np.zeros((4, 5), np.uint8)
    bits.put(packed, bit, width, codes)
    for row, code in zip(packed, codes.tolist(), strict=True):
        assert row.tobytes() == (code << bit).to_bytes(5, "little")
    assert bits.take(packed, bit, width).tolist() == codes.tolist()
    packed[:] |= np.frombuffer(
        (~(((1 << width) - 1) << bit) & (1 << 40) - 1).to_bytes(5, "little"), np.uint8
    )
    assert bits.take(packed, bit, width).tolist() == codes.tolist()


@pytest.mark.parametrize("count", range(8))
def test_rows_moved_by_bits(count: int) -> None:
    rows = np.uint8([[0x01, 0x80, 0xFF], [0xA5, 0x5A, 0x81]])
    up, down = bits.shift_up(rows, count), bits.shift_down(rows, count)
    assert up.shape == (2, 4 if count else 3)
    assert down.shape == (2, 3)
    for row, higher, lower in zip(rows, up, down, strict=True):
        value = int.from_bytes(row.tobytes(), "little")
        assert int.from_bytes(higher.tobytes(), "little") == value << count
        assert int.from_bytes(lower.tobytes(), "little") == value >> count
