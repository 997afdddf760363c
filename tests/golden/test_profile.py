"""Profiles against their steps restated in fractions, and against the definition.

`pytest -m peers` compares them with the libraries.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import axs6
from axs6.golden.encode_as import encode_as, run
from axs6.golden.explain_profile import (
    first_difference,
)
from axs6.golden.formats import Float, Specials, block_format
from axs6.golden.profile import (
    DEFINITION,
    PROFILES,
    Above,
    BlockScale,
    Cast,
    Division,
    KeptNumber,
    PowerScale,
    QuotientRounding,
    TensorScale,
    Ties,
    steps_of,
)
from axs6.golden.profile_scales import cast

Values = np.ndarray[Any, np.dtype[np.float32]]
EVERY = [(profile, name) for profile, each in PROFILES.items() for name in each.formats]
LARGEST = Fraction(float(np.finfo(np.float32).max))


def rounded(x: Fraction, bits: int = 23, emin: int = -126, up: bool = False) -> Fraction:
    """To a float with so many fraction bits: ties to even, or away from zero."""
    if not x:
        return x
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    ulp = Fraction(2) ** (max(exponent, emin) - bits)
    count = int(size / ulp + Fraction(1, 2)) if up else round(size / ulp)
    return count * ulp if x > 0 else -count * ulp


E2M1 = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]
E4M3 = [
    Fraction(code % 8 + 8 * (code > 7)) * Fraction(2) ** (max(code >> 3, 1) - 10)
    for code in range(127)
]


CODE8 = {value: code for code, value in enumerate(E4M3)}


def code8(v: Fraction) -> int:
    """Code of an E4M3 quotient, without its sign."""
    return CODE8[min(rounded(abs(v), 3, -6), Fraction(448))]


def code4(v: Fraction) -> int:
    """Code of an E2M1 quotient; -0, which a fraction does not have, counts as +0."""
    return E2M1.index(min(rounded(abs(v), 1, 0), Fraction(6))) | 8 * (v < 0)


def compressed_nvfp4(x: list[list[Fraction]], bits: int = 23) -> tuple[list[int], list[int], Any]:
    """compressed-tensors: g keeps the tensor's inverse scale, in the dtype of the values."""
    amax = max(abs(v) for row in x for v in row)
    g = rounded(2688 / amax, bits) if amax else LARGEST + 1
    g = Fraction(1) if g > LARGEST else g
    scales, codes = [], []
    for row in x:
        b = rounded(g * rounded(max(map(abs, row)) / 6, bits))
        scale = code8(b) or E4M3.index(Fraction(1, 8))
        scales.append(scale)
        codes += [code4(rounded(v / rounded(E4M3[scale] / g))) for v in row]
    return scales, codes, g


def engine_nvfp4(x: list[list[Fraction]]) -> tuple[list[int], list[int], Any]:
    """TransformerEngine: the inverse scale of the tensor times 1/6, and one reciprocal a block."""
    amax = max(abs(v) for row in x for v in row)
    g = min(rounded(2688 / amax), LARGEST) if amax else LARGEST
    factor, s = rounded(g * rounded(Fraction(1, 6))), rounded(1 / g)
    scales, codes = [], []
    for row in x:
        scale = code8(rounded(max(map(abs, row)) * factor))
        scales.append(scale)
        both = rounded(E4M3[scale] * s)
        inverse = min(rounded(1 / both), LARGEST) if both else LARGEST
        codes += [code4(rounded(v * inverse)) for v in row]
    return scales, codes, amax


def llama_nvfp4(x: list[list[Fraction]]) -> tuple[list[int], list[int], Any]:
    """llama.cpp: scales that are rounded half up, and a search among all products."""
    scales, codes = [], []
    for row in x:
        q = rounded(max(map(abs, row)) / 6)
        if q >= 256:
            scale = 126
        elif q < Fraction(1, 64):
            scale = min(int(rounded(rounded(q * 512) + Fraction(1, 2))), 7)
        else:
            near = rounded(q, 3, -6, up=True)
            scale = E4M3.index(near) if near < 256 else 126
        scales.append(scale)
        codes += [searched(v, E4M3[scale]) for v in row]
    return scales, codes, None


def searched(v: Fraction, scale: Fraction) -> int:
    """The first code of the least difference in FP32."""
    values = [*E2M1, *(-each for each in E2M1)]
    apart = [abs(rounded(rounded(scale * each) - v)) for each in values]
    return apart.index(min(apart))


def llama_mxfp4(x: list[list[Fraction]]) -> tuple[list[int], list[int], Any]:
    """llama.cpp: the exponent of the rule floor, and a search among all products."""
    scales, codes = [], []
    for row in x:
        amax = max(map(abs, row))
        exponent = 0
        while amax and Fraction(2) ** (exponent - 124) <= amax:  # 2^(E - 125) is the leading bit
            exponent += 1
        scales.append(exponent)
        codes += [searched(v, Fraction(2) ** (exponent - 127)) for v in row]
    return scales, codes, None


def llama_q8(x: list[list[Fraction]]) -> tuple[list[int], list[int], Any]:
    """llama.cpp: FP16 scales that are stored, FP32 ones that divide, and halves away from zero."""
    scales, codes = [], []
    for row in x:
        d = rounded(max(map(abs, row)) / 127)
        scales.append(int(np.float16(float(rounded(d, 10, -14))).view(np.uint16)))
        inverse = rounded(1 / d) if d else Fraction(0)
        for v in row:
            product = rounded(v * inverse)
            code = int(abs(product) + Fraction(1, 2))
            codes.append(code if product >= 0 else -code & 255)
    return scales, codes, None


def engine_mxfp8(x: list[list[Fraction]]) -> tuple[list[int], list[int], Any]:
    """TransformerEngine: amax times the reciprocal of 448, rounded up to a power of two."""
    scales, codes = [], []
    for row in x:
        ratio = rounded(max(map(abs, row)) * rounded(Fraction(1, 448)))
        scale = 0
        while Fraction(2) ** (scale - 127) < ratio:
            scale += 1
        scales.append(scale)
        power = Fraction(2) ** (scale - 127) if scale else Fraction(1)
        codes += [code8(v / power) | 128 * (v < 0) for v in row]
    return scales, codes, None


def compressed_int8(x: list[list[Fraction]]) -> tuple[list[int], list[int], Any]:
    """compressed-tensors: 255 / 2 steps, and all 256 codes."""
    s = rounded(max(abs(v) for row in x for v in row) / Fraction(255, 2)) or Fraction(1, 1 << 23)
    codes = [max(-128, min(127, round(rounded(v / s)))) & 255 for row in x for v in row]
    return [], codes, s


def multiplied_fp8(most: Fraction, empty: Fraction, inverse: bool) -> Callable[..., Any]:
    """FP8 of torchao, which keeps g = 448 / amax, and of TransformerEngine, which keeps 1 / g."""

    def encoded(x: list[list[Fraction]]) -> tuple[list[int], list[int], Any]:
        amax = max(abs(v) for row in x for v in row)
        g = min(rounded(448 / amax), most) if amax else empty
        codes = [code8(rounded(v * g)) | 128 * (v < 0) for row in x for v in row]
        return [], codes, g if inverse else rounded(1 / g)

    return encoded


AO_MOST = rounded(448 / Fraction(1e-12))
RESTATED = {
    ("compressed-tensors", "nvfp4"): compressed_nvfp4,
    ("compressed-tensors", "int8"): compressed_int8,
    ("transformer-engine", "nvfp4"): engine_nvfp4,
    ("transformer-engine", "mxfp8_e4m3"): engine_mxfp8,
    ("transformer-engine", "fp8_e4m3"): multiplied_fp8(LARGEST, Fraction(1), False),
    ("torchao", "fp8_e4m3"): multiplied_fp8(AO_MOST, AO_MOST, True),
    ("llama.cpp", "e2m1fn_e4m3fn_t16"): llama_nvfp4,
    ("llama.cpp", "mxfp4"): llama_mxfp4,
    ("llama.cpp", "int8_float16_t32"): llama_q8,
}


def tensors(block: int) -> Iterator[Values]:
    """Tensors of some blocks without -0: normal, on halves, near limits, of zeros."""
    rng = np.random.default_rng(block)
    shape = (8, block)
    plain = rng.standard_normal(shape).astype(np.float32)
    halves = rng.choice([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6], shape)
    halves = (halves * rng.choice([-1, 1], shape)).astype(np.float32)
    halves[:, 0] = 6 * 2.0 ** rng.integers(-9, 9, 8) * rng.choice([1, 17 / 16], 8)
    yield plain
    yield halves
    halves = (rng.integers(-126, 126, shape) + 0.5).astype(np.float32)
    halves[:, 0] = [127, -127] * 4
    yield halves
    yield (plain * np.float32(1e5) * np.exp2(rng.integers(-30, 9, (8, 1)))).astype(np.float32)
    yield np.ldexp(plain, -40)
    yield np.zeros(shape, np.float32)
    for _ in range(16):  # of scales of tensors, a quarter differs by the order of two roundings
        yield rng.standard_normal((1, block)).astype(np.float32)


def exact(x: Values) -> list[list[Fraction]]:
    return [[Fraction(float(v)) for v in row] for row in x]


@pytest.mark.parametrize(("profile", "name"), RESTATED)
def test_steps_are_those_restated(profile: str, name: str) -> None:
    for x in tensors(block_format(name).block):
        scales, codes, outer = RESTATED[profile, name](exact(x))
        found = encode_as(x, name, profile)
        if scales:
            assert found.blocks.scales[-1].ravel().tolist() == scales
        assert found.blocks.codes.ravel().tolist() == codes
        assert (found.outer is None) == (outer is None)
        assert outer is None or Fraction(float(found.outer)) == outer


def test_scales_are_rounded_to_the_dtype_of_the_values() -> None:
    changed = 0
    for x in tensors(16):
        narrow = x.astype(ml_dtypes.bfloat16)
        wide = narrow.astype(np.float32)
        scales, codes, outer = compressed_nvfp4(exact(wide), bits=7)
        found = encode_as(narrow, "nvfp4", "compressed-tensors")
        assert found.blocks.scales[1].ravel().tolist() == scales
        assert found.blocks.codes.ravel().tolist() == codes
        assert found.outer == float(outer)
        same = encode_as(wide, "nvfp4", "compressed-tensors", dtype="bf16")
        assert (same.blocks.codes == found.blocks.codes).all()
        other = encode_as(wide, "nvfp4", "compressed-tensors")
        changed += int((other.blocks.codes != found.blocks.codes).sum())
    assert changed


@pytest.mark.parametrize(
    ("profile", "name", "least"),
    [
        ("torchao", "mxfp8_e4m3", -126),
        ("torchao", "mxfp8_e4m3-ceil", -126),
        ("torchao", "mxfp8_e4m3-rceil", 0),
        ("transformer-engine", "mxfp8_e4m3", 0),
    ],
)
def test_the_least_power_that_divides(profile: str, name: str, least: int) -> None:
    """Under the scale 2^-127, which is subnormal, values are divided by another power of two."""
    x = np.ldexp(np.arange(-16, 16, dtype=np.float32)[None], -132)
    found = encode_as(x, name, profile)
    assert not found.blocks.scales[-1].any()
    power = Fraction(2) ** least
    codes = [code8(v / power) | 128 * (v < 0) for row in exact(x) for v in row]
    assert found.blocks.codes.ravel().tolist() == codes
    assert (len(set(codes)) > 2) == (least < 0)


@pytest.mark.parametrize(
    ("profile", "name"), [x for x in RESTATED if x[0] not in ("compressed-tensors", "llama.cpp")]
)
def test_other_scales_are_those_of_values_in_fp32(profile: str, name: str) -> None:
    for x in tensors(block_format(name).block or 16):
        narrow = x.astype(ml_dtypes.bfloat16)
        wide, found = (encode_as(v, name, profile) for v in (narrow.astype(np.float32), narrow))
        assert np.array_equal(found.blocks.codes, wide.blocks.codes)
        assert found.outer == wide.outer
        for ours, theirs in zip(found.blocks.scales, wide.blocks.scales, strict=True):
            assert np.array_equal(ours, theirs)


def wrong_steps() -> Iterator[Any]:
    """A format and its steps in a profile, with one of them changed."""
    for profile, name, change in (
        ("compressed-tensors", "nvfp4", {"tensor": TensorScale()}),
        ("compressed-tensors", "nvfp4", {"block": BlockScale(Above.MULTIPLIED, held=False)}),
        ("compressed-tensors", "int8", {"rounding": QuotientRounding()}),
        ("compressed-tensors", "int8", {"tensor": TensorScale()}),
        ("transformer-engine", "nvfp4", {"block": BlockScale(Above.FOLDED)}),
        ("transformer-engine", "mxfp8_e4m3", {"power": PowerScale()}),
        ("torchao", "fp8_e4m3", {"tensor": TensorScale(inverse=True, kept=KeptNumber.INVERSE)}),
        ("llama.cpp", "mxfp4", {"division": Division.RECIPROCALS}),
        ("llama.cpp", "e2m1fn_e4m3fn_t16", {"block": BlockScale(held=False)}),
        ("llama.cpp", "int8_float16_t32", {"rounding": QuotientRounding(Ties.EVEN)}),
        ("llama.cpp", "int8_float16_t32", {"division": Division.RECIPROCALS}),
    ):
        yield pytest.param(profile, name, change, id=f"{profile}-{name}-{next(iter(change))}")


@pytest.mark.parametrize(("profile", "name", "change"), list(wrong_steps()))
def test_a_wrong_step_differs(profile: str, name: str, change: dict[str, Any]) -> None:
    fmt = block_format(name)
    steps, differs = replace(steps_of(profile, fmt), **change), False
    for x in tensors(fmt.block):
        scales, codes, outer = RESTATED[profile, name](exact(x))
        found = run(x, fmt, steps)
        differs |= found.blocks.codes.ravel().tolist() != codes
        differs |= bool(scales) and found.blocks.scales[-1].ravel().tolist() != scales
        differs |= outer is not None and Fraction(float(found.outer)) != outer
    assert differs


SAMPLE = ("nvfp4", "mxfp4-even", "mxfp8_e5m2-rceil", "mxfp6_e2m3-ceil", "mx6", "fp8_e4m3", "int8")


@pytest.mark.parametrize("name", [*SAMPLE, "mxint8", "e2m1fn_e4m3fn_t16", "int8_float16_t32"])
def test_default_steps_are_the_definition(name: str) -> None:
    fmt = block_format(name)
    for x in tensors(32):
        for values, axis in (
            (x, -1),
            (x[:0], -1),
            (x[:, :0], 0),
            (-x[:, :20], -1),
            (np.ldexp(x, -120), 0),
        ):
            ours, theirs = (
                axs6.encode(values, fmt, axis=axis),
                run(values, fmt, DEFINITION, axis=axis),
            )
            assert (ours.codes == theirs.blocks.codes).all()
            for one, other in zip(ours.scales, theirs.blocks.scales, strict=True):
                assert (one == other).all()
    assert first_difference(fmt, DEFINITION) is None


def test_quark_counts_subnormal_values_as_zeros() -> None:
    x = np.zeros((3, 16), np.float32)
    x[1:, :3] = [-1e-39, -0.0, 2.0**-126]
    x[2, 3] = 1
    found = encode_as(x, "mx6", "quark").blocks
    assert not found.codes[:, :, :2].any()
    assert not found.scales[1][0].any()
    ours = axs6.encode(x[2:], "mx6")
    assert ours.codes[0, 0, 0] == ours.codes[0, 0, 1] == block_format("mx6").element.sign_bit


@pytest.mark.parametrize(
    ("profile", "name"), [x for x in EVERY if "4" in x[1] and "mx" not in x[1]]
)
def test_what_is_kept_gives_the_same_blocks(profile: str, name: str) -> None:
    x = next(tensors(32))
    whole = encode_as(x, name, profile)
    if whole.outer is None:
        with pytest.raises(
            ValueError, match=f"outer is for a scale of the tensor: {name} has none"
        ):
            encode_as(x, name, profile, outer=1)
        return
    part = encode_as(x[:2], name, profile, outer=float(whole.outer))
    assert (part.blocks.codes == whole.blocks.codes[:2]).all()
    assert part.outer == whole.outer


def test_refused() -> None:
    x = np.ones((2, 16), np.float32)
    for message, call in (
        ("profile must be one of compressed-tensors, .* not 'x'", lambda: encode_as(x, "mx9", "x")),
        ("profile quark has the formats mx9, mx6, not mx4", lambda: encode_as(x, "mx4", "quark")),
        ("takes fp32 or bf16 in this format, not fp16",
         lambda: encode_as(np.float16(x), "mxfp4", "compressed-tensors")),
        (r"must be finite: element \(0, 1\) is inf",
         lambda: encode_as(np.float32([[1, np.inf]]), "nvfp4", "torchao")),
        ("outer must be a positive finite number, not -1",
         lambda: encode_as(x, "nvfp4", "torchao", outer=-1)),
        ("rounding must not be given with a profile",
         lambda: axs6.encode(x, "nvfp4", "toward_zero", profile="torchao")),
        ("scale must not be given with a profile",
         lambda: axs6.encode(x, "nvfp4", scale=1, profile="torchao")),
        ("axis must be an axis", lambda: encode_as(x, "nvfp4", "torchao", axis=2)),
        ("at least one axis", lambda: encode_as(x[0, 0], "nvfp4", "torchao")),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="must be float32, float16 or bfloat16, not float64"):
        encode_as(x.astype(np.float64), "nvfp4", "torchao")


def test_scales_that_llama_cpp_casts() -> None:
    """Half up below the smallest normal number, to the nearest above it, held at the largest."""
    dtype, unit = Float(4, 3, Specials.NAN), 2.0**-9
    values = {0.0: 0, 0.49: 0, 0.5: 1, 1.49: 1, 6.5: 7, 7.6: 7, 7.99: 7, 8: 8, 8.4: 8, 8.6: 9}
    values |= {512: 56, 512 * 1.0625: 57, 512 * 1.1875: 58, 512 * 448: 126, 512 * 9000: 126}
    x = np.float32([unit * value for value in values])
    assert cast(dtype, x, Cast.LLAMA).tolist() == list(values.values())


def test_profiles_can_be_keys() -> None:
    assert {each: name for name, each in PROFILES.items()}[PROFILES["quark"]] == "quark"


@pytest.mark.parametrize(
    ("profile", "name", "kept"),
    [
        ("compressed-tensors", "mxfp4", False),
        ("compressed-tensors", "nvfp4", False),
        ("compressed-tensors", "mxfp8_e4m3", True),
        ("compressed-tensors", "fp8_e4m3", True),
        ("transformer-engine", "nvfp4", False),
        ("transformer-engine", "mxfp8_e4m3", True),
    ],
)
def test_minus_zero(profile: str, name: str, kept: bool) -> None:
    x = np.full((1, 32), 1.0, np.float32)
    x[0, 3] = -0.0
    code = int(encode_as(x, name, profile).blocks.codes.ravel()[3])
    assert code == (kept << block_format(name).element.width - 1)


@pytest.mark.parametrize(("name", "top"), [("int8", 127.5), ("fp8_e4m3", 448)])
def test_scales_too_small_for_fp32_are_epsilon(name: str, top: float) -> None:
    for x, scale in ((0, 2.0**-23), (2.0**-149, 2.0**-23), (top, 1), (2 * top, 2)):
        found = encode_as(np.full((1, 4), x, np.float32), name, "compressed-tensors")
        assert found.blocks.scales[0].view(np.float32) == scale
