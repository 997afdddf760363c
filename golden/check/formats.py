"""Checks of block formats of any kind: encoding, decoding and bytes, against their definitions."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.check.cases import formats as format_cases
from axs6.golden.check.cases import inputs
from axs6.golden.check.cases.inputs import KINDS, InputKind, Patterns
from axs6.golden.check.comparison import Comparison, Model
from axs6.golden.check.exact import formats as definitions
from axs6.golden.check.exact.blocks import Block, decode_bits, pack_block, pack_outer
from axs6.golden.check.exact.encode import encode
from axs6.golden.check.exact.floats import BF16, FP32, FP64
from axs6.golden.check.exact.rounding import NEAREST, Rounding
from axs6.golden.check.subjects import CheckedFormat, as_blocks, as_rows, plain
from axs6.golden.formats import CATALOG, BlockFormat
from axs6.golden.rounding import RANDOM_BITS_MAX

COMPOSED: Final = (
    *("axs6-even", "axs6_t8", "mx9-rceil", "mx6-ceil", "mxint8-even", "msfp12-rceil"),
    *("mxfp8_e4m3-ceil", "mxfp8_e4m3-rceil", "mxfp8_e5m2-even", "mxfp6_e2m3-rceil"),
    *("mxfp6_e3m2-ceil", "mxfp4-even", "mxfp4-rceil", "sm5_e5m0_t8"),
    *("int6_e4m0_t64", "e3m2fn_e6m0n_t16", "e3m4_e8m0_t32", "int4_e8m0_t16s4o2s2o1"),
    *("int8_float32_t128", "int8_bfloat16_t32", "int4_float32_t0", "e4m3fn_float32_t0"),
    *("e2m1fn_e5m2_t32_float32_t0", "int6_u6_t16_float32_t0", "int6_u10_t16_float32"),
    *("e4m3fn_u4_t8_float32_t0", "e5m2_u4_t16_float32"),
    *("uint4_float32_uint4", "uint8_float32_uint8_t0", "uint6_bfloat16_uint6_t32"),
    *("e4m3fn_e5m0_t32", "e2m1fn_e8m0_t32_float32", "e4m3fn_e5m0_t8_bfloat16_t64_float32"),
    *("e3m2fnb-50_e8m0-rceil_t8", "sm8d_e8m0_t4", "sm4q55_e4m3fn_t4_float32_t0"),
    *("mxfp4_mse", "nvfp4_mse", "nvfp4_four-over-six", "vsq4_mse", "sm8d_e8m0_t4_mse"),
    *("sm5_e5m0_t8_mse", "e2m1fn_float16_t16_four-over-six"),
    *("e4m3fn_e5m0_t8_bfloat16_t64_float32_mse", "nvfp4_ue5m3_four-over-six"),
    *("e2m1fn_e8m0_t4x8", "e4m3fn_float32_t2x16", "e2m1fn_e4m3fn_t4x4_float32"),
    *("int8_e8m0_t4x8s2o1", "int4_bfloat16_t8x2", "mxfp4_t2x16_mse"),
    *("e4m3fnuzb11_e8m0_t32", "e5m2inuz_e8m0-even_t16", "e1m1fnuz_e8m0_t8s2o1"),
    *("e2m1inuz_e4m3fnuz_t16_float32", "e3m2fnuz_ue6m2inuz_t16", "e2m1fn_e5m2inuz_t8_mse"),
    *("e2m1fn_ue4m3_t16", "int6_ue6m2f_t8_ue5m3_t32_float32", "uint6_ue6m2b20_uint6_t32"),
    *("int4a_ue6m2b3h_t32s8o2s4o1", "tc5a_e4m3fn-bf16_t16s4o3", "e2m1fn_ue5m3h-bf16_t16_mse"),
    *("sm6da_e8m0_t8", "int8a_float16-bf16_t0", "e3m2fn_e4m3fn_t16s2o1_float32_t0"),
    *("nf4_e8m0_t32", "nf4q6_e8m0-rceil_t16_mse", "table0:1:7:-6q3_e8m0_t16s2o1"),
    *("table5:0:2:-1:-8:-3:9:1_u4_t16_float32_t0", "table0:6:12:14::-14:-2:-7d7q1_bfloat16_t8"),
    *("if4_t8", "sm4+int4_float16_t16"),
)
"""Formats beside those of the catalog that `validate` compares for "all"."""

ALL: Final = (*CATALOG, *COMPOSED)

ROUNDINGS: Final = (NEAREST, Rounding("toward_zero"))
OUTPUTS: Final = (("float32", FP32), ("bfloat16", BF16), ("float64", FP64))


def _compare_encode(
    model: Model,
    subject: CheckedFormat,
    kind: InputKind,
    patterns: Patterns,
    rounding: Rounding,
    **options: Any,
) -> Iterator[Comparison]:
    """One array along its last axis or, transposed, along its first: whichever it falls to."""
    definition, axis = subject.definition, -int(patterns.sum() % np.uint64(2))
    policy = options.pop("nonfinite", "saturate")
    words, given = options.get("random"), options.get("scale")
    values = format_cases.values(kind, patterns)
    by_definition = encode(
        values,
        definition,
        rounding,
        None if words is None else words.tolist(),
        policy,
        None if given is None else Fraction(float(given)),
    )
    array = kind.array(patterns)
    if axis == 0:
        array = np.ascontiguousarray(array.T)
        options |= {} if words is None else {"random": words.T}
    got = model.encode(array, subject.fmt, rounding.name, axis=axis, nonfinite=policy, **options)
    answers = as_rows(got)
    size = definition.block
    what = f"encode {subject.name} of {kind.name}, {rounding.name}, {policy}, axis {axis}, block"
    for i, row in enumerate(patterns.tolist()):
        for k, block in enumerate(by_definition[i]):
            inputs = row[k * size : (k + 1) * size]
            yield Comparison(what, inputs, plain(answers[i][k]), plain(block))


Check = Callable[[Model, CheckedFormat, np.random.Generator, int], Iterator[Comparison]]


def _share(blocks: int, part: int, size: int) -> int:
    """Blocks of `size` values: about as many values as a part of `blocks` blocks of 32 has."""
    return 3 + blocks * 32 // (part * size)


def encode_special(
    model: Model, subject: CheckedFormat, rng: np.random.Generator, blocks: int
) -> Iterator[Comparison]:
    """Powers of two and their neighbours, limits, zeros of both signs, NaN and infinities."""
    for kind in KINDS:
        for rounding in ROUNDINGS:
            size = subject.definition.block
            found = format_cases.special(kind, size, _share(blocks, 40, size), rng)
            for patterns in format_cases.arrays(found, subject.definition):
                yield from _compare_encode(model, subject, kind, patterns, rounding)


def encode_thresholds(
    model: Model, subject: CheckedFormat, rng: np.random.Generator, blocks: int
) -> Iterator[Comparison]:
    """Values next to every code and every midpoint; largest values where scales change."""
    definition = subject.definition
    for number, kind in enumerate(KINDS):
        powers = format_cases.SPREAD if kind.fmt else (0, 5, 12)
        few = powers if number == 0 else rng.choice(powers, 1).tolist()
        found = format_cases.thresholds(kind, definition, few)
        for rounding in ROUNDINGS:
            for patterns in format_cases.arrays(found, definition):
                yield from _compare_encode(model, subject, kind, patterns, rounding)
        if kind.fmt:
            few = [*few, *rng.integers(-126, 120, 1 + blocks // 500).tolist()]
        found = format_cases.scale_thresholds(kind, definition, few)
        for patterns in format_cases.arrays(found[number > 0 :: 1 + (number > 0)], definition):
            yield from _compare_encode(model, subject, kind, patterns, NEAREST)


def encode_random(
    model: Model, subject: CheckedFormat, rng: np.random.Generator, blocks: int
) -> Iterator[Comparison]:
    """Random arrays over all exponents, some not of whole blocks, some with a given scale."""
    size = subject.definition.block
    outermost = subject.definition.levels[-1]
    for kind in KINDS:
        for rounding in ROUNDINGS:
            found = inputs.random_blocks(kind, size, 2 * _share(blocks, 80, size), rng)
            rows = found.reshape(-1, 2 * size)[:, : 2 * size - int(rng.integers(0, size))]
            for patterns in format_cases.arrays(rows, subject.definition, rows=3):
                yield from _compare_encode(model, subject, kind, patterns, rounding)
        if isinstance(outermost, definitions.Real) and outermost.group == "tensor":
            scale = np.float32(2.0 ** rng.uniform(-60, 60))
            few = inputs.random_blocks(kind, size, 6, rng)
            yield from _compare_encode(model, subject, kind, few, NEAREST, scale=scale)


def encode_stochastic(
    model: Model, subject: CheckedFormat, rng: np.random.Generator, blocks: int
) -> Iterator[Comparison]:
    """Stochastic rounding by random words, many of them 0 or the largest."""
    for kind in (KINDS[0], KINDS[3]):
        for bits in (1, 4, 16, RANDOM_BITS_MAX):
            size = subject.definition.block
            found = inputs.random_blocks(kind, size, _share(blocks, 100, size), rng)
            for patterns in format_cases.arrays(found, subject.definition):
                random = format_cases.words(patterns.shape, bits, rng)
                rounding = Rounding("stochastic", bits)
                yield from _compare_encode(
                    model, subject, kind, patterns, rounding, random=random, random_bits=bits
                )


def encode_nonfinite(
    model: Model, subject: CheckedFormat, rng: np.random.Generator, blocks: int
) -> Iterator[Comparison]:
    """NaN and infinities among other values: saturated, propagated and refused."""
    for kind in (kind for kind in KINDS if kind.fmt):
        size = subject.definition.block
        found = format_cases.infinite(kind, size, _share(blocks, 100, size), rng)
        for patterns in format_cases.arrays(found, subject.definition):
            for policy in ("saturate", "propagate") if subject.fmt.has_nan else ("saturate",):
                yield from _compare_encode(
                    model, subject, kind, patterns, NEAREST, nonfinite=policy
                )
        for policy in ("error",) if subject.fmt.has_nan else ("error", "propagate"):
            what = f"encode {subject.name} of {kind.name}, {policy} refuses NaN"
            refused = _refuses(model, kind.array(found[-1:]), subject.fmt, policy)
            yield Comparison(what, found[-1].tolist(), refused, True)


def _refuses(model: Model, x: NDArray[Any], fmt: BlockFormat, policy: str) -> bool:
    try:
        model.encode(x, fmt, nonfinite=policy)
    except ValueError:
        return True
    return False


def _coded(
    subject: CheckedFormat, rng: np.random.Generator
) -> Iterator[tuple[list[Block], Blocks]]:
    """Blocks to decode and pack, in arrays of the model: those that share a scale together."""
    outer = [i for i, x in enumerate(subject.fmt.levels[::-1]) if isinstance(x.group, str)]
    together: dict[Any, list[Block]] = {}
    for block in format_cases.coded_blocks(subject.definition, rng):
        key = (tuple(block.scales[i] for i in outer), block.zero_point)
        together.setdefault(key, []).append(block)
    for blocks in together.values():
        yield blocks, as_blocks(blocks, subject.fmt)


def decode_all(
    model: Model, subject: CheckedFormat, rng: np.random.Generator, blocks: int
) -> Iterator[Comparison]:
    """Every code beside the smallest, the largest and other codes of every scale."""
    for given, array in _coded(subject, rng):
        for name, dtype in OUTPUTS:
            unsigned = f"u{(dtype.exponent_bits + dtype.fraction_bits + 1) // 8}"
            got = model.decode(array, name).view(unsigned).reshape(len(given), -1).tolist()
            for block, answer in zip(given, got, strict=True):
                by_definition = [
                    decode_bits(block, i, subject.definition, dtype)
                    for i in range(subject.definition.block)
                ]
                what = f"decode {subject.name} to {name}, block"
                yield Comparison(what, plain(block), answer, by_definition)


def pack_bytes(
    model: Model, subject: CheckedFormat, rng: np.random.Generator, blocks: int
) -> Iterator[Comparison]:
    """Bytes of arrays, and arrays from bytes."""
    for given, array in _coded(subject, rng):
        ahead = pack_outer([given], subject.definition)
        packed = [pack_block(block, subject.definition) for block in given]
        data, size = model.pack(array), len(packed[0])
        back = model.unpack(ahead + b"".join(packed), array.shape, subject.fmt)
        what = f"pack {subject.name}, scales before the blocks and bytes in all, block"
        start, total = len(ahead), len(ahead) + len(packed) * size
        yield Comparison(what, plain(given[0]), (data[:start], len(data)), (ahead, total))
        for i, (block, piece, answer) in enumerate(
            zip(given, packed, as_rows(back)[0], strict=True)
        ):
            got = data[start + i * size : start + (i + 1) * size]
            yield Comparison(f"pack {subject.name}, block", plain(block), got, piece)
            yield Comparison(f"unpack {subject.name}, bytes", piece, plain(answer), plain(block))


CHECKS: Final[dict[str, Check]] = {
    "special values": encode_special,
    "rounding and scale thresholds": encode_thresholds,
    "random arrays": encode_random,
    "stochastic rounding": encode_stochastic,
    "NaN and infinities": encode_nonfinite,
    "decode every code": decode_all,
    "pack and unpack": pack_bytes,
}
"""Comparisons of a format."""


def compare_format(
    model: Model, rng: np.random.Generator, blocks: int, subject: CheckedFormat
) -> Iterator[Comparison]:
    """All comparisons of a format."""
    return chain.from_iterable(check(model, subject, rng, blocks) for check in CHECKS.values())


def compare_catalog(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """A sample of the comparisons of each format of the catalog except AXS-6."""
    for name in CATALOG:
        if name != "axs6":
            for check in (encode_special, encode_random, encode_nonfinite):
                yield from check(model, CheckedFormat.of(name), rng, 1 + blocks // 100)
