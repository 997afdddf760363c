"""Accumulators as data: how the products of two vectors become one FP32 result.

A matrix product takes its lanes in steps. A *term* is the exact sum of all products of a step that
share their exponents: a block of fixed-point elements, or a single product of floating-point
elements. Chips differ in how they add the terms of a step and the results of the steps;
`Accumulator` describes it. docs/format.md has the definition of every field.
"""

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

from axs6.golden.arguments import check_flag, check_integer
from axs6.golden.formats import BF16, FP16, FP32, Float
from axs6.golden.rounding import DETERMINISTIC, Rounding, check_rounding
from axs6.tables import Table, html_text, words

FRACTION_MAX: Final = 48
"""Maximum bits kept of an aligned term: twice the bits of FP32."""

SUM_FRACTION_MAX: Final = 31
"""Maximum bits kept of a sum of terms and accumulator."""

LEAST_MAX: Final = 1 << 10
"""Maximum magnitude of a least exponent."""

REDUCTION_MAX: Final = 4096
"""Maximum number of lanes of a step."""


class Alignment(StrEnum):
    """How the lower bits of an aligned term are dropped."""

    FLOOR = "floor"
    """Toward minus infinity, as two's complement does. Zeros count with their exponents."""
    ZERO = "zero"
    """Toward zero, as magnitudes do. Sums of zeros do not count in the largest exponent."""


@dataclass(frozen=True)
class Accumulator:
    """The steps from the products of a dot product to its result.

    Args:
        reduction: lanes of a step, a multiple of the block or a part of it; None for one block.
        fraction: None to add the terms of a step exactly. Else each is shifted right by the
            distance of its exponent to the largest one in the step, and this many bits after its
            point are kept. The point is that of the product of the significands, where factors
            without exponents count as they are; in a term of fixed-point elements, it is after the
            top bit of the largest magnitude that such a term has.
        alignment: how the other bits are dropped.
        least: lower limit of the largest exponent of a step: the exponent of zeros in tensor cores.
            None for no limit.
        fused: whether the accumulator is one of the terms of a step, or the result of the step is
            added to it afterwards. A fused result of 0 is +0.
        output: dtype of the result of each step, and of the sum with it; None for one integer that
            is wide enough, rounded once to FP32 at the end.
        rounding: to nearest even or toward zero; overflows become infinite.
        promote: steps after which the accumulator is added to another one, in FP32 to nearest even,
            and starts again at 0; None for never.
        term: lanes whose products are added exactly, whatever their exponents, and multiplied by
            the significands of the scales. Such a term has the exponents of the scales alone and
            its point at 1, and counts in the largest exponent even where products cancel to 0. None
            for terms as above.
        nan: the FP32 pattern that every NaN becomes.
        minus_zero: whether a negative fused result that is rounded to 0 is -0. A sum of exactly 0
            is +0.
        sum_fraction: None, or the bits kept after the point of a sum of terms and accumulator where
            the two are aligned in a second place: the terms among themselves, as above, and then
            their sum with the accumulator, to the larger exponent of the two. One bit more is kept
            of the sum, and `fraction` bits of the accumulator; the total, normalised, keeps
            `sum_fraction`. All are dropped toward minus infinity. Terms of 2^128 or more are
            infinite.
        groups: the lanes of a step are dealt to this many groups in turn, and the terms are single
            products. Each group is aligned by itself, and the sums of the groups are aligned to the
            largest of their exponents, toward minus infinity.
        reach: the accumulator counts as 0 if its exponent is more than this far below the larger
            one. None for always.
        pairwise: whether each product of a step is rounded to `output`, and neighbours are added in
            pairs, with one rounding for each sum, until one is left.
        flush: None, or the exponent of the smallest normal operand: smaller ones count as +0, and
            products and sums that are subnormal in `output` become zeros of their sign.
        scaled: whether terms are products of elements alone. The scales of blocks then multiply the
            sum that is promoted, by their product in FP32, in a fused multiply-add.

    Raises:
        ValueError: a field is out of range, or two do not fit: the message says which.
    """

    reduction: int | None = None
    fraction: int | None = None
    alignment: Alignment = Alignment.FLOOR
    least: int | None = None
    fused: bool = False
    output: Float | None = FP32
    rounding: Rounding = Rounding.NEAREST
    promote: int | None = None
    term: int | None = None
    nan: int = FP32.quiet_nan
    minus_zero: bool = False
    sum_fraction: int | None = None
    groups: int = 1
    reach: int | None = None
    pairwise: bool = False
    flush: int | None = None
    scaled: bool = False

    def __post_init__(self) -> None:
        limits = {
            "reduction": (1, REDUCTION_MAX),
            "fraction": (0, FRACTION_MAX),
            "least": (-LEAST_MAX, LEAST_MAX),
            "promote": (1, None),
            "term": (1, REDUCTION_MAX),
            "sum_fraction": (0, SUM_FRACTION_MAX),
            "groups": (1, REDUCTION_MAX),
            "reach": (0, LEAST_MAX),
            "flush": (-LEAST_MAX, LEAST_MAX),
        }
        for name, (low, high) in limits.items():
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), low, high)
        if self.alignment not in tuple(Alignment):
            known = ", ".join(Alignment)
            raise ValueError(f"alignment must be one of {known}, not {self.alignment!r}")
        object.__setattr__(self, "alignment", Alignment(self.alignment))
        object.__setattr__(self, "rounding", check_rounding(self.rounding, DETERMINISTIC))
        for name in ("fused", "minus_zero", "pairwise", "scaled"):
            check_flag(name, getattr(self, name))
        check_integer("nan", self.nan, FP32.infinity + 1, FP32.sign_bit - 1)
        self._check_output()
        for name in ("term", "least", "sum_fraction"):
            if getattr(self, name) is not None and self.fraction is None:
                raise ValueError(f"{name} needs a fraction, to which terms are aligned")
        self._check_sums()

    def _check_sums(self) -> None:
        needed = (
            ("minus_zero", "fused", "of a step that the accumulator is part of"),
            ("sum_fraction", "fused", "with which the sum of terms is aligned"),
            ("groups", "sum_fraction", "of the sums of the groups"),
            ("reach", "sum_fraction", "of the accumulator beside the sum of terms"),
            ("flush", "pairwise", "with products and sums in the format of the output"),
            ("scaled", "promote", "where the scales of blocks multiply"),
        )
        for name, other, why in needed:
            default = type(self).__dataclass_fields__[name].default
            if getattr(self, name) != default and not getattr(self, other):
                raise ValueError(f"{name} needs {other}, {why}")
        if self.pairwise and (self.fraction is not None or self.fused or self.output is None):
            raise ValueError(
                "pairwise cannot be combined with fraction, fused or output=None, without which "
                "products and sums are rounded one by one"
            )
        if self.sum_fraction is None:
            return
        for name in ("least", *(["term"] if self.groups > 1 else [])):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} cannot be combined with sum_fraction or groups")
        assert self.output is not None
        assert self.fraction is not None
        low = max(self.output.fraction_bits + 2, self.fraction)
        if self.sum_fraction < low or self.fraction < self.output.fraction_bits:
            raise ValueError(
                f"sum_fraction must be {low} or more and fraction {self.output.fraction_bits} or "
                f"more for this output, not {self.sum_fraction} and {self.fraction}"
            )
        if self.reduction is not None and self.reduction % self.groups:
            raise ValueError(f"groups must divide reduction {self.reduction}, not {self.groups}")

    def _check_output(self) -> None:
        if self.output is None:
            if self.fused or self.promote is not None:
                raise ValueError(
                    "output=None cannot be combined with fused or promote, which round"
                )
            if self.least is not None:
                raise ValueError("output=None cannot be combined with least, which only steps have")
            return
        if not isinstance(self.output, Float):
            raise ValueError(f"output must be a Float or None, not {self.output!r}")
        if not (
            self.output.has_infinity
            and self.output.emin - self.output.fraction_bits >= FP32.emin - FP32.fraction_bits
            and self.output.fraction_bits <= FP32.fraction_bits
            and self.output.largest <= FP32.largest
        ):
            raise ValueError(
                "output must have an infinity, and only values that FP32 has, "
                f"not {self.output.name}"
            )

    def __str__(self) -> str:
        spelled = {name: self._changes(known) for name, known in ACCUMULATORS.items()}
        name = min(spelled, key=lambda name: len(spelled[name]))
        return ",".join([name, *(f"{field}={value}" for field, value in spelled[name].items())])

    def _repr_html_(self) -> str:
        """All fields, those unlike "fp32" marked, in a notebook."""
        columns = [words("field"), words("value"), words("mark", "")]
        rows = [
            (x.name, _spell(x.name, getattr(self, x.name)), "*" * (x.name in self.changes))
            for x in fields(self)
        ]
        return html_text(Table(columns, rows, [f"{self}; * is unlike fp32"]))

    @property
    def changes(self) -> dict[str, str]:
        """The fields that differ from those of "fp32", spelled as in strings."""
        return self._changes(Accumulator())

    def _changes(self, other: "Accumulator") -> dict[str, str]:
        return {
            x.name: _spell(x.name, getattr(self, x.name))
            for x in fields(self)
            if getattr(self, x.name) != getattr(other, x.name)
        }


def _tensor_core(reduction: int, fraction: int, least: int, **changes: Any) -> Accumulator:
    """Products and accumulator aligned together and truncated, as in NVIDIA's tensor cores."""
    return Accumulator(
        reduction,
        fraction,
        Alignment.ZERO,
        least,
        fused=True,
        rounding=Rounding.TOWARD_ZERO,
        nan=0x7FFFFFFF,
        **changes,
    )


E8M13: Final = Float(8, 13)
"""FP32 with the lowest ten bits 0: the accumulator of Ada's and Hopper's tensor cores for FP8
products."""


def _to_fp16(reduction: int, fraction: int, least: int) -> Accumulator:
    """A tensor core with an FP16 accumulator, whose NaN is that of all ones."""
    core = _tensor_core(reduction, fraction, least, output=FP16)
    return replace(core, rounding=Rounding.NEAREST, nan=0x7FFFE000)


def _fused_sum(reduction: int) -> Accumulator:
    """Products and accumulator added exactly and rounded once, as in AMD's CDNA1."""
    return Accumulator(reduction, fused=True, minus_zero=True)


def _pairs(reduction: int, flush: int) -> Accumulator:
    """Products added in pairs in FP32 without subnormals, as in AMD's CDNA2."""
    return Accumulator(reduction, pairwise=True, flush=flush)


def _two_alignments(reduction: int, **changes: Any) -> Accumulator:
    """Products aligned and truncated, and their sum aligned with the accumulator: AMD's CDNA3."""
    return Accumulator(
        reduction,
        24,
        Alignment.ZERO,
        fused=True,
        nan=0x7FFFFFFF,
        minus_zero=True,
        sum_fraction=31,
        **changes,
    )


ACCUMULATORS: Final[dict[str, Accumulator]] = {
    "fp32": Accumulator(),
    "exact": Accumulator(output=None),
    "paper": Accumulator(reduction=64, fraction=23),
    "volta": _tensor_core(4, 23, -131),
    "turing": _tensor_core(8, 24, -132),
    "ampere": _tensor_core(8, 24, -132),
    "hopper": _tensor_core(16, 25, -133),
    "ada_fp8": _tensor_core(16, 13, -132, output=E8M13),
    "hopper_fp8": _tensor_core(32, 13, -133, output=E8M13),
    "hopper_fp8_scaled": _tensor_core(32, 13, -133, output=E8M13, promote=4, scaled=True),
    "blackwell": _tensor_core(32, 25, -133),
    "blackwell_mx": _tensor_core(32, 25, -133),
    "blackwell_fp4": _tensor_core(64, 35, -139, term=16),
    "ampere_tf32": _tensor_core(4, 24, -132),
    "hopper_tf32": _tensor_core(8, 25, -133),
    "hopper_tf32_k4": _tensor_core(4, 25, -133),
    "volta_to_fp16": _to_fp16(4, 23, -19),
    "turing_to_fp16": _to_fp16(8, 24, -20),
    "ampere_to_fp16": _to_fp16(8, 24, -20),
    "hopper_to_fp16": _to_fp16(16, 25, -21),
    "hopper_k8_to_fp16": _to_fp16(8, 25, -21),
    "ada_fp8_to_fp16": _to_fp16(16, 13, -20),
    "hopper_fp8_to_fp16": _to_fp16(32, 13, -21),
    "blackwell_to_fp16": _to_fp16(32, 25, -21),
    "cdna_fp32": _fused_sum(1),
    "cdna1": _fused_sum(4),
    "cdna1_bf16": _fused_sum(2),
    "cdna2": _pairs(4, FP16.emin),
    "cdna2_bf16": _pairs(2, BF16.emin),
    "cdna2_bf16_1k": _pairs(4, BF16.emin),
    "cdna3": _two_alignments(8),
    "cdna3_xf32": _two_alignments(4),
    "cdna3_fp8": _two_alignments(16, groups=2, reach=25),
}
"""Every accumulator that has a name, by its name.

fp32: exact blocks, added in order in FP32; the default. exact: one wide integer, rounded at the
end. paper: the pipeline of Fig. 6 of the shared-microexponents paper, with numbers of 25 bits.
hopper_fp8_scaled: "hopper_fp8" with scales of 128 values beside it, as DeepGEMM multiplies. The
others are tensor cores as MMA-Sim (arXiv 2511.10909; mmasim 2.1.1) publishes them. "volta" to
"hopper" are those of 16-bit products. "blackwell", of FP8, is the same as "blackwell_mx", of MXFP8,
MXFP6 and MXFP4; "blackwell_fp4" is of MXFP4 and NVFP4. Those with "tf32" are of TF32 products,
those with "to_fp16" have an FP16 accumulator. "cdna" ones are matrix cores of AMD: without more,
those of FP16 products; docs/format.md lists the instructions of each.
"""

DTYPES: Final = {"fp32": FP32, "bf16": BF16, "fp16": FP16}
NUMBER: Final = re.compile(r"0x[0-9a-f]+|-?\d+")
FLOAT: Final = re.compile(r"e(\d+)m(\d+)")


def accumulator(value: str | Accumulator) -> Accumulator:
    """The accumulator of a name, perhaps with some fields changed.

    Args:
        value: a key of `ACCUMULATORS`, followed by `,field=value` for each field that differs, as
            `str` gives it back from the nearest name: "hopper_fp8,promote=4",
            "paper,fraction=25"; or an Accumulator, which is returned.

    Raises:
        TypeError: it is neither.
        ValueError: the name, a field or its value is unknown, or a field is given twice.
    """
    if isinstance(value, Accumulator):
        return value
    if not isinstance(value, str):
        kind = type(value).__name__
        raise TypeError(f"accumulator must be a string or an Accumulator, not {kind}")
    name, *changes = value.split(",")
    if name not in ACCUMULATORS:
        known = ", ".join(ACCUMULATORS)
        raise ValueError(f"accumulator must be one of {known}, not {name!r}")
    known_fields = [x.name for x in fields(Accumulator)]
    changed: dict[str, Any] = {}
    for change in changes:
        key, separator, text = change.partition("=")
        if not separator or key not in known_fields:
            needed = f"field=value with one of the fields {', '.join(known_fields)}"
            raise ValueError(f"accumulator needs {needed}, not {change!r}")
        if key in changed:
            raise ValueError(f"accumulator must have {key} only once")
        changed[key] = _read(key, text)
    return replace(ACCUMULATORS[name], **changed)


def _read(key: str, text: str) -> Any:
    """The value of a field; any other text stays a string, which the field then refuses."""
    if text == "none":
        return None
    if text in ("true", "false"):
        return text == "true"
    if NUMBER.fullmatch(text):
        return int(text, 0)
    if key == "output" and text in DTYPES:
        return DTYPES[text]
    if key == "output" and (match := FLOAT.fullmatch(text)):
        return Float(int(match[1]), int(match[2]))
    return text


def _spell(key: str, value: Any) -> str:
    if isinstance(value, Float):
        return value.name
    return hex(value) if key == "nan" else str(value).lower()
