"""Elements that are tables, against a search through all entries, and NF4 against bitsandbytes."""

from fractions import Fraction

import numpy as np
import pytest

import axs6
from axs6.golden.floats import wide
from axs6.golden.formats import ValueTable, block_format
from axs6.golden.formats.table import NF4
from axs6.golden.rounding import Rounding
from axs6.golden.tables import ladder, wide_table_codes

TABLES = (
    "nf4q6_e8m0_t8",
    "table0:1:2:3:4:6:8:12:10:-1:-2:-3:-4:-6:-8:-12q1_e8m0_t8",  # neighbours with even codes
    "table0:3:6:14:1:-7:5:9_e8m0_t4",
    "table0:6:12:14::-14:-2:-7d7q1_e8m0_t8",
    "table0:1:3:4_e8m0_t8",  # without negative values
)

NORMAL = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""The numbers of bitsandbytes."""


def nearest(x: Fraction, table: ValueTable) -> int:
    """The code of the nearest entry of the sign of `x`, by comparing all."""
    entries = [(c * table.unit, code) for code, c in enumerate(table.counts) if c is not None]
    side = [(abs(value), code) for value, code in entries if value * x >= 0]
    least = min(abs(abs(x) - size) for size, _ in side)
    found = [(code % 2, size, code) for size, code in side if abs(abs(x) - size) == least]
    if len({odd for odd, _, _ in found}) == 1:
        found = [(0, size, code) for _, size, code in found]
    return min(found)[2]


@pytest.mark.parametrize("name", TABLES)
def test_the_nearest_entry_is_taken(name: str) -> None:
    table = block_format(name).element
    assert isinstance(table, ValueTable)
    rng = np.random.default_rng(3)
    top = float(table.largest)
    sixteenths = np.arange(-40, 41) * top / 64
    entries = np.sort(table.integers)
    middles = (entries[1:] + entries[:-1]) * float(table.unit / 2)
    x = np.concatenate([sixteenths, middles, rng.uniform(-top, top, 40)]).astype(np.float32)
    for value in x:
        row = np.array([value, top], np.float32)
        blocks = axs6.encode(row, name)
        scale = Fraction(2) ** (int(blocks.exponents[0]) - 127)
        wanted = nearest(Fraction(float(value)) / scale, table)
        assert blocks.codes[0, 0] == wanted, value


def test_toward_zero_and_by_random_words() -> None:
    name = "table0:1:3:-5_e8m0_t4"  # 2 lies halfway between 1 and 3
    x = np.array([2, 2.99, -3.99, 4], np.float32)
    assert axs6.decode(axs6.encode(x, name, "toward_zero")).tolist() == [1, 1, 0, 3]
    halves = np.array([0, 1, 1, 0])
    for word, wanted in ((halves, [1, 3, -5, 3]), (0 * halves, [1, 1, 0, 3])):
        found = axs6.encode(x, name, "stochastic", random=word, random_bits=1)
        assert axs6.decode(found).tolist()[1:] == wanted[1:]


def test_nf4_has_the_numbers_of_bitsandbytes() -> None:
    values = [float(count * NF4.unit) for count in NF4.counts if count is not None]
    assert values == [float(np.float32(x)) for x in NORMAL]
    x = np.random.default_rng(5).standard_normal((256, 64)).astype(np.float32)
    blocks = axs6.encode(x, "nf4")
    amax = np.abs(x).max(axis=1)
    assert blocks.scales[0].view(np.float32).ravel().tolist() == amax.tolist()
    quotient = x * (np.float32(1) / amax)[:, None]
    bounds = (np.array(NORMAL[1:]) + np.array(NORMAL[:-1])) / 2
    assert (blocks.codes[:, 0] == np.searchsorted(bounds, quotient)).all()


def test_zeros_and_padding_have_the_code_of_zero() -> None:
    blocks = axs6.encode(np.array([1, -0.0, 0], np.float32), "nf4")
    assert blocks.codes[0].tolist() == [15, 7, 7, *[7] * 61]
    assert axs6.decode(axs6.unpack(axs6.pack(blocks), (3,), "nf4")).tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match=r"^block 0: values beyond the shape \(3,\) must be 0$"):
        axs6.Blocks(blocks.format, blocks.scales, np.zeros((1, 64), np.uint8), (3,))


@pytest.mark.parametrize(
    ("counts", "divisor", "message"),
    [
        ((0, 1, 2), 1, "a table must have 4, 8, 16 values, not 3"),
        (tuple(range(17)), 1, "a table must have 4, 8, 16 values, not 17"),
        ((0, 1, 1, 2), 1, "values of a table must differ, and 1 is there twice"),
        ((1, 2, 3, 4), 1, "a table must have the value 0, which stands for zeros and padding"),
        ((0, -1, -2, None), 1, "a table must have a value above 0"),
        ((0, 1, 2, 0.5), 1, "a value must be an integer from -2147483647 to 2147483647, not 0.5"),
        ((0, 1, 2, float("inf")), 1, "a value must be an integer from -2147483647 to"),
        ((0, 1, 2, 255), 255, "over must be an integer from 1 to 127, not 255"),
        ((0, 1, 2, 6), 6, r"the divisor of a table must be 2\^n - 1, not 6"),
        ((0, 1, 2, 3), 7, "the largest magnitude of a table must be a multiple of its divisor 7"),
    ],
)
def test_other_tables_are_refused(counts: tuple, divisor: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        ValueTable(counts, 0, divisor)


def test_a_table_without_negative_values_has_nothing_below_zero_to_draw() -> None:
    x = np.array([2, -1, -0.5, 0, -4, 3, 1.5, 0.3], np.float32)
    words = np.full(8, 0xFFFF)
    found = axs6.encode(x, "table0:1:3:5_e8m0_t8", "stochastic", random=words)
    assert axs6.decode(found).tolist() == [3, 0, 0, 0, 0, 3, 3, 1]


def test_values_beyond_every_count_have_the_largest_code() -> None:
    name = "table0:1:2147483647:-5_e5m0_t4"
    x = np.array([1e20, 2.0**20, -1e20, 0], np.float32)
    for rounding, options in (
        ("nearest", {}),
        ("stochastic", {"random": np.full(4, 2**31), "random_bits": 32}),
    ):
        blocks = axs6.encode(x, name, rounding, **options)
        assert blocks.codes[0].tolist() == [2, 1, 3, 0]


def test_an_exponent_by_a_subnormal_quotient() -> None:
    """2^-103 over 2^24 - 1 is rounded to 2^-127, the scale of code 0."""
    x = np.array([2.0**-103, 0, 0, 0], np.float32)
    blocks = axs6.encode(x, "table0:1:16777215:-1_e8m0-rceil_t4")
    assert blocks.exponents.tolist() == [0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rounding", [Rounding.NEAREST, Rounding.TOWARD_ZERO])
@pytest.mark.parametrize("name", TABLES)
def test_a_ladder_has_the_least_value_of_each_entry(
    name: str, rounding: Rounding, dtype: type
) -> None:
    table = block_format(name).element
    assert isinstance(table, ValueTable)
    values, bounds = ladder(table, rounding, dtype)
    assert len(values) == len(bounds) + 1
    assert (np.diff(values) > 0).all()
    unit = dtype(2.0**table.unit_exponent)
    before = np.nextafter(bounds, dtype(-np.inf))
    exact = wide((np.concatenate([bounds, before]) * unit).astype(np.float64))
    codes = wide_table_codes(table, rounding, exact, np.zeros(1, np.int16))
    assert table.integers[codes].tolist() == [*values[1:], *values[:-1]]


def test_the_largest_magnitude_may_be_negative() -> None:
    assert ValueTable((0, -3, 2, 1), 0, 1).largest_code == 1
    assert ValueTable((0, -3, 2, 3), 0, 1).largest_code == 3


def test_the_last_bit_of_an_integer_counts() -> None:
    x = np.array([2**63, 2**63 + 1, 2**62, 0], np.uint64)  # 4 is halfway between 3 and 5
    assert axs6.encode(x, "table0:1:3:5_e8m0_t4").codes[0].tolist() == [2, 3, 2, 0]
