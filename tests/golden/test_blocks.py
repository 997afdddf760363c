import re
from dataclasses import replace

import numpy as np
import pytest

from axs6.golden import Blocks, decode, encode, matmul, pack, qsnr, unpack
from axs6.golden.feedback import encode_with_feedback


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
        Blocks.with_modes(**fields(modes=modes, codes=codes, shape=(2, 24)))
    codes[1, 2, index] = code - 1
    Blocks.with_modes(**fields(modes=modes, codes=codes, shape=(2, 24)))


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


PADDED = ("axs6_t8", "mxfp8_e4m3_t16", "mxfp4_t16", "mxint8", "nvfp4", "uint8", "vsq8", "mx9")


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("axis", [0, 1])
def test_values_beyond_the_shape_are_zeros(name, axis):
    x = np.random.default_rng(0).standard_normal((20, 20)) + 2
    blocks = encode(x, name, axis=axis)
    codes = blocks.codes.copy()
    codes[2, -1, -1] ^= 1
    message = rf"block {3 * blocks.count - 1}: values beyond the shape \(20, 20\) must be 0"
    with pytest.raises(ValueError, match=message):
        replace(blocks, codes=codes)
    data = bytearray(pack(blocks))
    assert unpack(bytes(data), (20, 20), name, axis=axis).codes.tobytes() == blocks.codes.tobytes()
    if name == "mxint8":
        data[-1] ^= 1
        with pytest.raises(ValueError, match="values beyond the shape"):
            unpack(bytes(data), (20, 20), name, axis=axis)


def test_scales_beyond_the_shape_are_numbers():
    blocks = encode(np.ones((2, 5)), "e4m3fn_e4m3fn_t4_bfloat16_t16_float32")
    inner = blocks.scales[2].copy()
    inner[1, 0, 2] = 0x7F
    with pytest.raises(ValueError, match="block 1: values beyond the shape"):
        replace(blocks, scales=(*blocks.scales[:2], inner))


@pytest.mark.parametrize("name", ["uint8_float32_uint8_t16", "uint8_float32_uint8_t0", "nvfp4"])
def test_padding_of_nan_is_taken(name):
    x = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]])
    blocks = encode(x, name, nonfinite="propagate")
    assert np.isnan(decode(blocks)[0]).any()


CHANGES = {
    "axs6": lambda b: b.codes.__setitem__((0, 0, 0), 64),
    "mxfp4": lambda b: b.codes.__setitem__((0, 0, 0), 16),
    "int4": lambda b: b.codes.__setitem__((0, 0, 0), 255),
    "mx6": lambda b: b.scales[1].__setitem__((0, 0, 0), 9),
    "mx9": lambda b: b.modes.__setitem__((0, 0), 1),
    "mxint8": lambda b: b.codes.__setitem__((0, 0, 31), 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_blocks_that_were_changed_to_no_codes_are_refused(name):
    for use in (decode, pack, lambda b: matmul(b, b)):
        blocks = encode(np.ones((1, 30)), name)
        CHANGES[name](blocks)
        with pytest.raises(ValueError, match=r"block 0|scale 0|no modes"):
            use(blocks)


@pytest.mark.parametrize("name", ["axs6", "int8", "mxfp4"])
def test_strided_bytes_are_unpacked(name):
    blocks = encode(np.arange(60.0).reshape(2, 30), name)
    data = pack(blocks)
    wide = memoryview(bytes(x for byte in data for x in (byte, 7)))[::2]
    backwards = memoryview(data[::-1])[::-1]
    for view in (wide, backwards):
        assert pack(unpack(view, (2, 30), name)) == data


def test_masked_arrays_are_refused():
    x = np.ma.masked_array(np.ones(32, np.float32), mask=np.arange(32) == 3)
    for call in (
        lambda: encode(x),
        lambda: encode(np.ones(32), "int8", scale=np.ma.masked_array(1.0, mask=True)),
        lambda: qsnr(x, "mx9"),
        lambda: encode_with_feedback(x, np.zeros(32, np.float32)),
    ):
        with pytest.raises(TypeError, match=r"must have no masked values: call filled"):
            call()
    assert encode(np.ma.masked_array(np.ones(32), mask=False)).shape == (32,)
