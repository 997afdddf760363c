import re

import numpy as np
import pytest

from axs6.golden import Blocks, encode


def fields(**changes):
    given = {
        "exponents": np.zeros((2, 3), np.uint8),
        "modes": np.zeros((2, 3), np.uint8),
        "codes": np.zeros((2, 3, 8), np.uint8),
        "shape": (2, 20),
    }
    return given | changes


def test_block_size_and_repr():
    blocks = Blocks(**fields())
    assert blocks.block_size == 8
    assert repr(blocks) == "Blocks(shape=(2, 20), block_size=8)"


def test_encode_gives_dense_blocks():
    blocks = encode(np.ones((2, 20), np.float32), 8)
    assert blocks.modes.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("name", ["exponents", "modes", "codes"])
def test_dtype(name):
    array = fields()[name].astype(np.int64)
    with pytest.raises(TypeError, match=f"^{name} must be uint8, not int64$"):
        Blocks(**fields(**{name: array}))


@pytest.mark.parametrize("shape", [(2, 4, 8), (6, 8), (8,)])
def test_shape_of_codes(shape):
    message = f"codes must have the shape of exponents plus one axis, (2, 3) + (B,), not {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Blocks(**fields(codes=np.zeros(shape, np.uint8)))


def test_shape_of_modes():
    message = r"^modes must have the shape of exponents \(2, 3\), not \(2,\)$"
    with pytest.raises(ValueError, match=message):
        Blocks(**fields(modes=np.zeros(2, np.uint8)))


@pytest.mark.parametrize(
    ("shape", "expected"), [((2, 25), (2, 4)), ((2, 16), (2, 2)), ((3, 20), (3, 3)), ((), ())]
)
def test_shape_of_values(shape, expected):
    message = (
        f"values of shape {shape} in blocks of 8 need exponents of shape {expected}, not (2, 3)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Blocks(**fields(shape=shape))


def test_block_size():
    with pytest.raises(ValueError, match=r"^block_size must be one of 8, 16, 32, not 12$"):
        Blocks(**fields(codes=np.zeros((2, 3, 12), np.uint8)))


def test_codes_have_six_bits():
    codes = np.zeros((2, 3, 8), np.uint8)
    codes[1, 2, 7] = 64
    with pytest.raises(ValueError, match=r"^codes must be below 64, not 64$"):
        Blocks(**fields(codes=codes))


def test_modes_are_dense():
    modes = np.zeros((2, 3), np.uint8)
    modes[1, 1] = 2
    message = r"^block 4 has mode 2; only mode 0 \(dense\) is supported$"
    with pytest.raises(ValueError, match=message):
        Blocks(**fields(modes=modes))
