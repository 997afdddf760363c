"""Values in parts, under scales of channels and the tensor that follow from all of them."""

import numpy as np
import pytest

import axs6
from axs6.golden.formats import CATALOG, Real, block_format
from axs6.golden.nonfinite import NonFinite
from axs6.golden.outer import OuterScales, Reach
from axs6.golden.scaling import real_values

OUTER = [
    *(name for name, fmt in CATALOG.items() if fmt.outer),
    *(
        "int8_float32_t0",
        "uint8_float32_uint8_t0",
        "int8_float16_t0_float32",
        "e2m1fn_e8m0_t0_float32",
    ),
]
ROWS, PARTS = 3, 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nonfinite", ["error", "saturate", "propagate"])
@pytest.mark.parametrize("name", OUTER)
def test_parts_under_the_scales_of_the_whole(name: str, nonfinite: NonFinite, dtype: type) -> None:
    fmt = block_format(name)
    if nonfinite == "propagate" and not fmt.has_nan:
        return
    size = fmt.block
    rng = np.random.default_rng(1)
    x = rng.standard_normal((ROWS, PARTS * size)) * np.exp2(rng.integers(-9, 9, (ROWS, 1)))
    if nonfinite != "error":
        x[0, 3], x[0, size], x[1, -1] = np.nan, np.inf, -np.inf
    x = x.astype(dtype)
    parts = np.split(x, PARTS, axis=1)
    channels = Reach.merged([Reach.of(part, fmt, nonfinite) for part in parts])
    outer = OuterScales.find(fmt, channels, channels.of_groups(1))
    whole = axs6.encode(x, fmt, nonfinite=nonfinite)
    for number, part in enumerate(parts):
        found = axs6.encode(part, fmt, nonfinite=nonfinite, outer=outer)
        assert np.array_equal(found.codes, whole.codes[:, number : number + 1])
        for level, ours, theirs in zip(fmt.levels[::-1], found.scales, whole.scales, strict=True):
            wanted = theirs[:, number : number + 1] if level.blocked else theirs
            assert np.array_equal(ours, wanted)
        if whole.zero_points is not None:
            assert np.array_equal(found.zero_points, whole.zero_points)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_part_is_the_whole(dtype: type) -> None:
    fmt = block_format("int8_float32_t0")
    x = np.random.default_rng(2).standard_normal((ROWS, fmt.block)).astype(dtype)
    channels = Reach.merged([Reach.of(x, fmt, "error")])
    found = axs6.encode(x, fmt, outer=OuterScales.find(fmt, channels, channels.of_groups(1)))
    whole = axs6.encode(x, fmt)
    assert np.array_equal(found.scales[0], whole.scales[0])
    assert np.array_equal(found.codes, whole.codes)


def test_scales_of_something_else_are_refused() -> None:
    fmt = block_format("int8_float32_t0")
    reach = Reach.of(np.ones((2, fmt.block), np.float32), fmt, "error")
    outer = OuterScales.find(fmt, reach, reach.of_groups(1))
    with pytest.raises(ValueError, match="outer must be of 3 channels, not 2"):
        axs6.encode(np.ones((3, 8)), fmt, outer=outer)
    with pytest.raises(
        ValueError, match="outer must be of int4_e8m0_t32, and scale must not be given"
    ):
        axs6.encode(np.ones((2, 8)), "int4_e8m0_t32", outer=outer)
    with pytest.raises(ValueError, match="and scale must not be given"):
        axs6.encode(np.ones((2, 8)), fmt, outer=outer, scale=1.0)


@pytest.mark.parametrize(
    ("name", "scale"),
    [("uint8", 1.0), ("uint8_float32_uint8_t8", 1.0), ("uint4_float16_uint4_t32", 2.0**-14)],
)
def test_zeros_with_a_zero_point(name: str, scale: float) -> None:
    blocks = axs6.encode(np.zeros((2, 32), np.float32), name)
    (level,) = blocks.format.levels
    assert isinstance(level.scale, Real)
    assert (real_values(level.scale.dtype, np.asarray(blocks.scales[0])) == scale).all()
    assert not np.any(blocks.zero_points)
    assert not blocks.codes.any()


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("uint8_float32_uint8_t8", 51, 204),
        ("uint8_float32_uint8_t0", 255, 0),
        ("uint4_float16_uint4_t8", 4, 11),
        ("uint4_float16_uint4_t8", 0, 15),
    ],
)
def test_codes_reach_from_the_lowest_to_the_highest_value(name: str, low: int, high: int) -> None:
    x = np.array([[0, high, -low, 1, high - 1, 2 - low, high // 2, 0]], np.float32)
    x = np.clip(x, -low, high)
    for power in (1, 2**-7):
        blocks = axs6.encode(x * power, name)
        assert blocks.zero_points is not None
        assert (np.asarray(blocks.zero_points) == low).all()
        assert (blocks.codes.reshape(-1)[:8] == x[0] + low).all()
        assert (axs6.decode(blocks) == x * power).all()


@pytest.mark.parametrize("name", ["int8_float16_t0_float32", "nf4_float16_t0_float32"])
def test_a_nan_is_that_of_its_channel_alone(name: str) -> None:
    x = np.arange(1, 25, dtype=np.float32).reshape(3, 8)
    wanted = axs6.decode(axs6.encode(x, name))
    x[1, 2] = np.nan
    found = axs6.decode(axs6.encode(x, name, nonfinite="propagate"))
    assert np.isnan(found[1]).all()
    assert (found[::2] == wanted[::2]).all()
