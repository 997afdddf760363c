from collections.abc import Iterator

import pytest

from axs6.sim.batch import engine


@pytest.fixture(scope="package", autouse=True)
def models_without_optimisation() -> Iterator[None]:
    """Units run few items here: without optimisation g++ takes a third of the time.

    The tests of the batch simulator have its models as users do.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "OPTIONS", ("-O0",))
        yield
