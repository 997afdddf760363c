"""Profiles: the steps by which libraries encode, as data beside those of the definition.

A profile has `EncodingSteps` for each format that its library writes. The defaults of every class
here are the steps of `axs6.golden.encode`; `axs6.golden.encode_as` runs them, and
`axs6.golden.explain_profile` says them in words. docs/formats.md has a table of them.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Final, Literal

from axs6.golden.formats import FP32, BlockFormat, Rule, block_format, name_of


class KeptNumber(Enum):
    """The number of a tensor that the library's file keeps."""

    SCALE = "s"
    INVERSE = "g"
    AMAX = "amax"


class Above(Enum):
    """How the scale of a block follows from that of the tensor, where there is one."""

    DIVIDED = "divided"
    """fp32(fp32(amax / T) / s)."""
    MULTIPLIED = "multiplied"
    """fp32(g * fp32(amax / T))."""
    FOLDED = "folded"
    """fp32(amax * fp32(g * fp32(1 / T)))."""


class Cast(Enum):
    """How a scale is rounded to its dtype."""

    EVEN = "to nearest, ties to even"
    LLAMA = "to nearest, ties up"
    """Ties up; subnormal scales are fp32(fp32(q / unit) + 1/2) without its fraction, and below the
    smallest normal scale; from the last binade on, the largest scale stands for all."""


class Division(Enum):
    """How values are divided by their real scales. Divisions by powers of two are exact."""

    RECIPROCALS = "reciprocals"
    """fp32(x * r), with r = fp32(fp32(1 / s) / scale of the block)."""
    PRODUCT = "product"
    """fp32(x * r), with r = fp32(1 / fp32(scale of the block * s)), at most the largest FP32."""
    DIVIDED = "divided"
    """fp32(x / d), with d = fp32(scale of the block / g), or the only scale."""
    MULTIPLIED = "multiplied"
    """fp32(x * g)."""
    UNROUNDED = "unrounded"
    """fp32(x * fp32(1 / q)), with q the scale of the block before it is rounded; 0 if q is."""
    SEARCHED = "searched"
    """None: the first code c of the smallest |fp32(fp32(scale * value of c) - x)|."""


class Ties(Enum):
    """Which code a value halfway between two becomes."""

    EVEN = "to even"
    AWAY = "away from zero"


@dataclass(frozen=True)
class TensorScale:
    """The real scale s of a tensor, or its inverse g, from the largest magnitude amax.

    Args:
        inverse: whether g = fp32(T / amax) is found and s = fp32(1 / g), not s = fp32(amax / T).
        top: T; by default the largest element times the largest scale of blocks.
        held: whether s is held within 2^-126 and the largest FP32 number.
        infinite: g where it would be infinite; by default the largest number below.
        most: the largest g.
        empty: the scale in place of 0, and for amax = 0; "epsilon" is the unit in the last place
            of 1.
        kept: the number in the library's file.
    """

    inverse: bool = False
    top: Fraction | None = None
    held: bool = True
    infinite: Fraction | None = None
    most: Fraction = FP32.largest
    empty: Fraction | Literal["epsilon"] | None = Fraction(1)
    kept: KeptNumber = KeptNumber.SCALE


@dataclass(frozen=True)
class BlockScale:
    """The real scale of a block, from the largest magnitude amax in it.

    Args:
        above: how the tensor's scale comes in.
        held: whether it is held at the smallest normal number of its dtype or more, before it is
            rounded; it is always held at the largest.
        cast: how it is rounded to its dtype.
        empty: the scale in place of 0.
    """

    above: Above = Above.DIVIDED
    held: bool = True
    cast: Cast = Cast.EVEN
    empty: Fraction | None = None


@dataclass(frozen=True)
class PowerScale:
    """The exponent scale of a block, from the largest magnitude amax in it.

    Args:
        rule: in place of the format's.
        bits: fraction bits to which `even` rounds amax, in place of the element's.
        reciprocal: whether `rceil` takes fp32(amax * fp32(1 / T)), not fp32(amax / T).
        lowest: what values are divided by under code 0, in place of the scale.
        empty_shift: code of the shifts of a block of zeros; by default the largest.
    """

    rule: Rule | None = None
    bits: int | None = None
    reciprocal: bool = False
    lowest: Fraction | None = None
    empty_shift: int | None = None


@dataclass(frozen=True)
class QuotientRounding:
    """Rounding of quotients to elements; they are held at the largest element.

    Args:
        ties: which code a quotient halfway between two becomes.
        zero_sign: whether a quotient -0.0 keeps its sign, in elements with a -0.
        full_range: whether the most negative code of two's complement is used.
    """

    ties: Ties = Ties.EVEN
    zero_sign: bool = True
    full_range: bool = False


@dataclass(frozen=True)
class EncodingSteps:
    """How a library encodes the values of a format, in order; the definition by default.

    Args:
        dtypes: of values that the library takes, of "fp32", "bf16" and "fp16".
        flush: whether zeros and magnitudes below 2^-126 count as +0.
        narrow: whether scales are rounded to the dtype of the values, where that is not FP32.
        tensor, block, power: the scales.
        division: of values by real scales.
        narrow_quotient: whether quotients are rounded to the dtype of the values.
        rounding: of quotients to codes.
    """

    dtypes: tuple[str, ...] = ("fp32", "bf16", "fp16")
    flush: bool = False
    narrow: bool = False
    tensor: TensorScale = TensorScale()
    block: BlockScale = BlockScale()
    power: PowerScale = PowerScale()
    division: Division = Division.RECIPROCALS
    narrow_quotient: bool = False
    rounding: QuotientRounding = QuotientRounding()

    def check_dtype(self, dtype: str, profile: str) -> None:
        """Raise ValueError unless the library takes values of a dtype; `profile` is its name."""
        if dtype not in self.dtypes:
            known = " or ".join(self.dtypes)
            raise ValueError(f"profile {profile} takes {known} in this format, not {dtype}")


@dataclass(frozen=True)
class Profile:
    """How a library encodes.

    Args:
        source: the package, its version, and where its steps are.
        formats: steps for each of its formats, by names or strings.
    """

    source: str
    formats: dict[str, EncodingSteps] = field(hash=False)


DEFINITION: Final = EncodingSteps()
ZERO_LOST: Final = QuotientRounding(zero_sign=False)

_MX: Final = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4")
_FLOAT8: Final = ("fp8_e4m3", "fp8_e5m2")
_AO_EPSILON: Final = Fraction(1e-12)
"""amax is at least this float64 number in torchao's FP8, so that g has a largest number."""


def _torchao() -> dict[str, EncodingSteps]:
    found = {"nvfp4": DEFINITION}
    for name in _MX:
        for rule in Rule:
            lowest = Fraction(1) if rule is Rule.RCEIL else 1 / Fraction(2) ** 126
            named = name if rule is Rule.FLOOR else f"{name}-{rule}"
            steps = EncodingSteps(dtypes=("fp32", "bf16"), power=PowerScale(lowest=lowest))
            found[named] = steps
    for name in _FLOAT8:
        most = block_format(name).element.largest / _AO_EPSILON
        tensor = TensorScale(
            inverse=True, most=most, held=False, empty=None, kept=KeptNumber.INVERSE
        )
        found[name] = EncodingSteps(tensor=tensor, division=Division.MULTIPLIED)
    return found


def _compressed_tensors() -> dict[str, EncodingSteps]:
    inverse = TensorScale(
        inverse=True, held=False, infinite=Fraction(1), empty=None, kept=KeptNumber.INVERSE
    )
    divided = EncodingSteps(
        narrow=True, division=Division.DIVIDED, narrow_quotient=True, rounding=ZERO_LOST
    )
    whole = replace(divided, tensor=TensorScale(held=False, empty="epsilon"))
    mx = replace(divided, dtypes=("fp32", "bf16"), power=PowerScale(rule=Rule.EVEN))
    signed = replace(mx, rounding=QuotientRounding())
    coarse = replace(signed, power=PowerScale(rule=Rule.EVEN, bits=1))
    return {
        "nvfp4": replace(
            divided,
            tensor=inverse,
            block=BlockScale(Above.MULTIPLIED, held=False, empty=Fraction(1, 8)),
            narrow_quotient=False,
        ),
        "mxfp4": mx,
        "mxfp6_e2m3": signed,
        "mxfp8_e4m3": coarse,
        "fp8_e4m3": replace(whole, rounding=QuotientRounding()),
        "int8": replace(
            whole,
            tensor=replace(whole.tensor, top=Fraction(255, 2)),
            rounding=QuotientRounding(full_range=True),
        ),
    }


def _llama_cpp() -> dict[str, EncodingSteps]:
    searched = EncodingSteps(division=Division.SEARCHED)
    return {
        "mxfp4": searched,
        "e2m1fn_e4m3fn_t16": replace(searched, block=BlockScale(held=False, cast=Cast.LLAMA)),
        "int8_float16_t32": EncodingSteps(
            block=BlockScale(held=False),
            division=Division.UNROUNDED,
            rounding=QuotientRounding(Ties.AWAY),
        ),
    }


def _transformer_engine() -> dict[str, EncodingSteps]:
    current = TensorScale(inverse=True, held=False)
    power = PowerScale(rule=Rule.RCEIL, reciprocal=True, lowest=Fraction(1))
    return {
        "nvfp4": EncodingSteps(
            tensor=TensorScale(inverse=True, held=False, empty=None, kept=KeptNumber.AMAX),
            block=BlockScale(Above.FOLDED, held=False),
            division=Division.PRODUCT,
            rounding=ZERO_LOST,
        ),
        **{name: EncodingSteps(power=power) for name in _MX[:2]},
        **{name: EncodingSteps(tensor=current, division=Division.MULTIPLIED) for name in _FLOAT8},
    }


PROFILES: Final[dict[str, Profile]] = {
    "compressed-tensors": Profile(
        "compressed-tensors 0.20, quantization/utils/helpers.py and lifecycle/forward_helpers.py",
        _compressed_tensors(),
    ),
    "llama.cpp": Profile("gguf 0.19, quants.py, and llama.cpp's ggml-quants.c", _llama_cpp()),
    "quark": Profile(
        "AMD Quark 0.13, torch/kernel/hw_emulation",
        {x: EncodingSteps(flush=True, power=PowerScale(empty_shift=0)) for x in ("mx9", "mx6")},
    ),
    "torchao": Profile("torchao 0.18, prototype/mx_formats and float8/float8_utils.py", _torchao()),
    "transformer-engine": Profile(
        "TransformerEngine 2.x, pytorch/custom_recipes/quantization_ref_nvfp4.py, "
        "common/util/ptx.cuh and common/recipe/recipe_common.cuh",
        _transformer_engine(),
    ),
}
"""Every profile, by its name."""


def check_profile(profile: str) -> Profile:
    """Return the profile of a name, or raise ValueError naming the known ones."""
    if profile not in PROFILES:
        raise ValueError(f"profile must be one of {', '.join(PROFILES)}, not {profile!r}")
    return PROFILES[profile]


@cache
def _formats(profile: str) -> dict[BlockFormat, EncodingSteps]:
    return {block_format(name): steps for name, steps in check_profile(profile).formats.items()}


def steps_of(profile: str, fmt: BlockFormat) -> EncodingSteps:
    """The steps of a format in a profile.

    Raises:
        ValueError: the profile is unknown, or does not have the format.
    """
    known = _formats(profile)
    if fmt not in known:
        names = ", ".join(map(name_of, known))
        raise ValueError(f"profile {profile} has the formats {names}, not {name_of(fmt)}")
    return known[fmt]
