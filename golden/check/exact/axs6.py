"""AXS-6 by its definitions, in Python integers and fractions: what `validate` compares with.

Nothing here is imported from the rest of the package, and the constants of the format are stated
again on purpose: a number that is wrong in the model must not be wrong here as well. Each function
takes one value or one block and keeps to the wording of docs/format.md, at the cost of speed.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Final, NamedTuple

from axs6.golden.check.exact.floats import (
    FP32,
    Format,
    Special,
    Value,
    add_fp32,
    float_value,
    floor_log2,
    power,
    round_to_float,
    special_bits,
)

Block = tuple[int, list[int]]
"""Shared exponent E and the codes `sign << 5 | magnitude`."""


DENSE_BITS: Final = (5, 5)
PRECISE_BITS: Final = (6, 4)
"""Magnitude bits at even and at odd indices of dense and of high-precision blocks."""


class Random(NamedTuple):
    """Random integers of stochastic rounding, one for each value, and their width in bits."""

    words: Sequence[int]
    bits: int


def encode_block(
    values: Sequence[Value],
    rounding: str = "nearest",
    bits: tuple[int, int] = DENSE_BITS,
    random: Random | None = None,
) -> Block:
    """Encode one dense or high-precision block; its size is the number of values.

    Numbers of magnitude 2^128 or more count as infinities. NaN becomes code 0 and has no part in
    the exponent; an infinity makes E = 255 and has the largest magnitude.
    """
    exponent = shared_exponent(values)
    scale = power(exponent - 127)
    words, width = random or Random([0] * len(values), 0)
    return exponent, [
        encode_value(value, scale, bits[index % 2], rounding, word, width)
        for index, (value, word) in enumerate(zip(values, words, strict=True))
    ]


def encode_in_mode(
    values: Sequence[Value], rounding: str, mode: str, random: Random | None = None
) -> tuple[int, Block]:
    """The configuration bits of a block and the block, in a mode of `encode`."""
    if mode == "high_precision":
        return 2, encode_block(values, rounding, PRECISE_BITS, random)
    dense = encode_block(values, rounding, DENSE_BITS, random)
    sparse = None if mode == "dense" else drop_zeros(dense)
    if sparse:
        return 1, sparse
    if mode == "auto":
        precise = encode_block(values, rounding, PRECISE_BITS, random)
        errors = squared_error(values, precise, PRECISE_BITS), squared_error(values, dense)
        if errors[0] < errors[1]:
            return 2, precise
    return 0, dense


def drop_zeros(dense: Block) -> Block | None:
    """A dense block with its first B/4 magnitudes of 0 as code 0; None if it has fewer."""
    zeros = [index for index, code in enumerate(dense[1]) if code % 32 == 0]
    quarter = len(dense[1]) // 4
    if len(zeros) < quarter:
        return None
    return dense[0], [0 if i in zeros[:quarter] else code for i, code in enumerate(dense[1])]


def squared_error(
    values: Sequence[Value], block: Block, bits: tuple[int, int] = DENSE_BITS
) -> float:
    """Sum of squared errors in float64, in index order; NaN where a value saturates."""
    total = 0.0
    for index, (value, code) in enumerate(zip(values, block[1], strict=True)):
        if isinstance(value, Special) or abs(value) >= power(128):
            return float("nan")
        decoded = decode_value(block[0], code, bits[index % 2])
        total += (float(value) - float(decoded)) ** 2
    return total


def shared_exponent(values: Sequence[Value]) -> int:
    """E = clamp(floor(log2 amax) + 128, 0, 255), and 0 where every value is zero."""
    if Special.INFINITY in values or Special.NEGATIVE_INFINITY in values:
        return 255
    amax = max((abs(v) for v in values if isinstance(v, Fraction)), default=Fraction(0))
    if amax == 0:
        return 0
    return min(max(floor_log2(amax) + 128, 0), 255)


def encode_value(
    value: Value, scale: Fraction, n: int, rounding: str, word: int = 0, bits: int = 0
) -> int:
    """Code of one value: the sign of numbers below zero, and a magnitude of n bits.

    That is (2^n - 1) |x| / scale rounded, at most 2^n - 1; `word`, of `bits` bits, is the random
    integer of stochastic rounding.
    """
    largest = 2**n - 1
    if isinstance(value, Special):
        return {
            Special.NAN: 0,
            Special.INFINITY: largest,
            Special.NEGATIVE_INFINITY: 2**n + largest,
        }[value]
    if value == 0:
        return 0
    sign = 2**n if value < 0 else 0
    steps = largest * abs(value) / scale
    if rounding == "stochastic":
        magnitude = (floor(steps * 2**bits) + word) // 2**bits
    else:
        magnitude = floor(steps) if rounding == "toward_zero" else round(steps)
    return sign | min(magnitude, largest)


def encode_vector(values: Sequence[Value], block: int, rounding: str) -> list[Block]:
    """Encode values in blocks, the last padded with zeros."""
    padded = [*values, *[Fraction(0)] * (-len(values) % block)]
    return [encode_block(padded[i : i + block], rounding) for i in range(0, len(padded), block)]


def decode_value(exponent: int, code: int, n: int = 5) -> Fraction:
    """(-1)^sign * m / (2^n - 1) * 2^(E - 127)."""
    return Fraction(signed_magnitude(code, n), 2**n - 1) * power(exponent - 127)


def decode_bits(exponent: int, code: int, fmt: Format, n: int = 5) -> int:
    """Bit pattern of a decoded value: rounded once, saturated, and -0.0 for a sign alone."""
    sign = fmt.sign if code & 2**n else 0
    return sign | round_to_float(decode_value(exponent, code, n), fmt, saturate=True)


def signed_magnitude(code: int, n: int = 5) -> int:
    """Magnitude of n bits with the sign of the code; -0 is 0."""
    magnitude = code % 2**n
    return -magnitude if code & 2**n else magnitude


def pack_block(exponent: int, codes: Sequence[int], align: int = 1, mode: int = 0) -> bytes:
    """A block as bytes: 16 header bits `E << 2 | mode`, the payload, and zeros to `align`.

    The payload is six bits a code; of a sparse block a bit for each value that says whether it is
    stored, then the codes of those that are; of a high-precision block seven bits and five in turn.
    """
    fields = [(exponent << 2 | mode, 16)]
    if mode == 1:
        dropped = [index for index, code in enumerate(codes) if code % 32 == 0][: len(codes) // 4]
        fields += [(int(index not in dropped), 1) for index in range(len(codes))]
        fields += [(code, 6) for index, code in enumerate(codes) if index not in dropped]
    else:
        widths = (7, 5) if mode == 2 else (6, 6)
        fields += [(code, widths[index % 2]) for index, code in enumerate(codes)]
    number = position = 0
    for value, width in fields:
        number |= value << position
        position += width
    length = -(-position // 8)
    return number.to_bytes(-(-length // align) * align, "little")


class MalformedError(ValueError):
    """Bytes that no blocks give: what is wrong with them, and the number of the block."""

    def __init__(self, fault: str, block: int) -> None:
        super().__init__(f"block {block}: {fault}")
        self.fault, self.block = fault, block


def unpack(data: bytes, size: int, count: int, align: int = 1) -> list[tuple[int, Block]]:
    """The configuration bits and the block of each of `count` packed blocks.

    Raises:
        MalformedError: the fault is "truncated" where the bytes end in a block, "trailing" where
            bytes follow the last (the block is `count` then), "header" for header bits 10 to 15,
            "reserved" for mode 3, "mask" for a mask that does not leave out the
            first B/4 zeros and no other values, or "padding".
    """
    blocks = []
    for number in range(count):
        mode, block, length = _unpack_block(data, size, align, number)
        blocks.append((mode, block))
        data = data[length:]
    if data:
        raise MalformedError("trailing", count)
    return blocks


def _unpack_block(data: bytes, size: int, align: int, number: int) -> tuple[int, Block, int]:
    """Configuration bits, block and length of the block that the bytes start with."""
    mode = data[0] & 3 if data else 0
    if mode == 3:
        raise MalformedError("reserved", number)
    stored = size * 3 // 4 if mode == 1 else size
    end = 16 + 6 * stored + (size if mode == 1 else 0)
    length = -(-end // (8 * align)) * align
    if len(data) < length:
        raise MalformedError("truncated", number)
    word = int.from_bytes(data[:length], "little")
    if word >> 10 & 63:
        raise MalformedError("header", number)
    if word >> end:
        raise MalformedError("padding", number)
    position = 16 + size if mode == 1 else 16
    mask = [word >> 16 + i & 1 if mode == 1 else 1 for i in range(size)]
    if sum(mask) != stored:
        raise MalformedError("mask", number)
    codes = []
    for index, kept in enumerate(mask):
        width = kept * ((7, 5)[index % 2] if mode == 2 else 6)
        codes.append(word >> position & 2**width - 1)
        position += width
    zeros = [index for index, code in enumerate(codes) if code % 32 == 0]
    if mode == 1 and any(mask[index] for index in zeros[: size // 4]):
        raise MalformedError("mask", number)
    return mode, (word >> 2 & 255, codes), length


def block_dot(a: Block, b: Block) -> tuple[int, int]:
    """P and the sum of the exponents: the dot product is P / 961 * 2^(Ea + Eb - 254)."""
    products = zip(a[1], b[1], strict=True)
    return sum(signed_magnitude(x) * signed_magnitude(y) for x, y in products), a[0] + b[0]


def vector_dot(a: Sequence[Block], b: Sequence[Block], accumulator: str = "fp32") -> int:
    """FP32 pattern of the dot product of two vectors of blocks."""
    pairs = [block_dot(x, y) for x, y in zip(a, b, strict=True)]
    return accumulate([p for p, _ in pairs], [e for _, e in pairs], accumulator)


ACCUMULATORS: Final = ("fp32", "exact")
"""The accumulators that `accumulate` takes."""


def accumulate(sums: Sequence[int], exponents: Sequence[int], accumulator: str = "fp32") -> int:
    """FP32 pattern of the sum of P_k / 961 * 2^(e_k - 254), combined as `accumulator` says.

    "fp32": acc = fp32(acc + fp32(P_k * 2^(e_k - 264))) in order from +0, then
    fp32(acc / (961 / 1024)). "exact": everything added exactly, rounded once.
    """
    terms = list(zip(sums, exponents, strict=True))
    if accumulator == "exact":
        total = sum((p * power(e) for p, e in terms), Fraction(0))
        return round_to_float(total / 961 * power(-254), FP32)
    pattern = 0
    for p, e in terms:
        pattern = add_fp32(pattern, round_to_float(p * power(e - 264), FP32))
    return divide_fp32(pattern)


def divide_fp32(a: int) -> int:
    """FP32 pattern of a / (961 / 1024); zeros and infinities keep their sign."""
    x = float_value(a, FP32)
    if isinstance(x, Special):
        return special_bits(x)
    return round_to_float(x / Fraction(961, 1024), FP32) if x else a
