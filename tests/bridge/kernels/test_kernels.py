import logging
import re
import shutil
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import axs6
from axs6.golden.accumulator import accumulator
from axs6.golden.blocks import Blocks
from axs6.golden.factors import divisor
from axs6.golden.formats import AXS6, CATALOG, TENSOR, BlockFormat, block_format
from axs6.golden.scaling import as_wide, real_scales, rounded_quotient
from axs6.torch import kernels
from axs6.torch.kernels import library
from axs6.torch.kernels.layout import layout
from axs6.torch.kernels.rows import row_scales
from axs6.torch.kernels.sums import FLOAT, in_tiles

Values = NDArray[np.float32]

TILES = pytest.mark.skipif(
    "not kernels.chosen() or not kernels.chosen().axs6_has_tiles()", reason="no matrix unit"
)

RANGES = {
    "near one": (-2, 3),
    "everything": (-149, 128),
    "subnormal products": (-75, -55),
    "subnormal operands": (-149, -118),
    "large products": (58, 68),
    "overflow": (100, 128),
}
"""Binary exponents that the values of a matrix are spread over."""

QUANTISED = (
    *("axs6", "axs6_t8", "mx9", "mx6", "mxint8", "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2"),
    *("mxfp8_e4m3", "mxfp8_e5m2", "msfp12", "mxfp8_e4m3-ceil", "mxfp4-even", "mxint8-rceil"),
    *("nvfp4", "vsq6", "fp8_e4m3", "int8", "int8_float32_t0", "e4m3fn_float32_t32"),
    *("fp8_e4m3fnuz", "e5m2inuz_e8m0_t32", "e2m1inuz_e4m3fnuz_t16"),
    *("nf4q6_e8m0_t16", "nf4q6", "table0:1:7:-6q3_e8m0_t16s2o1"),
    *("if4", "razer", "table0:6:12:14::-14:-2:-7d7q1_e4m3fn_t8"),
)
MULTIPLIED = (
    "axs6",
    "axs6_t8",
    "mx9",
    "mx6",
    "mxint8",
    "mxfp4",
    "mxfp6_e3m2",
    "mxfp8_e4m3",
    "mxfp8_e5m2",
    "e5m2inuz_e8m0_t32",
)
SCALED = ("nvfp4", "razer", "if4", "nf4q6", "int8_float32_t32")
"""Formats whose factors have significands: sums with them have 24 bits, or more."""
WIDE = ("fp8_block", "nf4")
"""Formats whose sums, with the significands of FP32 scales, are wider than the kernels take."""
SHAPES = ((1, 1, 5), (7, 1, 64), (1, 9, 200), (17, 33, 130))


def matrix(rng: np.random.Generator, rows: int, columns: int, how: str) -> Values:
    """Values whose blocks differ in exponent, some of them zeros of either sign."""
    groups = -(-columns // 8)
    exponents = np.repeat(rng.integers(*RANGES[how], (rows, groups)), 8, axis=1)[:, :columns]
    x = np.ldexp(rng.standard_normal((rows, columns)), exponents)
    x[np.repeat(rng.random((rows, groups)) < 0.1, 8, axis=1)[:, :columns]] = 0
    x[rng.random(x.shape) < 0.02] = -0.0
    limit = float(np.finfo(np.float32).max)
    return np.clip(x, -limit, limit).astype(np.float32)


def different(a: NDArray[Any], b: NDArray[Any]) -> int:
    """How many values of two float32 arrays differ in a bit."""
    assert a.dtype == b.dtype == np.float32
    assert a.shape == b.shape
    left, right = (np.ascontiguousarray(x).view(np.uint32) for x in (a, b))
    return int((left != right).sum())


def ours(a: Values, b: Values, fmt: BlockFormat, threads: int = 1) -> Values:
    left, right = (kernels.encode(x[None], fmt) for x in (a, b))
    assert left is not None
    assert right is not None
    return kernels.matmul(left, right, threads=threads)[0]


@cache
def golden_products(name: str, how: str) -> list[tuple[Values, Values, Values]]:
    rng = np.random.default_rng(0)
    found = []
    for rows, columns, length in SHAPES:
        for other in RANGES:
            a, b = matrix(rng, rows, length, how), matrix(rng, columns, length, other)
            product = axs6.matmul(axs6.encode(a, name), axs6.encode(b, name))
            found.append((a, b, product))
    return found


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    ("name", "how"),
    [
        pytest.param(name, how, marks=[pytest.mark.slow] * ((place + number) % 3 != 0))
        for number, name in enumerate((*MULTIPLIED, *SCALED))
        for place, how in enumerate(RANGES)
    ],
)
def test_products_over_all_exponents(name: str, how: str) -> None:
    """Every run has two of the ranges for each format, in turn."""
    fmt = block_format(name)
    assert kernels.takes(fmt, fmt)
    for a, b, expected in golden_products(name, how):
        assert not different(ours(a, b, fmt), expected)


@cache
def golden_values(name: str) -> list[tuple[Values, Values]]:
    rng = np.random.default_rng(0)
    found = []
    for how in RANGES:
        for rows, columns in ((9, 130), (3, 64), (2, 3)):
            x = matrix(rng, rows, columns, how)
            found.append((x, axs6.decode(axs6.encode(x, name))))
    return found


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", QUANTISED)
def test_values_over_all_exponents(name: str) -> None:
    for x, expected in golden_values(name):
        found = kernels.fake_quantise(x, block_format(name))
        assert found is not None
        assert not different(found, expected)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", QUANTISED)
def test_what_is_not_finite(name: str, rng: np.random.Generator) -> None:
    fmt = block_format(name)
    for how in ("near one", "everything"):
        x = matrix(rng, 20, 96, how)
        x[rng.random(x.shape) < 0.05] = np.nan
        x[rng.random(x.shape) < 0.05] = np.inf
        x[rng.random(x.shape) < 0.05] = -np.inf
        expected = axs6.decode(axs6.encode(x, name, nonfinite="saturate"))
        found = kernels.fake_quantise(x, fmt, "saturate")
        assert found is not None
        assert not different(found, expected)
        assert kernels.fake_quantise(x, fmt) is None


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", ["axs6", "mx9", "int8", "int8_float32_t0", "nvfp4", "mxfp8_e5m2"])
def test_biases_are_added_to_rounded_products(name: str, rng: np.random.Generator) -> None:
    fmt = block_format(name)
    for how in ("near one", "everything", "overflow"):
        for rows, columns, length in SHAPES:
            a, b = (matrix(rng, 2 * n, length, how) for n in (rows, columns))
            left, right = (kernels.encode(x.reshape(2, -1, length), fmt) for x in (a, b))
            assert left is not None
            assert right is not None
            products = kernels.matmul(left, right)
            bias = matrix(rng, 2, columns, how)
            for special in (np.float32(0), np.inf, np.nan):
                bias[1, columns // 2] += special
                with np.errstate(over="ignore", invalid="ignore"):
                    expected = products + bias[:, None]
                expected[np.isnan(expected)] = np.nan
                for threads in (1, 3):
                    found = kernels.matmul(left, right, threads=threads, bias=bias)
                    assert not different(found, expected)
    with pytest.raises(ValueError, match=r"bias must have shape \(2, 33\), not \(1, 33\)"):
        kernels.matmul(left, right, bias=bias[:1])
    with pytest.raises(ValueError, match="bias is for the accumulator fp32, not paper"):
        kernels.matmul(left, right, accumulator("paper"), bias=bias)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    ("name", "other"),
    [*((name, name) for name in MULTIPLIED), ("mxint8", "mxfp4"), ("mxfp8_e4m3", "axs6")],
)
def test_encoding_and_multiplying_in_one_go(
    name: str, other: str, rng: np.random.Generator
) -> None:
    fmt = block_format(name)
    for how in RANGES:
        for rows, columns, length in SHAPES:
            x = matrix(rng, 2 * rows, length, how).reshape(2, rows, length)
            right = kernels.encode(
                matrix(rng, 2 * columns, length, how).reshape(2, -1, length), block_format(other)
            )
            assert right is not None
            assert kernels.fuses(fmt, right)
            bias = matrix(rng, 2, columns, how)
            for threads in (1, 3):
                left = kernels.encode(x, fmt)
                assert left is not None
                for added in (None, bias):
                    found = kernels.encode_matmul(x, fmt, right, threads=threads, bias=added)
                    assert found is not None
                    assert not different(found, kernels.matmul(left, right, bias=added))
            x[1, rows // 2, :3] = np.nan, np.inf, -np.inf
            assert kernels.encode_matmul(x, fmt, right) is None
            left = kernels.encode(x, fmt, "saturate")
            assert left is not None
            found = kernels.encode_matmul(x, fmt, right, "saturate")
            assert found is not None
            assert not different(found, kernels.matmul(left, right))


def test_encoding_and_multiplying_is_refused(rng: np.random.Generator) -> None:
    x = matrix(rng, 3, 64, "near one")[None]
    right, real = (kernels.encode(x, block_format(name)) for name in ("mxint8", "int8"))
    assert right is not None
    assert real is not None
    assert not kernels.fuses(block_format("int8"), real)
    with pytest.raises(ValueError, match="no kernel encodes and multiplies"):
        kernels.encode_matmul(x, block_format("int8"), real)
    with pytest.raises(ValueError, match=r"bias must have shape \(1, 3\), not \(1, 2\)"):
        kernels.encode_matmul(x, block_format("mxint8"), right, bias=np.ones((1, 2), np.float32))


@cache
def golden_packed(first: str, second: str) -> list[tuple[Blocks, Blocks, Values]]:
    """Products of blocks with NaN and infinities, where the formats have them."""
    rng = np.random.default_rng(0)
    found = []
    for how in ("near one", "everything"):
        for rows, columns in ((1, 17), (14, 33)):
            blocks = []
            for name, count in ((first, rows), (second, columns)):
                x = matrix(rng, count, 96, how)
                keep = block_format(name).has_nan
                if keep:
                    x[rng.random(x.shape) < 0.003] = np.nan
                    x[rng.random(x.shape) < 0.003] = -np.inf
                blocks.append(axs6.encode(x, name, nonfinite="propagate" if keep else "error"))
            found.append((*blocks, axs6.matmul(*blocks)))
    return found


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        *((name, name) for name in CATALOG if name not in WIDE),
        *(("mxint8", "mxfp4"), ("mxfp8_e4m3", "axs6"), ("mxfp8_e5m2", "mxfp8_e4m3")),
    ],
)
def test_packed_blocks_of_every_format(first: str, second: str) -> None:
    assert kernels.takes(block_format(first), block_format(second))
    for a, b, expected in golden_packed(first, second):
        found = kernels.matmul(kernels.pack(a), kernels.pack(b))
        assert not different(found[0], expected)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("mxint8_t2", "mxint8_t2"),
        ("axs6", "mx9"),
        *zip(WIDE, WIDE, strict=True),
    ],
)
def test_products_that_have_no_kernel(name: str, other: str) -> None:
    assert not kernels.takes(block_format(name), block_format(other))


def test_tables_that_fp32_does_not_hold() -> None:
    wide = block_format("table0:1073741825:-1073741827:5q30_e8m0_t16")
    assert not kernels.takes(wide, wide)
    assert kernels.takes(block_format("nf4_e8m0_t16"), block_format("nf4_e8m0_t16"))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("shape", [(0, 3, 64), (3, 0, 64), (3, 2, 0), (0, 0, 0)])
def test_nothing(shape: tuple[int, int, int]) -> None:
    rows, columns, length = shape
    a, b = np.ones((rows, length), np.float32), np.ones((columns, length), np.float32)
    for name in ("axs6", "nvfp4", "int8"):
        nothing = np.zeros((rows, columns), np.float32)
        assert not different(ours(a, b, block_format(name)), nothing)
    right = kernels.encode(b[None], AXS6)
    assert right is not None
    found = kernels.encode_matmul(a[None], AXS6, right)
    assert found is not None
    assert not different(found[0], nothing)


@pytest.mark.usefixtures("form")
def test_threads_change_nothing(rng: np.random.Generator) -> None:
    for rows, columns in ((600, 400), (5, 30_000), (20_000, 7)):
        a, b = matrix(rng, rows, 64, "near one"), matrix(rng, columns, 64, "everything")
        one = ours(a, b, AXS6)
        for threads in (2, 3, 8):
            assert not different(ours(a, b, AXS6, threads), one)


@pytest.mark.usefixtures("form")
def test_every_matrix_of_a_batch(rng: np.random.Generator) -> None:
    a = np.stack([matrix(rng, 10, 70, "near one") for _ in range(5)])
    b = np.stack([matrix(rng, 40, 70, "near one") for _ in range(5)])
    left, right = kernels.encode(a, AXS6), kernels.encode(b, AXS6)
    assert left is not None
    assert right is not None
    y = kernels.matmul(left, right, threads=4)
    for g in range(5):
        assert not different(y[g], axs6.matmul(axs6.encode(a[g]), axs6.encode(b[g])))


@pytest.mark.parametrize(
    ("form", "name", "file", "right"),
    [
        (
            "avx512",
            "axs6",
            "product.hpp",
            "Floats sums = __builtin_convertvector(sum[i][v], Floats)",
        ),
        pytest.param(
            *("native", "mx9", "tiles.hpp", "Floats sum = sums[k - first_k].row(i)"),
            marks=[TILES, pytest.mark.slow],
        ),
    ],
)
def test_a_wrong_kernel_is_caught(
    form: str,
    name: str,
    file: str,
    right: str,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a unit more in every sum of a block."""
    a, b = matrix(rng, 40, 256, "near one"), matrix(rng, 40, 256, "near one")
    fmt = block_format(name)
    expected = axs6.matmul(axs6.encode(a, fmt), axs6.encode(b, fmt))
    assert not different(ours(a, b, fmt), expected)
    texts = library.sources()
    assert right in texts[file]
    texts[file] = texts[file].replace(right, f"{right} + 0.5f")
    monkeypatch.setattr(library, "sources", lambda: texts)
    monkeypatch.setattr(library, "OPTIONS", ("-O0", "-pthread"))
    broken = library.load.__wrapped__(form)
    monkeypatch.setattr(library, "_library", lambda form: broken)
    assert different(ours(a, b, fmt), expected) > 1000


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", ["axs6", "mx9", "mxfp8_e4m3", "nvfp4", "mxfp8_e5m2"])
def test_right_operands_keep_their_panels_alone(name: str, rng: np.random.Generator) -> None:
    fmt = block_format(name)
    a, b = (kernels.encode(matrix(rng, 2 * n, 130, "near one")[None], fmt) for n in (3, 37))
    assert a is not None
    assert b is not None
    lanes, factors = b.in_lanes(FLOAT), b.factors
    product = kernels.matmul(a, b)
    assert b._lanes is None
    assert (b.in_lanes(FLOAT) == lanes).all()
    assert (b.factors == factors).all()
    assert not different(kernels.matmul(a, b), product)
    assert not different(kernels.matmul(b, a), np.ascontiguousarray(product.mT))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        *(((name,), True) for name in ("axs6", "mx9", "int8", "mxfp8_e4m3", "nvfp4")),
        (("mxfp8_e4m3", "axs6"), True),
        (("mxfp8_e5m2",), False),
        (("mxfp8_e5m2", "mxfp8_e4m3"), False),
        (("mxint8_t64",), True),
    ],
)
def test_products_in_matrix_units(names: tuple[str, ...], expected: bool) -> None:
    a, b = (layout(block_format(name)) for name in (names[0], names[-1]))
    assert in_tiles(a, b) == in_tiles(b, a) == expected


@pytest.mark.usefixtures("forms")
def test_forms_are_what_they_say() -> None:
    names = [library.name_of(library.load(form)) for form in ("native", "plain")]
    assert names[0] in library.NAMES
    assert names[1] == "plain"
    with pytest.raises(ValueError, match="form must be one of native, avx512, avx2, plain or None"):
        kernels.use("sse").__enter__()


def test_without_a_compiler_there_is_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library.load.cache_clear()
    library._library.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with caplog.at_level(logging.INFO, "axs6"):
        assert kernels.chosen() is None
    assert "needs g++ on PATH" in caplog.text
    library._library.cache_clear()


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", ["int8", "int4", "fp8_e4m3", "fp8_e5m2", "int8_float32_t0"])
@pytest.mark.parametrize("how", RANGES)
def test_real_scales_of_rows_and_tensors(name: str, how: str, rng: np.random.Generator) -> None:
    x = matrix(rng, 12, 100, how)
    x[3] = 0
    for nonfinite in ("error", "saturate"):
        packed = kernels.pack(axs6.encode(x, name, nonfinite=nonfinite))
        encoded = kernels.encode(x[None], block_format(name), nonfinite)
        assert encoded is not None
        assert encoded.outer is not None
        assert packed.outer is not None
        assert (packed.in_lanes(FLOAT) == encoded.in_lanes(FLOAT)).all()
        assert not different(packed.outer, encoded.outer)
        x[2, 5:8] = np.inf, -np.inf, np.nan
    assert kernels.encode(x[None], block_format(name)) is None


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", ["int8", "fp8_e5m2", "int8_float32_t0", "nvfp4", "vsq6"])
@pytest.mark.parametrize("scale", [1e-45, 2.0**-126, 0.3, 7.3, 3.4e38])
def test_scales_that_are_given(name: str, scale: float, rng: np.random.Generator) -> None:
    fmt = block_format(name)
    for how in ("everything", "near one", "overflow"):
        x = matrix(rng, 12, 100, how)
        for nonfinite in ("error", "saturate"):
            blocks = axs6.encode(x, name, nonfinite=nonfinite, scale=scale)
            packed = kernels.pack(blocks)
            encoded = kernels.encode(x[None], fmt, nonfinite, scale=scale)
            values = kernels.fake_quantise(x, fmt, nonfinite, scale=scale)
            assert encoded is not None
            assert values is not None
            assert (packed.in_lanes(FLOAT) == encoded.in_lanes(FLOAT)).all()
            assert (packed.factors == encoded.factors).all()
            assert not different(packed.outer, encoded.outer)
            assert not different(values, axs6.decode(blocks))
            x[2, 5:8] = np.inf, -np.inf, np.nan
        assert kernels.encode(x[None], fmt, scale=scale) is None


@pytest.mark.parametrize(
    ("name", "scale"), [("int8", -1.0), ("int8", 1e39), ("int8", np.nan), ("mxint8", 1.0)]
)
def test_scales_that_are_refused(name: str, scale: float) -> None:
    with pytest.raises(ValueError, match=re.escape(f" under {scale}")):
        kernels.fake_quantise(np.ones((1, 4), np.float32), block_format(name), scale=scale)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", QUANTISED)
def test_packed_blocks_are_those_encoded(name: str, rng: np.random.Generator) -> None:
    x = matrix(rng, 12, 100, "everything")
    packed = kernels.pack(axs6.encode(x, name))
    encoded = kernels.encode(x[None], block_format(name))
    assert encoded is not None
    assert packed.lanes.dtype == encoded.lanes.dtype
    assert (packed.in_lanes(FLOAT) == encoded.in_lanes(FLOAT)).all()
    assert (packed.factors == encoded.factors).all()


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("name", ["int8", "int8_float32_t0", "fp8_e5m2", "nvfp4", "vsq6"])
def test_scales_of_rows(name: str, flush: bool, rng: np.random.Generator) -> None:
    """Whatever the calling thread makes of subnormal numbers."""
    fmt = block_format(name)
    (level,) = fmt.outer
    top = np.abs(matrix(rng, 1, 4096, "everything"))[0].view(np.uint32)
    top[:40] = np.arange(40)
    top[40:80] = np.arange(40) + (1 << 23) - 20
    for each in (top, *np.split(top, 64)):
        whole = each.max(keepdims=True) if level.group == TENSOR else each
        exact = rounded_quotient(as_wide(whole), divisor(fmt, level)).view(np.float32)
        _, expected = real_scales(level.scale, exact, whole == 0)
        torch.set_flush_denormal(flush)
        try:
            found = row_scales(each, fmt, None)
        finally:
            torch.set_flush_denormal(False)
        assert not different(found, np.broadcast_to(expected, found.shape))
