"""Dot products and tiles of every format, accumulated in FP32, in the batch simulator."""

from typing import Any

import numpy as np
import pytest

from axs6.golden import encode, fp32, matmul
from axs6.golden.formats import CATALOG, ROW_FORMATS
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.dot.dot import Dot
from axs6.hw.dot.shape import multiplied
from axs6.hw.units.dot import DOT, MATMUL
from axs6.hw.units.unit import Unit
from axs6.sim.batch.engine import BatchModel

FORMATS = [name for name, fmt in ROW_FORMATS.items() if multiplied(fmt)]
OVER = ["sm8dz_e8m0f_t32", "int5d_e8m0_t16s2o1"]
"""Formats over other denominators than that of AXS-6."""

PAIRS = ["axs6xmxint8", "mx9xmx4", "mxfp4xmxfp8_e4m3", "int8_e8m0_t0"]
QUICK = ("nvfp4", "axs6xmxint8")
CASES = [
    *((fmt, {"view": BEHAVIOUR, "block": 8}) for fmt in QUICK),
    *(
        pytest.param(fmt, {"view": view}, marks=pytest.mark.slow)
        for fmt in (*FORMATS, *OVER, *PAIRS)
        for view in (BEHAVIOUR, STRUCTURE)
    ),
]
SMALL = {"rows": 2, "columns": 1, "stages": 4, "interleave": 3, "view": BEHAVIOUR}


@pytest.fixture
def count(request: pytest.FixtureRequest) -> int:
    """Random items of a test."""
    return 10_000 if request.node.get_closest_marker("slow") else 1_000


def check(unit: Unit, count: int, **given: Any) -> None:
    """Corners and random items of a unit give what the golden model gives."""
    settings = unit.parameters(given)
    model = BatchModel(unit.name, **settings)
    rng = np.random.default_rng(5)
    for items in (unit.corners(settings), unit.random(settings, rng, count)):
        outputs = model.run(items).outputs
        for name, expected in unit.golden(items, settings).items():
            assert np.array_equal(outputs[name], expected), name


@pytest.mark.parametrize(("fmt", "given"), CASES)
def test_dot_equals_the_golden_model(fmt: str, given: dict[str, Any], count: int) -> None:
    check(DOT, count, format=fmt, **given)


SHORT = ["mx9", "mxfp8_e4m3", "axs6"]
"""Formats whose lanes have scales, shifts, and neither, for pipelines with the most registers."""


@pytest.mark.parametrize(
    ("fmt", "given"),
    [
        ("mx9", {"block": 8}),
        *(
            pytest.param(x, {}, marks=pytest.mark.slow)
            for x in [*SHORT, *(y for y in (*FORMATS, *OVER, *PAIRS) if y not in SHORT)]
        ),
    ],
)
def test_dot_of_the_most_stages_equals_the_golden_model(
    fmt: str, given: dict[str, Any], count: int
) -> None:
    most = DOT.most_stages({"format": fmt, **given})
    check(DOT, count, format=fmt, view=STRUCTURE, stages=most, interleave=2, **given)


@pytest.mark.parametrize(
    "fmt", ["mx6", *(pytest.param(x, marks=pytest.mark.slow) for x in ("int4", "mxfp4", "vsq4"))]
)
def test_tile_equals_the_golden_model(fmt: str, count: int) -> None:
    check(MATMUL, count, format=fmt, **SMALL)


EXACT = {"accumulator": "exact", "block": 8, "interleave": 2}
OTHERS = [
    (DOT, "int4", {"blocks": "packed", **EXACT}),
    pytest.param(
        *(MATMUL, "int4", {**SMALL, "accumulator": "fp32,fraction=9", "block": 8}),
        marks=pytest.mark.slow,
    ),
    (DOT, "mx4_t4", {}),
]
"""Packed blocks, tiles of other accumulators, outer scales with those, and small blocks."""

BLOCKS = "hopper,reduction=32"
WIDE = [
    (DOT, "mxfp4", {"blocks": "packed", "stages": 5}),
    (DOT, "nvfp4", {"blocks": "packed", "stages": 2}),
    (DOT, "mx9xmx4", {"blocks": "packed"}),
    (DOT, "axs6", {"blocks": "packed", "accumulator": "exact", "block": 8}),
    (DOT, "mxfp8_e5m2", {"blocks": "packed", **EXACT}),
    (DOT, "fp8_e4m3", {"blocks": "packed", "accumulator": "hopper_fp8", "stages": 20}),
    (DOT, "int8_bfloat16_t0xint8_e8m0_t0", {"blocks": "packed"}),
    (DOT, "int8_e5m0_t0xmxint8", {"blocks": "packed"}),
    (DOT, "vsq4", {"accumulator": "exact"}),
    (DOT, "sm5d_float32_t0", EXACT),
    (DOT, "nvfp4", {"accumulator": "blackwell_fp4", "interleave": 2}),
    (MATMUL, "mxfp4xmxfp8_e4m3", {**SMALL, "accumulator": "blackwell_mx"}),
    (MATMUL, "nvfp4", {**SMALL, "accumulator": "blackwell_fp4"}),
    (MATMUL, "int8", {**SMALL, "accumulator": "paper"}),
    (MATMUL, "fp8_block", {**SMALL, "accumulator": "hopper_fp8_scaled"}),
    (
        DOT,
        "mxfp8_e5m2",
        {"blocks": "packed", "accumulator": "hopper,reduction=32,promote=1,scaled=true"},
    ),
]


@pytest.mark.parametrize(("unit", "fmt", "given"), OTHERS)
def test_packed_blocks_and_accumulators_of_tiles(
    unit: Unit, fmt: str, given: Any, count: int
) -> None:
    check(unit, count, format=fmt, **{"view": BEHAVIOUR, **given})


@pytest.mark.slow
@pytest.mark.parametrize("view", [BEHAVIOUR, STRUCTURE])
@pytest.mark.parametrize(("unit", "fmt", "given"), WIDE)
def test_more_packed_blocks_and_accumulators(
    unit: Unit, fmt: str, given: Any, view: str, count: int
) -> None:
    check(unit, count, format=fmt, **{**given, "view": view})


@pytest.mark.parametrize(
    ("a", "b"),
    [("mxfp8_e5m2", "mxfp8_e4m3"), ("nvfp4", "nvfp4"), ("axs6", "mxint8"), ("int8", "int8")],
)
def test_what_is_expected_is_the_golden_matmul(a: str, b: str) -> None:
    """Of encoded values with NaN and infinities where the format has them."""
    rng, count, size = np.random.default_rng(2), 40, 96
    values = [rng.normal(size=(count, size)).astype(np.float32) for _ in "ab"]
    values[0][0, 5], values[1][1, 7], values[1][1, 40] = np.nan, np.inf, -np.inf
    nonfinite: Any = "propagate" if CATALOG[a].has_nan and CATALOG[b].has_nan else "saturate"
    left, right = (
        encode(x, fmt, nonfinite=nonfinite) for x, fmt in zip(values, (a, b), strict=True)
    )
    expected = np.diag(matmul(left, right)).view(np.uint32)
    items: dict[str, Any] = {}
    for side, x in (("a", left), ("b", right)):
        scales = zip(x.scales, x.format.levels[::-1], strict=True)
        inner = [each for each, level in scales if level.blocked]
        names = DOT.inputs({"format": f"{a}x{b}"})
        mine = [name for name in names if name.startswith(f"{side}.")]
        for name, array in zip(mine, [*inner, x.codes], strict=True):
            items[name] = array.reshape(-1, *array.shape[2:])
    blocks = left.count
    items["last"] = np.tile([0] * (blocks - 1) + [1], count)
    if left.format.outer:
        scales = [np.uint32(x.scales[0]) for x in (left, right)]
        items["outer"] = np.full(count * blocks, fp32.multiply(*map(np.atleast_1d, scales))[0])
    found = DOT.golden(items, DOT.parameters({"format": f"{a}x{b}"}))["value"]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"format": "axs6xmxint8", "blocks": "packed"}, "with each other, not axs6xmxint8"),
        (
            {"format": "sm6dz_e6m0f_t32_modes", "blocks": "packed"},
            "with each other, not sm6dz_e6m0_t32_modes",
        ),
        ({"format": "int8_bfloat16_t0_float32", "blocks": "packed"}, "one scale of the channel or"),
        ({"format": "axs6xsm4d_e8m0_t32"}, "hardware for divisions by 3, .*, not by 217"),
    ],
)
def test_what_has_no_hardware_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dot(**given)
