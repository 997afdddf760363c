from collections.abc import Iterator

import numpy as np
import pytest

from axs6.torch import kernels


@pytest.fixture(params=kernels.FORMS)
def form(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every form of the kernels that the processor can run, one after the other."""
    with kernels.use(request.param):
        yield request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
