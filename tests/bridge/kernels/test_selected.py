"""Elements that a scale selects, and sums under factors of any significands, in the kernels."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import axs6
from axs6.golden.blocks import Blocks
from axs6.golden.formats import block_format
from axs6.torch import kernels
from axs6.torch.kernels import library
from axs6.torch.kernels.sums import FLOAT, Factors, factors

Values = NDArray[np.float32]

SELECTED = (
    *("if4", "razer", "if4_float32_t8", "sm4+int4_float16_t16", "sm4z+int4_e4m3fn_t32"),
    "e2m1fn+table0:1:2:3:4:5:6::::-6:-5:-4:-3:-2:-1_float16_t16",
)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 3.4e38, -1e-45)


KINDS = ("wide", "near one", "halves", "zeros")


def rows(kind: str, length: int) -> Values:
    """Numbers of every size, or of one, halves that both elements miss by as much, or zeros."""
    rng = np.random.default_rng(5)
    if kind == "wide":
        x = rng.standard_normal((60, length)) * np.exp2(rng.integers(-140, 120, (60, 1)))
    elif kind == "near one":
        x = rng.standard_normal((200, length))
    elif kind == "halves":
        x = rng.integers(-14, 15, (400, length)) / 2 * (rng.random((400, length)) < 0.2)
        x[:, ::8] = 6
        x[0, 0] = 6 * 448
    else:
        x = np.where(rng.random((9, length)) < 0.5, 0.0, -0.0)
        x[3:] *= rng.integers(0, 2, (6, length))
        x[6:, 1] = -1e-45
    return x.astype(np.float32)


def with_specials(x: Values) -> Values:
    rng = np.random.default_rng(6)
    found = x.copy()
    for special in SPECIAL:
        found[rng.random(x.shape) < 0.02] = special
    return found


@cache
def golden(name: str, kind: str, length: int, special: bool) -> tuple[Values, Blocks, Values]:
    x = rows(kind, length)
    if special:
        x = with_specials(x)
    blocks = axs6.encode(x, name, nonfinite="saturate")
    return x, blocks, axs6.decode(blocks)


def wrong_values(name: str, kind: str, length: int, special: bool = False) -> int:
    """Values that differ in a bit from the golden model's."""
    x, blocks, expected = golden(name, kind, length, special)
    fmt = block_format(name)
    values = kernels.fake_quantise(x, fmt, "saturate")
    packed, encoded = kernels.pack(blocks), kernels.encode(x[None], fmt, "saturate")
    assert values is not None
    assert encoded is not None
    different = int((values.view(np.uint32) != expected.view(np.uint32)).sum())
    different += int((packed.in_lanes(FLOAT) != encoded.in_lanes(FLOAT)).sum())
    return different + int((packed.factors != encoded.factors).sum())


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", SELECTED)
def test_selections_are_golden(name: str) -> None:
    for kind in KINDS:
        for length in (64, 37, 5):
            for special in (False, True):
                assert not wrong_values(name, kind, length, special)
    assert kernels.fake_quantise(with_specials(rows("wide", 64)), block_format(name)) is None


@pytest.mark.parametrize("name", ["if4", "razer"])
def test_the_values_select_both_elements(name: str) -> None:
    _, blocks, _ = golden(name, "near one", 64, False)
    assert 0.05 < (blocks.scales[-1] >> 7).mean() < 0.95


def test_other_values_have_equal_errors_in_both_elements() -> None:
    fmt = block_format("razer")
    x, *_ = golden("razer", "halves", 64, False)
    found = [axs6.decode(axs6.encode(x, part), np.float64) for part in fmt.parts]
    first, second = (((y - x) ** 2).reshape(len(x), -1, 16).sum(-1) for y in found)
    different = (found[0] != found[1]).reshape(len(x), -1, 16).any(-1)
    assert ((first == second) & different).any()


@pytest.mark.parametrize("name", ["nf4+nf4q6_e4m3fn_t16", "sm6+int6_e4m3fn_t16"])
def test_other_selections_have_no_kernel(name: str) -> None:
    assert not kernels.encodes(block_format(name))


NEAR = (
    ([-34, 28, 5], [-64, -18, 5], 24, 14953817, 16225195),
    ([64, 64, 5], [64, -64, 5], 31, 15063035, 9923247),
    ([64, 64, 5], [64, -64, 5], 31, 15720083, 13307507),
    ([-45, 46, 46], [-45, 16, 28], 18, 16248255, 15183217),
    ([64, 64, 5], [64, -64, 5], 31, 15331881, 10361507),
)
"""Lanes, pairs of 64 more, and significands whose product lies next to the middle of two FP32
numbers, nearer than float64 sees, or two numbers of FP32."""


def near(case: int) -> tuple[Blocks, Blocks]:
    """Blocks of nf4q6 whose product is such a number."""
    left, right, count, *scales = NEAR[case]
    integers = block_format("nf4q6").element.integers.tolist()
    found = []
    for lanes, scale in zip((left, right), scales, strict=True):
        whole = [*lanes, *[64] * count, *[0] * (61 - count)]
        x = np.array(whole, np.float32)[None]
        blocks = axs6.encode(x, "nf4q6")
        codes = np.array([integers.index(value) for value in whole], np.uint8)
        bits = np.array([[scale]], np.float32).view(np.uint32)
        found.append(Blocks(blocks.format, (bits,), codes.reshape(1, 1, 64), x.shape))
    return found[0], found[1]


def near_products() -> int:
    """Products that differ from the golden model's."""
    found = 0
    for case in range(len(NEAR)):
        a, b = near(case)
        given = kernels.matmul(kernels.pack(a), kernels.pack(b))[0]
        found += int((given.view(np.uint32) != axs6.matmul(a, b).view(np.uint32)).sum())
    return found


@pytest.mark.usefixtures("form")
def test_products_next_to_the_middle_of_two_numbers() -> None:
    assert not near_products()


@cache
def of_every_size(name: str) -> tuple[Blocks, Blocks, Values]:
    """Two matrices whose scales are of every size, and their product."""
    rng = np.random.default_rng(8)
    found = []
    for rows in (31, 40):
        x = rng.standard_normal((rows, 192)) * np.exp2(rng.integers(-150, 125, (rows, 1)))
        found.append(axs6.encode(x.astype(np.float32), name))
    return found[0], found[1], axs6.matmul(*found)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", ["nf4q6", "int4_float32_t128", "if4"])
def test_products_of_every_size(name: str) -> None:
    a, b, expected = of_every_size(name)
    assert np.isinf(expected).any()
    assert (expected == 0).any() or name == "if4"
    given = kernels.matmul(kernels.pack(a), kernels.pack(b))[0]
    assert (given.view(np.uint32) == expected.view(np.uint32)).all()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("axs6", "axs6"), Factors.POWERS),
        (("razer", "razer"), Factors.SHORT),
        (("if4", "if4"), Factors.LONG),
        (("nf4q6", "nf4q6"), Factors.DOUBLE),
        (("mxfp8_e5m2", "mxfp8_e5m2"), None),
        (("fp8_block", "fp8_block"), None),
    ],
)
def test_the_factors_of_sums(names: tuple[str, str], expected: Factors | None) -> None:
    a, b = (kernels.layout.layout(block_format(name).untiled) for name in names)
    assert factors(a, b) is expected


WRONG = {
    "the second of two equal": ("native", "real.hpp", "return total > 0;", "return total >= 0;"),
    "the first always": ("native", "real.hpp", "return total > 0;", "return false;"),
    "zeros without a sign": ("native", "real.hpp", "if (!table.negative_zero) return;", "return;"),
    "a product rounded twice": (
        "avx2",
        "product.hpp",
        "        if (any)\n",
        "        if (false)\n",
    ),
    "a rest that is rounded": ("avx512", "lanes.hpp", "lost, bits, one)", "0 * lost, bits, one)"),
}


@pytest.mark.parametrize(
    "fault",
    [pytest.param(x, marks=[pytest.mark.slow] * (x not in list(WRONG)[:1])) for x in WRONG],
)
def test_a_wrong_kernel_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form, file, right, wrong = WRONG[fault]
    if form == "avx512" and "avx512" not in library.name_of(library.load(form)):
        pytest.skip("the processor has no AVX-512 with VNNI")
    texts = library.sources()
    assert right in texts[file]
    texts[file] = texts[file].replace(right, wrong)
    monkeypatch.setattr(library, "sources", lambda: texts)
    monkeypatch.setattr(library, "OPTIONS", ("-O0", "-pthread"))
    broken = library.load.__wrapped__(form)
    monkeypatch.setattr(library, "_library", lambda form: broken)
    wrong_if4 = sum(wrong_values("if4", kind, 64) for kind in KINDS)
    assert near_products() + wrong_if4 + wrong_values("razer", "halves", 64) > 0
