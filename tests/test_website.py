"""The documentation site is whole, and its build names what is wrong in a page."""

import json
import logging
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pages
import pytest
import reference
from catalogue import FIGURES
from figure import Figure
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from pages import ROOT
from readings import printed

from axs6.cli import commands
from axs6.hw.registry import ALL_UNITS

CONFIGURATION = ROOT / "mkdocs.yml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, without a warning but those of figures, which test_figures.py names too."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--no-strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert not [line for line in warnings if "run `make figures`" not in line]
    return folder


@pytest.mark.slow  # make docs builds the site, which takes 12 s
def test_the_site_needs_no_network(site: Path) -> None:
    loading = re.compile(r'<(?:script|img|iframe|link)\b[^>]*(?:src|href)="?(?:https?:)?//[^>]*>')
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(texts) > 30
    for path, text in texts.items():
        assert not loading.findall(text), path
    assert loading.findall('<script src="https://example.org/x.js"></script>')
    for path in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:", path.read_text(encoding="utf-8")), path


@pytest.mark.slow  # as the test before
def test_search_works_from_files(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "docs" / "concepts.html").as_uri())
    page.click("input[name=query]")
    page.keyboard.type("hadamard")
    page.wait_for_selector(".md-search-result__item a[href*='hardware.html']")
    page.close()
    assert asked
    assert all(url.startswith("file:") for url in asked)


def test_the_reference_has_all_commands_units_and_exports(site: Path) -> None:
    folder = site / "docs" / "reference"
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.html"))
    for name in commands():
        assert f'id="axs6-{name}"' in text
    for name in ALL_UNITS:
        assert f'id="{name}"' in text
    for module in reference.MODULES:
        for name in import_module(module).__all__:
            value = getattr(import_module(module), name)
            assert f'id="{value.__module__}.{value.__qualname__}"' in text


def test_files_outside_of_docs_have_pages(site: Path) -> None:
    text = (site / "docs" / "start" / "implementer.html").read_text(encoding="utf-8")
    assert 'href="../../source/examples/check_formats.c.html"' in text
    assert "block_formats.h" in (site / "source/examples/check_formats.c.html").read_text()


SMALL = {
    "README.md": "# Home\n\n[good](docs/good.md) [code](code/some.py) [all code](code)\n"
    + "".join(f"[{name}](docs/{name}.md)\n" for name in ("link", "outside", "anchor", "lost"))
    + "".join(f"[{name}](docs/{name}.md)\n" for name in ("old", "typed")),
    "code/some.py": "print('shown')\n",
    "docs/good.md": "[home](../README.md#home)\n\n<!-- figure: kept --><!-- /figure -->\n",
    "docs/link.md": "# Link\n\n[a page](nowhere.md)\n",
    "docs/outside.md": "# Outside\n\n[a file](../code/none.py)\n",
    "docs/anchor.md": "# Anchor\n\n[a heading](good.md#nothing)\n",
    "docs/old.md": "# Old\n\n<!-- figure: old -->\n<!-- /figure -->\n",
    "docs/typed.md": "# Typed\n\nSome <!-- figure: kept.rate -->3<!-- /figure -->\n",
    "docs/alone.md": "# Alone\n\n[itself](alone.md) [home](../README.md)\n",
    "docs/lost.md": "# Lost\n\n[home](../README.md)\n",
}
"""A site of small pages, most of which have one thing wrong."""

WRONG = {
    "docs/link.md": "nowhere.md",
    "docs/outside.md": "code/none.py",
    "docs/anchor.md": "nothing",
    "docs/old.md": "the figure old is older than numpy",
    "docs/typed.md": "it shows other figures than those that are kept",
    "docs/alone.md": "no other page links to it",
    "docs/lost.md": 'not included in the "nav"',
}
"""What the build says of each page that is wrong."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The small site, and the warnings of its build, which fails for them."""
    root = tmp_path_factory.mktemp("small")
    kept = {
        name: Figure(name, ("python rate.py",), printed, packages=("numpy",))
        for name in ("kept", "old")
    }
    (root / "docs" / "figures").mkdir(parents=True)
    (root / "code").mkdir()
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("mkdocs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("figure.DATA", root / "docs" / "figures")
        for name, figure in kept.items():
            patch.setitem(FIGURES, name, figure)
            measured_on = figure.measured_on() if name == "kept" else {"numpy": "1.0"}
            content = {"commands": figure.commands, "measured_on": measured_on, "output": [["1"]]}
            figure.path.write_text(json.dumps({**content, "values": {"rate": 2}}))
        for name, text in SMALL.items():
            filled = text if name == "docs/typed.md" else pages.fill(text, FIGURES)
            (root / name).write_text(filled)
        shared = CONFIGURATION.read_text().partition("\nnav:")[0]
        shared = shared.replace("benchmarks/website.py", str(ROOT / "benchmarks" / "website.py"))
        names = [name for name in SMALL if name.endswith(".md") and name != "docs/lost.md"]
        (root / "mkdocs.yml").write_text("\n".join([f"{shared}\nnav:", *(f"- {x}" for x in names)]))
        log.addHandler(handler)
        try:
            with pytest.raises(Abort, match=f"{len(WRONG)} warnings"):
                build(load_config(str(root / "mkdocs.yml")))
        finally:
            log.removeHandler(handler)
    return root / "build" / "site", warnings


@pytest.mark.parametrize("page", WRONG)
def test_the_build_names_what_is_wrong(said: tuple[Path, list[str]], page: str) -> None:
    (warning,) = [each for each in said[1] if page in each]
    assert WRONG[page] in warning


def test_pages_without_faults_are_built(said: tuple[Path, list[str]]) -> None:
    folder, warnings = said
    assert len(warnings) == len(WRONG)
    assert 'href="docs/good.html"' in (folder / "index.html").read_text()
    assert 'href="../index.html#home"' in (folder / "docs/good.html").read_text()
    assert "shown" in (folder / "source/code/some.py.html").read_text()
    assert "some.py" in (folder / "source/code.html").read_text()


def test_marks_must_name_tables() -> None:
    with pytest.raises(ValueError, match=r"must name one of commands, units, .*, not unit"):
        reference.fill("<!-- made: unit -->\n<!-- /made -->")
