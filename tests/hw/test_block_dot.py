"""The block dot product of every format against the golden model, in the batch simulator."""

from typing import Any

import numpy as np
import pytest

from axs6.golden import block_dot, encode
from axs6.golden.formats import ROW_FORMATS
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.dot.block_dot import BlockDot
from axs6.hw.dot.shape import DotShape, multiplied
from axs6.hw.fp32.number import MINUS, NAN, PLUS
from axs6.hw.units.block_dot import BLOCK_DOT
from axs6.sim.simulate import simulate

FORMATS = [name for name, fmt in ROW_FORMATS.items() if multiplied(fmt)]
PAIRS = ["axs6xmxint8", "mx9xmx4", "mxfp4xmxfp8_e4m3", "mxint8xmxfp4", "mxfp8_e5m2xmxfp8_e4m3"]
COMPOSED = [
    "int8_e8m0_t32s4o2s2o1",
    "sm6q3_e5m0_t64",
    "e3m4_e8m0_t8",
    "e5m2_e4m3fn_t16",
    "e2m1inuz_e4m3fnuz_t8",
    "e3m2fnuz_e8m0_t8",
    "e5m2inuz_e8m0_t32xmxfp8_e4m3",
    "nf4q6_e8m0_t16",
    "sm4+int4_float16_t8",
    "razerxe5m2_e4m3fn_t16_float32",
]
QUICK = {("nf4q6_e8m0_t16", STRUCTURE), ("razer", STRUCTURE)}
QUICK |= {("mx9", STRUCTURE), ("nvfp4", BEHAVIOUR)}
ITEMS = {"quick": 2_000, "slow": 20_000}

CASES = [
    pytest.param(fmt, view, marks=() if (fmt, view) in QUICK else pytest.mark.slow)
    for fmt in (*FORMATS, *PAIRS, *COMPOSED)
    for view in (BEHAVIOUR, STRUCTURE)
]


def differences(
    fmt: str, view: str, count: int = ITEMS["quick"], **parameters: Any
) -> dict[str, int]:
    """Outputs that differ, for corners and random items, by field."""
    settings = BLOCK_DOT.parameters({"format": fmt, "view": view, **parameters})
    parts = [
        BLOCK_DOT.corners(settings),
        BLOCK_DOT.random(settings, np.random.default_rng(3), count),
    ]
    items = {name: np.concatenate([x[name] for x in parts]) for name in parts[0]}
    expected = BLOCK_DOT.golden(items, settings)
    given = simulate("block_dot", items, **settings).outputs
    assert given.keys() == expected.keys()
    return {name: int((given[name] != expected[name]).sum()) for name in expected}


@pytest.mark.parametrize(("fmt", "view"), CASES)
def test_hardware_equals_the_golden_model(
    fmt: str, view: str, request: pytest.FixtureRequest
) -> None:
    slow = request.node.get_closest_marker("slow")
    count = ITEMS["slow" if slow else "quick"]
    assert not any(differences(fmt, view, count).values())


@pytest.mark.parametrize("block", [8, pytest.param(64, marks=pytest.mark.slow)])
def test_other_blocks(block: int) -> None:
    assert not any(differences("mxfp4", BEHAVIOUR, block=block, stages=3).values())


@pytest.mark.parametrize("fmt", ["mx9", "mxfp6_e2m3", "vsq6"])
def test_expected_sums_are_those_of_the_golden_model(fmt: str) -> None:
    shape, rng = DotShape.of(fmt), np.random.default_rng(0)
    a, b = (encode(rng.normal(size=(50, shape.block)).astype(np.float32), fmt) for _ in "ab")
    names = [name for name, _ in shape.operand(0)]
    items = {}
    for side, x in (("a", a), ("b", b)):
        inner = [
            s for s, level in zip(x.scales, x.format.levels[::-1], strict=True) if level.blocked
        ]
        for name, array in zip(names, [*inner, x.codes], strict=True):
            items[f"{side}.{name}"] = array.reshape(50, *array.shape[2:])
    expected = BLOCK_DOT.golden(items, BLOCK_DOT.parameters({"format": fmt}))
    sums, exponents = block_dot(a, b)
    assert np.array_equal(expected["sum"], sums[:, 0])
    if "exponent" in expected:
        assert np.array_equal(expected["exponent"], exponents[:, 0])


E5M2 = {"format": "mxfp8_e5m2", "one": 0x3C, "infinity": 0x7C, "nan": 0x7D}
P3109 = {"format": "binary8p3se_e8m0_t32", "one": 0x40, "infinity": 0x7F, "nan": 0x80}


@pytest.mark.parametrize(
    "having",
    [pytest.param(E5M2, id="E5M2"), pytest.param(P3109, id="P3109", marks=pytest.mark.slow)],
)
def test_what_is_no_number(having: Any) -> None:
    """NaN and infinities: each alone, with 0, and with one of the other sign."""
    one, infinity, nan, zero = having["one"], having["infinity"], having["nan"], 0x00
    negative = 0x80
    rows = [
        ([one], [one], 0),
        ([nan], [zero], NAN),
        ([infinity], [one], PLUS),
        ([infinity], [one | negative], MINUS),
        ([infinity | negative], [infinity], MINUS),
        ([infinity], [zero], NAN),
        ([infinity, infinity], [one, one | negative], NAN),
        ([infinity, one], [one, one], PLUS),
    ]
    items = {}
    for side, index in (("a", 0), ("b", 1)):
        codes = np.zeros((len(rows), 8), np.int64)
        for row, codes_of in zip(codes, rows, strict=True):
            given: Any = codes_of[index]
            row[: len(given)] = given
        items |= {f"{side}.exponent": np.full(len(rows), 127), f"{side}.codes": codes}
    settings = BLOCK_DOT.parameters({"format": having["format"], "block": 8, "view": BEHAVIOUR})
    for outputs in (
        BLOCK_DOT.golden(items, settings),
        simulate("block_dot", items, **settings).outputs,
    ):
        assert outputs["special"].tolist() == [row[2] for row in rows]
        assert not outputs["sum"][1:].any()


@pytest.mark.parametrize(
    ("fmt", "block", "message"),
    [
        ("axs6xmx9", None, "axs6 has blocks of 32 and mx9 of 16: give the size for both as block"),
        ("axs6xmx9", 16, "a and b must have levels of the same groups in a block"),
        ("nf4", None, "dot products in hardware need a table whose values are integers of at most"),
        ("uint8", None, "uint8 has zero points, for which dot products have no hardware"),
        ("mxfp4xmxfp4xmxfp4", None, "a product has one format or two, not 3"),
        ("mxfp4", 48, "group must be a power of two"),
        ("mxfp4", 256, "block must be a power of two from 2 to 128 here, not 256"),
        ("e4m3fn_e8m0_t16_bfloat16_t32", None, "needs one exponent for a block of 32"),
    ],
)
def test_what_has_no_hardware_is_refused(fmt: str, block: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BlockDot(block, format=fmt)
