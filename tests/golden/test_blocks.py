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
    assert blocks.block == 8
    assert repr(blocks) == "Blocks(shape=(2, 20), block=8)"


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
    with pytest.raises(ValueError, match=r"^block must be one of 8, 16, 32, not 12$"):
        Blocks(**fields(codes=np.zeros((2, 3, 12), np.uint8)))


@pytest.mark.parametrize(
    ("mode", "index", "code", "name"),
    [
        (0, 7, 64, "dense"),
        (1, 2, 64, "sparse"),
        (2, 6, 128, "high_precision"),
        (2, 7, 32, "high_precision"),
    ],
)
def test_codes_have_the_width_of_their_mode(mode, index, code, name):
    modes, codes = np.zeros((2, 3), np.uint8), np.zeros((2, 3, 8), np.uint8)
    modes[1, 2], codes[1, 2, index] = mode, code
    with pytest.raises(ValueError, match=f"^block 5: {code} is not a {name} code$"):
        Blocks(**fields(modes=modes, codes=codes))
    codes[1, 2, index] = code - 1
    Blocks(**fields(modes=modes, codes=codes))


def test_the_reserved_mode():
    modes = np.zeros((2, 3), np.uint8)
    modes[1, 1] = 3
    with pytest.raises(ValueError, match=r"^block 4: mode 3 is reserved$"):
        Blocks(**fields(modes=modes))


def test_a_sparse_block_has_zeros():
    modes, codes = np.ones((2, 3), np.uint8), np.zeros((2, 3, 8), np.uint8)
    codes[0, 1, :7] = 1
    with pytest.raises(ValueError, match=r"^block 1: a sparse block needs B/4 magnitudes of 0$"):
        Blocks(**fields(modes=modes, codes=codes))
    codes[0, 1, 1:3] = 0, 32
    message = "^block 1: a sparse block does not store code 32, so it must be 0$"
    with pytest.raises(ValueError, match=message):
        Blocks(**fields(modes=modes, codes=codes))
