"""Vectors of any block format: a folder with elements, scales, encoded blocks and dot products."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from axs6.golden.check.cases import formats as format_cases
from axs6.golden.check.cases import inputs
from axs6.golden.check.exact import dot as exact_dot
from axs6.golden.check.exact import encode as encoder
from axs6.golden.check.exact.blocks import Block, decode_bits, pack_block, pack_outer, scale_value
from axs6.golden.check.exact.floats import FP32, Value, float_value
from axs6.golden.check.exact.formats import Definition
from axs6.golden.check.exact.rounding import Rounding
from axs6.golden.check.subjects import as_blocks, definition_of
from axs6.golden.decode import decode
from axs6.golden.dot import block_dot, block_dot_unit, matmul
from axs6.golden.encode import encode
from axs6.golden.formats import (
    CATALOG,
    BlockFormat,
    Exponent,
    Integer,
    Level,
    NotANumber,
    Real,
    block_format,
    name_of,
)
from axs6.golden.pack import pack
from axs6.golden.unpack import unpack
from axs6.golden.vectors.exactly import exact_sum, pattern_of, unpacked
from axs6.golden.vectors.subject import (
    BYTES,
    NUMBER,
    PATTERN,
    PATTERNS,
    WORD,
    Case,
    Subject,
    WordKind,
)

NAMES: Final = tuple(name for name, fmt in CATALOG.items() if not fmt.has_modes)
"""Formats with a folder in the repository: those of the catalog but AXS-6, which has its own."""

CASES: Final = 24
"""Random arrays that are encoded; there are three times as many random dot products."""

Answer = tuple[Any, ...]


@dataclass(frozen=True)
class FormatVectors:
    """The vectors of a format.

    Of elements with a divisor D, which are no multiples of a power of two, there are the values
    times D, and the dot products times D^2.

    Args:
        fmt: the format, as the golden model has it.
        count: random cases of encoding; there are three times as many dot products.

    Raises:
        ValueError: blocks of the format have modes.
    """

    fmt: BlockFormat
    count: int = CASES

    def __post_init__(self) -> None:
        if self.fmt.has_modes:
            raise ValueError(f"vectors of formats need blocks without modes, unlike {self.name}")

    @property
    def name(self) -> str:
        """The name by which users know the format."""
        return name_of(self.fmt)

    @cached_property
    def definition(self) -> Definition:
        """The format as the exact model has it."""
        return definition_of(self.fmt)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of scales, coarse to fine."""
        return self.fmt.levels[::-1]

    def subjects(self) -> list[Subject]:
        """The files of the folder."""
        return [self._elements(), self._scales(), self._encode(), self._dot()]

    def _subject(
        self,
        name: str,
        title: str,
        inputs: dict[str, WordKind],
        outputs: dict[str, WordKind],
        cases: Callable[[], Iterator[Case]],
        by_definition: Callable[..., Answer],
        by_golden: Callable[..., Answer],
    ) -> Subject:
        path = f"formats/{self.name}/{name}"
        of = self.name if self.name == str(self.fmt) else f"{self.name} ({self.fmt})"
        return Subject(path, title, inputs, outputs, cases, by_definition, by_golden, of)

    @property
    def _least(self) -> int:
        """The code of the smallest positive element, of the first one of a selection."""
        integers = self.fmt.element.integers[: 1 << self.fmt.element.width]
        return int(np.argmax(integers == integers[integers > 0].min()))

    # Elements

    def _elements(self) -> Subject:
        return self._subject(
            "elements",
            f"every code of an element, and {self._times(1)}its value",
            {"code": PATTERN},
            {"value": PATTERN},
            self._element_cases,
            lambda code: (pattern_of(self._multiplied(self._values[code], 1)),),
            self._element_by_golden,
        )

    def _times(self, power: int) -> str:
        """The words for the factor of values or of products, if there is one."""
        factor = self.fmt.element.divisor**power
        return f"{factor} times " if factor > 1 else ""

    def _multiplied(self, value: Value, power: int) -> Value:
        """An exact value times a power of the divisor."""
        return value * self.fmt.element.divisor**power if isinstance(value, Fraction) else value

    @property
    def _values(self) -> tuple[Value, ...]:
        """The value of every code, with the bit above it that selects an element."""
        second = self.definition.second
        return self.definition.element.values + (second.values if second else ())

    def _element_cases(self) -> Iterator[Case]:
        for code in range(len(self._values)):
            value = self.fmt.element.integer(code)
            name = "number" if value else "zero"
            if isinstance(value, NotANumber):
                name = "nan" if value is NotANumber.NAN else "infinity"
            yield Case(name, {"code": code})

    def _element_by_golden(self, code: int) -> Answer:
        value = self._decoded(code, [neutral(level) for level in self.levels])
        if np.isfinite(value) and value:  # the float64 number nearest to the element
            exact = round(Fraction(value) / self.fmt.element.unit) * self.fmt.element.unit
            assert float(exact) == value
            value = float(exact * self.fmt.element.divisor)
        return _pattern(value)

    def _decoded(self, code: int, scales: Sequence[int]) -> float:
        """The decoded value of a code by the golden model, times these scales."""
        zero = (
            0
            if any(isinstance(x.scale, Real) and x.scale.zero_point for x in self.levels)
            else None
        )
        groups = [self.fmt.block // int(x.group) if x.blocked else 1 for x in self.levels]
        element, finest = self.fmt.element, self.fmt.levels[0].scale
        every = [(code,) * n for code, n in zip(scales, groups, strict=True)]
        selected, own = divmod(code, 1 << element.width)
        if isinstance(finest, Real) and finest.selector:
            selected |= every[-1][0] >> (finest.bits - 1)
            every[-1] = tuple(scale | selected << (finest.bits - 1) for scale in every[-1])
        block = Block(tuple(every), (own,) * self.fmt.block, zero)
        return float(decode(as_blocks([block], self.fmt), np.float64).ravel()[0])

    # Scales

    def _scales(self) -> Subject:
        return self._subject(
            "scales",
            "codes of scales, and their values",
            {"level": NUMBER, "code": PATTERN},
            {"value": PATTERN},
            self._scale_cases,
            self._scale_by_definition,
            self._scale_by_golden,
        )

    def _scale_cases(self) -> Iterator[Case]:
        rng = np.random.default_rng(20)
        for number, level in enumerate(self.levels):
            scale = level.scale
            first = 1 if isinstance(scale, Integer) else 0
            last = scale.largest_code
            if last < 1 << 8:
                codes = list(range(first, last + 1))
            else:
                some = rng.integers(first, last, 2 * self.count).tolist()
                ends = [0, 1, 2, neutral(level), neutral(level) + 1, last - 1, last]
                codes = sorted({*some, *ends})
            if isinstance(scale, Real) and scale.selector:
                codes += [code | 1 << (scale.bits - 1) for code in codes]
            for code in (*codes, *([scale.nan_code] if scale.nan_code is not None else [])):
                name = type(scale).__name__.lower()
                yield Case(name, {"level": number, "code": int(code)})

    def _scale_by_definition(self, level: int, code: int) -> Answer:
        return (pattern_of(scale_value(code, self.definition.levels[::-1][level])),)

    def _scale_by_golden(self, level: int, code: int) -> Answer:
        scales = [neutral(x) for x in self.levels]
        scales[level] = code
        element = self.fmt.element  # the largest one is a float64 number
        largest = float(int(element.integers[element.largest_code]) * element.unit)
        return _pattern(self._decoded(element.largest_code, scales) / largest)

    # Encoded blocks

    def _encode(self) -> Subject:
        return self._subject(
            "encode",
            "arrays of FP32 values, their bytes, and what they decode to",
            {"rounding": WORD, "nonfinite": WORD, **self._rows, "values": PATTERNS},
            {"packed": BYTES, "fp32": PATTERNS},
            self._encode_cases,
            self._encode_by_definition,
            self._encode_by_golden,
        )

    @property
    def _rows(self) -> dict[str, WordKind]:
        """The number of rows of values, where the format has tiles."""
        return {"rows": NUMBER} if self.fmt.rows > 1 else {}

    def _encode_cases(self) -> Iterator[Case]:
        seen: set[str] = set()
        for name, policy, *rows in self._arrays():
            values = [x for row in rows for x in row]
            number = {"rows": len(rows)} if self._rows else {}
            for rounding in ("nearest", "toward_zero"):
                if rounding != "nearest" and len(seen) % 3:
                    continue  # a third of them both ways
                inputs = {"rounding": rounding, "nonfinite": policy, **number, "values": values}
                if str(inputs) not in seen:
                    seen.add(str(inputs))
                    yield Case(name, inputs)

    def _arrays(self) -> Iterator[tuple[str, str, *tuple[list[int], ...]]]:
        """Names, policies and values, of one row unless the format has tiles."""
        kind, size, rng = inputs.KINDS[0], self.fmt.block, np.random.default_rng(21)

        def some(rows: Any) -> list[list[int]]:
            chosen: list[list[int]] = rows[rng.permutation(len(rows))[: self.count]].tolist()
            return chosen

        ones = [0] * size
        yield "zeros", "saturate", ones
        yield "negative_zeros", "saturate", [1 << 31] * size
        yield "one", "saturate", [0x3F800000, *ones[1:]]
        yield "largest", "saturate", [0x7F7FFFFF, 0xFF7FFFFF] * (size // 2) or [0x7F7FFFFF]
        yield "smallest", "saturate", [1, *ones[1:]]
        for row in some(format_cases.special(kind, size, self.count, rng)):
            yield "special", "saturate", row
        powers = format_cases.SPREAD
        for row in some(format_cases.thresholds(kind, self.definition, powers)):
            yield "next_to_a_midpoint", "saturate", row
        for row in some(format_cases.scale_thresholds(kind, self.definition, powers)):
            yield "next_to_a_scale", "saturate", row
        policies = ("saturate", "propagate") if self.fmt.has_nan else ("saturate",)
        for policy in policies:
            for row in some(format_cases.infinite(kind, size, self.count // 2, rng)):
                yield "nan_or_infinite", policy, row
        blocks = inputs.random_blocks(kind, size, 2 * self.count, rng).reshape(-1, 2 * size)
        if self._rows:
            for first, second in zip(*[iter(blocks.tolist())] * 2, strict=False):
                length = int(rng.integers(size, size + size // 4))
                yield "random", "saturate", first[:length], second[:length]
            return
        for row in blocks.tolist():
            yield "random", "saturate", row[: int(rng.integers(1, 2 * size))]

    def _encode_by_definition(
        self, rounding: str, nonfinite: str, values: list[int], rows: int = 1
    ) -> Answer:
        patterns = np.array(values, np.uint64).reshape(rows, -1)
        exactly = format_cases.values(inputs.KINDS[0], patterns)
        chosen = Rounding(rounding)
        blocks = encoder.encode(exactly, self.definition, chosen, nonfinite=nonfinite)
        packed = pack_outer(blocks, self.definition)
        packed += b"".join(pack_block(block, self.definition) for row in blocks for block in row)
        size = self.fmt.block
        decoded = [
            decode_bits(row[i // size], i % size, self.definition, FP32)
            for row in blocks
            for i in range(patterns.shape[1])
        ]
        return packed, decoded

    def _encode_by_golden(
        self, rounding: str, nonfinite: Any, values: list[int], rows: int | None = None
    ) -> Answer:
        x = np.array(values, np.uint32).view(np.float32)
        x = x if rows is None else x.reshape(rows, -1)
        blocks = encode(x, self.fmt, rounding, nonfinite=nonfinite)
        packed = pack(blocks)
        assert pack(unpack(packed, x.shape, self.fmt)) == packed
        return packed, decode(blocks).ravel().view(np.uint32).tolist()

    # Dot products

    def _dot(self) -> Subject:
        return self._subject(
            "dot",
            f"pairs of packed blocks, and {self._times(2)}their exact dot products",
            {"a": BYTES, "b": BYTES},
            {"sum": WORD, "exponent": NUMBER},
            self._dot_cases,
            self._dot_by_definition,
            self._dot_by_golden,
        )

    def _dot_cases(self) -> Iterator[Case]:
        element, size, rng = self.fmt.element, self.fmt.block, np.random.default_rng(22)
        one, least = [neutral(x) for x in self.levels], [1] * len(self.levels)
        top = [level.scale.largest_code for level in self.levels]
        largest, sign = element.largest_code, element.sign_bit
        zero, small = element.zero_code, self._least
        yield self._pair("zeros", ([zero] * size, top), ([zero] * size, top))
        yield self._pair("largest", ([largest] * size, top), ([largest] * size, top))
        yield self._pair("smallest", ([small] * size, least), ([small] * size, least))
        alone = [small] + [zero] * (size - 1)
        yield self._pair("one_product", (alone, one), ([largest] * size, one))
        finite = [c for c in range(1 << element.width) if isinstance(element.integer(c), int)]
        special = [c for c in range(1 << element.width) if c not in finite]
        if sign or element.listed:
            negative = [largest | sign, largest] if self._sign_alone else [sign + 1, largest]
            if element.listed:
                negative = [int(np.argmin(element.integers)), largest]
            yield self._pair("cancelled", ([largest] * size, top), (negative * (size // 2), top))
            yield self._pair("negative", ([largest] * size, top), ([negative[0]] * size, top))
        for number in range(3 * self.count):
            draw = [rng.choice(finite, size).tolist() for _ in range(2)]
            name = "random"
            if special and number % 6 == 0:
                draw[0][int(rng.integers(size))] = int(rng.choice(special))
                name = "nan_or_infinite"
            scales = [[self._random_scale(x, rng) for x in self.levels] for _ in range(2)]
            if number % 12 == 1 and self._set_nan(scales[1]):
                name = "nan_scale"
            yield self._pair(name, (draw[0], scales[0]), (draw[1], scales[1]), rng)

    def _set_nan(self, scales: list[list[int]]) -> bool:
        """Make the coarsest scales of blocks NaN, if they have it."""
        for level, found in zip(self.levels, scales, strict=True):
            if level.blocked and level.scale.nan_code is not None:
                found[:] = [level.scale.nan_code] * len(found)
                return True
        return False

    @property
    def _sign_alone(self) -> bool:
        """Whether a code with the sign bit is the negative of that without."""
        element = self.fmt.element
        return not element.listed and element.integer(element.sign_bit | 1) == -1

    def _random_scale(self, level: Level, rng: np.random.Generator) -> list[int]:
        scale = level.scale
        if not level.blocked:
            return [neutral(level)]
        groups, first = self.fmt.block // int(level.group), int(isinstance(scale, Integer))
        found = rng.integers(first, scale.largest_code, groups, endpoint=True)
        if isinstance(scale, Real) and scale.selector:
            found |= rng.integers(0, 2, groups) << (scale.bits - 1)
        return found.tolist()

    def _pair(
        self,
        name: str,
        a: tuple[list[int], Sequence[Any]],
        b: tuple[list[int], Sequence[Any]],
        rng: np.random.Generator | None = None,
    ) -> Case:
        return Case(name, {"a": self._packed(*a, rng), "b": self._packed(*b, rng)})

    def _packed(
        self, codes: list[int], scales: Sequence[Any], rng: np.random.Generator | None
    ) -> bytes:
        """A block of these codes, and scales or one for all groups; outer ones are 1."""
        every = []
        for level, found in zip(self.levels, scales, strict=True):
            if not level.blocked:
                found = neutral(level)
            groups = self.fmt.block // int(level.group) if level.blocked else 1
            every.append(tuple(found) if isinstance(found, list) else (found,) * groups)
        zero = None
        if not self.fmt.element.signed:
            zero = int(rng.integers(0, 1 << self.fmt.element.width)) if rng else 0
        block = Block(tuple(every), tuple(codes), zero)
        return pack(as_blocks([block], self.fmt))

    def _dot_by_definition(self, a: bytes, b: bytes) -> Answer:
        left, right = (unpacked(data, self.definition) for data in (a, b))
        found = exact_dot.block_dot(left, right, self.definition, self.definition)
        return exact_sum(self._multiplied(found, 2))

    def _dot_by_golden(self, a: bytes, b: bytes) -> Answer:
        left, right = (unpack(data, (1, self.fmt.block), self.fmt) for data in (a, b))
        if np.isfinite(decode(left)).all() and np.isfinite(decode(right)).all():
            sums, exponents = block_dot(left, right)
            unit = block_dot_unit(self.fmt, self.fmt) * self.fmt.element.divisor**2
            terms = zip(sums.ravel().tolist(), exponents.ravel().tolist(), strict=True)
            return exact_sum(sum((p * unit * Fraction(2) ** e for p, e in terms), Fraction(0)))
        bits = int(matmul(left, right, "exact").view(np.uint32)[0, 0])
        return exact_sum(float_value(bits, FP32))


def _pattern(value: float) -> Answer:
    """A value that FP32 holds, or NaN, as FP32."""
    assert np.isnan(value) or np.float32(value) == value
    return (int(np.float32(value).view(np.uint32)),)


def neutral(level: Level) -> int:
    """The code of a scale that is 1."""
    scale = level.scale
    if isinstance(scale, Exponent):
        return scale.bias
    if isinstance(scale, Real):
        return scale.dtype.bias << scale.dtype.fraction_bits
    return 1 if isinstance(scale, Integer) else 0


def format_subjects(
    formats: Sequence[str | BlockFormat] = NAMES, count: int = CASES
) -> dict[str, Subject]:
    """The files of these formats, by their names."""
    found = [
        subject
        for each in formats
        for subject in FormatVectors(block_format(each), count).subjects()
    ]
    return {subject.name: subject for subject in found}
