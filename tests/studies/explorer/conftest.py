"""A browser without a window, for tests of the explorer's page."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt install chromium): the page is not tested")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without its sandbox, which containers do not allow to root.
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()
