import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Keep the builds of simulations with pytest's own cache, for every worker and child."""
    if not os.environ.get("AXS6_CACHE"):
        os.environ["AXS6_CACHE"] = str(config.cache.mkdir("axs6"))
