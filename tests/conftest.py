import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Keep the builds of simulations with pytest's own cache, for every worker and child."""
    os.environ.setdefault("AXS6_CACHE", str(config.cache.mkdir("axs6")))
