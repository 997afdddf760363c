from collections.abc import Iterator

import numpy as np
import pytest

from axs6.torch import kernels


@pytest.fixture
def forms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms of other processors in a tenth of g++'s time; slow tests have users' options."""
    if not request.node.get_closest_marker("slow"):
        for name in kernels.FORMS.keys() - {"native"}:
            monkeypatch.setitem(kernels.FORMS, name, (*kernels.FORMS[name], "-O0"))


AS_USERS = [
    pytest.param(name, id=f"{name}-as-users", marks=pytest.mark.slow) for name in kernels.FORMS
]


@pytest.fixture(params=[*kernels.FORMS, *AS_USERS])
def form(request: pytest.FixtureRequest, forms: None) -> Iterator[str]:
    """Every form of the kernels that the processor can run, one after the other."""
    with kernels.use(request.param):
        yield request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
