import numpy as np
import pytest

import axs6
from axs6.hw.core.layouts import Field, block_layout
from axs6.hw.units.blocks import blocks_of
from axs6.sim.words import block_items, completing, from_words, to_words

FIELDS = [
    Field("sum", 0, 5, True, ()),
    Field("codes", 5, 6, False, (3,)),
    Field("last", 23, 1, False, ()),
]


def test_values_lie_where_the_fields_say() -> None:
    items = {
        "sum": np.array([-16, 3]),
        "codes": np.array([[1, 2, 63], [0, 0, 1]]),
        "last": np.array([0, 1]),
    }
    words = to_words(items, FIELDS)
    assert words == [
        0b10000 | 1 << 5 | 2 << 11 | 63 << 17,
        3 | 1 << 17 | 1 << 23,
    ]
    back = from_words(words, FIELDS)
    for name, values in items.items():
        assert (back[name] == values).all()
        assert back[name].shape == values.shape


def test_wide_payloads_keep_every_bit() -> None:
    fields = [Field("values", 0, 32, False, (32,))]
    values = np.random.default_rng(0).integers(0, 1 << 32, (7, 32))
    assert (from_words(to_words({"values": values}, fields), fields)["values"] == values).all()


@pytest.mark.parametrize("signed", [False, True])
def test_numbers_of_64_bits_keep_their_sign(signed: bool) -> None:
    fields = [Field("sum", 0, 64, signed, ())]
    values = np.array([0, 1, 1 << 63, (1 << 64) - 1], np.uint64)
    given = values.view(np.int64) if signed else values
    back = from_words(to_words({"sum": given}, fields), fields)["sum"]
    assert back.dtype == given.dtype
    assert (back == given).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sum": np.array([16, 0])}, "input 'sum' must be in -16 to 15"),
        ({"last": np.array([0, 2])}, "input 'last' must be in 0 to 1"),
        ({"codes": np.zeros((2, 4), int)}, r"input 'codes' must have shape \(2, 3\), not \(2, 4\)"),
        ({"last": np.array([0.0, 1.0])}, "input 'last' must have an integer dtype, not float64"),
        ({"first": np.array([0, 1])}, "there is no input 'first'; the inputs are sum, codes, last"),
    ],
)
def test_arrays_that_do_not_fit_are_named(change: dict[str, np.ndarray], message: str) -> None:
    items = {"sum": np.zeros(2, int), "codes": np.zeros((2, 3), int), "last": np.zeros(2, int)}
    with pytest.raises(ValueError, match=message):
        to_words({**items, **change}, FIELDS)


def test_a_missing_array_is_named() -> None:
    with pytest.raises(ValueError, match="input 'codes' is missing"):
        to_words({"sum": np.zeros(1, int), "last": np.zeros(1, int)}, FIELDS)


def test_items_with_last_complete_an_output() -> None:
    assert completing({"last": np.array([0, 1, 1])}).tolist() == [1, 2]
    assert completing({"values": np.zeros((3, 8))}).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["axs6_t8", "mx9", "mxfp4", "vsq6", "int7_e8m0_t64s16o1s4o2"])
def test_fields_of_blocks_are_those_of_their_layout(name: str) -> None:
    fmt = axs6.block_format(name)
    blocks = axs6.encode(np.random.default_rng(0).standard_normal((3, 2 * fmt.block)), fmt)
    items = block_items(blocks, "a.")
    assert list(items) == [f"a.{field}" for field, _ in block_layout(fmt.block, fmt)]
    back = blocks_of(items, fmt, "a.")
    assert np.array_equal(back.codes.reshape(blocks.codes.shape), blocks.codes)
    inner = len(fmt.outer)
    for read, given in zip(back.scales[inner:], blocks.scales[inner:], strict=True):
        assert np.array_equal(read.reshape(given.shape), given)
