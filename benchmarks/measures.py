"""The measurements behind docs/claims.md."""

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
from digests import ROOT
from figure import DATA

import axs6
from axs6.golden.accumulator import Accumulator
from axs6.golden.formats import CATALOG, block_format, name_of
from axs6.golden.formats.floating import NotANumber
from axs6.golden.metrics import qsnr_bound
from axs6.golden.rounding import RANDOM_BITS
from axs6.golden.terms import Terms
from axs6.studies.distributions import DISTRIBUTIONS, draw
from axs6.studies.pareto.data import Measurement, measurements_of, read_rows
from axs6.studies.qsnr import study_qsnr

SEED = 0
WORD = 2.0**-RANDOM_BITS
"""One random word's share of a step."""


def bits(name: str) -> float:
    """Bits a value of codes and scales."""
    return float(block_format(name).bits_a_value[0])


def gaps(name: str) -> list[Fraction]:
    """Distances of an element's neighbouring values from 0 up, over the largest."""
    element = block_format(name).element
    found = sorted({element.integer(code) for code in range(element.largest_code + 1)})
    return [Fraction(above - below, found[-1]) for below, above in pairwise(found)]


@cache
def levels() -> dict[str, float]:
    """QSNR in dB of the formats of claims, on the paper's distribution."""
    return {row.format: row.qsnr_db for row in study_qsnr(MEASURED).rows}


def decibels(better: str, worse: str) -> float:
    """By how many dB one format is better than another."""
    return levels()[better] - levels()[worse]


def times_better(better: str, worse: str) -> float:
    """How many times smaller the error of one format is than another's, root mean square."""
    return 10 ** (decibels(better, worse) / 20)


def in_blocks(name: str, block: int) -> str:
    """A format of the catalog in blocks of another size."""
    return name_of(CATALOG[name].with_block(block))


def micro(bits: int, values: int = 2, shift: int = 1) -> str:
    """A microexponent format: bits of an element, values of a shift, and its bits."""
    return name_of(block_format(f"int{bits}_e8m0_t16s{values}o{shift}"))


def microexponents() -> Iterator[tuple[str, str]]:
    """MX9, MX6 and MX4 with 2 bits a shift, and as they are."""
    for bits in (8, 5, 3):
        yield micro(bits, shift=2), micro(bits)


MICRO = [micro(bits) for bits in range(3, 9)]
MEASURED = tuple(
    dict.fromkeys(
        (
            *(name for name, fmt in CATALOG.items() if fmt.element.signed),
            *MICRO,
            *(name for bits in (8, 5, 3) for name in (micro(bits, shift=2), micro(bits, 8))),
            *(micro(bits, 1) for bits in (8, 5, 3)),
            *(in_blocks("mxfp8_e4m3", block) for block in (16, 32, 64, 128)),
        )
    )
)
"""Formats whose QSNR claims ask for."""


def saved(name: str, against: float = 8) -> float:
    """Memory in percent that a format saves against values of so many bits."""
    return 100 * (1 - bits(name) / against)


def stochastic_bias() -> float:
    """The largest difference of a value and its mean over all random words, in steps."""
    words = 1 << RANDOM_BITS
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal(axs6.formats()["axs6"].block).astype(np.float32)
    every = np.broadcast_to(x, (words, x.size))
    random = np.broadcast_to(np.arange(words)[:, None], every.shape)
    blocks = axs6.encode(every, rounding="stochastic", random=random)
    step = 2.0 ** (int(blocks.scales[0].ravel()[0]) - 127) / 31
    return float(np.abs(axs6.decode(blocks, np.float64).mean(0) - x).max() / step)


def gaussian_error(name: str) -> float:
    """Mean of abs(Q(x) - x) for values of a normal distribution, in standard deviations."""
    x = np.random.default_rng(SEED).standard_normal((1000, 1024)).astype(np.float32)
    return float(np.abs(axs6.decode(axs6.encode(x, name), np.float64) - x).mean())


def outliers(better: str, worse: str) -> float:
    """By how many dB a format is better where one value of 4,096 is a thousand times as large."""
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((1000, 1024)).astype(np.float32)
    x[rng.random(x.shape) < 1 / 4096] *= 1000
    inner = np.abs(x) < 10
    errors = [
        np.square(axs6.decode(axs6.encode(x, n), np.float64) - x)[inner] for n in (better, worse)
    ]
    return float(10 * np.log10(errors[1].sum() / errors[0].sum()))


def kurtosis() -> float:
    """Mean kurtosis of the blocks of 32 weights in the study's transformer."""
    from axs6.studies.models import transformer

    blocks = [
        weight.detach().numpy().reshape(-1, 32)
        for name, weight in transformer().model.named_parameters()
        if weight.ndim == 2 and weight.shape[1] % 32 == 0
    ]
    x = np.concatenate(blocks).astype(np.float64)
    x -= x.mean(axis=1, keepdims=True)
    return float(((x**4).mean(axis=1) / (x**2).mean(axis=1) ** 2).mean())


def theorem(name: str) -> float:
    """QSNR over the bound of Theorem 1, in dB: the least of several distributions.

    In the last one every value of a block but the first is half a step, and so is what the first
    is above a power of two: nothing is farther from the block's codes.
    """
    fmt = block_format(name)
    (shift,) = fmt.shifts
    bits = fmt.element.width - 1
    halves = np.full((1, fmt.block), 2.0 ** -(bits + shift.scale.largest_code))
    halves[0, : int(shift.group)] = 2.0**-bits
    halves[0, 0] += 1
    drawn = [np.concatenate([*draw(1000, SEED, each)]) for each in DISTRIBUTIONS]
    bound = qsnr_bound(name)
    assert bound is not None
    return min(axs6.qsnr(x, name) for x in (*drawn, halves.astype(np.float32))) - bound


def slope() -> float:
    """dB a bit: the straight line through QSNR over the bits of a microexponent format."""
    return float(np.polyfit(range(len(MICRO)), [levels()[name] for name in MICRO], 1)[0])


def differs_from_quark() -> int:
    """Values of random blocks whose MX9 step is not what Quark's page says, of 2^18."""
    rng = np.random.default_rng(SEED)
    x = (rng.standard_normal((1 << 14, 16)) * 2.0 ** rng.integers(-6, 7, (1 << 14, 16))).astype(
        np.float32
    )
    exponents = np.frexp(x)[1] - 1
    largest = exponents.max(axis=1, keepdims=True)
    small = (exponents.reshape(-1, 8, 2) < largest[..., None]).all(axis=2)
    step = 2.0 ** (largest - 8 + 2) * np.repeat(np.where(small, 0.5, 1.0), 2, axis=1)
    expected = np.clip(np.rint(x / step), -127, 127) * step
    return int((axs6.decode(axs6.encode(x, "mx9"), np.float64) != expected).sum())


def trained(study: str, recipe: str, column: int = 0) -> tuple[float, float]:
    """Loss, or accuracy in percent, of a training study and its deviation between seeds.

    Args:
        study: "gpt" or "vit".
        recipe: a line of its table.
        column: 0 for training, 1 for direct cast, 2 for fine-tuning.
    """
    lines = json.loads((DATA / f"training-{study}.json").read_text())["output"][0]
    (found,) = (line.split()[1:] for line in lines if line.split()[0] == recipe)
    value, deviation = found[2 * column : 2 * column + 2]
    return float(value.rstrip("%")), float(deviation.rstrip("%"))


def dot_widths() -> tuple[int, int]:
    """Bits of a product of two AXS-6 magnitudes, and of a block's sum of them with its sign."""
    fmt = CATALOG["axs6"]
    product = fmt.element.largest_code**2
    return product.bit_length(), Terms.of(fmt, fmt, Accumulator()).width


@cache
def in_hardware(name: str) -> Measurement:
    """A format in the Pareto study: its dot product and memory, over those of FP8."""
    return measurements_of(read_rows(ROOT / "docs" / "data" / "pareto.jsonl"))[name]


def dearer(one: str, other: str) -> float:
    """By how much percent a format's area times memory is above another's."""
    return 100 * (in_hardware(one).cost / in_hardware(other).cost - 1)


def largest_value() -> float:
    """The largest value of AXS-6."""
    fmt = block_format("axs6")
    scale = fmt.levels[0].scale
    return float(fmt.element.largest * scale.largest)


def element_range(name: str) -> tuple[float, float, float]:
    """An element's largest value, and log2 of its smallest normal value and of its smallest."""
    element = block_format(name).element
    unit = np.log2(float(element.smallest))
    return float(element.largest), unit + element.fraction_bits, unit


def nan_codes(name: str) -> int:
    """Codes of an element that are NaN."""
    element = block_format(name).element
    return sum(element.integer(code) is NotANumber.NAN for code in range(1 << element.width))
