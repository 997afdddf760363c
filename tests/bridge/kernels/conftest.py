from collections.abc import Iterator

import numpy as np
import pytest

from axs6.torch import kernels


@pytest.fixture
def forms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms of other processors in a third of g++'s time; slow tests have them as users do."""
    if not request.node.get_closest_marker("slow"):
        for name in kernels.FORMS.keys() - {"native"}:
            monkeypatch.setitem(kernels.FORMS, name, (*kernels.FORMS[name], "-O1"))


@pytest.fixture(params=kernels.FORMS)
def form(request: pytest.FixtureRequest, forms: None) -> Iterator[str]:
    """Every form of the kernels that the processor can run, one after the other."""
    with kernels.use(request.param):
        yield request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
