import os
import sys

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Keep the builds of simulations with pytest's own cache, for every worker and child."""
    if not os.environ.get("AXS6_CACHE"):
        os.environ["AXS6_CACHE"] = str(config.cache.mkdir("axs6"))


def pytest_collection_finish() -> None:
    # torch's compiled code crashes in a process that has loaded libyosys.
    assert "pyosys" not in sys.modules, "a module imports pyosys, which child processes only may"
