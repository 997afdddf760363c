"""Profiles in words: every step is said, and examples are what encoding gives."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import axs6
from axs6.golden.encode_as import encode_as
from axs6.golden.explain_profile import explain_profile, facts_of_profile, in_words
from axs6.golden.formats import block_format
from axs6.golden.profile import (
    DEFINITION,
    PROFILES,
    Above,
    BlockScale,
    Cast,
    Division,
    EncodingSteps,
    KeptNumber,
    PowerScale,
    QuotientRounding,
    TensorScale,
    Ties,
    steps_of,
)

EVERY = [(profile, name) for profile, each in PROFILES.items() for name in each.formats]


FIRST = [
    (profile, name)
    for number, (profile, name) in enumerate(EVERY)
    for before in [EVERY[:number]]
    if profile not in {x[0] for x in before} or name not in {x[1] for x in before}
]
"""One of each profile and of each format, which every run has."""


def quick(cases: list[tuple[str, str]]) -> list[Any]:
    """Parameters of a test: those that are not the first of their kind are slow."""
    return [pytest.param(*x, marks=[pytest.mark.slow] * (x not in FIRST)) for x in cases]


@pytest.mark.parametrize(("profile", "name"), quick(EVERY))
def test_every_profile_is_run_and_explained(profile: str, name: str) -> None:
    fmt, steps = block_format(name), steps_of(profile, block_format(name))
    x = np.random.default_rng(1).standard_normal((3, 40)).astype(np.float32)
    found = encode_as(x, name, profile)
    assert (axs6.encode(x, name, profile=profile).codes == found.blocks.codes).all()
    back = axs6.decode(found.blocks)
    assert np.abs(back - x).max() < 0.7
    text = explain_profile(fmt, profile)
    names = list(in_words(fmt, steps))
    assert [line for line in text if line in names] == names
    assert ("no step differs" in text[-1]) == (steps == DEFINITION)


@pytest.mark.parametrize(
    ("profile", "name"),
    quick(
        [x for x in EVERY if x[0] != "torchao"] + [("torchao", "mxfp4"), ("torchao", "fp8_e5m2")]
    ),
)
def test_an_example_is_what_encoding_gives(profile: str, name: str) -> None:
    fmt, facts = block_format(name), facts_of_profile(block_format(name), profile)
    assert facts["first_difference"] in {x["step"] for x in facts["steps"]}
    example = facts["example"]
    assert example is not None
    x = np.zeros((2, fmt.block), np.float32)
    x[0, :2] = example["value"], example["block"]
    x[1, 0] = example["tensor"]
    first = 1 if abs(example["value"]) == example["block"] else 0
    x[0, 1] *= not first
    both = axs6.encode(x, name), encode_as(x, name, profile).blocks
    codes = [int(blocks.codes.reshape(x.shape)[0, 0]) for blocks in both]
    assert tuple(codes) == example["codes"]
    assert tuple(axs6.decode(x, np.float64)[0, 0] for x in both) == example["values"]
    assert codes[0] != codes[1]
    shown = "\n".join(explain_profile(fmt, profile))
    assert all(f"code {code:#04x}" in shown for code in codes)
    value = re.search(r"x = (\S+)", shown)
    assert value is not None
    assert np.float32(value.group(1)) == np.float32(example["value"])


def test_every_field_is_in_the_words() -> None:
    """A change of any field of the steps changes the text, so that no difference is hidden."""
    changes: list[tuple[str, EncodingSteps]] = [
        ("mx9", EncodingSteps(flush=True)),
        ("nvfp4", EncodingSteps(narrow=True)),
        ("nvfp4", EncodingSteps(narrow_quotient=True)),
        ("mxfp4", EncodingSteps(narrow_quotient=True)),
        *(("nvfp4", EncodingSteps(tensor=TensorScale(**x))) for x in (
            {"inverse": True}, {"top": Fraction(5)}, {"held": False}, {"empty": None},
            {"kept": KeptNumber.AMAX}, {"inverse": True, "most": Fraction(3)},
            {"inverse": True, "infinite": Fraction(1)}, {"empty": "epsilon"},
        )),
        *(("nvfp4", EncodingSteps(block=BlockScale(**x))) for x in (
            {"above": Above.FOLDED}, {"above": Above.MULTIPLIED}, {"held": False},
            {"cast": Cast.LLAMA}, {"empty": Fraction(1)},
        )),
        *(("mx9", EncodingSteps(power=PowerScale(**x))) for x in (
            {"rule": "even"}, {"rule": "even", "bits": 1}, {"rule": "rceil", "reciprocal": True},
            {"rule": "rceil"}, {"lowest": Fraction(1)}, {"empty_shift": 0},
        )),
        *(("nvfp4", EncodingSteps(division=x)) for x in Division if x is not Division.RECIPROCALS),
        ("nvfp4", EncodingSteps(rounding=QuotientRounding(Ties.AWAY))),
        ("nvfp4", EncodingSteps(rounding=QuotientRounding(zero_sign=False))),
        ("int8", EncodingSteps(rounding=QuotientRounding(full_range=True))),
    ]  # fmt: skip
    texts = [tuple(in_words(block_format(name), steps).items()) for name, steps in changes]
    plain = [tuple(in_words(block_format(name), DEFINITION).items()) for name, _ in changes]
    assert all(one != other for one, other in zip(texts, plain, strict=True))
    assert len(set(texts)) == len(texts)


def test_the_definition_in_words() -> None:
    assert list(in_words(block_format("nvfp4"), DEFINITION).values()) == [
        "as they are",
        "s = fp32(amax / 2688), held within 2^-126 and the largest FP32 number, 1 for zeros",
        "b = q = fp32(fp32(amax / 6) / s), held within 2^-6 and 448, to nearest, ties to even",
        "v = fp32(x * fp32(fp32(1 / s) / b))",
        "to the nearest element, ties to even, within -6 and 6",
    ]
    whole = EncodingSteps(rounding=QuotientRounding(full_range=True))
    for steps, low in ((DEFINITION, -127), (whole, -128)):
        words = list(in_words(block_format("int8"), steps).values())[-2:]
        assert words == [
            "v = fp32(x * fp32(1 / s))",
            f"to the nearest element, ties to even, within {low} and 127",
        ]
