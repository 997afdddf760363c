"""The formats of the Pareto study, the most informative ones first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product, zip_longest
from typing import Final

from axs6.golden.formats import CATALOG, BlockFormat, block_format, name_of

BASELINE: Final = ("fp8_e4m3", "fp8_e5m2")
"""Baseline for relative areas: the larger of their dot products. A unit for both formats is no
smaller than a unit for one of them."""

BLOCKS: Final = (16, 32, 64, 8, 128)
"""k1: values under one scale."""

SUBBLOCKS: Final = (2, 1, 4, 8, 16, 32)
"""k2: values under one shift."""

SHIFT_BITS: Final = (1, 2, 3)
"""d2: bits of a shift."""

MAGNITUDES: Final = (4, 7, 2, 5, 3, 6, 1)
"""m: bits of a magnitude."""

WIDEST: Final = 8
"""Maximum bits of an element."""

MICRO: Final = {"mx9": 7, "mx6": 4, "mx4": 2}
"""The microexponent formats with names, and their m."""


@dataclass(frozen=True)
class ParetoFormat:
    """A format to measure.

    Args:
        name: of its format, in the catalog or as a string.
        family: group of related formats.
    """

    name: str
    family: str

    @property
    def format(self) -> BlockFormat:
        """Its block format."""
        return block_format(self.name)

    @property
    def named(self) -> bool:
        """Whether it has a name."""
        return self.name in CATALOG


def two_level(m: int, k1: int, k2: int = 1, d2: int = 0, d1: int = 8) -> str:
    """The name of a format of signs and magnitudes under an exponent and, with d2, shifts.

    Args:
        m: bits of a magnitude.
        k1, k2: values under an exponent, and under a shift.
        d1, d2: bits of an exponent, and of a shift.
    """
    text = f"int{m + 1}_e{d1}m0_t{k1}s{k2}o{d2}" if d2 else f"sm{m + 1}_e{d1}m0_t{k1}"
    return name_of(block_format(text))


def space() -> list[ParetoFormat]:
    """Every configuration: first named formats, then formats of claims and their neighbours."""
    families = {name: list(names) for name, names in _families().items()}
    known = {name: family for family, names in families.items() for name in names}
    others = chain.from_iterable(zip_longest(*families.values()))
    first = [*BASELINE, *(name for name in CATALOG if name in known), *_claims(), *_axes()]
    names = dict.fromkeys([*first, *(name for name in others if name is not None)])
    return [ParetoFormat(name, known[name]) for name in names]


def _claims() -> Iterator[str]:
    """The formats that the paper compares with microexponent formats."""
    for m in MICRO.values():
        for k2, d2 in ((2, 2), (8, 1), (1, 1)):
            yield two_level(m, 16, k2, d2)


def _axes() -> Iterator[str]:
    """The formats that differ from microexponent formats in one parameter."""
    for m in MICRO.values():
        yield from (two_level(m, k1, 2, 1) for k1 in BLOCKS)
        yield from (two_level(m, 16, k2, 1) for k2 in SUBBLOCKS if k2 < 16)
        yield from (two_level(m, 16, 2, d2) for d2 in (0, *SHIFT_BITS))
    yield from (two_level(m, 16, 2, 1) for m in MAGNITUDES)


def _families() -> dict[str, Iterator[str]]:
    """The names of each family."""
    return {
        "FP": chain(
            _texts("e{}m{}{}_float32", _floats((5, 4, 3, 2))),
            _names("fp8_e4m3fnuz", "fp8_e5m2fnuz"),
        ),
        "microexponents": _microexponents(),
        "BFP": (two_level(m, k1) for m, k1 in product(MAGNITUDES, BLOCKS)),
        "MX": chain(
            _texts("e{}m{}{}_e8m0_t{}", _with(_floats((2, 3, 4, 5)), (32, 16, 64))),
            _texts("int{}_e8m0_t{}", product((8, 6, 4, 7, 5, 3), (32, 16, 64))),
        ),
        "INT": _texts("int{}_float32{}", product((8, 6, 4, 7, 5, 3), ("", "_t0"))),
        "AXS-6": chain(
            _names("axs6", "axs6_t16", "axs6_t8"),
            _texts("sm{}dz_e8m0f_t{}", product((6, 5, 7, 4, 8, 3), BLOCKS)),
            _texts("int{}d_e8m0_t{}s2o1", product((6, 5, 7, 4, 8, 3), (16, 32))),
        ),
        "VSQ": _texts(
            "int{}_u{}_t{}_float32_t0", product((6, 4, 8, 5, 7, 3), (4, 6, 8, 10), (16, 32))
        ),
        "NVFP4 and the like": chain(
            _texts("e{}m{}{}_{}_t{}_float32", _with(_floats((2, 3)), SCALES, (16, 32, 8))),
            _texts("int{}_{}_t{}_float32", product((4, 5, 6), SCALES, (16, 32, 8))),
            _names("nvfp4_ue5m3", "hif4", "if4", "razer", "nf4q6"),
        ),
        "short exponents": (
            two_level(m, k1, k2, d2, d1)
            for (k2, d2), d1, k1, m in product(((1, 0), (2, 1)), (6, 5), (16, 32), MAGNITUDES[:6])
        ),
    }


SCALES: Final = ("e4m3fn", "e5m2", "e3m4")
"""Real scales of blocks, under one of the tensor."""


def _microexponents() -> Iterator[str]:
    """Shifts under exponents; a group of values under a shift is less than a block."""
    for d2, m, k1, k2 in product(SHIFT_BITS, MAGNITUDES, BLOCKS, SUBBLOCKS):
        if k2 < k1:
            yield two_level(m, k1, k2, d2)


def _floats(exponents: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Exponent and fraction bits of elements of up to 8 bits, and the letters behind them.

    E5M2 has infinities and NaN, others of 8 bits have NaN alone, and narrower ones neither.
    """
    for e, m in product(exponents, (1, 2, 3, 4)):
        if 1 + e + m <= WIDEST:
            yield e, m, "" if (e, m) == (5, 2) else "fn"


def _with(
    floats: Iterator[tuple[int, int, str]], *others: Sequence[object]
) -> Iterator[tuple[object, ...]]:
    for each, rest in product(list(floats), product(*others)):
        yield (*each, *rest)


def _texts(pattern: str, values: Iterator[tuple[object, ...]]) -> Iterator[str]:
    """The names of formats whose strings are a pattern filled in."""
    return (name_of(block_format(pattern.format(*each))) for each in values)


def _names(*names: str) -> Iterator[str]:
    return (name_of(block_format(name)) for name in names)
