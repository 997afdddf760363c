"""Inputs on which other implementations of the formats are compared, 2^21 values each."""

import importlib.util
import warnings
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

VALUES = 1 << 21


@pytest.fixture(scope="session")
def peer() -> Callable[[str, str], ModuleType]:
    """A module of a package of the extra `peers`; the test is skipped where that is missing."""

    def load(package: str, module: str) -> ModuleType:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install axs6[peers]")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of its own imports
            return importlib.import_module(module)

    return load


@pytest.fixture(scope="session")
def blocks_of() -> Callable[[int], np.ndarray]:
    """2^21 values in blocks of a size."""
    return lambda block: numbers(block, seed=block)


def numbers(block: int, seed: int) -> np.ndarray:
    """Finite float32 values (n, block): a quarter each of four kinds.

    Normal ones with the spread of weights; blocks over all exponents, subnormal values among
    them; bit patterns next to ties of up to ten bits; and powers of two, limits and zeros of both
    signs, with their neighbours.
    """
    rng = np.random.default_rng(seed)
    shape = (VALUES // 4 // block, block)
    plain = rng.standard_normal(shape) * np.abs(rng.standard_normal((shape[0], 1)))
    top = rng.integers(0, 255, (shape[0], 1))
    fields = np.maximum(top - rng.integers(0, rng.choice([2, 9, 40], (shape[0], 1)), shape), 0)
    fractions = rng.integers(0, 1 << 23, shape)
    wide = fields << 23 | fractions
    kept = rng.integers(13, 24, shape)
    ties = fields << 23 | fractions >> kept << kept | 1 << kept - 1
    near = ties + rng.integers(-1, 2, shape)
    special = np.clip((fields << 23) + rng.integers(-2, 3, shape), 0, 0x7F7FFFFF)
    special[rng.random(shape) < 0.1] = 0
    sign = rng.integers(0, 2, (3, *shape)) << 31
    patterns = (sign | np.stack([wide, near, special])).astype(np.uint32)
    patterns = patterns.reshape(-1, block).view(np.float32)
    return np.concatenate([plain.astype(np.float32), patterns])
