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
    blocks = Blocks.with_modes(**fields())
    assert blocks.block == 8
    assert repr(blocks) == "Blocks(axs6_t8, shape=(2, 20))"


def test_encode_gives_dense_blocks():
    blocks = encode(np.ones((2, 20), np.float32), block=8)
    assert blocks.modes.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("name", ["exponents", "modes", "codes"])
def test_dtype(name):
    array = fields()[name].astype(np.int64)
    shown = "scales" if name == "exponents" else name
    with pytest.raises(TypeError, match=f"^{shown} must be uint8, not int64$"):
        Blocks.with_modes(**fields(**{name: array}))


@pytest.mark.parametrize("shape", [(2, 4, 8), (6, 8), (8,)])
def test_shape_of_codes(shape):
    message = f"values of shape (2, 20) in axs6_t8 need codes of shape (2, 3, 8), not {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Blocks.with_modes(**fields(codes=np.zeros(shape, np.uint8)))


def test_shape_of_modes():
    message = "values of shape (2, 20) in axs6_t8 need modes of shape (2, 3), not (2,)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Blocks.with_modes(**fields(modes=np.zeros(2, np.uint8)))


@pytest.mark.parametrize(
    ("shape", "expected"), [((2, 25), (2, 4, 8)), ((2, 16), (2, 2, 8)), ((3, 20), (3, 3, 8))]
)
def test_shape_of_values(shape, expected):
    message = f"values of shape {shape} in axs6_t8 need codes of shape {expected}, not (2, 3, 8)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Blocks.with_modes(**fields(shape=shape))


def test_shape_without_axes():
    with pytest.raises(ValueError, match=r"^shape must be at least one .*, not \(\)$"):
        Blocks.with_modes(**fields(shape=()))


def test_shape_of_exponents():
    message = "values of shape (2, 20) in axs6_t8 need scales of shape (2, 3), not (2, 4)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Blocks.with_modes(**fields(exponents=np.zeros((2, 4), np.uint8)))


def test_block_size():
    with pytest.raises(ValueError, match=r"^block must be one of 8, 16, 32, not 12$"):
        Blocks.with_modes(**fields(codes=np.zeros((2, 3, 12), np.uint8)))


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
        Blocks.with_modes(**fields(modes=modes, codes=codes))
    codes[1, 2, index] = code - 1
    Blocks.with_modes(**fields(modes=modes, codes=codes))


def test_the_reserved_mode():
    modes = np.zeros((2, 3), np.uint8)
    modes[1, 1] = 3
    with pytest.raises(ValueError, match=r"^block 4: mode 3 is reserved$"):
        Blocks.with_modes(**fields(modes=modes))


def test_a_sparse_block_has_zeros():
    modes, codes = np.ones((2, 3), np.uint8), np.zeros((2, 3, 8), np.uint8)
    codes[0, 1, :7] = 1
    with pytest.raises(ValueError, match=r"^block 1: a sparse block needs B/4 magnitudes of 0$"):
        Blocks.with_modes(**fields(modes=modes, codes=codes))
    codes[0, 1, 1:3] = 0, 32
    message = "^block 1: a sparse block does not store code 32, so it must be 0$"
    with pytest.raises(ValueError, match=message):
        Blocks.with_modes(**fields(modes=modes, codes=codes))
