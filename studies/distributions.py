"""Distributions of random vectors on which formats are compared."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

LENGTH: Final = 1024
"""Values of a vector."""

CHUNK: Final = 500
"""Vectors drawn and encoded at a time, so that memory does not grow with their number."""

FREEDOM: Final = 3
"""Degrees of freedom of Student's t: its fourth moment is infinite."""

OUTLIERS: Final = (1 / 256, 32)
"""Share of the values that are outliers, and how many times larger they are."""

Draw = Callable[[np.random.Generator], NDArray[np.float64]]


def _paper(rng: np.random.Generator) -> NDArray[np.float64]:
    deviations = np.abs(rng.standard_normal((CHUNK, 1)))
    return deviations * rng.standard_normal((CHUNK, LENGTH))


def _outliers(rng: np.random.Generator) -> NDArray[np.float64]:
    share, factor = OUTLIERS
    values = rng.standard_normal((CHUNK, LENGTH))
    return np.where(rng.random((CHUNK, LENGTH)) < share, factor, 1) * values


DISTRIBUTIONS: Final[Mapping[str, Draw]] = {
    "paper": _paper,
    "gauss": lambda rng: rng.standard_normal((CHUNK, LENGTH)),
    "uniform": lambda rng: rng.uniform(-1, 1, (CHUNK, LENGTH)),
    "laplace": lambda rng: rng.laplace(size=(CHUNK, LENGTH)),
    "student": lambda rng: rng.standard_t(FREEDOM, (CHUNK, LENGTH)),
    "outliers": _outliers,
}
"""Functions that draw a chunk of vectors, by the name of the distribution. paper: normal; the
standard deviation of each vector is the magnitude of a normally distributed number, as in the
shared-microexponents paper; gauss: normal; uniform: from -1 to 1; laplace: exponential to both
sides; student: Student's t with `FREEDOM`; outliers: normal, some values larger by `OUTLIERS`."""


def draw(vectors: int, seed: int, distribution: str = "paper") -> Iterator[NDArray[np.float32]]:
    """Vectors in chunks, (vectors, LENGTH); the first ones do not depend on the number."""
    rng = np.random.default_rng(seed)
    for start in range(0, vectors, CHUNK):
        yield DISTRIBUTIONS[distribution](rng)[: vectors - start].astype(np.float32)
