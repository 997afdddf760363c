"""A profile in words: its steps beside those of the definition, and the first that differs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.encode_as import run
from axs6.golden.explain import number
from axs6.golden.factors import divisor
from axs6.golden.formats import FP32, BlockFormat, Exponent, Real, Rule, Shift, name_of
from axs6.golden.profile import (
    DEFINITION,
    PROFILES,
    Above,
    Cast,
    Division,
    EncodingSteps,
    KeptNumber,
    TensorScale,
    Ties,
    steps_of,
)

FIELDS: Final = {
    "values": ("flush",),
    "scale of the tensor": ("tensor", "narrow"),
    "scale of a block": ("block", "narrow"),
    "exponent of a block": ("power",),
    "division": ("division", "narrow_quotient"),
    "rounding": ("rounding",),
}
"""The steps in order, and the fields of `EncodingSteps` that say them."""

TRIALS: Final = 240
"""Tensors of 64 blocks among which an example is searched."""


@dataclass(frozen=True)
class Example:
    """A value whose code differs.

    Args:
        value: its FP32 value.
        block, tensor: the largest magnitudes of its block and of its tensor.
        codes: by the definition and by the library.
        values: what each of the two stands for, under its scales.
    """

    value: float
    block: float
    tensor: float
    codes: tuple[int, int]
    values: tuple[float, float]


def in_words(fmt: BlockFormat, steps: EncodingSteps) -> dict[str, str]:
    """Each step that a format has, by its name."""
    found = {
        "values": "zeros and magnitudes below 2^-126 count as +0" if steps.flush else "as they are",
    }
    if fmt.outer:
        found["scale of the tensor"] = _tensor(steps, number(_top(fmt, steps.tensor)))
    for level in fmt.blocked:
        if isinstance(level.scale, Real):
            top = number(divisor(fmt, level))
            found["scale of a block"] = _block(steps, level.scale, top, bool(fmt.outer))
    if fmt.exponent is not None:
        found["exponent of a block"] = _power(fmt, fmt.exponent, steps)
    real = any(isinstance(level.scale, Real) for level in fmt.levels)
    if real or _searched(steps) or steps.narrow_quotient:
        found["division"] = _division(fmt, steps)
    found["rounding"] = _rounding(fmt, steps)
    return found


def _searched(steps: EncodingSteps) -> bool:
    return steps.division is Division.SEARCHED


def _top(fmt: BlockFormat, how: TensorScale) -> Fraction:
    return divisor(fmt, fmt.levels[-1]) if how.top is None else how.top


def _rounder(steps: EncodingSteps) -> str:
    return "dt" if steps.narrow else "fp32"


def _tensor(steps: EncodingSteps, top: str) -> str:
    how, fp = steps.tensor, _rounder(steps)
    parts = []
    if how.inverse:
        parts.append(f"g = {fp}({top} / amax)")
        if how.infinite is not None:
            parts.append(f"{number(how.infinite)} where it is infinite")
        else:
            most = "the largest FP32 number" if how.most == FP32.largest else f"{float(how.most):g}"
            parts.append(f"at most {most}")
    else:
        parts.append(f"s = {fp}(amax / {top})")
        if how.held:
            parts.append("held within 2^-126 and the largest FP32 number")
    if how.empty is not None:
        number_for = f"{how.empty}" if isinstance(how.empty, str) else number(how.empty)
        parts.append(f"{number_for} for zeros")
    if how.inverse:
        parts.append("s = fp32(1 / g)")
    kept = "" if how.kept is KeptNumber.SCALE else f"; the file keeps {how.kept.value}"
    return ", ".join(parts) + kept + _dt(steps)


def _dt(steps: EncodingSteps) -> str:
    return "; dt rounds to the dtype of the values" if steps.narrow else ""


def _block(steps: EncodingSteps, scale: Real, top: str, below: bool) -> str:
    how, fp = steps.block, _rounder(steps)
    found = f"{fp}(amax / {top})"
    if below:
        found = {
            Above.DIVIDED: f"fp32({found} / s)",
            Above.MULTIPLIED: f"fp32(g * {found})",
            Above.FOLDED: f"fp32(amax * fp32(g * fp32(1 / {top})))",
        }[how.above]
    held = f"at most {number(scale.dtype.largest)}"
    if how.held:
        held = f"held within {number(scale.smallest)} and {number(scale.dtype.largest)}"
    cast = how.cast.value
    if how.cast is Cast.LLAMA:
        last = number(Fraction(2) ** (scale.dtype.exponent_special - scale.dtype.bias))
        cast += (
            f", from {last} on the largest; below {number(scale.smallest)} "
            f"fp32(fp32(q / {number(scale.dtype.unit)}) + 1/2) without its fraction"
        )
    empty = "" if how.empty is None else f", {number(how.empty)} in place of 0"
    return f"b = q = {found}, {held}, {cast}{empty}{_dt(steps)}"


def _power(fmt: BlockFormat, scale: Exponent, steps: EncodingSteps) -> str:
    how, element = steps.power, fmt.element
    rule = how.rule or scale.rule
    offset = scale.bias - element.emax
    plus = f"{'-' if offset < 0 else '+'} {abs(offset)}"
    bits = element.precision if how.bits is None else how.bits
    top = number(element.largest)
    quotient = f"amax * fp32(1 / {top})" if how.reciprocal else f"amax / {top}"
    found = {
        Rule.FLOOR: f"floor(log2 amax) {plus}",
        Rule.CEIL: f"ceil(log2 amax) {plus}",
        Rule.EVEN: f"floor(log2 a) {plus}, a being amax rounded half up to 1 + {bits} bits",
        Rule.RCEIL: f"ceil(log2 fp32({quotient})) + {scale.bias}",
    }[rule]
    text = f"E = {found}, within 0 and {scale.largest_code}, 0 for zeros"
    if how.lowest is not None:
        text += f"; values are divided by {number(how.lowest)} where E is 0"
    if any(isinstance(level.scale, Shift) for level in fmt.levels):
        text += f"; shifts of a block of zeros are {_empty_shift(fmt, steps)}"
    return text


def _empty_shift(fmt: BlockFormat, steps: EncodingSteps) -> int:
    most = next(x.scale.largest_code for x in fmt.levels if isinstance(x.scale, Shift))
    return most if steps.power.empty_shift is None else steps.power.empty_shift


def _division(fmt: BlockFormat, steps: EncodingSteps) -> str:
    block = any(isinstance(level.scale, Real) for level in fmt.blocked)
    both = block and bool(fmt.outer)
    one = "b" if block else "s"
    scale = one if any(isinstance(x.scale, Real) for x in fmt.levels) else "2^(E - 127)"
    reciprocals = "fp32(fp32(1 / s) / b)" if both else f"fp32(1 / {one})"
    text = {
        Division.RECIPROCALS: f"v = fp32(x * {reciprocals})",
        Division.PRODUCT: "v = fp32(x * r), r = fp32(1 / fp32(b * s)), at most the largest FP32",
        Division.DIVIDED: f"v = fp32(x / {'fp32(b / g)' if both else one})",
        Division.MULTIPLIED: "v = fp32(x * g)",
        Division.UNROUNDED: "v = fp32(x * fp32(1 / q)), q before it is rounded; 0 where q is",
        Division.SEARCHED: f"none: the code c of the least |fp32(fp32({scale} * c) - x)|",
    }[steps.division]
    if steps.division is Division.DIVIDED and scale.startswith("2"):
        text = "v = fp32(x / 2^(E - 127))"
    return text + (", rounded to the dtype of the values" if steps.narrow_quotient else "")


def _rounding(fmt: BlockFormat, steps: EncodingSteps) -> str:
    how, element = steps.rounding, fmt.element
    if _searched(steps):
        return "the first of equally near codes, from 0 up, then from -0 down"
    top = number(element.largest)
    low = number(-element.largest - element.unit) if how.full_range else f"-{top}"
    zero = ""
    if not how.zero_sign and element.signed_zero:
        zero = "; a quotient of -0 becomes +0"
    ties = how.ties.value if how.ties is not Ties.EVEN else "to even"
    return f"to the nearest element, ties {ties}, within {low} and {top}{zero}"


def first_difference(fmt: BlockFormat, steps: EncodingSteps) -> str | None:
    """The name of the first step that is not the definition's; None if there is none."""
    ours, theirs = in_words(fmt, DEFINITION), in_words(fmt, steps)
    return next((name for name in theirs if ours.get(name) != theirs[name]), None)


def example(fmt: BlockFormat, steps: EncodingSteps) -> Example | None:
    """A value whose code differs by the first step alone and by all steps, or else by all.

    Returns:
        The first that is found among random tensors and such with corner cases; None if there is
        none in `TRIALS` of them.
    """
    first = first_difference(fmt, steps)
    if first is None:
        return None
    alone = replace(DEFINITION, **{name: getattr(steps, name) for name in FIELDS[first]})
    for both in ((alone, steps), (steps,)):
        for x in _tensors(fmt):
            found = _differing(x, fmt, both)
            if found:
                return found
    return None


def _differing(
    x: NDArray[np.float32], fmt: BlockFormat, both: tuple[EncodingSteps, ...]
) -> Example | None:
    """A value whose code is not the definition's under any of several steps; that of the last."""
    ours, differs = run(x, fmt, DEFINITION).blocks, np.ones(x.shape, bool)
    for steps in both:
        theirs = run(x, fmt, steps).blocks
        differs &= (ours.codes != theirs.codes).reshape(x.shape)
    places = np.argwhere(differs)
    if not len(places):
        return None
    row, column = places[0]
    pair = [(int(b.codes.reshape(x.shape)[row, column]), b) for b in (ours, theirs)]
    return Example(
        float(x[row, column]),
        float(np.abs(x[row]).max()),
        float(np.abs(x).max()),
        (pair[0][0], pair[1][0]),
        (_value(pair[0][1], row, column), _value(pair[1][1], row, column)),
    )


def _value(blocks: Blocks, row: Any, column: Any) -> float:
    return float(decode(blocks, np.float64)[row, column])


def _tensors(fmt: BlockFormat) -> Iterator[NDArray[np.float32]]:
    """Tensors (64, B): of normal values; beside halves of two codes; of wide range, with -0; and
    tiny ones, in this order.
    """
    rng, shape = np.random.default_rng(0), (64, fmt.block)
    element, trials = fmt.element, range(TRIALS // 4)
    table = element.integers[: element.largest_code + 1].astype(np.float64)
    plain = [rng.standard_normal(shape).astype(np.float32) for _ in trials]
    yield from plain
    for x in plain:
        blocks = run(x, fmt, DEFINITION).blocks
        unit = decode(replace(blocks, codes=np.ones_like(blocks.codes)), np.float64)
        halves = rng.choice((table[1:] + table[:-1]) / 2, shape) * rng.choice([-1, 1], shape)
        top = np.abs(x).max(axis=1, keepdims=True)
        ties = (unit * halves).astype(np.float32)
        yield np.where(np.abs(ties) < top, ties, x)
    for x in plain:
        wide = np.ldexp(x, rng.integers(-30, 30, shape, dtype=np.int32))
        yield np.where(rng.random(shape) < 0.1, np.float32(-0.0), wide)
    for trial, x in enumerate(plain):
        yield np.ldexp(x, np.int32(-120 - trial % 30))


def explain_profile(fmt: BlockFormat, profile: str) -> list[str]:
    """The steps of a profile beside those of the definition, in lines of text.

    Raises:
        ValueError: the profile is unknown, or does not have the format.
    """
    steps = steps_of(profile, fmt)
    ours, theirs = in_words(fmt, DEFINITION), in_words(fmt, steps)
    lines = [
        f"{name_of(fmt)} as {profile} encodes it: {PROFILES[profile].source}",
        f"values: {', '.join(steps.dtypes)}",
        "",
    ]
    width = max(len(profile), len("definition"))
    for name, text in theirs.items():
        lines.append(name)
        if ours.get(name) == text:
            lines.append(f"   {'both'.ljust(width)}  {text}")
            continue
        lines.append(f"   {'definition'.ljust(width)}  {ours.get(name, 'x, divided exactly')}")
        lines.append(f"   {profile.ljust(width)}  {text}")
    return [*lines, "", *_conclusion(fmt, profile, steps)]


def _conclusion(fmt: BlockFormat, profile: str, steps: EncodingSteps) -> list[str]:
    first = first_difference(fmt, steps)
    if first is None:
        return ["no step differs: the codes are those of the definition"]
    found = example(fmt, steps)
    line = f"first difference: {first}"
    if found is None:
        return [line, f"example: none among {TRIALS} tensors of 64 blocks"]
    (one, two), (value, other) = found.codes, found.values
    where = f"x = {found.value:.9g} in a block up to {found.block:.9g}"
    if fmt.outer:
        where += f", in a tensor up to {found.tensor:.9g}"
    width = max(len(profile), len("definition"))
    return [
        line,
        f"example: {where}",
        f"   {'definition'.ljust(width)}  code {one:#04x}, {value:.9g}",
        f"   {profile.ljust(width)}  code {two:#04x}, {other:.9g}",
    ]


def facts_of_profile(fmt: BlockFormat, profile: str) -> dict[str, Any]:
    """The same as JSON has it."""
    steps = steps_of(profile, fmt)
    ours, theirs = in_words(fmt, DEFINITION), in_words(fmt, steps)
    found = example(fmt, steps)
    return {
        "profile": profile,
        "source": PROFILES[profile].source,
        "steps": [
            {"step": name, "definition": ours.get(name), "profile": text}
            for name, text in theirs.items()
        ],
        "first_difference": first_difference(fmt, steps),
        "example": None if found is None else vars(found),
    }
