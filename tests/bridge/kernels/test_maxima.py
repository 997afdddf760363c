"""Kernels and torch's operations against the golden model over all exponents of blocks' maxima.

The quick tests have the catalog and a format of every kind; the slow ones compose every element
with every kind of scale, and run the kernels for AVX-512 by instructions of their own.
"""

from itertools import product
from typing import Any

import pytest

from axs6.golden.formats import CATALOG, BlockFormat, Rule, block_format
from axs6.torch import kernels, lanes
from axs6.torch.kernels import library

from .maxima import Way, assert_golden, by_kernels, by_torch

TENSORS = 12
"""Tensors of a format whose values share one scale, in a quick test."""

EDGES = (
    *("mxfp8_e5m2-rceil", "mxfp8_e4m3-ceil", "mxfp4-even", "mxint8-rceil", "mx6-rceil"),
    *("e4m3fn_e5m0_t32", "e2m1fn_e4m0-ceil_t32", "e3m2fn_e6m0n_t16s2o1", "sm5d_e4m0f_t8"),
    *("e3m2fnb-50_e8m0-rceil_t32", "e3m2fnb55_e5m0-rceil_t32", "sm4q55_e8m0-rceil_t64s8o4"),
    *("e2m1fn_bfloat16_t16", "int8_bfloat16_t16_float32_t0", "e5m2_float16_t32"),
    *("e4m3fn_e5m2_t16_float32_t0", "int4_float32_t32", "sm6z_u8_t16_float32_t0"),
    *("e5m2inuz_e8m0-rceil_t32", "e3m2fnuz_ue6m2inuz_t16", "e2m1inuz_e4m3fnuz_t16_float32_t0"),
)
"""Composed formats whose scales or elements end at other places than those with names."""

ELEMENTS = (
    *("e1m1fn", "e1m6fn", "e2m1", "e2m1n", "e2m1fn", "e2m3fn", "e2m5n", "e3m2", "e3m2fn", "e3m4fn"),
    *("e4m1fn", "e4m3", "e4m3f", "e4m3fn", "e5m1fn", "e5m2", "e5m2fn", "e4m3fnb8", "e5m2fnb20"),
    *("e4m3fnuz", "e5m2fnuz", "e1m6inuz", "e3m2inuz", "e4m3fnuzb11"),
    *("e3m2fnb-50", "e3m2fnb55", "e4m3fnb-40", "e4m3b50", "sm2", "sm4", "sm8", "tc2", "tc4", "tc8"),
    *(
        "int6",
        "int8",
        "sm3d",
        "sm6d",
        "sm6dz",
        "sm8d",
        "sm4q55",
        "sm6z",
        "sm4q-55",
        "tc8q10",
        "tc8q-50",
    ),
)
EXPONENTS = [
    f"e{width}m0{nan}-{rule}_t32"
    for (width, nan), rule in product(((4, ""), (5, "n"), (6, ""), (7, "n"), (8, "f")), Rule)
]
SHIFTS = ("t4", "t8", "t64", "t256", "t16s1o1", "t16s4o1", "t32s2o2", "t64s8o4")
LEVELS = (
    *EXPONENTS,
    *(f"e8m0-{rule}_{group}" for group, rule in zip(SHIFTS, (*Rule, *Rule), strict=True)),
    *("float32_t32", "bfloat16_t16", "float16_t8", "e4m3fn_t16", "e5m2_t64", "e3m4f_t16"),
    *("e4m3fnuz_t16", "ue6m2inuz_t16"),
    *(f"{inner}_float32_t0" for inner in ("e4m3fn_t16", "bfloat16_t16", "float16_t32", "u1_t32")),
    *("float32", "float32_t0", "e4m3fn_t16_float32", "u4_t16_float32_t0", "u16_t16_float32_t0"),
)


def quantised(names: Any) -> list[BlockFormat]:
    """The formats that kernels encode, each once."""
    found = []
    for name in names:
        try:
            fmt = block_format(name)
        except ValueError:  # an element that no scale of this kind may have
            continue
        if kernels.encodes(fmt) and fmt not in found:
            found.append(fmt)
    return found


QUICK = quantised((*CATALOG, *EDGES))


@pytest.mark.parametrize(
    ("fmt", "form"),
    [
        pytest.param(fmt, form, marks=[pytest.mark.slow] * bool((i + k) % len(kernels.FORMS)))
        for i, fmt in enumerate(QUICK)
        for k, form in enumerate(kernels.FORMS)
    ],
    indirect=["form"],
    ids=str,
)
def test_kernels(fmt: BlockFormat, form: str) -> None:
    """Each format in one form; the slow tests have it in the others."""
    assert_golden(by_kernels, fmt, TENSORS)


@pytest.mark.parametrize("fmt", QUICK, ids=str)
def test_torch(fmt: BlockFormat) -> None:
    assert_golden(by_torch, fmt, TENSORS)


def test_the_edges_are_encoded_by_kernels() -> None:
    assert quantised(EDGES) == [block_format(name) for name in EDGES]


@pytest.mark.slow
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("form", [*kernels.FORMS, None])
def test_composed(element: str, form: str | None) -> None:
    formats = quantised(f"{element}_{level}" for level in LEVELS)
    # Over a denominator kernels encode under the rule floor alone.
    over = getattr(block_format(f"{element}_e8m0_t32").element, "full_scale", False)
    assert len(formats) > len(EXPONENTS) // (len(Rule) if over else 2)
    with kernels.use(form):
        for fmt in formats:
            assert_golden(by_kernels if form else by_torch, fmt, 40)


WRONG = {
    "no rounder for large values": (
        "quantise.hpp",
        "const float x = std::min(over, largest);",
        "const float x = over;",
        "e4m3fn_e5m0_t32",
    ),
    "quotients that are zero": ("quantise.hpp", "if (quotient == 0) return 0;", "", EDGES[0]),
    "quotients that are subnormal": (
        "quantise.hpp",
        "f.emax - std::min(f.unit, 0)",
        "f.emax - f.unit",
        "e3m2fnb-50_e8m0-rceil_t32",
    ),
    "products in FP32": (
        "real.hpp",
        "signed_zero(f, x.q[i], bits[i]) * factor",
        "static_cast<double>(x.q[i] * scale * row_scale) * std::ldexp(1, f.unit)",
        "int8_bfloat16_t16_float32_t0",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_kernel_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, right, wrong, name = WRONG[fault]
    texts = library.sources()
    assert right in texts[file]
    use_texts(monkeypatch, texts | {file: texts[file].replace(right, wrong)}, "-O0")
    assert_caught(by_kernels, name)


def test_a_wrong_rule_in_torch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = lanes._codes

    def wrong(largest: Any, held: Any) -> Any:
        return right(largest, held) + (largest < 2.0**-135)

    monkeypatch.setattr(lanes, "_codes", wrong)
    assert_caught(by_torch, "mxfp8_e5m2")


def assert_caught(way: Way, name: str) -> None:
    with pytest.raises(AssertionError, match=r"(values|products) of "):
        assert_golden(way, block_format(name), TENSORS)


def use_texts(monkeypatch: pytest.MonkeyPatch, texts: dict[str, str], *options: str) -> None:
    """Use kernels of these sources."""
    monkeypatch.setattr(library, "sources", lambda: texts)
    monkeypatch.setattr(library, "OPTIONS", ("-pthread", *options))
    found = library.load.__wrapped__("avx2")
    monkeypatch.setattr(library, "_library", lambda form: found)


AVX512 = """
#include <cfenv>

typedef int32_t I16 __attribute__((vector_size(64)));
typedef int32_t I4 __attribute__((vector_size(16)));
typedef float F16 __attribute__((vector_size(64)));
typedef double D8 __attribute__((vector_size(64)));

template <class V, class A, class B>
V multiplied(V sum, V a, V b) {
    constexpr int EACH = 4 / sizeof(A);
    A left[sizeof(V) / sizeof(A)];
    B right[sizeof(V) / sizeof(B)];
    std::memcpy(left, &a, sizeof a), std::memcpy(right, &b, sizeof b);
    for (size_t i = 0; i < sizeof(V) / 4; ++i)
        for (int j = 0; j < EACH; ++j) sum[i] += left[EACH * i + j] * right[EACH * i + j];
    return sum;
}
inline D8 rounded(D8 x, int how) {
    for (int i = 0; i < 8; ++i) x[i] = how & 2 ? std::trunc(x[i]) : std::floor(x[i]);
    return x;
}
template <class V>
V fused_product(V x, V y, V z) {
    for (size_t i = 0; i < sizeof x / sizeof x[0]; ++i) z[i] = std::fma(x[i], y[i], z[i]);
    return z;
}
inline F16 fused_rounded(F16 x, F16 y, F16 z, int how) {
    constexpr int MODES[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    std::fesetround(MODES[how & 3]);
    for (int i = 0; i < 16; ++i) {
        volatile float a = x[i], b = y[i], c = z[i];
        volatile float found = std::fma(a, b, c);
        z[i] = found;
    }
    std::fesetround(FE_TONEAREST);
    return z;
}
inline int unlike(F16 x, F16 y) {
    int found = 0;
    for (int i = 0; i < 16; ++i) found |= (x[i] != y[i]) << i;
    return found;
}
inline I16 either(I16 x, int mask, I16 y, I16 z) {
    for (int i = 0; i < 16; ++i)
        if (mask >> i & 1) x[i] = y[i] | z[i];
    return x;
}
#define _mm512_fmadd_pd(x, y, z) fused_product<D8>(x, y, z)
#define _mm512_fmadd_ps(x, y, z) fused_product<F16>(x, y, z)
#define _mm512_fmadd_round_ps(x, y, z, how) (__m512)fused_rounded((F16)(x), (F16)(y), (F16)(z), how)
#define _mm512_cmp_ps_mask(x, y, how) unlike((F16)(x), (F16)(y))
#define _mm512_mask_or_epi32(x, mask, y, z) either((I16)(x), mask, (I16)(y), (I16)(z))
#define _mm512_set1_epi32(x) (__m512i)(I16{} + (x))
#define _mm512_dpbusd_epi32(s, a, b) multiplied<I16, uint8_t, int8_t>((I16)(s), (I16)(a), (I16)(b))
#define _mm512_dpwssd_epi32(s, a, b) multiplied<I16, int16_t, int16_t>((I16)(s), (I16)(a), (I16)(b))
#define _mm_dpbusd_epi32(s, a, b) \\
    (__m128i)multiplied<I4, uint8_t, int8_t>((I4)(s), (I4)(a), (I4)(b))
#define _mm512_roundscale_pd(x, how) rounded(x, how)
#define AXS6_VNNI
"""
"""The instructions of AVX-512 that the kernels use, in plain C++."""


@pytest.mark.slow
@pytest.mark.skipif("avx2" not in library.NAMES or not library.FORMS["avx2"], reason="not x86-64")
def test_kernels_for_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = library.sources()
    before = "namespace axs6 {"
    memory = texts["lanes.hpp"].replace('"+v"', '"+m"')  # there are no registers of this width
    texts["lanes.hpp"] = memory.replace(before, AVX512 + before, 1)
    use_texts(monkeypatch, texts, "-O1")
    found = library.chosen()
    assert found is not None
    assert library.name_of(found) == "avx512_vnni"
    assert found.axs6_has_8_bit()
    for fmt in QUICK:
        assert_golden(by_kernels, fmt, TENSORS)
