"""The arithmetic of the explorer's page: equal to the golden model in every bit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import axs6
from axs6.golden.formats import CATALOG, Rule, block_format
from axs6.studies.explorer.page import ARITHMETIC, describe, script

VECTORS = Path(__file__).parents[3] / "vectors"
COMPARISON = Path(__file__).with_name("vectors.js").read_text()
WITH_VECTORS = [path.name for path in sorted((VECTORS / "formats").iterdir())]
SHARES = {"elements": "wrongElements", "scales": "wrongScales", "encode": "wrongArrays"}
DTYPES = {"fp32": np.uint32, "bf16": np.uint16, "fp16": np.uint16}


def tab_with(browser: Any, text: str) -> Any:
    tab = browser.new_page()
    tab.add_script_tag(content=text)
    tab.add_script_tag(content=COMPARISON)
    return tab


@pytest.fixture(scope="module")
def tab(browser: Any) -> Any:
    return tab_with(browser, script(ARITHMETIC))


def wrong_cases(tab: Any, name: str, kind: str) -> list[str]:
    text = (VECTORS / "formats" / name / f"{kind}.txt").read_text()
    fmt = CATALOG[name]
    call = f"([text, fmt, divisor]) => {SHARES[kind]}(text, fmt, divisor)"
    return tab.evaluate(call, [text, describe(fmt), fmt.element.divisor])


@pytest.mark.parametrize("name", WITH_VECTORS)
def test_conformance_vectors(tab: Any, name: str) -> None:
    for kind in SHARES:
        assert wrong_cases(tab, name, kind) == [], kind


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("beyond === 0n && up", "beyond === 0n", "mxfp8_e4m3"),
        ('rounding === "away" || floor', "floor", "hif4"),
        ("format.element.emax + above.exponent", "format.element.emax", "hif4"),
        ("bitLength(x.n) - bitLength(x.d)", "bitLength(x.n) - bitLength(x.d) - 1", "mx6"),
        ("lane.negative && magnitude", "lane.negative", "int8"),
        ("above.reciprocal ? fp32(times(x, above.reciprocal))", "above.reciprocal ? x", "nvfp4"),
        ("lower.code % 2 === 1 && upper.code % 2 === 0", "true", "razer"),
        ("Number(below(merits[0], merits[1]))", "0", "razer"),
    ],
)
def test_a_wrong_script_is_found(browser: Any, right: str, wrong: str, name: str) -> None:
    text = script(ARITHMETIC)
    assert text.count(right) == 1
    assert wrong_cases(tab_with(browser, text.replace(right, wrong)), name, "encode")


def blocks(tab: Any, x: NDArray[Any], fmt: str, **how: Any) -> dict[str, Any]:
    """What the page makes of values; JSON has no -0.0, NaN or infinities, so bits go there."""
    patterns = x.astype(np.float32).view(np.uint32).tolist()
    call = "([bits, fmt, how]) => blocksOf(bits.map(doubleOf), fmt, how)"
    return tab.evaluate(call, [patterns, describe(block_format(fmt)), how])


def same(found: dict[str, Any], expected: axs6.Blocks, size: int) -> None:
    assert [np.ravel(x).tolist() for x in expected.scales] == found["scales"]
    assert expected.codes.ravel().tolist() == found["codes"]
    assert axs6.decode(expected).view(np.uint32).tolist() == found["decoded"][:size]


def vectors_of(name: str) -> list[list[str]]:
    lines = (VECTORS / name).read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def doubles(text: str, dtype: str) -> NDArray[np.float32]:
    bits = np.array([int(word, 16) for word in text.split(",")], DTYPES[dtype])
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(np.float16 if dtype == "fp16" else np.float32).astype(np.float32)


def axs6_cases() -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Dense blocks of the vectors, as `blocksOf` takes them, and what they must become."""

    def case(block: str, dtype: str, values: str, how: dict[str, Any], outputs: list[str]) -> Any:
        bits = doubles(values, dtype).view(np.uint32).tolist()
        fmt = describe(block_format(f"axs6_t{block}"))
        codes = [int(code, 16) for code in outputs[2].split(",")]
        right = {"scales": [[int(outputs[0])]], "codes": codes}
        return [bits, fmt, {**how, "nonfinite": "saturate"}], right

    for _, block, dtype, rounding, mode, values, _, *outputs in vectors_of("encode.txt"):
        if mode == "dense":
            yield case(block, dtype, values, {"rounding": rounding}, outputs)
    for _, block, dtype, mode, bits, values, words, _, *outputs in vectors_of(
        "encode_stochastic.txt"
    ):
        if mode == "dense":
            given = [int(word, 16) for word in words.split(",")]
            how = {"rounding": "stochastic", "words": given, "bits": int(bits)}
            yield case(block, dtype, values, how, outputs)


def test_axs6_vectors(tab: Any) -> None:
    cases = list(axs6_cases())
    assert len(cases) > 300
    call = "(all) => all.map(([bits, fmt, how]) => blocksOf(bits.map(doubleOf), fmt, how))"
    found = tab.evaluate(call, [inputs for inputs, _ in cases])
    for ours, (inputs, right) in zip(found, cases, strict=True):
        assert {name: ours[name] for name in right} == right, inputs


COMPOSED = (
    *(
        "e4m3fn_e8m0_t32",
        "int8_e8m0_t16s2o2",
        "int5_e8m0_t16s4o2s2o1",
        "sm6d_e8m0_t32",
        "e3m4_e5m0_t8",
    ),
    *("int4a_ue6m2b3h_t32s8o2s4o1", "tc5a_e4m3fn-bf16_t16s4o3"),
    *(
        "int6_u8_t16_float32_t0",
        "e2m1fn_e4m3fn_t8_float32",
        "uint4_float32_uint4_t32",
        "int8_ue6m2fb9_t8_ue4m3n_t32_float32",
        "e5m2n_ue5m3fn_t8",
        "e4m3b11fnuz_e8m0_t8",
        "e2m1inuz_e4m3fnuz_t8_float32",
        "binary6p3se_binary8p3ue_t8",
        "binary8p4sf_binary8p3uf_t8",
        "sm4z_e6m0n_t4",
    ),
    *(
        "e2m1fn_e5m3_t16_bfloat16_t0",
        "tc5q3_e8m0_t64s8o3",
        "e5m2_float16_t32",
        "int4_e8m0_t0_float32",
    ),
    *(
        "axs6_t8",
        "mx9_t32",
        "nvfp4_t32",
        "sm6dz_e8m0f_t32_modes",
        "e4m3b11_e8m0_t16",
        "int8_bfloat16_t0",
    ),
    *("nf4_e8m0_t32", "table0:1:7:-6q3_e8m0_t16s2o1", "table0:6:12:14::-14:-2:-7d7q1_bfloat16_t8"),
    *("if4", "if4_float32_t8", "sm4+int4_float16_t16"),
)


def values(seed: int, size: int) -> NDArray[np.float32]:
    """Values over many binades, with zeros, ties and numbers at the ends of FP32."""
    rng = np.random.default_rng(seed)
    spread = rng.choice([0, 2, 8, 80])
    x = rng.standard_normal(size) * np.exp2(rng.normal(0, spread, size))
    x = np.where(rng.random(size) < 0.2, np.exp2(rng.integers(-149, 127, size)), x)
    x = np.where(rng.random(size) < 0.2, rng.integers(-64, 64, size) / 16, x)
    with np.errstate(over="ignore"):
        return np.clip(x, -3.4e38, 3.4e38).astype(np.float32)


@pytest.mark.parametrize("fmt", COMPOSED)
def test_strings_rules_and_roundings(tab: Any, fmt: str) -> None:
    found = block_format(fmt)
    known = [rule for rule in Rule if rule is not Rule.EVEN or not found.element.listed]
    rules = [found.with_rule(rule) for rule in known] if found.exponent else [found]
    for seed, each in enumerate(rules):
        for size, rounding in ((70, "nearest"), (33, "toward_zero"), (64, "stochastic")):
            x = values(seed + size, size)
            words = np.random.default_rng(seed).integers(0, 1 << 16, size)
            random = {"random": words, "random_bits": 16} if rounding == "stochastic" else {}
            how = {"rounding": rounding, "nonfinite": "saturate"}
            expected = axs6.encode(x, each, **how, **random)  # type: ignore[arg-type]
            ours = blocks(tab, x, str(each), words=words.tolist(), bits=16, **how)
            same(ours, expected, size)


TILES = ("mxfp4_t16x32", "nvfp4_t16x16", "mx9-ceil_t4x16", "int8_e8m0_t1x16", "fp8_block_t128")


def test_strings_are_read_as_the_model_reads_them(tab: Any) -> None:
    catalog = {name: describe(fmt) for name, fmt in CATALOG.items()}
    read = "([text, catalog]) => readFormat(text, catalog)"
    for text in (*COMPOSED, *TILES, "mxfp4-rceil", "mx9-even_t32", *map(str, CATALOG.values())):
        found = tab.evaluate(read, [text, catalog])
        assert found == describe(block_format(text)), text
        bits = tab.evaluate("(fmt) => formatOf(fmt).bits", found)
        assert bits == float(block_format(text).bits_a_value[0]), text


REFUSED = """([text, catalog]) => {
    try {
        return formatOf(readFormat(text, catalog)) && "";
    } catch (error) {
        return error.message;
    }
}"""


@pytest.mark.parametrize(
    "text",
    [
        *("", "mx7", "e4m3fn", "e4m3fn_", "int8_e8m0_t3", "int8_e8m0_t2048", "int8_e3m0_t8"),
        *("int9_float32", "uint8_float32", "int8_float32_uint8", "e4m3fn_e8m0_t32_e8m0_t64"),
        *("int8_u4_t16", "int8_u4_t16_bfloat16_t0", "int8_float32_t16_float32_t0", "fp8_e4m3_t16"),
        *(
            "axs6_t4",
            "int8-ceil",
            "e4m3fn_e8m0_t32s2o5",
            "int4d_e8m0_t8",
            "mx9_modes",
            "e12m3_e8m0",
        ),
        *("int8_e8m0_t8_u4_t32_float32_t0_t8", "e4m3fn_e8m0_t16s32o1", "int4_u4_t0_float32"),
        *("e4m9fn_e8m0_t32", "e4m3fnb99_e8m0_t32", "int8_e8m10_t32", "int8_e5m2b-130_t32"),
        *("int8_e1m1_t32", "uint8_float32_uint4", "int08_float32", "int8_e8m0_t32_modes"),
        *("int8_e8m0_t3x32", "int8_float32_t8x0", "int8_e8m0_t4x32_float32_t0", "fp8_e4m3_t4x16"),
        *("e2m1fn_e4m3fn_t4x16_float32_t32", "sm6dz_e8m0f_t8x32_modes", "int8_e8m0_t2048x32"),
        *("sm6dz_e8m0f_t64_modes", "ue5m3_e8m0_t32", "e2m1fn_ue8m3_t16", "e2m1fn_ue5m12_t16"),
    ],
)
def test_other_strings_are_refused(tab: Any, text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the model's own messages are tested elsewhere)
        block_format(text)
    catalog = {name: describe(fmt) for name, fmt in CATALOG.items()}
    assert tab.evaluate(REFUSED, [text, catalog])


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp8_e5m2", "mx9", "fp8_e5m2", "nvfp4", "vsq6"])
def test_nan_and_infinities_propagate(tab: Any, name: str) -> None:
    x = values(3, 64)
    x[[5, 40, 41]] = np.inf, -np.inf, np.nan
    how = {"rounding": "nearest", "nonfinite": "propagate"}
    same(blocks(tab, x, name, **how), axs6.encode(x, name, **how), 64)  # type: ignore[arg-type]
