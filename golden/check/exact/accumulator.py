"""Accumulators of dot products, with the steps of each stated once more.

Those of tensor cores and matrix cores are written from MMA-Sim (arXiv 2511.10909).
"""

from typing import Final, NamedTuple

from axs6.golden.check.exact.floats import BF16, FP16, FP32, FP32_NAN, Format


class Output(NamedTuple):
    """Format of an accumulator, and whether it rounds toward zero or to nearest even."""

    fields: Format = FP32
    toward_zero: bool = False


FP32_TOWARD_ZERO: Final = Output(FP32, toward_zero=True)
E8M13_TOWARD_ZERO: Final = Output(Format(8, 13), toward_zero=True)


class Accumulator(NamedTuple):
    """An accumulator of products.

    Args:
        reduction: lanes of a step; None: a block.
        fraction: bits that terms keep after the point; None: terms are added exactly.
        toward_zero: whether the bits below are dropped from magnitudes, not from signed numbers.
        least: the exponent of zeros in a fused step of magnitudes; None: they have none.
        fused: whether the accumulator is one of the terms of a step.
        output: format of the accumulator.
        promote: steps after which it is added to an FP32 one outside; None: never.
        joined: lanes whose products are one term, at the exponent of their scales; 1: by the
            elements.
        wide: whether one number holds the whole sum, rounded once at the end.
        nan: the pattern of NaN.
        keeps_minus: whether a negative fused sum that is rounded to 0 is -0.
        total_fraction: bits that the sum of the terms and the accumulator keeps, where the terms
            are added first and the accumulator then; None: all are added at once.
        groups: every how many lanes belong to one group, whose terms are added first.
        reach: an accumulator whose exponent is further than this below that of the terms is 0.
        pairs: whether products are rounded, and added in pairs.
        normal: exponent of the smallest operand that is not taken for 0; sums then have no
            subnormals either. None: all count.
    """

    reduction: int | None = None
    fraction: int | None = None
    toward_zero: bool = False
    least: int | None = None
    fused: bool = False
    output: Output = Output()
    promote: int | None = None
    joined: int = 1
    wide: bool = False
    nan: int = FP32_NAN
    keeps_minus: bool = False
    total_fraction: int | None = None
    groups: int = 1
    reach: int | None = None
    pairs: bool = False
    normal: int | None = None


def _tensor_core(
    reduction: int, fraction: int, least: int, output: Output = FP32_TOWARD_ZERO
) -> Accumulator:
    return Accumulator(reduction, fraction, True, least, True, output, nan=0x7FFFFFFF)


def _in_fp16(reduction: int, fraction: int, least: int) -> Accumulator:
    return Accumulator(reduction, fraction, True, least, True, Output(FP16), nan=0x7FFFE000)


def _cdna1(reduction: int) -> Accumulator:
    return Accumulator(reduction, fused=True, keeps_minus=True)


def _cdna2(reduction: int, operand: Format) -> Accumulator:
    return Accumulator(reduction, pairs=True, normal=1 - operand.bias)


def _cdna3(reduction: int) -> Accumulator:
    core = _tensor_core(reduction, 24, 0, Output())
    return core._replace(least=None, keeps_minus=True, total_fraction=31)


ACCUMULATORS: Final = {
    "fp32": Accumulator(),
    "exact": Accumulator(wide=True),
    "paper": Accumulator(64, 23),
    "volta": _tensor_core(4, 23, -131),
    "turing": _tensor_core(8, 24, -132),
    "ampere": _tensor_core(8, 24, -132),
    "hopper": _tensor_core(16, 25, -133),
    "ada_fp8": _tensor_core(16, 13, -132, E8M13_TOWARD_ZERO),
    "hopper_fp8": _tensor_core(32, 13, -133, E8M13_TOWARD_ZERO),
    "blackwell": _tensor_core(32, 25, -133),
    "blackwell_mx": _tensor_core(32, 25, -133),
    "blackwell_fp4": _tensor_core(64, 35, -139)._replace(joined=16),
    "ampere_tf32": _tensor_core(4, 24, -132),
    "hopper_tf32": _tensor_core(8, 25, -133),
    "hopper_tf32_k4": _tensor_core(4, 25, -133),
    "volta_to_fp16": _in_fp16(4, 23, -19),
    "turing_to_fp16": _in_fp16(8, 24, -20),
    "ampere_to_fp16": _in_fp16(8, 24, -20),
    "hopper_to_fp16": _in_fp16(16, 25, -21),
    "hopper_k8_to_fp16": _in_fp16(8, 25, -21),
    "ada_fp8_to_fp16": _in_fp16(16, 13, -20),
    "hopper_fp8_to_fp16": _in_fp16(32, 13, -21),
    "blackwell_to_fp16": _in_fp16(32, 25, -21),
    "cdna_fp32": _cdna1(1),
    "cdna1": _cdna1(4),
    "cdna1_bf16": _cdna1(2),
    "cdna2": _cdna2(4, FP16),
    "cdna2_bf16": _cdna2(2, BF16),
    "cdna2_bf16_1k": _cdna2(4, BF16),
    "cdna3": _cdna3(8),
    "cdna3_xf32": _cdna3(4),
    "cdna3_fp8": _cdna3(16)._replace(groups=2, reach=25),
}
"""Accumulators that have names."""
