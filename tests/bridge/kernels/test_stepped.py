"""Accumulators that align, truncate, round or promote, against the golden model."""

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import axs6
from axs6.golden.accumulator import ACCUMULATORS, accumulator
from axs6.golden.blocks import Blocks
from axs6.golden.formats import CATALOG, block_format
from axs6.torch import kernels
from axs6.torch.kernels import library

from .codes import operand_of_codes, operand_of_scales, operands_near_ties
from .test_kernels import WIDE as TOO_WIDE
from .test_kernels import different, matrix

Values = NDArray[np.float32]

CHANGED = (
    *("hopper_fp8,promote=2", "hopper,alignment=floor", "paper,fused=true", "hopper,fraction=31"),
    *("fp32,promote=3", "paper,output=e5m10,rounding=toward_zero", "turing,fused=false"),
    *("hopper,fraction=0", "paper,term=4", "fp32,nan=0x7fffffff"),
)
"""One accumulator for each property that no named one has with the others."""

NAMED = tuple(name for name, how in ACCUMULATORS.items() if how.output is not None)
FLOATS = ("mxfp8_e4m3", "mxfp8_e5m2", "fp8_e5m2", "mxfp4", "e5m2inuz_e8m0_t32")
OTHERS = ("axs6", "mx9", "mxint8", "nvfp4", "vsq8", "uint8")
MIXED = (("mxfp8_e4m3", "mxfp8_e5m2"), ("mxfp8_e5m2", "axs6"), ("mxint8", "mxfp4"))

SCALED = [
    *((name, name, "hopper_fp8_scaled") for name in ("fp8_block_t128", "e5m2_bfloat16_t128")),
    *(
        (name, name, f"{how},promote=1,scaled=true")
        for name in ("mxfp8_e5m2", "axs6", "int8_float32_t32")
        for how in ("hopper_fp8", "fp32", "paper,reduction=none")
    ),
]

SAMPLED = [
    *((name, name, how) for name in FLOATS for how in (*NAMED[1:], *CHANGED)),
    *((name, name, how) for name in OTHERS for how in ("paper", "blackwell_fp4", "hopper_fp8")),
    *((*pair, how) for pair in MIXED for how in ("ampere", "paper")),
    *SCALED,
]
PAIRS = [*((name, name) for name in CATALOG), *MIXED]
WIDE = [
    (*pair, how) for pair in PAIRS for how in (*NAMED[1:], *CHANGED) if (*pair, how) not in SAMPLED
]


def has(first: str, second: str, how: str) -> bool:
    return kernels.takes(block_format(first), block_format(second), accumulator(how))


def in_turn(cases: list[tuple[str, str, str]], each: int) -> list[tuple[str, str, str]]:
    """Cases of so many accumulators for each pair of formats, which take turns over all."""
    hows = list(dict.fromkeys(how for *_, how in cases))
    found, turn = [], 0
    for pair in dict.fromkeys(each[:2] for each in cases):
        own = [how for how in hows if (*pair, how) in cases]
        own.sort(key=lambda how: (hows.index(how) - turn) % len(hows))
        found += [(*pair, how) for how in own[:each]]
        turn += each
    missing = set(hows) - {how for *_, how in found}
    return found + [next(x for x in cases if x[2] == how) for how in hows if how in missing]


QUICK_WIDE = in_turn([each for each in WIDE if has(*each)], 2)
QUICK_SAMPLED = in_turn([each for each in SAMPLED if has(*each)], 9)
"""Those of them that every run has, which meet each accumulator and each pair of formats."""


@cache
def blocks_of(
    name: str, rows: int, length: int, how: str, seed: int, numbers: bool = False
) -> Blocks:
    """A matrix with zeros of either sign and, where the format has them, NaN and infinities."""
    rng = np.random.default_rng(seed)
    x = matrix(rng, rows, length, how)
    keep = block_format(name).has_nan and not numbers
    if keep:
        x[rng.random(x.shape) < 0.002] = np.nan
        x[rng.random(x.shape) < 0.002] = -np.inf
    return axs6.encode(x, name, nonfinite="propagate" if keep else "error")


def compare(first: str, second: str, how: str, numbers: bool = False) -> None:
    """Products of matrices; with `numbers`, of those without NaN and infinities."""
    for values in ("near one", "everything", "overflow"):
        for rows, columns, length in ((1, 17, 130), (6, 19, 200)):
            a = blocks_of(first, rows, length, values, 1, numbers)
            b = blocks_of(second, columns, length, values, 2, numbers)
            expected = axs6.matmul(a, b, how)
            packed = (kernels.pack(x) for x in (a, b))
            assert not different(kernels.matmul(*packed, accumulator(how))[0], expected)


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        pytest.param(*x, marks=[pytest.mark.slow] * (x not in QUICK_SAMPLED))
        for x in SAMPLED
        if has(*x)
    ],
)
def test_products(first: str, second: str, how: str) -> None:
    compare(first, second, how)


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        *(x for x in SCALED if has(*x)),
        ("fp8_e4m3", "fp8_e4m3", "hopper_fp8"),
        ("fp8_e5m2", "fp8_e4m3", "ada_fp8"),
        ("fp8_e4m3", "fp8_e5m2", "hopper_fp8,promote=3,nan=0x7fc00000"),
        ("fp8_e4m3", "int8", "hopper_fp8,fraction=8,output=bf16"),
    ],
)
def test_numbers_alone(first: str, second: str, how: str) -> None:
    compare(first, second, how, numbers=True)


def compare_codes(name: str, how: str) -> None:
    fmt = block_format(name).untiled
    a, b = operand_of_codes(fmt, 20, 0), operand_of_codes(fmt, 35, fmt.element.sign_bit)
    expected = axs6.matmul(a, b, how)
    packed = (kernels.pack(x) for x in (a, b))
    assert not different(kernels.matmul(*packed, accumulator(how))[0], expected)


CORES = (
    *(name for name, how in ACCUMULATORS.items() if how.pairwise or how.minus_zero),
    *("cdna1,rounding=toward_zero", "cdna1,output=e5m10", "cdna1,reduction=none,promote=2"),
    *("cdna2,flush=none", "cdna2,reduction=64,promote=3", "cdna2_bf16_1k,flush=-3"),
    *("cdna3,alignment=floor", "cdna3,groups=2", "cdna3,term=4", "cdna3_fp8,output=bf16"),
    *("cdna3_fp8,minus_zero=false", "hopper,minus_zero=true"),
)
"""Matrix cores, and one for each property that no named one has with the others."""


@pytest.mark.parametrize(
    ("name", "how"),
    [
        (name, how)
        for name in ("mxfp8_e5m2", "fp8_e5m2", "mxfp6_e2m3")
        for how in CORES
        if has(name, name, how)
    ],
)
def test_codes_in_matrix_cores(name: str, how: str) -> None:
    compare_codes(name, how)


LONGER = ("fp8_block_t128", "nf4", "nf4q6", "e5m2_float32_t128", "e4m3fn_float32_t16")
"""Formats whose products, with the significands of FP32 scales, have more bits than float64."""

NEAR_TIES = ("fp8_block_t128", "nf4q6")
"""Those of them in which one product of lanes has 54 to 60 bits."""

LONGER_IN = ("cdna_fp32", "cdna1", "cdna2", "cdna3", "cdna3_fp8", "hopper", "paper")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        pytest.param(name, how, marks=[pytest.mark.slow] * (name in LONGER[2:]))
        for name in LONGER
        for how in LONGER_IN
    ],
)
def test_long_products(name: str, how: str) -> None:
    compare_scales(name, how)


def compare_scales(name: str, how: str) -> None:
    fmt = block_format(name)
    compare_blocks(operand_of_scales(fmt, 20, 0), operand_of_scales(fmt, 35, 1), how)
    if name in NEAR_TIES:
        compare_blocks(*operands_near_ties(fmt), how)


def compare_blocks(a: Blocks, b: Blocks, how: str) -> None:
    expected = axs6.matmul(a, b, how)
    packed = (kernels.pack(x) for x in (a, b))
    assert not different(kernels.matmul(*packed, accumulator(how))[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, "blackwell_mx") for name in FLOATS if name != "fp8_e5m2"),
        *(("mxfp4", how) for how in ("blackwell_fp4", "blackwell_fp4,least=-120", "turing")),
    ],
)
def test_tiny_sums_and_terms_of_zeros(name: str, how: str, rng: np.random.Generator) -> None:
    fmt = block_format(name)

    def operand(rows: int) -> Blocks:
        codes = rng.integers(0, 1 << fmt.element.width, (rows, 8, fmt.block))
        numbers = ~fmt.element.nan_codes & (fmt.element.infinite_codes == 0)
        zeros = np.repeat(rng.random((rows, 8, fmt.block // 16)) < 0.4, 16, axis=-1)
        codes = np.where(numbers[codes] & ~zeros, codes, codes & fmt.element.sign_bit)
        scales = np.where(rng.random((rows, 8)) < 0.1, 100, 57 + rng.integers(-8, 9, (rows, 8)))
        shape = (rows, 8 * fmt.block)
        return Blocks(fmt, (scales.astype(np.uint8),), codes.astype(np.uint8), shape)

    a, b = operand(9), operand(35)
    expected = axs6.matmul(a, b, how)
    assert ((expected == 0) & np.signbit(expected)).sum() == 0
    assert (axs6.matmul(a, b, f"{how},alignment=floor") != expected).any()
    packed = (kernels.pack(x) for x in (a, b))
    assert not different(kernels.matmul(*packed, accumulator(how))[0], expected)


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [pytest.param(*x, marks=[pytest.mark.slow] * (x not in QUICK_WIDE)) for x in WIDE if has(*x)],
)
def test_all_products(first: str, second: str, how: str) -> None:
    compare(first, second, how)


@pytest.mark.parametrize(
    ("first", "second"),
    [pytest.param(*x, marks=[pytest.mark.slow] * (n % 4 != 0)) for n, x in enumerate(PAIRS)],
)
def test_products_in_fp32(first: str, second: str) -> None:
    """The first of the accumulators; whether it has kernels depends on the processor's."""
    assert NAMED[0] == "fp32"
    assert has(first, second, "fp32") == (first not in TOO_WIDE)
    if first not in TOO_WIDE:
        compare(first, second, "fp32")


def test_quick_products_meet_each_accumulator_and_each_pair() -> None:
    for cases, quick in ((WIDE, QUICK_WIDE), (SAMPLED, QUICK_SAMPLED)):
        possible = [each for each in cases if has(*each)]
        assert {each[:2] for each in quick} == {each[:2] for each in possible}
        assert {how for *_, how in quick} == {how for *_, how in possible}


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    "how",
    [
        *("hopper_fp8", "paper", "hopper,fraction=31,alignment=floor"),
        *("cdna1", "cdna2", "cdna3", "cdna3_fp8"),
    ],
)
@pytest.mark.parametrize("name", ["mxfp8_e5m2", "mxfp4"])
def test_every_form(name: str, how: str) -> None:
    compare(name, name, how)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    ("name", "how"), [("fp8_block_t128", "hopper_fp8_scaled"), ("fp8_e5m2", "hopper_fp8,promote=2")]
)
def test_narrow_sums_in_every_form(name: str, how: str) -> None:
    compare(name, name, how, numbers=True)


def test_what_has_a_kernel() -> None:
    for name in ("mxfp8_e4m3", "fp8_e5m2", "mxfp6_e3m2", "mxfp4", "nvfp4", "axs6", "int8"):
        assert all(has(name, name, how) for how in ("hopper_fp8", "ampere", "paper"))
    for how in ("exact", "fp32,reduction=64", "hopper,reduction=2", "hopper,fraction=48"):
        assert not has("mxfp8_e4m3", "mxfp8_e4m3", how)
    fmt = block_format("mxfp8_e4m3")
    packed = kernels.pack(axs6.encode(np.ones((2, 32), np.float32), fmt))
    with pytest.raises(ValueError, match=r"no kernel multiplies .* in exact"):
        kernels.matmul(packed, packed, accumulator("exact"))


def pairs_of_codes(name: str, other: Values) -> tuple[Blocks, Blocks]:
    """Every code in the first lane of a row, and of a column; in the second lane `other`."""
    blocks = []
    for seed in (1, 2):
        x = axs6.encode(np.broadcast_to(other[seed - 1], (256, 32)).copy(), name)
        codes = x.codes.copy()
        codes[:, 0, 0] = np.arange(256)
        blocks.append(replace(x, codes=codes))
    return blocks[0], blocks[1]


@pytest.mark.parametrize(
    "how", ["hopper_fp8", "hopper,alignment=floor", "hopper_fp8,promote=1,scaled=true"]
)
@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp8_e5m2"])
def test_every_pair_of_codes(name: str, how: str, rng: np.random.Generator) -> None:
    """Of numbers alone where the scales stand outside."""
    other = np.zeros((2, 32), np.float32)
    other[:, 1:8] = np.ldexp(rng.standard_normal((2, 7)), rng.integers(-6, 3, (2, 7)))
    a, b = pairs_of_codes(name, other)
    if "scaled" in how:
        element = a.format.element
        others = element.nan_codes | (element.infinite_codes != 0)
        a, b = (replace(x, codes=np.where(others[x.codes], np.uint8(0), x.codes)) for x in (a, b))
    found = kernels.matmul(kernels.pack(a), kernels.pack(b), accumulator(how))[0]
    assert not different(found, axs6.matmul(a, b, how))


@pytest.mark.parametrize("shape", [(0, 3, 64), (3, 0, 64), (3, 2, 0)])
def test_nothing(shape: tuple[int, int, int]) -> None:
    rows, columns, length = shape
    a, b = (
        kernels.encode(np.ones((1, n, length), np.float32), block_format("mxfp8_e4m3"))
        for n in (rows, columns)
    )
    assert a is not None
    assert b is not None
    found = kernels.matmul(a, b, accumulator("hopper_fp8"))
    assert not different(found, np.zeros((1, rows, columns), np.float32))


def test_threads_and_batches_change_nothing(rng: np.random.Generator) -> None:
    fmt, how = block_format("mxfp8_e4m3"), accumulator("hopper_fp8")
    x = np.stack([matrix(rng, 70, 256, "near one") for _ in range(6)])
    a, b = kernels.encode(x[:3], fmt), kernels.encode(x[3:], fmt)
    assert a is not None
    assert b is not None
    one = kernels.matmul(a, b, how)
    for threads in (2, 3, 8):
        assert not different(kernels.matmul(a, b, how, threads), one)
    for g in range(3):
        blocks = (axs6.encode(x[i, :5], fmt) for i in (g, g + 3))
        assert not different(one[g, :5, :5].copy(), axs6.matmul(*blocks, how))


def test_what_has_narrow_sums() -> None:
    """Elements whose scales stand outside, in tensor cores with few bits."""
    narrow = {
        ("fp8_block", "hopper_fp8_scaled"),
        ("fp8_e4m3", "hopper_fp8"),
        ("fp8_e5m2", "ada_fp8"),
        ("mxfp8_e5m2", "hopper_fp8,promote=1,scaled=true"),
    }
    wide = {
        ("mxfp8_e5m2", "hopper_fp8"),
        ("fp8_e4m3", "hopper"),
        ("fp8_e4m3", "hopper_fp8,least=0"),
        ("fp8_e4m3", "hopper_fp8,alignment=floor"),
        ("fp8_e4m3", "hopper_fp8,rounding=nearest"),
        ("fp8_e4m3", "hopper_fp8_to_fp16"),
        ("int8", "hopper_fp8"),
    }
    for name, how in narrow | wide:
        fmt = block_format(name).untiled
        found = kernels.stepped.steps(fmt, fmt, accumulator(how))
        assert found is not None
        assert bool(found[0].narrow) == ((name, how) in narrow)


FAULTS = {
    ("mxfp8_e5m2", "hopper_fp8"): {
        "rounds the accumulator": ("aligned.hpp", "std::trunc(own)", "std::nearbyint(own)"),
        "counts zeros": ("stepped.hpp", "NO_FIELD = -64", "NO_FIELD = 0"),
        "rounds to nearest": ("stepped.hpp", "how.truncate ?", "false ?"),
        "forgets infinities": (
            "stepped.hpp",
            "sum += static_cast<float>(left * right)",
            "sum += 0",
        ),
    },
    ("mxfp8_e5m2", "cdna1"): {
        "forgets what sums lose": ("unaligned.hpp", "lost[i][n] += ", "0 * "),
        "forgets what the accumulator loses": (
            "unaligned.hpp",
            "lost_in(both, c, sum), lost_in(a, b, both)",
            "lost_in(a, b, both), 0",
        ),
        "has no -0": ("stepped.hpp", "how.minus_zero ? -0.0", "false ? -0.0"),
    },
    ("mxfp8_e5m2", "cdna2_bf16_1k"): {
        "keeps subnormal results": ("unaligned.hpp", "< how_.normal", "< 0"),
        "adds other pairs": (
            "unaligned.hpp",
            "values + 2 * pair * PANEL, values + (2 * pair + 1) * PANEL",
            "values + pair * PANEL, values + (pair + count / 2) * PANEL",
        ),
        "marks what is no number": ("stepped.hpp", "&& !how.kept", ""),
    },
    ("mxfp8_e5m2", "cdna3"): {
        "drops bits of sums toward 0": (
            "aligned.hpp",
            "std::floor(sums[n] * near_power(more",
            "std::trunc(sums[n] * near_power(more",
        ),
        "drops bits of accumulators toward 0": (
            "aligned.hpp",
            "kept = std::floor(total",
            "kept = std::trunc(total",
        ),
        "keeps one bit more": (
            "aligned.hpp",
            "rounded(how.sum_fraction,",
            "rounded(how.sum_fraction + 1,",
        ),
        "has terms without limit": ("stepped.hpp", "std::fabs(term) >= power(128)", "false"),
    },
    ("fp8_e5m2", "cdna3_fp8"): {
        "has other groups": ("stepped.hpp", "own % how.groups * each + own / how.groups", "own"),
        "reaches further": (
            "aligned.hpp",
            "own < largest - how.reach",
            "own < largest - how.reach - 1",
        ),
        "drops bits of groups toward 0": (
            "aligned.hpp",
            "std::floor(sums[n] * near_power(top",
            "std::trunc(sums[n] * near_power(top",
        ),
    },
    ("e4m3fn_float32_t16", "hopper,reduction=64"): {
        "counts numbers under scales of 0": ("stepped.hpp", "value == 0 && !how.zeros", "false"),
    },
    ("fp8_block_t128", "cdna3"): {
        "rounds long products": ("lanes.hpp", "((below & positive) | (above & negative))", "0"),
    },
    ("nf4q6", "cdna1"): {
        "forgets lower bits of long sums": ("unaligned.hpp", "int64_t>(x) & MASK)", "int64_t>(0))"),
    },
    ("nf4", "cdna3"): {
        "has sums of 64 bits": (
            "stepped.hpp",
            "static_cast<__int128>(own) * static",
            "own * static",
        ),
    },
    ("nf4q6", "hopper"): {
        "rounds long terms": (
            "common.hpp",
            "kept | inexact",
            "(kept + (magnitude >> (shift - 1) & 1))",
        ),
    },
    ("fp8_block_t128", "cdna2"): {
        "rounds long products twice": (
            "unaligned.hpp",
            "LONGER ? product_to_odd(x, y)",
            "false ? 0",
        ),
    },
    ("fp8_block_t128", "hopper_fp8_scaled"): {
        "has the sign of rows alone": (
            "truncated.hpp",
            "std::signbit(magnitudes[l]) ? 0 : COLUMNS",
            "COLUMNS",
        ),
        "keeps all bits of sums": ("truncated.hpp", "-1 << (23 - how().output_fraction)", "-1"),
        "rounds products": (
            "stepped.hpp",
            "std::fma(total[n] * unit, factor, promoted[n])",
            "promoted[n] + static_cast<float>(double(total[n] * unit) * factor)",
        ),
        "has exact factors": (
            "stepped.hpp",
            "const auto factor = static_cast<float>(own * scales[n])",
            "const double factor = own * scales[n]",
        ),
    },
}
"""Changes of a file that products of a format in an accumulator must show."""

WRONG = {
    fault: (*change, *pair) for pair, faults in FAULTS.items() for fault, change in faults.items()
}

QUICK = ("forgets what sums lose",)
"""Compiling takes seconds, so the others are slow tests."""


@pytest.mark.parametrize(
    "fault", [pytest.param(x, marks=[pytest.mark.slow] * (x not in QUICK)) for x in WRONG]
)
def test_a_wrong_kernel_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: dict[str, Any] = library.sources()
    file, right, wrong, name, how = WRONG[fault]
    scaled = accumulator(how).scaled
    if scaled and library.name_of(library.load("native")) not in library.NAMES[:2]:
        pytest.skip("the processor has no rounding within an instruction")
    assert right in texts[file]
    texts[file] = texts[file].replace(right, wrong)
    monkeypatch.setattr(library, "sources", lambda: texts)
    monkeypatch.setattr(library, "OPTIONS", ("-O0", "-pthread"))
    broken = library.load.__wrapped__("native")
    monkeypatch.setattr(library, "_library", lambda form: broken)
    compared = partial(compare, name, name, how, numbers=scaled)
    if name in LONGER and not scaled:
        compared = partial(compare_scales, name, how)
    elif how in CORES:
        compared = partial(compare_codes, name, how)
    with pytest.raises(AssertionError, match=r"assert not \d+"):
        compared()
