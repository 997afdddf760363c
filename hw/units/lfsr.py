"""The source of random words as a unit."""

from itertools import pairwise

import numpy as np
from numpy.random import Generator

from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.lfsr import RANDOM_SEED
from axs6.golden.lfsr import Lfsr as GoldenLfsr
from axs6.golden.rounding import RANDOM_BITS
from axs6.hw.lfsr import Lfsr
from axs6.hw.units.unit import Fields, Items, Parameters, Unit


def golden_lfsr(parameters: Parameters) -> GoldenLfsr:
    """The golden register with a unit's parameters."""
    return GoldenLfsr(parameters["block"], parameters["lfsr_seed"], parameters["random_bits"])


def lfsr_items(items: Fields, parameters: Parameters) -> Items:
    """Words since the last restart."""
    count = len(items["restart"])
    words = np.empty((count, parameters["block"]), np.uint32)
    starts = np.flatnonzero(items["restart"])
    bounds = np.unique(np.concatenate([[0], starts, [count]]))
    for start, end in pairwise(bounds.tolist()):
        words[start:end] = golden_lfsr(parameters).draw(end - start)
    return {"random": words}


def _lfsr_corners(parameters: Parameters) -> Items:
    """Restarts after each number of words up to 8, and none for long."""
    gaps = np.concatenate([np.arange(9), [1000]])
    restart = np.zeros(gaps.sum() + len(gaps) + 1, np.int64)
    restart[np.cumsum(gaps + 1)] = 1
    return {"restart": restart}


def _lfsr_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    return {"restart": (rng.random(count) < 0.01).astype(np.int64)}


RANDOM_SAMPLES = {"random_bits": (RANDOM_BITS, 4, 32, 8)}
SEED_SAMPLES = {"lfsr_seed": (RANDOM_SEED, 1)}
"""Widths of random words, and states of lane 0 after reset, that tests use."""

LFSR = Unit(
    name="lfsr",
    summary="random words of a shift register for each lane",
    component=Lfsr,
    values=lambda formats: {"block": MODE_BLOCKS},
    golden=lfsr_items,
    corners=_lfsr_corners,
    random=_lfsr_random,
    samples={**RANDOM_SAMPLES, **SEED_SAMPLES},
    operation="value",
    remembers=True,
    blocks=False,
)
